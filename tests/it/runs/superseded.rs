//! Tests a post that races a forced turn, a regenerate or a running reply: none is lost without an
//! event with the reason.

use serde_json::json;
use troupe::conversations::audience::viewer::Viewer;
use troupe::runs::engine::RunEngine;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::{CommandError, ForcedTurn};
use troupe::runs::store::run;
use troupe::runs::store::run::{RunCancelReason, RunKind, RunStatus};
use troupe::runs::store::run_view::RunView;
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;

/// Ada has answered, and this node claims nothing from now on.
async fn answered(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend)
        .cast(&["Ada", "Bob"])
        .open()
        .await;
    app.user.post("Hi.").await;
    app.settle().await;
    app.engine.context().shutdown.draining.cancel();
    app
}

async fn force(app: &EngineTest, engine: &RunEngine, name: &str) -> RunView {
    let membership = app.membership(name).await.id;
    let forced = engine.force_talk(
        app.conversation,
        ForcedTurn::new(Some(membership), "Zoe", Viewer::Server),
    );
    forced.await.expect("the forced turn was rejected")
}

async fn row(app: &EngineTest, id: base::ids::RunId) -> run::Model {
    let runs = app.runs().await.into_iter();
    let found = runs.into_iter().find(|run| run.id == id);
    found.expect("the run is missing")
}

/// How often a race is repeated.
const TRIES: usize = 25;

on_both! {
    async fn a_whisper_that_supersedes_a_public_run_is_not_named(backend) {
        let app = answered(backend).await;
        let regenerate = app.engine.regenerate(app.conversation, None, "Zoe".to_owned());
        let regenerate = regenerate.await.unwrap().run;
        let before = app.events.log().len();
        let ada = app.membership("Ada").await.id;

        app.user.whisper("Psst.", ada).await;

        let log = app.events.log();
        let event = log[before..].iter().find(|it| it["type"] == "run_canceled");
        let event = event.expect("the regenerate ended");
        assert_eq!((&event["reason"], event.get("message_id")), (&json!("superseded_by_message"), None));
        assert_eq!(event["run"]["superseded_by_message_id"], json!(null));
        let canceled = row(&app, regenerate.id).await;
        assert_eq!(canceled.canceled_because, Some(RunCancelReason::SupersededByMessage));
        assert_eq!(canceled.superseded_by_message_id, None);
        // The recorder receives the events for all viewers, each with the same `rev`.
        app.close_without_events().await;
    }
}

on_sqlite! {
    async fn a_post_that_supersedes_a_queued_regenerate_announces_its_end(backend) {
        let app = answered(backend).await;
        let regenerate = app.engine.regenerate(app.conversation, None, "Zoe".to_owned());
        let regenerate = regenerate.await.unwrap().run;
        let before = app.events.log().len();

        let posted = app.user.post("And?").await;

        let expected = ["message_created", "run_canceled", "run_queued", "queue_updated"];
        assert_eq!(app.events.event_names_since(before), expected);
        let event = app.events.log()[before + 1].clone();
        assert_eq!(event["reason"], "superseded_by_message");
        assert_eq!(event["message_id"], posted.message.id.0);
        assert_eq!(event["run"]["id"], regenerate.id.to_string());
        assert_eq!(event["run"]["superseded_by_message_id"], posted.message.id.0);
        let canceled = row(&app, regenerate.id).await;
        assert_eq!(canceled.canceled_because, Some(RunCancelReason::SupersededByMessage));
        assert_eq!(canceled.superseded_by_message_id, Some(posted.message.id));
        assert_ne!(posted.run.expect("no run was planned").id, regenerate.id);
        app.close().await;
    }

    async fn a_post_keeps_the_forced_turn_of_another_user(backend) {
        let app = answered(backend).await;
        let forced = force(&app, &app.engine, "Bob").await;

        let first = app.user.post("And?").await.run.expect("no run was planned");
        let second = app.user.post("And then?").await.run.expect("no run was planned");

        for planned in [first, second] {
            assert_eq!((planned.id, planned.kind), (forced.id, RunKind::ForceTalk));
            assert_eq!(planned.chosen_because.as_deref(), Some("forced by Zoe"));
        }
        let round = app.runtime().await.round.expect("no round is active");
        assert!(round.slots.0[0].forced);
        assert_eq!(round.slots.0[0].space_membership_id, Some(app.membership("Bob").await.id));
        app.close().await;
    }

    async fn a_turn_that_expects_another_tail_is_skipped_and_announced(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| (it.auto_mode_enabled, it.auto_mode_delay_ms) = (true, 5_000))
            .open()
            .await;
        app.user.post("Hi.").await;
        app.settle().await;
        app.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        app.user.post("Never mind.").await;

        app.clock.advance_ms(5_000);
        app.events.wait_for_event("run_skipped").await;
        app.settle().await;

        let run = app.runs().await.pop().unwrap();
        assert_eq!((run.kind, run.status), (RunKind::AutoMode, RunStatus::Skipped));
        assert_eq!(run.debug.skipped_because.as_deref(), Some("expected_last_message_mismatch"));
        app.close().await;
    }
}

on_both! {
    async fn a_simultaneous_post_and_forced_turn_both_take_effect(backend) {
        for order in [ReplyOrder::List, ReplyOrder::Manual] {
            let app = EngineTest::builder(backend)
                .cast(&["Ada", "Bob"])
                .rules(move |it| it.reply_order = order)
                .open()
                .await;
            let other = app.another_node();

            for _ in 0..TRIES {
                let (posted, forced) = tokio::join!(
                    app.user.post("Hi."),
                    force(&app, &other, "Bob"),
                );
                app.engine.context().wakeup.notify();
                app.settle_alone().await;

                let forced = row(&app, forced.id).await;
                assert_eq!((forced.kind, forced.status), (RunKind::ForceTalk, RunStatus::Succeeded));
                let answers = posted.run.is_none_or(|it| it.id == forced.id);
                assert!(answers || order == ReplyOrder::List, "{forced:?}");
            }
            app.close_without_events().await;
        }
    }

    async fn a_regenerate_simultaneous_with_a_post_succeeds_or_is_superseded(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        let other = app.another_node();
        app.user.post("Hi.").await;
        app.settle().await;

        for _ in 0..TRIES {
            let again = other.regenerate(app.conversation, None, "Zoe".to_owned());
            let (again, posted) = tokio::join!(again, app.user.post("And?"));
            app.engine.context().wakeup.notify();
            app.settle_alone().await;

            let again = match again {
                Ok(again) if again.branch.is_none() => row(&app, again.run.id).await,
                // The post came first: the regenerate uses a branch, or has nothing to regenerate.
                Ok(_) | Err(EngineError::Rejected(CommandError::NothingToRegenerate)) => continue,
                Err(error) => panic!("{error}"),
            };
            match again.status {
                RunStatus::Succeeded => {}
                RunStatus::Canceled => {
                    let reason = Some(RunCancelReason::SupersededByMessage);
                    assert_eq!(again.canceled_because, reason);
                    assert_eq!(again.superseded_by_message_id, Some(posted.message.id));
                }
                other => panic!("the regenerate is {other:?}"),
            }
        }
        app.close_without_events().await;
    }
}
