//! Measures how long a post waits while another conversation of 200,000 messages is branched,
//! regenerated in, searched, exported and deleted.
//!
//! One person posts to a small conversation, one message after another, first with nothing else on
//! the server and then during each job; what is printed is the ratio of the 99th percentile to the
//! quiet one (goal: 3 at most) and the longest wait (goal: 100 ms at most). SQLite, and PostgreSQL
//! too where `BENCH_POSTGRES_URL` names an empty database. `BENCH_MESSAGES` changes the number of
//! messages. Nothing is asserted.

// A measuring program: it prints, and what goes wrong ends it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/it/support/fake_provider/mod.rs"]
#[allow(dead_code)]
mod fake_provider;
#[path = "../tests/it/support/http_client.rs"]
#[allow(dead_code)]
mod http_client;
#[path = "stream_delay/machine.rs"]
#[allow(dead_code)]
mod machine;

use std::env;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::fake_provider::script::ResponseScript;
use crate::fake_provider::server::FakeProvider;
use crate::http_client::{HttpClient, expect, http_client, id, root_of};
use crate::machine::Process;

const QUIET: Duration = Duration::from_secs(8);
/// Between two posts.
const PACE: Duration = Duration::from_millis(4);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const BOUNDARY: &str = "----a-line-that-no-chat-holds";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    machine::calibrate();
    let n = env::var("BENCH_MESSAGES").map_or(200_000, |it| it.parse().unwrap());
    measure("SQLite", n, &[]).await;
    match env::var("BENCH_POSTGRES_URL") {
        Ok(url) => {
            let secret = "0".repeat(64);
            let env = [
                ("DATABASE_URL", url.as_str()),
                ("TROUPE_SECRET_KEY", secret.as_str()),
            ];
            measure("PostgreSQL", n, &env).await;
        }
        Err(_) => println!("PostgreSQL: not measured, BENCH_POSTGRES_URL is not set"),
    }
}

async fn measure(name: &str, n: usize, env: &[(&str, &str)]) {
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::say("Another line."));
    let folder = tempfile::tempdir().unwrap();
    let server = Process::server_with(folder, "0", &upstream.base_url(), env);
    let person = HttpClient::set_up(&server.url, "ann").await;
    let here = person
        .create_space("Here", json!({"reply_order": "manual"}))
        .await;
    let here = root_of(&here);
    let space = person
        .create_space("There", json!({"reply_order": "manual"}))
        .await;
    let character = person.create_character("Ada", None).await;
    person.add_character(&space, &character).await;
    let space = id(&space);
    let long = import(&person, space, n).await;
    println!(
        "\n{name}, {n} messages                         jobs   posts    p50 ms    p99 ms   ÷ quiet    longest"
    );

    let mut stage = Stage {
        person,
        here,
        space,
        long,
        quiet: f64::NAN,
    };
    stage.during("quiet", async |_| sleep(QUIET).await).await;
    let mut branch = 0;
    stage
        .during("branch", async |it| {
            let path = format!("/api/conversations/{}/branch", it.long);
            let begun = it
                .person
                .post(&path, json!({"message_id": it.last().await}))
                .await;
            branch = it.ended(begun).await["conversation_id"].as_i64().unwrap();
        })
        .await;
    stage
        .during("regenerate in a branch", async |it| {
            let path = format!("/api/conversations/{}/regenerate", it.long);
            let begun = it
                .person
                .post(&path, json!({"message_id": it.early().await}))
                .await;
            it.ended(begun).await;
        })
        .await;
    stage
        .during("search", async |it| {
            for word in ["nightingale", "line 77", "zz"] {
                let path = format!("/api/search?q={}", word.replace(' ', "%20"));
                expect(200, it.person.get(&path).await);
            }
        })
        .await;
    stage
        .during("export", async |it| {
            let path = format!(
                "{}/api/conversations/{}/export?format=jsonl",
                it.person.base(),
                it.long
            );
            let request = http_client().get(path).header("cookie", it.person.cookie());
            let file = request.send().await.unwrap().bytes().await.unwrap();
            assert!(file.len() > n);
        })
        .await;
    stage
        .during("delete a conversation", async |it| {
            let begun = it
                .person
                .delete(&format!("/api/conversations/{branch}"))
                .await;
            it.ended(begun).await;
        })
        .await;
    stage
        .during("delete the space", async |it| {
            let begun = it.person.delete(&format!("/api/spaces/{}", it.space)).await;
            it.ended(begun).await;
        })
        .await;
    println!("resident after it all: {:.1} MiB", server.resident_mib());
}

