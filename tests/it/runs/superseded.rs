//! Tests a post that races a forced turn, a regenerate or a running reply: none is lost without an
//! event with the reason.

use troupe::runs::engine::RunEngine;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunCancelReason, RunKind, RunStatus};
use troupe::spaces::space::{InputPolicy, ReplyOrder};

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;

/// Ada has answered, and this node claims nothing from now on.
async fn answered(backend: TestBackend) -> EngineTest {
    let room = EngineTest::builder(backend)
        .cast(&["Ada", "Bob"])
        .open()
        .await;
    room.user.post("Hi.").await;
    room.settle().await;
    room.engine.context().shutdown.draining.cancel();
    room
}

async fn force(room: &EngineTest, engine: &RunEngine, name: &str) -> run::RunView {
    let seat = room.membership(name).await.id;
    let forced = engine.force_talk(room.conversation, Some(seat), "Zoe".to_owned());
    forced.await.expect("the member can speak")
}

async fn row(room: &EngineTest, id: base::ids::RunId) -> run::Model {
    let runs = room.runs().await.into_iter();
    let found = runs.into_iter().find(|run| run.id == id);
    found.expect("the run is stored")
}

/// How often a race is repeated.
const TRIES: usize = 25;

on_sqlite! {
    async fn a_post_that_supersedes_a_queued_regenerate_announces_its_end(backend) {
        let room = answered(backend).await;
        let regenerate = room.engine.regenerate(room.conversation, None, "Zoe".to_owned());
        let regenerate = regenerate.await.unwrap().run;
        let before = room.events.log().len();

        let posted = room.user.post("And?").await;

        let expected = ["message_created", "run_canceled", "run_queued", "queue_updated"];
        assert_eq!(room.events.event_names_since(before), expected);
        let event = room.events.log()[before + 1].clone();
        assert_eq!(event["reason"], "superseded_by_message");
        assert_eq!(event["message_id"], posted.message.id.0);
        assert_eq!(event["run"]["id"], regenerate.id.to_string());
        assert_eq!(event["run"]["superseded_by_message_id"], posted.message.id.0);
        let canceled = row(&room, regenerate.id).await;
        assert_eq!(canceled.canceled_because, Some(RunCancelReason::SupersededByMessage));
        assert_eq!(canceled.superseded_by_message_id, Some(posted.message.id));
        assert_ne!(posted.run.expect("somebody answers").id, regenerate.id);
        room.close().await;
    }

    async fn a_post_keeps_the_forced_turn_of_another_user(backend) {
        let room = answered(backend).await;
        let forced = force(&room, &room.engine, "Bob").await;

        let first = room.user.post("And?").await.run.expect("a run is planned");
        let second = room.user.post("And then?").await.run.expect("a run is planned");

        for planned in [first, second] {
            assert_eq!((planned.id, planned.kind), (forced.id, RunKind::ForceTalk));
            assert_eq!(planned.chosen_because.as_deref(), Some("forced by Zoe"));
        }
        let round = room.runtime().await.round.expect("the round of the post");
        assert!(round.slots[0].forced);
        assert_eq!(round.slots[0].space_membership_id, room.membership("Bob").await.id);
        room.close().await;
    }

    async fn a_run_that_restart_cancels_names_the_post(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.during_generation_user_input_policy = InputPolicy::Restart)
            .open()
            .await;
        let gate = room.upstream.gate();
        let running = room.user.post("Count.").await.run.expect("Ada will answer");
        room.upstream.wait_for_requests(1).await;

        let posted = room.user.post("No, wait.").await;
        gate.open();
        room.settle().await;

        let canceled = row(&room, running.id).await;
        assert_eq!(canceled.status, RunStatus::Canceled);
        assert_eq!(canceled.canceled_because, Some(RunCancelReason::SupersededByMessage));
        assert_eq!(canceled.superseded_by_message_id, Some(posted.message.id));
        room.close().await;
    }

    async fn a_stop_that_keeps_the_text_is_the_reason_of_the_run(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.user.post("Count.").await;
        room.upstream.wait_for_requests(1).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(room.only_run().await.canceled_because, Some(RunCancelReason::Stopped));
        room.close().await;
    }

    async fn a_turn_that_expects_another_tail_is_skipped_and_announced(backend) {
        let room = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| (it.auto_mode_enabled, it.auto_mode_delay_ms) = (true, 5_000))
            .open()
            .await;
        room.user.post("Hi.").await;
        room.settle().await;
        room.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        room.user.post("Never mind.").await;

        room.clock.advance_ms(5_000);
        room.events.wait_for_event("run_skipped").await;
        room.settle().await;

        let run = room.runs().await.pop().unwrap();
        assert_eq!((run.kind, run.status), (RunKind::AutoMode, RunStatus::Skipped));
        assert_eq!(run.debug.skipped_because.as_deref(), Some("expected_last_message_mismatch"));
        room.close().await;
    }
}

on_both! {
    async fn a_post_and_a_forced_turn_at_once_lose_neither(backend) {
        for order in [ReplyOrder::List, ReplyOrder::Manual] {
            let room = EngineTest::builder(backend)
                .cast(&["Ada", "Bob"])
                .rules(move |it| it.reply_order = order)
                .open()
                .await;
            let other = room.another_node();

            for _ in 0..TRIES {
                let (posted, forced) = tokio::join!(
                    room.user.post("Hi."),
                    force(&room, &other, "Bob"),
                );
                room.engine.context().wakeup.notify();
                room.settle_alone().await;

                let forced = row(&room, forced.id).await;
                assert_eq!((forced.kind, forced.status), (RunKind::ForceTalk, RunStatus::Succeeded));
                let answers = posted.run.is_none_or(|it| it.id == forced.id);
                assert!(answers || order == ReplyOrder::List, "{forced:?}");
            }
            room.close_without_events().await;
        }
    }

    async fn a_post_and_a_regenerate_at_once_lose_neither(backend) {
        let room = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        let other = room.another_node();
        room.user.post("Hi.").await;
        room.settle().await;

        for _ in 0..TRIES {
            let again = other.regenerate(room.conversation, None, "Zoe".to_owned());
            let (again, posted) = tokio::join!(again, room.user.post("And?"));
            room.engine.context().wakeup.notify();
            room.settle_alone().await;

            let again = match again {
                Ok(again) if again.branch.is_none() => row(&room, again.run.id).await,
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
        room.close_without_events().await;
    }
}
