//! Tests stop and cancel: the model call is aborted immediately, no more deltas are sent, and
//! partial text is stored only on request.

use serde_json::json;
use troupe::conversations::audience::viewer::Viewer;
use troupe::prompt::record::sent_prompt_loader;
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
    let app = EngineTest::builder(backend).open().await;
    app.upstream.reply_with("One two three.");
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    (app, gate)
}

on_sqlite! {
    async fn a_stop_aborts_the_model_call_and_discards_the_text(backend) {
        let (app, gate) = writing(backend).await;

        app.engine.stop(app.conversation, false).await.unwrap();
        let n_events = app.events.log().len();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        assert!(app.answers().await.is_empty());
        assert_eq!(app.events.event_names_since(n_events), Vec::<String>::new(), "events were sent after the stop");
        let runtime = app.runtime().await;
        assert_eq!(runtime.state(), ConversationState::Paused);
        assert_eq!(runtime.round.map(|it| it.cursor), Some(0));
        assert!(app.engine.live_text(app.conversation).is_none());
        app.close().await;
    }

    async fn a_stop_can_keep_the_partial_text(backend) {
        let (app, gate) = writing(backend).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!((run.status, run.keep_partial), (RunStatus::Canceled, true));
        assert_eq!(run.canceled_because, Some(RunCancelReason::Stopped));
        assert_eq!(app.answers().await, ["One"]);
        let messages = app.messages().await;
        assert_eq!(messages[1].metadata, json!({ "stopped": true }));
        assert_eq!(messages[1].conversation_run_id, Some(run.id));
        assert!(app.runtime().await.round.is_none(), "the round did not end with its last slot");
        app.close().await;
    }

    async fn a_stopped_reply_can_be_regenerated(backend) {
        let (app, gate) = writing(backend).await;
        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        app.engine.regenerate(app.conversation, None, "Eve".to_owned()).await.unwrap();
        app.settle().await;

        let messages = app.messages().await;
        assert_eq!(messages[1].metadata, json!({}));
        assert_eq!(messages[1].active_swipe, 1);
        app.close().await;
    }

    async fn a_stop_keeps_no_blank_text(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.reply_with("\u{34f} two three.");
        let gate = app.upstream.gate();
        app.user.post("Count.").await;
        gate.step();
        app.events.wait_for_text("\u{34f}").await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        assert!(app.answers().await.is_empty());
        app.close().await;
    }

    async fn a_stop_before_the_first_delta_stores_no_message(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        app.user.post("Count.").await;
        app.upstream.wait_for_requests(1).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        assert!(app.answers().await.is_empty());
        let round = app.runtime().await.round.expect("no round is waiting");
        assert_eq!(round.state, round::RoundState::Paused);
        app.close().await;
    }

    async fn a_run_is_canceled_by_its_id_once(backend) {
        let (app, gate) = writing(backend).await;
        let id = app.only_run().await.id;

        let canceled = app.engine.cancel_run(app.scope(), id).await.unwrap();
        gate.open();
        let again = app.engine.cancel_run(app.scope(), id).await;
        app.settle().await;

        let canceled = canceled.whole().expect("the run is for everyone");
        assert_eq!(canceled.status, RunStatus::Canceled);
        assert!(canceled.cancel_requested_at.is_some());
        assert!(matches!(again, Err(EngineError::Rejected(CommandError::AlreadyFinished))));
        assert!(app.answers().await.is_empty());
        app.close().await;
    }

    async fn the_prompt_of_a_canceled_run_is_stored_although_it_has_no_text(backend) {
        let (app, gate) = writing(backend).await;
        let id = app.only_run().await.id;

        app.engine.cancel_run(app.scope(), id).await.unwrap();
        gate.open();
        app.wait_until_idle().await;

        let db = app.db.reader();
        let (record, texts) = sent_prompt_loader::load_for_run(db, app.space, id, Viewer::Server).await.unwrap().expect("no prompt was stored");
        let prompt: Vec<_> = record.into_blocks(&texts).into_iter().map(|it| it.text).collect();
        assert!(prompt.iter().any(|it| it == "Count."), "{prompt:?}");
        let run = app.only_run().await;
        assert_eq!(run.status, RunStatus::Canceled);
        assert!(run.debug.prompt.is_some());
        app.close().await;
    }

    async fn a_stop_before_the_first_delta_stores_the_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.reply_with("One two three.");
        let gate = app.upstream.gate();
        app.user.post("Count.").await;
        app.until("the model is called", async |it| it.upstream.n_requests() == 1).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!(run.status, RunStatus::Canceled);
        assert!(app.answers().await.is_empty());
        assert!(run.debug.prompt.is_some());
        assert!(sent_prompt_loader::load_for_run(app.db.reader(), app.space, run.id, Viewer::Server).await.unwrap().is_some());
        app.close().await;
    }

    async fn a_canceled_queued_run_never_calls_the_model(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let posted = app.user.post("Count.").await;
        let id = posted.run.expect("no run was planned").id;

        app.engine.cancel_run(app.scope(), id).await.unwrap();
        app.clock.advance_ms(10_000);
        app.settle().await;

        assert_eq!(app.upstream.n_requests(), 0);
        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        app.close().await;
    }

    async fn archiving_a_space_cancels_the_running_reply(backend) {
        let (app, gate) = writing(backend).await;

        app.engine.space_closed(app.space, RunCancelReason::Archived).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        assert!(app.answers().await.is_empty());
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn a_deleted_conversation_leaves_no_live_text_on_its_node(backend) {
        let (app, gate) = writing(backend).await;

        app.delete_conversation().await;
        gate.open();
        app.wait_until_idle().await;

        assert!(app.engine.live_text(app.conversation).is_none());
        app.close_without_events().await;
    }
}