struct Stage {
    person: HttpClient,
    here: i64,
    space: i64,
    long: i64,
    /// The 99th percentile with nothing else on the server, in ms.
    quiet: f64,
}

impl Stage {
    /// Posts one message after another until the work is done; prints what they took.
    async fn during(&mut self, name: &str, work: impl AsyncFnOnce(&Stage)) {
        let began = Instant::now();
        let mut waits: Vec<f64> = Vec::new();
        {
            let posts = async {
                loop {
                    let began = Instant::now();
                    let posted = self.person.post_message(self.here, "Tick.", None).await;
                    expect(201, posted);
                    waits.push(began.elapsed().as_secs_f64() * 1_000.0);
                    sleep(PACE).await;
                }
            };
            tokio::select! {
                () = work(self) => {}
                () = posts => {}
            }
        }
        let took = began.elapsed().as_secs_f64();
        waits.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (waits.len() as f64 * share) as usize;
            waits
                .get(place.min(waits.len().saturating_sub(1)))
                .copied()
                .unwrap_or(f64::NAN)
        };
        let p99 = at(0.99);
        if self.quiet.is_nan() {
            self.quiet = p99;
        }
        println!(
            "{name:<38} {took:>7.1} s {:>7} {:>9.2} {p99:>9.2} {:>9.2} {:>10.2}",
            waits.len(),
            at(0.5),
            p99 / self.quiet,
            at(1.0),
        );
    }

    async fn last(&self) -> i64 {
        id(self.person.messages(self.long).await.last().unwrap())
    }

    /// A reply far from the end.
    async fn early(&self) -> i64 {
        let path = format!(
            "/api/conversations/{}/messages?after=190000&limit=2",
            self.long
        );
        let path = match self.person.get(&path).await {
            (200, page) if !page["data"].as_array().unwrap().is_empty() => path,
            _ => format!("/api/conversations/{}/messages?limit=20", self.long),
        };
        let page = expect(200, self.person.get(&path).await);
        let all = page["data"].as_array().unwrap();
        id(all.iter().find(|it| it["role"] == "assistant").unwrap())
    }

    /// The job of an answer once it has ended; the answer itself where there is none.
    async fn ended(&self, begun: (u16, Value)) -> Value {
        assert!((200..300).contains(&begun.0), "{}", begun.1);
        let Some(job) = begun.1["job"]["id"].as_i64() else {
            return begun.1;
        };
        loop {
            let now = expect(200, self.person.get(&format!("/api/jobs/{job}")).await);
            match now["status"].as_str() {
                Some("running") => sleep(LOOK_EVERY).await,
                Some("succeeded") => return now,
                _ => panic!("{now}"),
            }
        }
    }
}

/// Imports a chat of `n` messages and returns its conversation.
async fn import(person: &HttpClient, space: i64, n: usize) -> i64 {
    let mut file = String::from("{\"user_name\":\"ann\",\"character_name\":\"Ada\"}\n");
    for i in 0..n {
        let (name, is_user) = if i % 2 == 0 {
            ("ann", true)
        } else {
            ("Ada", false)
        };
        let word = if i % 10_000 == 0 {
            "nightingale"
        } else {
            "sparrow"
        };
        let text = format!("This is line {i} of a long evening, and a {word} sings outside.");
        let line = json!({"name": name, "is_user": is_user, "mes": text});
        writeln!(file, "{line}").unwrap();
    }
    let body = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"long.jsonl\"\r\n\r\n{file}\r\n--{BOUNDARY}--\r\n"
    );
    let request = http_client()
        .post(format!("{}/api/spaces/{space}/import", person.base()))
        .header("cookie", person.cookie())
        .header(
            "content-type",
            format!("multipart/form-data; boundary={BOUNDARY}"),
        )
        .body(body);
    let begun: Value = request.send().await.unwrap().json().await.unwrap();
    let path = format!("/api/imports/{}", begun["id"]);
    loop {
        let now = expect(200, person.get(&path).await);
        match now["status"].as_str() {
            Some("running") => sleep(LOOK_EVERY).await,
            _ => return now["conversation_id"].as_i64().unwrap(),
        }
    }
}
