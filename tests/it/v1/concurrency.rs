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

/// The mode of a stream.
#[derive(Clone, Copy, PartialEq)]
enum Storage {
    Stored,
    NotStored,
    Background,
}

impl Storage {
    fn of(n: usize) -> Self {
        match n % 5 {
            0 => Self::Background,
            1 => Self::NotStored,
            _ => Self::Stored,
        }
    }
}

/// A prompt and a reply that only this stream has.
fn marker(n: usize) -> String {
    format!("<{n:03}>")
}

/// The chunks of the reply, each with its marker.
fn words(marker: &str) -> Vec<String> {
    (0..12).map(|at| format!("{at}{marker} ")).collect()
}

fn script(body: &Value) -> ResponseScript {
    let input = body["messages"][0]["content"]
        .as_str()
        .expect("the request has no text");
    let marker = input.rsplit(' ').next().expect("the text has no marker");
    let begun = ResponseScript::stream().role();
    let script = words(marker).into_iter().fold(begun, |it, word| {
        it.text(&word).pause(Duration::from_millis(5))
    });
    script.finish("stop").usage(1, 12).done()
}

fn body(n: usize) -> Value {
    let storage = Storage::of(n);
    json!({
        "input": format!("Say {}", marker(n)), "metadata": { "n": marker(n) },
        "store": storage != Storage::NotStored, "background": storage == Storage::Background,
    })
}

async fn assert_complete(fixture: &V1Fixture, n: usize, events: &[Value]) {
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["status"], "completed");
    assert_eq!(
        deltas(events),
        words(&marker(n)),
        "the stream does not contain each chunk once"
    );
    assert_eq!(text(response), words(&marker(n)).concat());
    assert_eq!(json!(fold_items(events)), response["output"]);
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at);
    }
    let sent = json!(events).to_string();
    let others = (0..N_STREAMS).filter(|it| *it != n).map(marker);
    assert!(!others.into_iter().any(|it| sent.contains(&it)), "{sent}");
    let path = format!("/responses/{}", id(response));
    let (status, found) = fixture.program.get(&path).await;
    match Storage::of(n) {
        Storage::NotStored => assert_eq!(status, 404),
        _ => assert_eq!((status, &found), (200, response)),
    }
    if Storage::of(n) == Storage::Background {
        let again = fixture.program.replay(id(response), None).await;
        assert_eq!(again.rest().await, events);
    }
}

on_sqlite! {
    async fn a_hundred_concurrent_streams_each_get_their_own_text(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_BACKGROUND", "100")]).await;
        let gate = fixture.upstream.gate();
        fixture.upstream.answer_with(script);

        let program = &fixture.program;
        let all = (0..N_STREAMS).map(|n| async move { program.stream(body(n)).await.rest().await });
        let opened = async {
            fixture.upstream.wait_for_requests(N_CALLS).await;
            gate.open();
        };
        let (all, ()) = join(join_all(all), opened).await;

        for (n, events) in all.iter().enumerate() {
            assert_complete(&fixture, n, events).await;
        }
        assert_eq!(fixture.upstream.n_requests(), N_STREAMS);
        fixture.close().await;
    }
}
