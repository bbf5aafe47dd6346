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
    let app = EngineTest::builder(backend)
        .rules(move |it| it.during_generation_user_input_policy = policy)
        .open()
        .await;
    app.upstream.next(ResponseScript::say("One two three."));
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    let n_frames = app.events.log().len();
    (app, gate, n_frames)
}

fn states(log: &[Value]) -> Vec<&str> {
    let updates = log.iter().filter(|it| it["type"] == "queue_updated");
    updates.filter_map(|it| it["state"].as_str()).collect()
}

on_sqlite! {
    async fn a_reply_publishes_its_events_in_order(backend) {
        let app = EngineTest::builder(backend).open().await;

        app.user.post("Hi.").await;
        app.settle().await;

        let expected = in_order(&[&POSTED, &CLAIMED, &["stream_chunk"], &COMMITTED]);
        assert_eq!(app.events.event_names(), expected);
        assert_eq!(states(&app.events.log()), ["queued", "generating", "idle"]);
        app.close().await;
    }

    async fn events_of_a_run_contain_its_id(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("Hi.").await;
        app.settle().await;
        let run = app.only_run().await;
        let id = Value::from(run.id.to_string());

        let log = app.events.log();
        let by_type = |name: &str| log.iter().find(|it| it["type"] == name).expect("no event");

        for name in ["typing_start", "stream_chunk", "stream_complete", "typing_stop"] {
            assert_eq!(by_type(name)["run_id"], id, "{name}");
        }
        assert_eq!(by_type("run_queued")["run"]["id"], id);
        let answer = log.iter().rfind(|it| it["type"] == "message_created").expect("no reply");
        assert_eq!(answer["message"]["conversation_run_id"], id);
        assert_eq!(answer["message"]["author_name"], "Ada");
        let last = log.iter().rfind(|it| it["type"] == "queue_updated").expect("no update");
        assert!(last["queued_run"].is_null() && last["running_run"].is_null());
        assert!(last["round"].is_null());
        app.close().await;
    }

    async fn two_consecutive_replies_publish_their_events_in_order(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        app.user.post("One.").await;
        app.events.wait_for_event("typing_start").await;
        app.user.post("Two.").await;
        gate.open();
        app.settle().await;

        let expected = in_order(&[
            &POSTED, &CLAIMED, &POSTED,
            &["stream_chunk"], &COMMITTED,
            &CLAIMED, &["stream_chunk"], &COMMITTED,
        ]);
        assert_eq!(app.events.event_names(), expected);
        let log = app.events.log();
        assert_eq!(states(&log), ["queued", "generating", "generating", "queued", "generating", "idle"]);
        app.close().await;
    }

    async fn a_failed_run_publishes_its_events_in_order(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.always(ResponseScript::stream().role().words("One two").close());

        app.user.post("Count.").await;
        app.settle().await;

        let failed = ["run_failed", "stream_complete(failed)", "queue_updated", "typing_stop"];
        let expected = in_order(&[&POSTED, &CLAIMED, &["stream_chunk"], &failed]);
        assert_eq!(app.events.event_names(), expected);
        assert_eq!(states(&app.events.log()), ["queued", "generating", "failed"]);
        app.close().await;
    }

    async fn a_run_that_fails_at_the_claim_publishes_its_events_in_order(backend) {
        let app = EngineTest::builder(backend).open().await;
        fixtures::disable_provider(&app.db, true).await;

        app.user.post("Hi.").await;
        app.settle().await;

        let expected = in_order(&[&POSTED, &["run_failed", "queue_updated"]]);
        assert_eq!(app.events.event_names(), expected);
        app.close().await;
    }

    async fn a_stop_publishes_its_events_in_order(backend) {
        let (app, gate, before) = writing(backend, InputPolicy::Queue).await;

        app.engine.stop(app.conversation, false).await.unwrap();

        assert_eq!(app.events.event_names_since(before), CANCELED);
        gate.open();
        app.settle().await;
        assert_eq!(app.events.event_names_since(before), CANCELED);
        app.close().await;
    }

    async fn a_stop_that_keeps_the_text_publishes_its_events_in_order(backend) {
        let (app, gate, before) = writing(backend, InputPolicy::Queue).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.settle().await;

        let expected = in_order(&[&["queue_updated", "message_created"], &CANCELED]);
        assert_eq!(app.events.event_names_since(before), expected);
        gate.open();
        app.close().await;
    }

    async fn a_canceled_queued_run_publishes_its_events_in_order(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let run = app.user.post("Hi.").await.run.expect("no run was planned");

        app.engine.cancel_run(app.scope(), run.id).await.unwrap();

        let expected = in_order(&[&POSTED, &["run_canceled", "queue_updated"]]);
        assert_eq!(app.events.event_names(), expected);
        app.close().await;
    }

    async fn a_restart_publishes_its_events_in_order(backend) {
        let (app, gate, before) = writing(backend, InputPolicy::Restart).await;

        app.user.post("Again.").await;
        gate.open();
        app.settle().await;

        let restarted = [
            "message_created",
            "run_canceled",
            "stream_complete(canceled)",
            "run_queued",
            "queue_updated",
            "typing_stop",
        ];
        let expected = in_order(&[&restarted, &CLAIMED, &["stream_chunk"], &COMMITTED]);
        assert_eq!(app.events.event_names_since(before), expected);
        app.close().await;
    }

    async fn a_skipped_run_publishes_its_events_in_order(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        app.user.post("Hi.").await;
        app.change_membership("Ada", |it| {
            it.participation = troupe::spaces::membership::Participation::Muted;
        })
        .await;

        app.clock.advance_ms(500);
        app.settle().await;

        let expected = in_order(&[&POSTED, &["run_skipped", "queue_updated"]]);
        assert_eq!(app.events.event_names(), expected);
        app.close().await;
    }

    async fn a_run_requeued_at_shutdown_publishes_its_events_in_order(backend) {
        let (app, gate, before) = writing(backend, InputPolicy::Queue).await;

        app.engine.drain(Duration::ZERO).await;
        app.stop(&app.engine).await;

        let expected = in_order(&[&["stream_reset", "queue_updated", "typing_stop"]]);
        assert_eq!(app.events.event_names_since(before), expected);
        assert_eq!(states(&app.events.log()).last(), Some(&"queued"));
        gate.open();
        app.close().await;
    }

    async fn hiding_the_trigger_publishes_its_events_in_order(backend) {
        let (app, gate, before) = writing(backend, InputPolicy::Queue).await;
        let trigger = app.messages().await[0].id;
        let hidden = troupe::conversations::message::Visibility::Hidden;

        let hide = app.engine.set_visibility(app.scope(), trigger, hidden);
        hide.await.unwrap();
        gate.open();
        app.settle().await;

        let expected = in_order(&[&["message_hidden"], &CANCELED]);
        assert_eq!(app.events.event_names_since(before), expected);
        let event = app.events.wait_for_event("message_hidden").await;
        assert!(event["message"].get("content").is_none(), "the event contains the text");
        app.close().await;
    }
}
