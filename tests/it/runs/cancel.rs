//! Tests stop and cancel: the model call is aborted immediately, no more deltas are sent, and
//! partial text is stored only on request.

use serde_json::json;
use troupe::prompt::record::sent_prompt;
use troupe::rounds::round;
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run::{RunCancelReason, RunStatus};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::HoldPoint;

/// Ada has produced "One" of "One two three."
async fn writing(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let room = EngineTest::builder(backend).open().await;
    room.upstream.reply_with("One two three.");
    let gate = room.upstream.gate();
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    (room, gate)
}

on_sqlite! {
    async fn a_stop_leaves_the_model_and_drops_the_text(backend) {
        let (room, gate) = writing(backend).await;

        room.engine.stop(room.conversation, false).await.unwrap();
        let n_heard = room.events.log().len();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.settle().await;

        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        assert!(room.answers().await.is_empty());
        assert_eq!(room.events.event_names_since(n_heard), Vec::<String>::new(), "all was told at once");
        let runtime = room.runtime().await;
        assert_eq!(runtime.state(), ConversationState::Paused);
        assert_eq!(runtime.round.map(|it| it.row.cursor), Some(0));
        assert!(room.engine.live_text(room.conversation).is_none());
        room.close().await;
    }

    async fn a_stop_may_keep_what_was_said(backend) {
        let (room, gate) = writing(backend).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.settle().await;

        let run = room.only_run().await;
        assert_eq!((run.status, run.keep_partial), (RunStatus::Canceled, true));
        assert_eq!(room.answers().await, ["One"]);
        let messages = room.messages().await;
        assert_eq!(messages[1].metadata, json!({ "stopped": true }));
        assert_eq!(messages[1].conversation_run_id, Some(run.id));
        assert!(room.runtime().await.round.is_none(), "it was the last slot");
        room.close().await;
    }

    async fn a_stop_before_the_first_word_keeps_nothing(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.user.post("Count.").await;
        room.upstream.wait_for_requests(1).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.settle().await;

        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        assert!(room.answers().await.is_empty());
        let round = room.runtime().await.round.expect("it waits for a person");
        assert_eq!(round.row.state, round::RoundState::Paused);
        room.close().await;
    }

    async fn a_stopped_round_goes_on_when_it_is_resumed(backend) {
        let (room, gate) = writing(backend).await;
        room.engine.stop(room.conversation, false).await.unwrap();
        gate.open();

        room.engine.resume(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(room.answers().await, ["One two three."]);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn a_pause_lets_the_reply_finish_and_nothing_follow(backend) {
        let (room, gate) = writing(backend).await;

        room.engine.pause(room.conversation).await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(room.answers().await, ["One two three."]);
        room.close().await;
    }

    async fn one_run_is_canceled_by_its_id_and_only_once(backend) {
        let (room, gate) = writing(backend).await;
        let id = room.only_run().await.id;

        let canceled = room.engine.cancel_run(room.conversation, id).await.unwrap();
        gate.open();
        let again = room.engine.cancel_run(room.conversation, id).await;
        room.settle().await;

        assert_eq!(canceled.status, RunStatus::Canceled);
        assert!(canceled.cancel_requested_at.is_some());
        assert!(matches!(again, Err(EngineError::Rejected(CommandError::AlreadyFinished))));
        assert!(room.answers().await.is_empty());
        room.close().await;
    }

    async fn what_a_canceled_run_was_asked_is_kept_though_it_left_no_text(backend) {
        let (room, gate) = writing(backend).await;
        let id = room.only_run().await.id;

        room.engine.cancel_run(room.conversation, id).await.unwrap();
        gate.open();
        room.wait_until_idle().await;

        let db = room.db.reader();
        let (record, texts) = sent_prompt::load_for_run(db, id).await.unwrap().expect("it was sent");
        let told: Vec<_> = record.into_blocks(|it| texts.get(it)).into_iter().map(|it| it.text).collect();
        assert!(told.iter().any(|it| it == "Count."), "{told:?}");
        let run = room.only_run().await;
        assert_eq!(run.status, RunStatus::Canceled);
        assert!(run.debug.prompt.is_some());
        room.close().await;
    }

    async fn a_stop_that_came_before_the_first_word_keeps_what_was_asked(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.reply_with("One two three.");
        let gate = room.upstream.gate();
        room.user.post("Count.").await;
        room.until("the model is asked", async |it| it.upstream.n_requests() == 1).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.settle().await;

        let run = room.only_run().await;
        assert_eq!(run.status, RunStatus::Canceled);
        assert!(room.answers().await.is_empty());
        assert!(run.debug.prompt.is_some());
        assert!(sent_prompt::load_for_run(room.db.reader(), run.id).await.unwrap().is_some());
        room.close().await;
    }

    async fn a_canceled_queued_run_never_asks_the_model(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let posted = room.user.post("Count.").await;
        let id = posted.run.expect("Ada will answer").id;

        room.engine.cancel_run(room.conversation, id).await.unwrap();
        room.clock.advance_ms(10_000);
        room.settle().await;

        assert_eq!(room.upstream.n_requests(), 0);
        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        room.close().await;
    }

    async fn a_closed_conversation_drops_its_reply(backend) {
        let (room, gate) = writing(backend).await;

        room.engine.space_closed(room.space, RunCancelReason::Archived).await.unwrap();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.settle().await;

        assert!(room.answers().await.is_empty());
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn a_deleted_conversation_leaves_nothing_behind_on_its_node(backend) {
        let (room, gate) = writing(backend).await;

        room.delete_conversation().await;
        gate.open();
        room.wait_until_idle().await;

        assert!(room.engine.live_text(room.conversation).is_none());
        room.close_without_events().await;
    }
}
