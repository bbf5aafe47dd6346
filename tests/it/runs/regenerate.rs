//! Tests regenerate: it adds a swipe to the newest message and selects it, or changes nothing.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use serde_json::Value;
use troupe::conversations::message::Visibility;
use troupe::conversations::{message, swipe};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunKind, RunReason, RunStatus};
use troupe::spaces::membership::Participation;
use troupe::spaces::space::{InputPolicy, ReplyOrder};

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// Eve has posted "Hi.", and Ada has answered "Hello."
async fn answered(backend: TestBackend) -> EngineTest {
    answered_with(backend, InputPolicy::Queue).await
}

async fn answered_with(backend: TestBackend, policy: InputPolicy) -> EngineTest {
    let room = EngineTest::builder(backend)
        .cast(&["Ada", "Bob"])
        .rules(move |it| it.during_generation_user_input_policy = policy)
        .open()
        .await;
    room.user.post("Hi.").await;
    room.settle().await;
    room
}

/// Regenerates the tail.
async fn regenerate(room: &EngineTest) -> Result<run::RunView, EngineError> {
    let by = "Eve".to_owned();
    let planned = room.engine.regenerate(room.conversation, None, by);
    planned.await.map(|it| it.run)
}

/// The next swipe is held after its first word; the returned function releases it.
async fn writing(room: &EngineTest) -> impl AsyncFnOnce() + use<> {
    let gate = room.upstream.gate();
    room.upstream.next(ResponseScript::say("One two three."));
    regenerate(room).await.unwrap();
    gate.step();
    room.events.wait_for_text("One").await;
    async move || gate.open()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn tail(room: &EngineTest) -> message::Model {
    room.messages().await.pop().expect("a message")
}

/// The swipes of a message, in order.
async fn texts(room: &EngineTest, of: &message::Model) -> Vec<swipe::Model> {
    let all = swipe::Entity::find()
        .filter(swipe::Column::MessageId.eq(of.id))
        .order_by_asc(swipe::Column::Position)
        .all(room.db.reader());
    all.await.expect("the database answers")
}

fn contents(texts: &[swipe::Model]) -> Vec<&str> {
    texts.iter().map(|it| it.content.as_str()).collect()
}

/// The newest prompt that the model received, as one text.
fn prompt(room: &EngineTest) -> String {
    let newest = room.upstream.n_requests() - 1;
    room.upstream.body(newest)["messages"].to_string()
}

on_sqlite! {
    async fn the_first_time_the_present_text_becomes_the_first_of_two(backend) {
        let room = answered(backend).await;
        let before = tail(&room).await;
        room.upstream.next(ResponseScript::say("Good day."));

        let run = regenerate(&room).await.unwrap();
        room.settle().await;

        let after = tail(&room).await;
        assert_eq!((after.id, after.seq), (before.id, before.seq));
        assert_eq!((after.content.as_str(), after.active_swipe), ("Good day.", 1));
        assert_eq!(after.conversation_run_id, before.conversation_run_id);
        assert!(after.rev > before.rev && after.token_count > 0);
        let texts = texts(&room, &after).await;
        assert_eq!(contents(&texts), ["Hello.", "Good day."]);
        assert_eq!(texts[0].conversation_run_id, before.conversation_run_id);
        assert_eq!(texts[1].conversation_run_id, Some(run.id));
        assert_eq!((run.kind, run.reason, run.target_message_id), (RunKind::Regenerate, RunReason::Regenerate, Some(before.id)));
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn the_message_is_announced_as_updated_and_not_as_new(backend) {
        let room = answered(backend).await;
        let n_frames = room.events.log().len();

        regenerate(&room).await.unwrap();
        room.settle().await;

        let expected = [
            "run_queued", "queue_updated",
            "queue_updated", "typing_start", "stream_chunk",
            "message_updated", "stream_complete(succeeded)", "queue_updated", "typing_stop",
        ];
        assert_eq!(room.events.event_names_since(n_frames), expected);
        let log = room.events.log();
        let of = |name: &str| log.iter().rfind(|it| it["type"] == name).expect("it was told");
        let target = Value::from(tail(&room).await.id.0);
        assert_eq!(of("typing_start")["target_message_id"], target);
        assert_eq!(of("message_updated")["message"]["id"], target);
        assert_eq!(of("message_updated")["message"]["swipes"]["count"], 2);
        room.close().await;
    }

    async fn the_prompt_has_neither_the_message_nor_anything_after_it(backend) {
        let room = answered_with(backend, InputPolicy::Queue).await;
        room.upstream.next(ResponseScript::say("Never to be repeated."));
        regenerate(&room).await.unwrap();
        room.settle().await;

        regenerate(&room).await.unwrap();
        room.settle().await;

        let told = prompt(&room);
        assert!(told.contains("Hi."), "{told}");
        assert!(!told.contains("Never to be repeated."), "{told}");
        assert!(!told.contains("Hello."), "{told}");
        room.close().await;
    }

    async fn a_greeting_is_regenerated_like_any_reply(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.set_greeting("Ada", "Welcome.").await;
        let ada = room.membership("Ada").await;
        room.engine.insert_greetings(ada.id).await.unwrap();
        room.upstream.next(ResponseScript::say("Come in."));

        regenerate(&room).await.unwrap();
        room.settle().await;

        let greeting = tail(&room).await;
        assert_eq!(greeting.content, "Come in.");
        assert_eq!(greeting.metadata["greeting"], true);
        assert_eq!(contents(&texts(&room, &greeting).await), ["Welcome.", "Come in."]);
        assert!(!prompt(&room).contains("Welcome."));
        room.close().await;
    }
}

on_both! {
    async fn two_at_once_end_in_one_run_or_drop_one(backend) {
        let room = answered(backend).await;

        let (first, second) = tokio::join!(regenerate(&room), regenerate(&room));
        let (first, second) = (first.unwrap(), second.unwrap());
        room.settle().await;

        let runs = room.runs().await;
        let succeeded = runs.iter().filter(|it| it.kind == RunKind::Regenerate && it.status == RunStatus::Succeeded);
        let n_texts = texts(&room, &tail(&room).await).await.len();
        assert_eq!(n_texts, 1 + succeeded.count());
        if first.id == second.id {
            assert_eq!(n_texts, 2);
        }
        room.close().await;
    }
}

on_sqlite! {
    async fn a_second_one_drops_what_the_first_is_writing(backend) {
        let room = answered(backend).await;
        let release = writing(&room).await;

        regenerate(&room).await.unwrap();
        room.upstream.wait_for_disconnect(1).await;
        release().await;
        room.settle().await;

        let statuses: Vec<_> = room.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Canceled, RunStatus::Succeeded]);
        assert_eq!(contents(&texts(&room, &tail(&room).await).await), ["Hello.", "Hello."]);
        room.close().await;
    }

    async fn no_text_is_chosen_while_one_is_written(backend) {
        let room = answered(backend).await;
        regenerate(&room).await.unwrap();
        room.settle().await;
        let release = writing(&room).await;
        let target = tail(&room).await;

        let outcome = room.engine.select_swipe(room.conversation, target.id, 0, None).await;
        release().await;
        room.settle().await;
        let chosen = room.engine.select_swipe(room.conversation, target.id, 0, None).await.unwrap();

        assert_eq!(refused(outcome), CommandError::MessageBeingWritten);
        assert_eq!((chosen.swipes.count, chosen.swipes.active), (3, 0));
        assert_eq!(tail(&room).await.content, "Hello.");
        room.close().await;
    }

    async fn a_choice_before_the_claim_is_overtaken_by_the_new_text(backend) {
        let room = answered(backend).await;
        regenerate(&room).await.unwrap();
        room.settle().await;
        let target = tail(&room).await;

        let (chosen, planned) = tokio::join!(
            room.engine.select_swipe(room.conversation, target.id, 0, None),
            regenerate(&room),
        );
        planned.unwrap();
        room.settle().await;

        if let Err(error) = chosen {
            assert_eq!(refused::<()>(Err(error)), CommandError::MessageBeingWritten);
        }
        let after = tail(&room).await;
        let texts = texts(&room, &after).await;
        assert_eq!((texts.len(), after.active_swipe), (3, 2));
        assert_eq!(texts[2].content, after.content);
        room.close().await;
    }

    async fn under_queue_a_post_waits_for_the_new_text_and_sees_it(backend) {
        let room = answered_with(backend, InputPolicy::Queue).await;
        let release = writing(&room).await;

        room.user.post("And then?").await;
        release().await;
        room.settle().await;

        let all: Vec<_> = room.messages().await.into_iter().map(|it| it.content).collect();
        assert_eq!(all, ["Hi.", "One two three.", "And then?", "Hello."]);
        assert!(prompt(&room).contains("One two three."));
        room.close().await;
    }

    async fn under_restart_a_post_drops_the_new_text(backend) {
        let room = answered_with(backend, InputPolicy::Restart).await;
        let release = writing(&room).await;

        room.user.post("And then?").await;
        release().await;
        room.settle().await;

        let all: Vec<_> = room.messages().await.into_iter().map(|it| it.content).collect();
        assert_eq!(all, ["Hi.", "Hello.", "And then?", "Hello."]);
        assert!(texts(&room, &room.messages().await[1]).await.is_empty());
        room.close().await;
    }

    async fn under_reject_a_post_is_refused_while_a_text_is_written(backend) {
        let room = answered_with(backend, InputPolicy::Reject).await;
        let release = writing(&room).await;

        let outcome = room.user.try_post("And then?").await;
        release().await;
        room.settle().await;

        assert_eq!(refused(outcome), CommandError::GenerationLocked);
        assert_eq!(tail(&room).await.content, "One two three.");
        room.close().await;
    }

    async fn deleting_the_message_ends_the_run_for_it(backend) {
        let room = answered(backend).await;
        let release = writing(&room).await;
        let target = tail(&room).await;

        let hidden = room.engine.set_visibility(room.conversation, target.id, Visibility::Hidden);
        hidden.await.unwrap();
        room.upstream.wait_for_disconnect(1).await;
        release().await;
        room.settle().await;

        assert_eq!(room.runs().await[1].status, RunStatus::Canceled);
        assert!(texts(&room, &target).await.is_empty());
        room.close().await;
    }

    async fn a_post_without_a_speaker_cancels_it_and_is_its_reason(backend) {
        let room = EngineTest::builder(backend).settings(|it| it.workers = 0).open().await;
        room.user.post("Hi.").await;
        let node = room.another_node_with(|it| it.workers = 1);
        node.start().await.unwrap();
        room.until("Ada has answered", async |it| it.messages().await.len() == 2).await;
        room.stop(&node).await;
        room.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        regenerate(&room).await.unwrap();
        let posted = room.user.post("Never mind.").await;

        let run = room.runs().await.pop().unwrap();
        assert_eq!((run.kind, run.status), (RunKind::Regenerate, RunStatus::Canceled));
        assert_eq!(run.superseded_by_message_id, Some(posted.message.id));
        assert!(texts(&room, &room.messages().await[1]).await.is_empty());
        room.close_without_events().await;
    }

    async fn a_failure_leaves_the_text_and_a_retry_writes_it(backend) {
        let room = answered(backend).await;
        room.upstream.always(ResponseScript::stream().role().words("One two").close());
        regenerate(&room).await.unwrap();
        room.settle().await;

        let state = room.runtime().await.state();
        let failed = tail(&room).await;
        room.upstream.always(ResponseScript::say("Good day."));
        let retried = room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(state, ConversationState::Idle, "nothing else fails by it");
        assert_eq!(failed.content, "Hello.");
        assert_eq!((retried.kind, retried.reason), (RunKind::Regenerate, RunReason::Retry));
        assert_eq!(retried.target_message_id, Some(failed.id));
        assert_eq!(contents(&texts(&room, &failed).await), ["Hello.", "Good day."]);
        room.close().await;
    }

    async fn a_stop_leaves_the_text_as_it_was(backend) {
        let room = answered(backend).await;
        let release = writing(&room).await;

        room.engine.stop(room.conversation, false).await.unwrap();
        release().await;
        room.settle().await;

        let after = tail(&room).await;
        assert_eq!(after.content, "Hello.");
        assert!(texts(&room, &after).await.is_empty());
        room.close().await;
    }

    async fn a_stop_that_keeps_what_was_streamed_makes_a_text_of_it(backend) {
        let room = answered(backend).await;
        let release = writing(&room).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.settle().await;
        release().await;

        let kept = tail(&room).await;
        let texts = texts(&room, &kept).await;
        assert_eq!(contents(&texts), ["Hello.", "One"]);
        assert_eq!((kept.content.as_str(), &kept.metadata["stopped"]), ("One", &Value::from(true)));
        assert_eq!(room.runs().await.pop().unwrap().status, RunStatus::Canceled);
        let back = room.engine.select_swipe(room.conversation, kept.id, 0, None).await.unwrap();
        assert!(back.metadata["stopped"].is_null(), "that is of the other text");
        room.close().await;
    }

    async fn a_muted_author_is_asked_all_the_same(backend) {
        let room = answered(backend).await;
        room.change_membership("Ada", |it| it.participation = Participation::Muted).await;

        regenerate(&room).await.unwrap();
        room.settle().await;

        assert_eq!(texts(&room, &tail(&room).await).await.len(), 2);
        room.close().await;
    }
}
