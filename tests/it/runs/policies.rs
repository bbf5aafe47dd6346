//! Tests what a user's message does while a reply is queued or generating, for each input policy,
//! and that a repeated post is stored once.

use troupe::conversations::message::MessageRole;
use troupe::runs::engine::PostResult;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run::{RunCancelReason, RunStatus};
use troupe::spaces::space;
use troupe::spaces::space::{InputPolicy, ReplyOrder};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::ResponseScript;

/// A conversation in which Ada generates "One two three.", held after the first word.
async fn writing(backend: TestBackend, policy: InputPolicy) -> (EngineTest, impl AsyncFnOnce()) {
    let app = EngineTest::builder(backend)
        .rules(move |it| it.during_generation_user_input_policy = policy)
        .open()
        .await;
    let gate = app.upstream.gate();
    app.upstream.next(ResponseScript::say("One two three."));
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    (app, async move || gate.open())
}

fn refusal(outcome: Result<PostResult, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

/// The role and text of each message, in order.
async fn lines(app: &EngineTest) -> Vec<(MessageRole, String)> {
    let all = app.messages().await.into_iter();
    all.map(|it| (it.role, it.content)).collect()
}

fn user(text: &str) -> (MessageRole, String) {
    (MessageRole::User, text.to_owned())
}

fn assistant(text: &str) -> (MessageRole, String) {
    (MessageRole::Assistant, text.to_owned())
}

on_sqlite! {
    async fn the_reject_policy_refuses_a_post_during_a_reply(backend) {
        let (app, release) = writing(backend, InputPolicy::Reject).await;

        let outcome = app.user.try_post("Stop counting.").await;
        release().await;
        app.settle().await;

        assert_eq!(refusal(outcome), CommandError::GenerationLocked);
        assert_eq!(lines(&app).await, [user("Count."), assistant("One two three.")]);
        app.close().await;
    }

    async fn the_queue_policy_stores_the_reply_after_the_newer_message(backend) {
        let (app, release) = writing(backend, InputPolicy::Queue).await;

        app.user.post("And then?").await;
        release().await;
        app.settle().await;

        let expected = [
            user("Count."),
            user("And then?"),
            assistant("One two three."),
            assistant("Hello."),
        ];
        assert_eq!(lines(&app).await, expected);
        let cutoffs: Vec<_> = app.runs().await.iter().map(|it| it.cutoff_seq).collect();
        assert_eq!(cutoffs, [Some(1), Some(3)]);
        app.close().await;
    }

    async fn the_restart_policy_cancels_the_reply_and_its_model_call(backend) {
        let (app, release) = writing(backend, InputPolicy::Restart).await;

        let posted = app.user.post("Rather say hello.").await;
        app.upstream.wait_for_disconnect(0).await;
        release().await;
        app.settle().await;

        let expected = [user("Count."), user("Rather say hello."), assistant("Hello.")];
        assert_eq!(lines(&app).await, expected);
        let runs = app.runs().await;
        let statuses: Vec<_> = runs.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Succeeded]);
        assert_eq!(runs[0].canceled_because, Some(RunCancelReason::SupersededByMessage));
        assert_eq!(runs[0].superseded_by_message_id, Some(posted.message.id));
        app.close().await;
    }

    async fn in_manual_order_no_speaker_answers(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.reply_order = ReplyOrder::Manual)
            .open()
            .await;

        let posted = app.user.post("Is anybody here?").await;

        assert!(posted.run.is_none());
        assert!(app.runs().await.is_empty());
        app.close().await;
    }

    async fn an_archived_space_rejects_posts(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.change_rules(|it| it.status = space::SpaceStatus::Archived).await;

        let outcome = app.user.try_post("Hi.").await;

        assert_eq!(refusal(outcome), CommandError::SpaceArchived);
        assert!(app.messages().await.is_empty());
        app.close().await;
    }

    async fn a_repeated_post_returns_the_first_message(backend) {
        let app = EngineTest::builder(backend).open().await;
        let first = app.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();
        app.settle().await;

        let again = app.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();
        let other = app.user.post_with_client_id("Ho.", Some("c-1")).await;
        app.settle().await;

        assert!(!first.is_repeated && again.is_repeated && again.run.is_none());
        assert_eq!(again.message.id, first.message.id);
        assert_eq!(refusal(other), CommandError::ClientIdReused);
        assert_eq!(lines(&app).await, [user("Hi."), assistant("Hello.")]);
        app.close().await;
    }

    async fn an_edited_message_is_still_found_by_its_client_id(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.reply_order = ReplyOrder::Manual)
            .open()
            .await;
        let first = app.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();
        let row = app.messages().await.pop().unwrap();
        assert_eq!(row.id, first.message.id);
        app.engine.edit_message(app.scope(), edit_of(&row, "Hey.")).await.unwrap();

        let again = app.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();

        assert_eq!((again.is_repeated, again.message.content.as_str()), (true, "Hey."));
        app.close().await;
    }
}
