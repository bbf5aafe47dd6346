//! Measures how long a post waits while another conversation of 200,000 messages is branched,
//! regenerated in, searched, exported and deleted.
//!
//! One user posts to a small conversation, one message after another, first without a job and then
//! during each job. Prints the ratio of the 99th percentile to the one without a job (goal: at most
//! 3) and the longest wait (goal: at most 100 ms). Runs on SQLite, and on PostgreSQL if
//! `BENCH_POSTGRES_URL` is the URL of an empty database. `BENCH_MESSAGES` changes the number of
//! messages. Nothing is asserted.

// A benchmark prints its results and panics on errors.
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
/// The pause between two posts.
const PACE: Duration = Duration::from_millis(4);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
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
    let small_conversation = person
        .create_space("Here", json!({"reply_order": "manual"}))
        .await;
    let small_conversation = root_of(&small_conversation);
    let space = person
        .create_space("There", json!({"reply_order": "manual"}))
        .await;
    let character = person.create_character("Ada", None).await;
    person.add_character(&space, &character).await;
    let space = id(&space);
    let large_conversation = import(&person, space, n).await;
    println!(
        "\n{name}, {n} messages                         jobs   posts    p50 ms    p99 ms   ÷ quiet    longest"
    );

    let mut bench = Bench {
        person,
        small_conversation,
        space,
        large_conversation,
        quiet: f64::NAN,
    };
    bench.during("quiet", async |_| sleep(QUIET).await).await;
    let mut branch = 0;
    bench
        .during("branch", async |it| {
            let path = format!("/api/conversations/{}/branch", it.large_conversation);
            let response = it
                .person
                .post(&path, json!({"message_id": it.last_message().await}))
                .await;
            branch = it.wait_for_job(response).await["conversation_id"]
                .as_i64()
                .unwrap();
        })
        .await;
    bench
        .during("regenerate in a branch", async |it| {
            let path = format!("/api/conversations/{}/regenerate", it.large_conversation);
            let response = it
                .person
                .post(&path, json!({"message_id": it.early_reply().await}))
                .await;
            it.wait_for_job(response).await;
        })
        .await;
    bench
        .during("search", async |it| {
            for word in ["nightingale", "line 77", "zz"] {
                let path = format!("/api/search?q={}", word.replace(' ', "%20"));
                expect(200, it.person.get(&path).await);
            }
        })
        .await;
    bench
        .during("export", async |it| {
            let path = format!(
                "{}/api/conversations/{}/export?format=jsonl",
                it.person.base(),
                it.large_conversation
            );
            let request = http_client().get(path).header("cookie", it.person.cookie());
            let file = request.send().await.unwrap().bytes().await.unwrap();
            assert!(file.len() > n);
        })
        .await;
    bench
        .during("delete a conversation", async |it| {
            let response = it
                .person
                .delete(&format!("/api/conversations/{branch}"))
                .await;
            it.wait_for_job(response).await;
        })
        .await;
    bench
        .during("delete the space", async |it| {
            let response = it.person.delete(&format!("/api/spaces/{}", it.space)).await;
            it.wait_for_job(response).await;
        })
        .await;
    println!("resident at the end: {:.1} MiB", server.resident_mib());
}

struct Bench {
    person: HttpClient,
    small_conversation: i64,
    space: i64,
    large_conversation: i64,
    /// The 99th percentile with nothing else on the server, in ms.
    quiet: f64,
}

impl Bench {
    /// Posts one message after another until the work is done; prints the durations of the posts.
    async fn during(&mut self, name: &str, work: impl AsyncFnOnce(&Bench)) {
        let began = Instant::now();
        let mut waits: Vec<f64> = Vec::new();
        {
            let posts = async {
                loop {
                    let began = Instant::now();
                    let posted = self
                        .person
                        .post_message(self.small_conversation, "Tick.", None)
                        .await;
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
            let index = (waits.len() as f64 * share) as usize;
            waits
                .get(index.min(waits.len().saturating_sub(1)))
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

    async fn last_message(&self) -> i64 {
        id(self
            .person
            .messages(self.large_conversation)
            .await
            .last()
            .unwrap())
    }

    /// A reply far from the end.
    async fn early_reply(&self) -> i64 {
        let path = format!(
            "/api/conversations/{}/messages?after=190000&limit=2",
            self.large_conversation
        );
        let path = match self.person.get(&path).await {
            (200, page) if !page["data"].as_array().unwrap().is_empty() => path,
            _ => format!(
                "/api/conversations/{}/messages?limit=20",
                self.large_conversation
            ),
        };
        let page = expect(200, self.person.get(&path).await);
        let all = page["data"].as_array().unwrap();
        id(all.iter().find(|it| it["role"] == "assistant").unwrap())
    }

    /// Waits for the job of a response and returns it; without a job, returns the response.
    async fn wait_for_job(&self, response: (u16, Value)) -> Value {
        assert!((200..300).contains(&response.0), "{}", response.1);
        let Some(job) = response.1["job"]["id"].as_i64() else {
            return response.1;
        };
        loop {
            let now = expect(200, self.person.get(&format!("/api/jobs/{job}")).await);
            match now["status"].as_str() {
                Some("running") => sleep(POLL_INTERVAL).await,
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
    let response: Value = request.send().await.unwrap().json().await.unwrap();
    let path = format!("/api/imports/{}", response["id"]);
    loop {
        let now = expect(200, person.get(&path).await);
        match now["status"].as_str() {
            Some("running") => sleep(POLL_INTERVAL).await,
            _ => return now["conversation_id"].as_i64().unwrap(),
        }
    }
}
