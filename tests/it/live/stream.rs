//! Clients that subscribe at any moment of a real run end with the same state as all others.

use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, Note};
use crate::support::event_invariants;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::expect;
use crate::support::timeline_model::{Then, Timeline};
use crate::support::ws_client::WsClient;

const REPLY: &str = "Once upon a time 😀 there was a castle, and in it lived a very old parrot.";

/// Returns the state of a client that received these events; it must never have needed a reset.
fn fold(log: &[Value]) -> Timeline {
    let mut timeline = Timeline::default();
    for frame in log {
        match frame.get("snapshot") {
            Some(_) => timeline.take_snapshot(frame),
            None => assert_eq!(timeline.apply(frame), Then::Listen, "{frame}\n{log:?}"),
        }
    }
    assert!(timeline.complaints().is_empty());
    timeline
}

fn ends(it: &Value) -> bool {
    it["type"] == "typing_stop"
}

#[tokio::test]
async fn events_of_a_run_arrive_in_the_documented_order() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(REPLY);
    let fixture = LiveFixture::with_character(&upstream).await;
    let client = fixture.bobs_ws_client().await;

    fixture.post(&fixture.ann, "Tell me a story.").await;

    let end = client.wait_for("the end of the run", ends).await;
    let run = end["run_id"].as_str().unwrap();
    assert_eq!(
        client.order_of(run),
        [
            "run_queued",
            "typing_start",
            "stream_chunk",
            "message_created",
            "stream_complete",
            "typing_stop"
        ]
    );
    let types: Vec<String> = client
        .log()
        .iter()
        .filter_map(|it| it["type"].as_str().map(str::to_owned))
        .collect();
    let at = |name: &str| types.iter().position(|it| it == name).unwrap();
    let last = |name: &str| types.iter().rposition(|it| it == name).unwrap();
    assert!(at("queue_updated") < at("typing_start"));
    assert!(last("stream_complete") < last("queue_updated"));
    assert!(last("queue_updated") < last("typing_stop"));
    assert_eq!(event_invariants::violations(&client.log()), [""; 0]);
    fixture.close().await;
}

#[tokio::test]
async fn a_subscriber_during_a_reply_gets_its_whole_text() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(REPLY);
    let gate = upstream.gate();
    let fixture = LiveFixture::with_character(&upstream).await;
    let early = fixture.bobs_ws_client().await;
    fixture.post(&fixture.ann, "Tell me a story.").await;
    gate.step();
    gate.step();
    early
        .wait_for("the second word", |it| {
            it["delta"].as_str().is_some_and(|it| it.contains("upon"))
        })
        .await;

    let late = WsClient::open(&fixture.bob).await;
    let answer = late.subscribe(fixture.conversation.0, None).await;
    gate.open();

    let snapshot = &answer["snapshot"];
    let run = snapshot["running_run"]["id"].as_str().unwrap();
    assert_eq!(snapshot["stream"]["run_id"], run);
    assert_eq!(snapshot["stream"]["text"], "Once upon");
    assert_eq!(
        snapshot["stream"]["membership_id"],
        snapshot["running_run"]["speaker_space_membership_id"]
    );
    for client in [&early, &late] {
        client.wait_for("the end of the run", ends).await;
    }
    assert_eq!(
        late.order_of(run),
        [
            "stream_chunk",
            "message_created",
            "stream_complete",
            "typing_stop"
        ]
    );
    assert_eq!(fold(&late.log()).lines(), fold(&early.log()).lines());
    assert_eq!(fold(&late.log()).lines()[1].2, REPLY);
    fixture.close().await;
}

#[tokio::test]
async fn every_subscriber_ends_with_the_same_text() {
    let upstream = FakeProvider::start().await;
    let words: String = (0..400).map(|n| format!("word{n} ")).collect();
    upstream.always(ResponseScript::say(words.trim_end()));
    let fixture = LiveFixture::with_character(&upstream).await;
    let first = fixture.bobs_ws_client().await;

    for round in 0..5 {
        let from = first.here();
        fixture
            .post(&fixture.ann, &format!("Question {round}."))
            .await;
        let mut late = Vec::new();
        for _ in 0..6 {
            late.push(WsClient::subscribed(&fixture.bob, fixture.conversation.0).await);
        }
        first.wait_after(from, "the end of the run", ends).await;
        // A note arrives after everything that was published before it.
        let text = format!("note {round}");
        fixture.publish(&Note { text: text.clone() });
        for client in &late {
            client
                .wait_for("the note", |it| it["text"] == text.as_str())
                .await;
            let timeline = fold(&client.log());
            assert_eq!(timeline.stream(), None, "the stream has not ended");
            assert_eq!(event_invariants::violations(&client.log()), [""; 0]);
            let lines = timeline.lines();
            assert_eq!(lines.len(), 2 * (round + 1));
            assert_eq!(lines.last().unwrap().2, words.trim_end());
        }
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_member_removed_during_a_reply_gets_no_more_text() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(REPLY);
    let gate = upstream.gate();
    let fixture = LiveFixture::with_character(&upstream).await;
    let client = fixture.bobs_ws_client().await;
    let remaining = WsClient::subscribed(&fixture.ann, fixture.conversation.0).await;
    fixture.post(&fixture.ann, "Tell me a story.").await;
    gate.step();
    client
        .wait_for("the first word", |it| it["type"] == "stream_chunk")
        .await;

    expect(
        204,
        fixture
            .ann
            .delete(&format!("/api/memberships/{}", fixture.bobs_seat))
            .await,
    );
    client
        .wait_for("the event", |it| it["type"] == "unsubscribed")
        .await;
    gate.open();

    remaining.wait_for("the end of the run", ends).await;
    client.call(json!({"op": "ping"})).await;
    let log = client.log();
    let news = log
        .iter()
        .position(|it| it["type"] == "unsubscribed")
        .unwrap();
    assert!(log[news..].iter().all(|it| it["type"] != "stream_chunk"));
    assert!(
        log.iter()
            .all(|it| it["type"] != "message_created" || it["message"]["content"] != REPLY)
    );
    fixture.close().await;
}
