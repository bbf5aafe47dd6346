//! Measures what the Responses API costs in comparison with the model's own API: the added time to
//! the first token, at 1 and at 32 streams, and the requests per second at 32. The real binary,
//! with and without storing, is between a scripted model and a client, both in this process. The
//! comparisons are the model called directly, and a plain proxy built on the same libraries. The
//! variants alternate (ABBA), and a ratio is the median of the ratios of the rounds. Nothing is
//! asserted, and a machine with other load gives no verdict.

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
#[path = "responses/pass_through.rs"]
mod pass_through;

use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{StreamExt, stream};
use reqwest::Client;
use serde_json::{Value, json};

use crate::fake_provider::script::ResponseScript;
use crate::fake_provider::server::FakeProvider;
use crate::http_client::HttpClient;
use crate::machine::{Process, Quiet};

const ROUNDS: usize = 20;
/// No round is begun after this.
const LONGEST: Duration = Duration::from_secs(90);
const STREAMS: usize = 32;
/// Requests of one measure of the throughput.
const REQUESTS: usize = 160;

/// One way to the model.
struct Way {
    name: &'static str,
    url: String,
    key: String,
    body: Value,
    /// What the first piece of the text looks like on this wire.
    first: &'static str,
    client: Client,
    rounds: Vec<Round>,
}

/// What one way took in one round.
#[derive(Default)]
struct Round {
    /// Until the first token, in ms: alone, and of each of many.
    alone: Vec<f64>,
    crowd: Vec<f64>,
    /// Requests in a second.
    rate: f64,
}

fn main() {
    if pass_through::runs() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    machine::calibrate();
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::say(
        "tick tock tick tock tick tock tick tock",
    ));
    let server = Process::server(tempfile::tempdir().unwrap(), "0", &upstream.base_url());
    let pass = Process::again(pass_through::TO, &upstream.base_url());
    let mut quiet = Quiet::new([&server, &pass]);
    let person = HttpClient::set_up(&server.url, "ann").await;
    let (_, made) = person
        .post("/api/api_keys", json!({ "name": "bench" }))
        .await;
    let key = made["key"].as_str().unwrap().to_owned();
    let chat = |name, url: String| Way::new(name, url, "", json!({ "stream": true }), "tick");
    let responses = |name, store| {
        let body = json!({ "model": "scripted", "input": "Tick?", "store": store });
        let url = format!("{}/v1/responses", server.url);
        Way::new(name, url, &key, body, "output_text.delta")
    };
    let mut ways = [
        chat(
            "the model itself",
            format!("{}/chat/completions", upstream.base_url()),
        ),
        chat(
            "plain pass-through",
            format!("{}/v1/chat/completions", pass.url),
        ),
        responses("troupe, store:false", false),
        responses("troupe, stored", true),
    ];
    let began = Instant::now();
    // The first round warms every way up and is not counted.
    for n in 0..=ROUNDS {
        if began.elapsed() > LONGEST {
            break;
        }
        quiet.begin();
        for way in &mut ways {
            way.rounds.push(Round::default());
        }
        let there = 0..ways.len();
        for at in there.clone().chain(there.rev()) {
            ways[at].take_a_round().await;
        }
        quiet.end();
        if n == 0 {
            ways.iter_mut().for_each(|it| it.rounds.clear());
        }
    }
    print(&ways);
    println!("{}", quiet.verdict());
    println!("resident after it all: {:.1} MiB", server.resident_mib());
}

impl Way {
    fn new(name: &'static str, url: String, key: &str, body: Value, first: &'static str) -> Self {
        Self {
            name,
            url,
            key: key.to_owned(),
            body,
            first,
            client: Client::builder().tcp_nodelay(true).build().unwrap(),
            rounds: Vec::new(),
        }
    }

    async fn take_a_round(&mut self) {
        let alone = self.first_token().await;
        let crowd = join_all((0..STREAMS).map(|_| self.first_token())).await;
        let began = Instant::now();
        let all = stream::iter(0..REQUESTS).map(|_| self.whole());
        all.buffer_unordered(STREAMS).for_each(async |()| {}).await;
        let rate = REQUESTS as f64 / began.elapsed().as_secs_f64();
        let round = self.rounds.last_mut().unwrap();
        round.alone.push(alone);
        round.crowd.extend(crowd);
        // There and back: the mean of both.
        round.rate = if round.rate == 0.0 {
            rate
        } else {
            f64::midpoint(round.rate, rate)
        };
    }

    async fn send(&self, streams: bool) -> reqwest::Response {
        let mut body = self.body.clone();
        if streams {
            body["stream"] = json!(true);
        }
        let request = self
            .client
            .post(&self.url)
            .bearer_auth(&self.key)
            .json(&body);
        request.send().await.unwrap().error_for_status().unwrap()
    }

    /// Until the first piece of the text came, in ms; the rest is read, too.
    async fn first_token(&self) -> f64 {
        let began = Instant::now();
        let mut answer = self.send(true).await;
        let (mut heard, mut took) = (String::new(), None);
        while let Some(chunk) = answer.chunk().await.unwrap() {
            if took.is_none() {
                heard.push_str(&String::from_utf8_lossy(&chunk));
                took = heard.contains(self.first).then(|| began.elapsed());
            }
        }
        took.unwrap().as_secs_f64() * 1_000.0
    }

    /// One whole answer.
    async fn whole(&self) {
        self.send(false).await.bytes().await.unwrap();
    }
}

fn print(ways: &[Way]) {
    println!(
        "\nto the first token, ms (median)   1 stream  added  ÷ pass   32 streams  added  ÷ pass   requests/s  ÷ pass"
    );
    for way in ways {
        let one = figures(way, &ways[0], &ways[1], |it| median(&it.alone));
        let many = figures(way, &ways[0], &ways[1], |it| median(&it.crowd));
        let rate = figures(way, &ways[0], &ways[1], |it| it.rate);
        println!(
            "{:<33} {:>8.2} {:>6.2} {:>7.2}   {:>10.2} {:>6.2} {:>7.2}   {:>10.0} {:>7.2}",
            way.name, one.0, one.1, one.2, many.0, many.1, many.2, rate.0, rate.2
        );
    }
}

/// The median of a figure over the rounds, of what it is beyond the model's own, and of its ratio to
/// the pass-through's.
fn figures(way: &Way, model: &Way, pass: &Way, figure: fn(&Round) -> f64) -> (f64, f64, f64) {
    let of = |way: &Way| way.rounds.iter().map(figure).collect::<Vec<f64>>();
    let (own, least, peer) = (of(way), of(model), of(pass));
    let added: Vec<f64> = own.iter().zip(&least).map(|(a, b)| a - b).collect();
    let ratio: Vec<f64> = own.iter().zip(&peer).map(|(a, b)| a / b).collect();
    (median(&own), median(&added), median(&ratio))
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
