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

/// Opens a fixture with a character whose replies come from `upstream`.
async fn with_character(upstream: &FakeProvider) -> LiveFixture {
    let base_url = upstream.base_url();
    let env = [
        ("TROUPE_WORKERS", "1"),
        ("TROUPE_LLM_BASE_URL", base_url.as_str()),
        ("TROUPE_LLM_MODEL", "scripted"),
        ("TROUPE_ALLOW_PRIVATE_PROVIDERS", "true"),
        ("STREAM_SLICE_MS", "0"),
    ];
    let stage = LiveFixture::open_changed(&env, |_| {}).await;
    let character = stage.ann.create_character("Ada", None).await;
    let space = json!({"id": stage.space});
    stage.ann.add_character(&space, &character).await;
    stage
}

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
    let stage = with_character(&upstream).await;
    let ear = stage.bobs_ws_client().await;

    stage.post(&stage.ann, "Tell me a story.").await;

    let end = ear.wait_for("the end of the run", ends).await;
    let run = end["run_id"].as_str().unwrap();
    assert_eq!(
        ear.order_of(run),
        [
            "run_queued",
            "typing_start",
            "stream_chunk",
            "message_created",
            "stream_complete",
            "typing_stop"
        ]
    );
    let types: Vec<String> = ear
        .log()
        .iter()
        .filter_map(|it| it["type"].as_str().map(str::to_owned))
        .collect();
    let at = |name: &str| types.iter().position(|it| it == name).unwrap();
    let last = |name: &str| types.iter().rposition(|it| it == name).unwrap();
    assert!(at("queue_updated") < at("typing_start"));
    assert!(last("stream_complete") < last("queue_updated"));
    assert!(last("queue_updated") < last("typing_stop"));
    assert_eq!(event_invariants::violations(&ear.log()), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn a_subscriber_during_a_reply_gets_its_whole_text() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(REPLY);
    let gate = upstream.gate();
    let stage = with_character(&upstream).await;
    let early = stage.bobs_ws_client().await;
    stage.post(&stage.ann, "Tell me a story.").await;
    gate.step();
    gate.step();
    early
        .wait_for("the second word", |it| {
            it["delta"].as_str().is_some_and(|it| it.contains("upon"))
        })
        .await;

    let late = WsClient::open(&stage.bob).await;
    let answer = late.subscribe(stage.conversation.0, None).await;
    gate.open();

    let snapshot = &answer["snapshot"];
    let run = snapshot["running_run"]["id"].as_str().unwrap();
    assert_eq!(snapshot["stream"]["run_id"], run);
    assert_eq!(snapshot["stream"]["text"], "Once upon");
    assert_eq!(
        snapshot["stream"]["membership_id"],
        snapshot["running_run"]["speaker_space_membership_id"]
    );
    for ear in [&early, &late] {
        ear.wait_for("the end of the run", ends).await;
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
    stage.close().await;
}

#[tokio::test]
async fn every_subscriber_ends_with_the_same_text() {
    let upstream = FakeProvider::start().await;
    let words: String = (0..400).map(|n| format!("word{n} ")).collect();
    upstream.always(ResponseScript::say(words.trim_end()));
    let stage = with_character(&upstream).await;
    let first = stage.bobs_ws_client().await;

    for round in 0..5 {
        let from = first.here();
        stage.post(&stage.ann, &format!("Question {round}.")).await;
        let mut late = Vec::new();
        for _ in 0..6 {
            late.push(WsClient::subscribed(&stage.bob, stage.conversation.0).await);
        }
        first.wait_after(from, "the end of the run", ends).await;
        // A note arrives after everything that was published before it.
        let text = format!("note {round}");
        stage.publish(&Note { text: text.clone() });
        for ear in &late {
            ear.wait_for("the note", |it| it["text"] == text.as_str())
                .await;
            let timeline = fold(&ear.log());
            assert_eq!(timeline.stream(), None, "nobody writes any more");
            assert_eq!(event_invariants::violations(&ear.log()), [""; 0]);
            let lines = timeline.lines();
            assert_eq!(lines.len(), 2 * (round + 1));
            assert_eq!(lines.last().unwrap().2, words.trim_end());
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn a_member_removed_during_a_reply_gets_no_more_text() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(REPLY);
    let gate = upstream.gate();
    let stage = with_character(&upstream).await;
    let ear = stage.bobs_ws_client().await;
    let stays = WsClient::subscribed(&stage.ann, stage.conversation.0).await;
    stage.post(&stage.ann, "Tell me a story.").await;
    gate.step();
    ear.wait_for("the first word", |it| it["type"] == "stream_chunk")
        .await;

    expect(
        204,
        stage
            .ann
            .delete(&format!("/api/memberships/{}", stage.bobs_seat))
            .await,
    );
    ear.wait_for("the news", |it| it["type"] == "unsubscribed")
        .await;
    gate.open();

    stays.wait_for("the end of the run", ends).await;
    ear.call(json!({"op": "ping"})).await;
    let log = ear.log();
    let news = log
        .iter()
        .position(|it| it["type"] == "unsubscribed")
        .unwrap();
    assert!(log[news..].iter().all(|it| it["type"] != "stream_chunk"));
    assert!(
        log.iter()
            .all(|it| it["type"] != "message_created" || it["message"]["content"] != REPLY)
    );
    stage.close().await;
}
