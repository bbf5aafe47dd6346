//! Tests the exact order of events; `rev` grows by exactly one, a run has one end, and its
//! `typing_stop` precedes the start of the next run. `close` checks the last three.

use std::time::Duration;

use serde_json::Value;
use troupe::spaces::space::InputPolicy;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::fixtures;

const POSTED: [&str; 3] = ["message_created", "run_queued", "queue_updated"];
const CLAIMED: [&str; 2] = ["queue_updated", "typing_start"];
const COMMITTED: [&str; 4] = [
    "message_created",
    "stream_complete(succeeded)",
    "queue_updated",
    "typing_stop",
];
const CANCELED: [&str; 4] = [
    "run_canceled",
    "stream_complete(canceled)",
    "queue_updated",
    "typing_stop",
];

fn in_order(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().iter().map(|it| (*it).to_owned()).collect()
}

/// Ada has produced "One" of "One two three."; also returns the number of frames until then.
async fn writing(backend: TestBackend, policy: InputPolicy) -> (EngineTest, HoldPoint, usize) {
    let room = EngineTest::builder(backend)
        .rules(move |it| it.during_generation_user_input_policy = policy)
        .open()
        .await;
    room.upstream.next(ResponseScript::say("One two three."));
    let gate = room.upstream.gate();
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    let n_frames = room.events.log().len();
    (room, gate, n_frames)
}

fn states(log: &[Value]) -> Vec<&str> {
    let updates = log.iter().filter(|it| it["type"] == "queue_updated");
    updates.filter_map(|it| it["state"].as_str()).collect()
}

