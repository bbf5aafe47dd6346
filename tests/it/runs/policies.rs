//! Tests what a user's message does while a reply is queued or generating, for each input policy,
//! and that a repeated post is stored once.

use troupe::conversations::message::MessageRole;
use troupe::runs::engine::PostResult;
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run::RunStatus;
use troupe::spaces::space;
use troupe::spaces::space::{InputPolicy, ReplyOrder};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::ResponseScript;

/// A conversation in which Ada generates "One two three.", held after the first word.
async fn writing(backend: TestBackend, policy: InputPolicy) -> (EngineTest, impl AsyncFnOnce()) {
    let room = EngineTest::builder(backend)
        .rules(move |it| it.during_generation_user_input_policy = policy)
        .open()
        .await;
    let gate = room.upstream.gate();
    room.upstream.next(ResponseScript::say("One two three."));
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    (room, async move || gate.open())
}

fn refusal(outcome: Result<PostResult, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// The role and text of each message, in order.
async fn lines(room: &EngineTest) -> Vec<(MessageRole, String)> {
    let all = room.messages().await.into_iter();
    all.map(|it| (it.role, it.content)).collect()
}

fn user(text: &str) -> (MessageRole, String) {
    (MessageRole::User, text.to_owned())
}

fn assistant(text: &str) -> (MessageRole, String) {
    (MessageRole::Assistant, text.to_owned())
}

on_sqlite! {
    async fn an_idle_conversation_answers(backend) {
        for policy in [InputPolicy::Reject, InputPolicy::Queue, InputPolicy::Restart] {
            let room = EngineTest::builder(backend)
                .rules(move |it| it.during_generation_user_input_policy = policy)
                .open()
                .await;

            room.user.post("Hi.").await;
            room.settle().await;

            assert_eq!(lines(&room).await, [user("Hi."), assistant("Hello.")]);
            assert_eq!(room.runtime().await.state(), ConversationState::Idle);
            room.close().await;
        }
    }

    async fn reject_stores_nothing_while_a_reply_is_written(backend) {
        let (room, release) = writing(backend, InputPolicy::Reject).await;

        let outcome = room.user.try_post("Stop counting.").await;
        release().await;
        room.settle().await;

        assert_eq!(refusal(outcome), CommandError::GenerationLocked);
        assert_eq!(lines(&room).await, [user("Count."), assistant("One two three.")]);
        room.close().await;
    }

    async fn reject_stores_nothing_while_a_reply_is_queued(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| {
                it.during_generation_user_input_policy = InputPolicy::Reject;
                it.user_turn_debounce_ms = 500;
            })
            .open()
            .await;
        room.user.post("Hi.").await;

        let outcome = room.user.try_post("And?").await;

        assert_eq!(refusal(outcome), CommandError::GenerationLocked);
        assert_eq!(room.messages().await.len(), 1);
        room.close().await;
    }

    async fn queue_lets_the_reply_finish_behind_the_newer_message(backend) {
        let (room, release) = writing(backend, InputPolicy::Queue).await;

        room.user.post("And then?").await;
        release().await;
        room.settle().await;

        let expected = [
            user("Count."),
            user("And then?"),
            assistant("One two three."),
            assistant("Hello."),
        ];
        assert_eq!(lines(&room).await, expected);
        let cutoffs: Vec<_> = room.runs().await.iter().map(|it| it.cutoff_seq).collect();
        assert_eq!(cutoffs, [Some(1), Some(3)]);
        room.close().await;
    }

    async fn restart_drops_the_reply_and_its_request(backend) {
        let (room, release) = writing(backend, InputPolicy::Restart).await;

        room.user.post("Rather say hello.").await;
        room.upstream.wait_for_disconnect(0).await;
        release().await;
        room.settle().await;

        let expected = [user("Count."), user("Rather say hello."), assistant("Hello.")];
        assert_eq!(lines(&room).await, expected);
        let statuses: Vec<_> = room.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Succeeded]);
        room.close().await;
    }

    async fn a_newer_message_takes_over_the_queued_run(backend) {
        for policy in [InputPolicy::Queue, InputPolicy::Restart] {
            let room = EngineTest::builder(backend)
                .rules(move |it| {
                    it.during_generation_user_input_policy = policy;
                    it.user_turn_debounce_ms = 500;
                })
                .open()
                .await;

            room.user.post("One.").await;
            let last = room.user.post("Two.").await;
            room.clock.advance_ms(500);
            room.settle().await;

            let run = room.only_run().await;
            assert_eq!(run.debug.trigger_message_id, Some(last.message.id));
            room.close().await;
        }
    }

    async fn in_manual_order_no_speaker_answers(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.reply_order = ReplyOrder::Manual)
            .open()
            .await;

        let posted = room.user.post("Is anybody here?").await;

        assert!(posted.run.is_none());
        assert!(room.runs().await.is_empty());
        room.close().await;
    }

    async fn an_archived_space_rejects_posts(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.change_rules(|it| it.status = space::SpaceStatus::Archived).await;

        let outcome = room.user.try_post("Hi.").await;

        assert_eq!(refusal(outcome), CommandError::SpaceArchived);
        assert!(room.messages().await.is_empty());
        room.close().await;
    }

    async fn a_repeated_post_is_the_first_one_again(backend) {
        let room = EngineTest::builder(backend).open().await;
        let first = room.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();
        room.settle().await;

        let again = room.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();
        let other = room.user.post_with_client_id("Ho.", Some("c-1")).await;
        room.settle().await;

        assert!(!first.is_repeated && again.is_repeated && again.run.is_none());
        assert_eq!(again.message.id, first.message.id);
        assert_eq!(refusal(other), CommandError::ClientIdReused);
        assert_eq!(lines(&room).await, [user("Hi."), assistant("Hello.")]);
        room.close().await;
    }

    async fn an_edited_message_still_answers_its_client_id(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.reply_order = ReplyOrder::Manual)
            .open()
            .await;
        let first = room.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();
        let row = room.messages().await.pop().unwrap();
        assert_eq!(row.id, first.message.id);
        room.engine.edit_message(room.conversation, edit_of(&row, "Hey.")).await.unwrap();

        let again = room.user.post_with_client_id("Hi.", Some("c-1")).await.unwrap();

        assert_eq!((again.is_repeated, again.message.content.as_str()), (true, "Hey."));
        room.close().await;
    }
}
