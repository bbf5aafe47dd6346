//! Tests that responses with `store: false` leave nothing in memory.

use std::env;

use futures::{StreamExt, stream};
use serde_json::json;

use super::fixture::text;
use crate::support::backends::{TestBackend, fresh_database};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::HttpClient;
use crate::support::process::Server;
use crate::support::test_space::model_env;
use crate::support::v1_client::V1Client;

/// The calls before the measurement, in which pools, caches and the allocator reach their size.
const WARM_UP: usize = 500;

/// A leak of 2 KiB a call is 20 000 KiB after 10 000 calls.
const MAX_GROWTH_KIB: u64 = 12 * 1024;

const AT_ONCE: usize = 8;

/// Makes this number of calls: each third one is streamed, each seventh one aborted.
async fn call(program: &V1Client, n_calls: usize) {
    let one = |n: usize| async move {
        let mut body = json!({
            "input": "Where is my canary? ".repeat(20), "store": false,
            "tools": [{ "type": "troupe:time" }],
        });
        match n {
            n if n % 7 == 0 => {
                body["instructions"] = json!("Do not end.");
                let mut stream = program.stream(body).await;
                stream.until("response.output_text.delta").await;
            }
            n if n % 3 == 0 => {
                let events = program.stream(body).await.rest().await;
                assert_eq!(events.last().unwrap()["type"], "response.completed");
            }
            _ => assert_eq!(text(&program.respond(body).await), "It is noon."),
        }
    };
    let calls = stream::iter(0..n_calls).map(one);
    calls.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unstored_responses_do_not_leak_memory() {
    let is_slow_run = env::var("TROUPE_SLOW_TESTS").is_ok_and(|value| value == "1");
    let n_calls = if is_slow_run { 10_000 } else { 1_000 };
    let database = fresh_database(&TestBackend::Sqlite).await;
    let upstream = FakeProvider::start().await;
    upstream.answer_with(|body| {
        let messages = body["messages"]
            .as_array()
            .expect("the request has no messages");
        match messages.last().map(|it| &it["role"]) {
            _ if messages[0]["role"] == "system" => {
                ResponseScript::stream().role().words("It is ").hang()
            }
            Some(role) if role == "tool" => ResponseScript::say("It is noon."),
            _ => ResponseScript::calls(&[("call_1", "troupe_time", "{}")]),
        }
    });
    let base_url = upstream.base_url();
    let no_limit = [("RESPONSES_RATE_PER_MINUTE", "0")];
    let env = [&model_env(&base_url)[..], &no_limit].concat();
    let server = Server::start(&database, &env).await;
    let program = V1Client::new(&HttpClient::set_up(&server.url(), "ann").await).await;
    call(&program, WARM_UP).await;
    let before = server.memory_kib();

    call(&program, n_calls).await;

    let growth = server.memory_kib().saturating_sub(before);
    eprintln!("{n_calls} calls: {before} KiB before, {growth} KiB more after");
    assert!(
        growth < MAX_GROWTH_KIB,
        "{growth} KiB after {n_calls} calls"
    );
}
