//! Measures what the Responses API and Chat Completions cost in comparison with the model's own API:
//! the added time to the first token, at 1 and at 32 streams, and the requests per second at 32. The
//! real binary runs between a scripted model and a client, both in this process; it stores the
//! responses or not. It is compared with direct calls of the model, with a plain proxy built on the same
//! libraries, and, for chat completions, with responses that are not stored. The variants alternate
//! (ABBA), and a ratio is the median of the ratios of the rounds. Nothing is
//! asserted, and results on a machine with other load are not valid.

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
use crate::machine::{LoadMeter, Process, median};

const ROUNDS: usize = 20;
/// No round starts after this time.
const MAX_DURATION: Duration = Duration::from_secs(90);
const STREAMS: usize = 32;
/// The requests of one throughput measurement.
const REQUESTS: usize = 160;

/// The indexes of the chat completion and of the response that is not stored in the list of variants.
const CHAT: usize = 4;
const UNSTORED: usize = 2;

/// A measured endpoint.
struct Variant {
    name: &'static str,
    url: String,
    key: String,
    body: Value,
    /// A string that occurs in the first chunk of the text.
    first: &'static str,
    client: Client,
    rounds: Vec<Round>,
}

/// The measurements of one variant in one round.
#[derive(Default)]
struct Round {
    /// Time to the first token, in ms: of a single stream, and of each of `STREAMS` streams.
    single: Vec<f64>,
    concurrent: Vec<f64>,
    /// Requests per second.
    rate: f64,
}

fn main() {
    if pass_through::serve_if_selected() {
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
    let proxy = Process::start_self(pass_through::TO, &upstream.base_url());
    let mut load = LoadMeter::new([&server, &proxy]);
    let person = HttpClient::set_up(&server.url, "ann").await;
    let (_, made) = person
        .post("/api/api_keys", json!({ "name": "bench" }))
        .await;
    let key = made["key"].as_str().unwrap().to_owned();
    let chat = |name, url: String| Variant::new(name, url, "", json!({ "stream": true }), "tick");
    let responses = |name, store| {
        let body = json!({ "model": "scripted", "input": "Tick?", "store": store });
        let url = format!("{}/v1/responses", server.url);
        Variant::new(name, url, &key, body, "output_text.delta")
    };
    let mut variants = [
        chat(
            "the model itself",
            format!("{}/chat/completions", upstream.base_url()),
        ),
        chat(
            "plain pass-through",
            format!("{}/v1/chat/completions", proxy.url),
        ),
        responses("troupe, store:false", false),
        responses("troupe, stored", true),
        Variant::new(
            "troupe, chat completion",
            format!("{}/v1/chat/completions", server.url),
            &key,
            json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Tick?" }] }),
            "tick",
        ),
    ];
    let began = Instant::now();
    // The first round is a warm-up of every variant and is not counted.
    for n in 0..=ROUNDS {
        if began.elapsed() > MAX_DURATION {
            break;
        }
        load.begin();
        for variant in &mut variants {
            variant.rounds.push(Round::default());
        }
        let forward = 0..variants.len();
        for at in forward.clone().chain(forward.rev()) {
            variants[at].measure_round().await;
        }
        load.end();
        if n == 0 {
            variants.iter_mut().for_each(|it| it.rounds.clear());
        }
    }
    print(&variants);
    print_chat(&variants[CHAT], &variants[UNSTORED]);
    println!("{}", load.verdict());
    println!("resident at the end: {:.1} MiB", server.resident_mib());
}

impl Variant {
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

    async fn measure_round(&mut self) {
        let single = self.first_token().await;
        let concurrent = join_all((0..STREAMS).map(|_| self.first_token())).await;
        let began = Instant::now();
        let all = stream::iter(0..REQUESTS).map(|_| self.complete_response());
        all.buffer_unordered(STREAMS).for_each(async |()| {}).await;
        let rate = REQUESTS as f64 / began.elapsed().as_secs_f64();
        let round = self.rounds.last_mut().unwrap();
        round.single.push(single);
        round.concurrent.extend(concurrent);
        // Each round measures every variant twice (ABBA): this is the mean.
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

    /// Returns the time to the first chunk of the text, in ms, and reads the rest.
    async fn first_token(&self) -> f64 {
        let began = Instant::now();
        let mut answer = self.send(true).await;
        let (mut received, mut took) = (String::new(), None);
        while let Some(chunk) = answer.chunk().await.unwrap() {
            if took.is_none() {
                received.push_str(&String::from_utf8_lossy(&chunk));
                took = received.contains(self.first).then(|| began.elapsed());
            }
        }
        took.unwrap().as_secs_f64() * 1_000.0
    }

    /// Reads one complete response.
    async fn complete_response(&self) {
        self.send(false).await.bytes().await.unwrap();
    }
}

fn print(variants: &[Variant]) {
    println!(
        "\nto the first token, ms (median)   1 stream  added  ÷ pass   32 streams  added  ÷ pass   requests/s  ÷ pass"
    );
    for variant in variants {
        let one = figures(variant, &variants[0], &variants[1], |it| {
            median(it.single.iter().copied())
        });
        let many = figures(variant, &variants[0], &variants[1], |it| {
            median(it.concurrent.iter().copied())
        });
        let rate = figures(variant, &variants[0], &variants[1], |it| it.rate);
        println!(
            "{:<33} {:>8.2} {:>6.2} {:>7.2}   {:>10.2} {:>6.2} {:>7.2}   {:>10.0} {:>7.2}",
            variant.name, one.0, one.1, one.2, many.0, many.1, many.2, rate.0, rate.2
        );
    }
}

/// Prints the ratios of a chat completion to a response that is not stored.
fn print_chat(chat: &Variant, response: &Variant) {
    let ratio = |figure: fn(&Round) -> f64| figures(chat, response, response, figure).2;
    let one = ratio(|it| median(it.single.iter().copied()));
    let many = ratio(|it| median(it.concurrent.iter().copied()));
    let rate = ratio(|it| it.rate);
    println!(
        "chat completion ÷ store:false: {one:.2} to the first token of 1 stream, {many:.2} of {STREAMS}, {rate:.2} requests/s"
    );
}

/// The medians over the rounds of a figure, of its difference to the model's own, and of its ratio to
/// the pass-through's.
fn figures(
    variant: &Variant,
    model: &Variant,
    proxy: &Variant,
    figure: fn(&Round) -> f64,
) -> (f64, f64, f64) {
    let of = |variant: &Variant| variant.rounds.iter().map(figure).collect::<Vec<f64>>();
    let (own, direct, peer) = (of(variant), of(model), of(proxy));
    let added: Vec<f64> = own.iter().zip(&direct).map(|(a, b)| a - b).collect();
    let ratio: Vec<f64> = own.iter().zip(&peer).map(|(a, b)| a / b).collect();
    (median(own), median(added), median(ratio))
}