on_sqlite! {
    async fn of_a_reply(backend) {
        let room = EngineTest::builder(backend).open().await;

        room.user.post("Hi.").await;
        room.settle().await;

        let expected = in_order(&[&POSTED, &CLAIMED, &["stream_chunk"], &COMMITTED]);
        assert_eq!(room.events.event_names(), expected);
        assert_eq!(states(&room.events.log()), ["queued", "generating", "idle"]);
        room.close().await;
    }

    async fn of_the_frames_of_one_run(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.user.post("Hi.").await;
        room.settle().await;
        let run = room.only_run().await;
        let id = Value::from(run.id.to_string());

        let log = room.events.log();
        let by_type = |name: &str| log.iter().find(|it| it["type"] == name).expect("it was told");

        for name in ["typing_start", "stream_chunk", "stream_complete", "typing_stop"] {
            assert_eq!(by_type(name)["run_id"], id, "{name}");
        }
        assert_eq!(by_type("run_queued")["run"]["id"], id);
        let answer = log.iter().rfind(|it| it["type"] == "message_created").expect("an answer");
        assert_eq!(answer["message"]["conversation_run_id"], id);
        assert_eq!(answer["message"]["author_name"], "Ada");
        let last = log.iter().rfind(|it| it["type"] == "queue_updated").expect("an update");
        assert!(last["queued_run"].is_null() && last["running_run"].is_null());
        assert!(last["round"].is_null());
        room.close().await;
    }

    async fn of_a_reply_that_another_one_follows(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.user.post("One.").await;
        room.events.wait_for_event("typing_start").await;
        room.user.post("Two.").await;
        gate.open();
        room.settle().await;

        let expected = in_order(&[
            &POSTED, &CLAIMED, &POSTED,
            &["stream_chunk"], &COMMITTED,
            &CLAIMED, &["stream_chunk"], &COMMITTED,
        ]);
        assert_eq!(room.events.event_names(), expected);
        let log = room.events.log();
        assert_eq!(states(&log), ["queued", "generating", "generating", "queued", "generating", "idle"]);
        room.close().await;
    }

    async fn of_a_failure(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.always(ResponseScript::stream().role().words("One two").close());

        room.user.post("Count.").await;
        room.settle().await;

        let failed = ["run_failed", "stream_complete(failed)", "queue_updated", "typing_stop"];
        let expected = in_order(&[&POSTED, &CLAIMED, &["stream_chunk"], &failed]);
        assert_eq!(room.events.event_names(), expected);
        assert_eq!(states(&room.events.log()), ["queued", "generating", "failed"]);
        room.close().await;
    }

    async fn of_a_failure_at_the_claim(backend) {
        let room = EngineTest::builder(backend).open().await;
        fixtures::disable_provider(&room.db, true).await;

        room.user.post("Hi.").await;
        room.settle().await;

        let expected = in_order(&[&POSTED, &["run_failed", "queue_updated"]]);
        assert_eq!(room.events.event_names(), expected);
        room.close().await;
    }

    async fn of_a_stop(backend) {
        let (room, gate, before) = writing(backend, InputPolicy::Queue).await;

        room.engine.stop(room.conversation, false).await.unwrap();

        assert_eq!(room.events.event_names_since(before), CANCELED);
        gate.open();
        room.settle().await;
        assert_eq!(room.events.event_names_since(before), CANCELED);
        room.close().await;
    }

    async fn of_a_stop_that_keeps_the_text(backend) {
        let (room, gate, before) = writing(backend, InputPolicy::Queue).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.settle().await;

        let expected = in_order(&[&["queue_updated", "message_created"], &CANCELED]);
        assert_eq!(room.events.event_names_since(before), expected);
        gate.open();
        room.close().await;
    }

    async fn of_a_canceled_queued_run(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let run = room.user.post("Hi.").await.run.expect("Ada will answer");

        room.engine.cancel_run(room.conversation, run.id).await.unwrap();

        let expected = in_order(&[&POSTED, &["run_canceled", "queue_updated"]]);
        assert_eq!(room.events.event_names(), expected);
        room.close().await;
    }

    async fn of_a_restart(backend) {
        let (room, gate, before) = writing(backend, InputPolicy::Restart).await;

        room.user.post("Again.").await;
        gate.open();
        room.settle().await;

        let restarted = [
            "message_created",
            "run_canceled",
            "stream_complete(canceled)",
            "run_queued",
            "queue_updated",
            "typing_stop",
        ];
        let expected = in_order(&[&restarted, &CLAIMED, &["stream_chunk"], &COMMITTED]);
        assert_eq!(room.events.event_names_since(before), expected);
        room.close().await;
    }

    async fn of_a_turn_that_is_passed_over(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        room.user.post("Hi.").await;
        room.change_membership("Ada", |it| {
            it.participation = troupe::spaces::membership::Participation::Muted;
        })
        .await;

        room.clock.advance_ms(500);
        room.settle().await;

        let expected = in_order(&[&POSTED, &["run_skipped", "queue_updated"]]);
        assert_eq!(room.events.event_names(), expected);
        room.close().await;
    }

    async fn of_a_run_that_is_handed_back(backend) {
        let (room, gate, before) = writing(backend, InputPolicy::Queue).await;

        room.engine.drain(Duration::ZERO).await;
        room.stop(&room.engine).await;

        let expected = in_order(&[&["stream_reset", "queue_updated", "typing_stop"]]);
        assert_eq!(room.events.event_names_since(before), expected);
        assert_eq!(states(&room.events.log()).last(), Some(&"queued"));
        gate.open();
        room.close().await;
    }

    async fn of_a_hidden_trigger(backend) {
        let (room, gate, before) = writing(backend, InputPolicy::Queue).await;
        let trigger = room.messages().await[0].id;
        let hidden = troupe::conversations::message::Visibility::Hidden;

        let hide = room.engine.set_visibility(room.conversation, trigger, hidden);
        hide.await.unwrap();
        gate.open();
        room.settle().await;

        let expected = in_order(&[&["message_hidden"], &CANCELED]);
        assert_eq!(room.events.event_names_since(before), expected);
        let told = room.events.wait_for_event("message_hidden").await;
        assert!(told["message"].get("content").is_none(), "its text is gone");
        room.close().await;
    }
}
