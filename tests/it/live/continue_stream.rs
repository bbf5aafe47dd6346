//! Clients see a continue in the place of its message: from the existing text on, whenever they join.

use serde_json::{Value, json};

use crate::live::fixture::LiveFixture;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::expect;
use crate::support::short_frames::expand;
use crate::support::timeline_model::{Then, Timeline};
use crate::support::ws_client::WsClient;
use crate::support::{api_contract, event_invariants};

/// It has a character of two UTF-16 units.
const OLD: &str = "Once upon 😀";
const NEW: &str = " a time there was";

/// Returns the state of a client that received these events.
fn fold(log: &[Value]) -> Timeline {
    let mut timeline = Timeline::default();
    for frame in log {
        match frame.get("snapshot") {
            Some(_) => timeline.take_snapshot(frame),
            None => assert_eq!(timeline.apply(frame), Then::Listen, "{frame}\n{log:?}"),
        }
    }
    timeline
}

fn ends(it: &Value) -> bool {
    it["type"] == "typing_stop"
}

#[tokio::test]
async fn every_subscriber_of_a_continue_has_the_existing_text_and_the_new_one() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(OLD);
    let fixture = LiveFixture::with_character(&upstream).await;
    let early = fixture.bobs_ws_client().await;
    fixture.post(&fixture.ann, "Tell me a story.").await;
    early.wait_for("the end of the run", ends).await;
    upstream.next(ResponseScript::say(NEW));
    let gate = upstream.gate();
    let from = early.here();

    let path = format!("/api/conversations/{}/continue", fixture.conversation.0);
    expect(202, fixture.ann.post(&path, json!({})).await);
    for _ in 0..3 {
        gate.step();
    }
    early
        .wait_for("the second word", |it| {
            it["delta"].as_str().is_some_and(|it| it.contains("time"))
        })
        .await;
    assert_eq!(
        fold(&early.log()).stream().map(|it| it.text.clone()),
        Some(format!("{OLD} a time"))
    );
    let late = WsClient::open(&fixture.bob).await;
    let answer = late.subscribe(fixture.conversation.0, None).await;
    let short = WsClient::open_in_protocol_2(&fixture.bob).await;
    short.subscribe(fixture.conversation.0, None).await;
    gate.open();
    early.wait_after(from, "the end of the run", ends).await;
    late.wait_for("the end of the run", ends).await;
    short.wait_for("the end of the run", ends).await;

    let stream = &answer["snapshot"]["stream"];
    assert_eq!(stream["text"], format!("{OLD} a time"));
    assert_eq!(stream["base_length"], OLD.encode_utf16().count());
    let whole = format!("{OLD}{NEW}");
    for log in [early.log(), late.log(), expand(&short.log())] {
        assert_eq!(fold(&log).lines()[1].2, whole);
        assert_eq!(event_invariants::violations(&log), [""; 0]);
    }
    early.log().iter().for_each(api_contract::check_frame);
    fixture.close().await;
}
