//! Tests many concurrent calls of all kinds: each gets its own text.

use std::time::Duration;

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::fixture::{V1Fixture, deltas, id, text};
use super::simple_client::fold_items;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

const N_STREAMS: usize = 100;

/// The limit of concurrent calls to one provider.
const N_CALLS: usize = 64;

/// How a stream is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Storage {
    Stored,
    Nowhere,
    InTheBackground,
}

impl Storage {
    fn of(n: usize) -> Self {
        match n % 5 {
            0 => Self::InTheBackground,
            1 => Self::Nowhere,
            _ => Self::Stored,
        }
    }
}

/// A prompt and a reply that only this stream has.
fn marker(n: usize) -> String {
    format!("<{n:03}>")
}

/// Piece by piece, each with its marker.
fn words(marker: &str) -> Vec<String> {
    (0..12).map(|at| format!("{at}{marker} ")).collect()
}

fn script(body: &Value) -> ResponseScript {
    let asked = body["messages"][0]["content"]
        .as_str()
        .expect("a text was asked");
    let marker = asked.rsplit(' ').next().expect("it ends with its marker");
    let begun = ResponseScript::stream().role();
    let said = words(marker).into_iter().fold(begun, |it, word| {
        it.text(&word).pause(Duration::from_millis(5))
    });
    said.finish("stop").usage(1, 12).done()
}

fn body(n: usize) -> Value {
    let kept = Storage::of(n);
    json!({
        "input": format!("Say {}", marker(n)), "metadata": { "n": marker(n) },
        "store": kept != Storage::Nowhere, "background": kept == Storage::InTheBackground,
    })
}

async fn assert_complete(stage: &V1Fixture, n: usize, events: &[Value]) {
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["status"], "completed");
    assert_eq!(
        deltas(events),
        words(&marker(n)),
        "all its words, each once"
    );
    assert_eq!(text(response), words(&marker(n)).concat());
    assert_eq!(json!(fold_items(events)), response["output"]);
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at);
    }
    let told = json!(events).to_string();
    let others = (0..N_STREAMS).filter(|it| *it != n).map(marker);
    assert!(!others.into_iter().any(|it| told.contains(&it)), "{told}");
    let path = format!("/responses/{}", id(response));
    let (status, found) = stage.program.get(&path).await;
    match Storage::of(n) {
        Storage::Nowhere => assert_eq!(status, 404),
        _ => assert_eq!((status, &found), (200, response)),
    }
    if Storage::of(n) == Storage::InTheBackground {
        let again = stage.program.replay(id(response), None).await;
        assert_eq!(again.rest().await, events);
    }
}

on_sqlite! {
    async fn a_hundred_concurrent_streams_each_get_their_own_text(backend) {
        let stage = V1Fixture::open_with(backend, &[("RESPONSES_MAX_BACKGROUND", "100")]).await;
        let gate = stage.upstream.gate();
        stage.upstream.answer_with(script);

        let program = &stage.program;
        let all = (0..N_STREAMS).map(|n| async move { program.stream(body(n)).await.rest().await });
        let opened = async {
            stage.upstream.wait_for_requests(N_CALLS).await;
            gate.open();
        };
        let (all, ()) = join(join_all(all), opened).await;

        for (n, events) in all.iter().enumerate() {
            assert_complete(&stage, n, events).await;
        }
        assert_eq!(stage.upstream.n_requests(), N_STREAMS);
        stage.close().await;
    }
}
