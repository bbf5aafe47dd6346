//! Tests regenerate: it adds a swipe to the newest message and selects it, or changes nothing.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use serde_json::Value;
use troupe::conversations::message::Visibility;
use troupe::conversations::{message, swipe};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run::{RunKind, RunReason, RunStatus};
use troupe::runs::store::run_view::RunView;
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
    let app = EngineTest::builder(backend)
        .cast(&["Ada", "Bob"])
        .rules(move |it| it.during_generation_user_input_policy = policy)
        .open()
        .await;
    app.user.post("Hi.").await;
    app.settle().await;
    app
}

/// Regenerates the tail.
async fn regenerate(app: &EngineTest) -> Result<RunView, EngineError> {
    let by = "Eve".to_owned();
    let planned = app.engine.regenerate(app.conversation, None, by);
    planned.await.map(|it| it.run)
}

/// The next swipe is held after its first word; the returned function releases it.
async fn writing(app: &EngineTest) -> impl AsyncFnOnce() + use<> {
    let gate = app.upstream.gate();
    app.upstream.next(ResponseScript::say("One two three."));
    regenerate(app).await.unwrap();
    gate.step();
    app.events.wait_for_text("One").await;
    async move || gate.open()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

async fn tail(app: &EngineTest) -> message::Model {
    app.messages()
        .await
        .pop()
        .expect("the conversation is empty")
}

/// The swipes of a message, in order.
async fn texts(app: &EngineTest, of: &message::Model) -> Vec<swipe::Model> {
    let all = swipe::Entity::find()
        .filter(swipe::Column::MessageId.eq(of.id))
        .order_by_asc(swipe::Column::Position)
        .all(app.db.reader());
    all.await.expect("the query failed")
}

fn contents(texts: &[swipe::Model]) -> Vec<&str> {
    texts.iter().map(|it| it.content.as_str()).collect()
}

/// The newest prompt that the model received, as one text.
fn prompt(app: &EngineTest) -> String {
    let newest = app.upstream.n_requests() - 1;
    app.upstream.body(newest)["messages"].to_string()
}

on_sqlite! {
    async fn the_first_regenerate_keeps_the_present_text_as_the_first_swipe(backend) {
        let app = answered(backend).await;
        let before = tail(&app).await;
        app.upstream.next(ResponseScript::say("Good day."));

        let run = regenerate(&app).await.unwrap();
        app.settle().await;

        let after = tail(&app).await;
        assert_eq!((after.id, after.seq), (before.id, before.seq));
        assert_eq!((after.content.as_str(), after.active_swipe), ("Good day.", 1));
        assert_eq!(after.conversation_run_id, before.conversation_run_id);
        assert!(after.rev > before.rev && after.token_count > 0);
        let texts = texts(&app, &after).await;
        assert_eq!(contents(&texts), ["Hello.", "Good day."]);
        assert_eq!(texts[0].conversation_run_id, before.conversation_run_id);
        assert_eq!(texts[1].conversation_run_id, Some(run.id));
        assert_eq!((run.kind, run.reason, run.target_message_id), (RunKind::Regenerate, RunReason::Regenerate, Some(before.id)));
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn the_message_is_announced_as_updated_and_not_as_new(backend) {
        let app = answered(backend).await;
        let n_frames = app.events.log().len();

        regenerate(&app).await.unwrap();
        app.settle().await;

        let expected = [
            "run_queued", "queue_updated",
            "queue_updated", "typing_start", "stream_chunk",
            "message_updated", "stream_complete(succeeded)", "queue_updated", "typing_stop",
        ];
        assert_eq!(app.events.event_names_since(n_frames), expected);
        let log = app.events.log();
        let of = |name: &str| log.iter().rfind(|it| it["type"] == name).expect("no event");
        let target = Value::from(tail(&app).await.id.0);
        assert_eq!(of("typing_start")["target_message_id"], target);
        assert_eq!(of("message_updated")["message"]["id"], target);
        assert_eq!(of("message_updated")["message"]["swipes"]["count"], 2);
        app.close().await;
    }

    async fn the_prompt_has_neither_the_message_nor_anything_after_it(backend) {
        let app = answered_with(backend, InputPolicy::Queue).await;
        app.upstream.next(ResponseScript::say("Never to be repeated."));
        regenerate(&app).await.unwrap();
        app.settle().await;

        regenerate(&app).await.unwrap();
        app.settle().await;

        let prompt = prompt(&app);
        assert!(prompt.contains("Hi."), "{prompt}");
        assert!(!prompt.contains("Never to be repeated."), "{prompt}");
        assert!(!prompt.contains("Hello."), "{prompt}");
        app.close().await;
    }

    async fn a_greeting_is_regenerated_like_any_reply(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.set_greeting("Ada", "Welcome.").await;
        let ada = app.membership("Ada").await;
        app.engine.insert_greetings(ada.id).await.unwrap();
        app.upstream.next(ResponseScript::say("Come in."));

        regenerate(&app).await.unwrap();
        app.settle().await;

        let greeting = tail(&app).await;
        assert_eq!(greeting.content, "Come in.");
        assert_eq!(greeting.metadata["greeting"], true);
        assert_eq!(contents(&texts(&app, &greeting).await), ["Welcome.", "Come in."]);
        assert!(!prompt(&app).contains("Welcome."));
        app.close().await;
    }
}

on_both! {
    async fn two_simultaneous_regenerates_create_one_run_or_cancel_one(backend) {
        let app = answered(backend).await;

        let (first, second) = tokio::join!(regenerate(&app), regenerate(&app));
        let (first, second) = (first.unwrap(), second.unwrap());
        app.settle().await;

        let runs = app.runs().await;
        let succeeded = runs.iter().filter(|it| it.kind == RunKind::Regenerate && it.status == RunStatus::Succeeded);
        let n_texts = texts(&app, &tail(&app).await).await.len();
        assert_eq!(n_texts, 1 + succeeded.count());
        if first.id == second.id {
            assert_eq!(n_texts, 2);
        }
        app.close().await;
    }
}

on_sqlite! {
    async fn a_second_regenerate_cancels_the_generating_run(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;

        regenerate(&app).await.unwrap();
        app.upstream.wait_for_disconnect(1).await;
        release().await;
        app.settle().await;

        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Canceled, RunStatus::Succeeded]);
        assert_eq!(contents(&texts(&app, &tail(&app).await).await), ["Hello.", "Hello."]);
        app.close().await;
    }

    async fn no_swipe_can_be_selected_while_one_is_generated(backend) {
        let app = answered(backend).await;
        regenerate(&app).await.unwrap();
        app.settle().await;
        let release = writing(&app).await;
        let target = tail(&app).await;

        let outcome = app.engine.select_swipe(app.scope(), target.id, (0, None), None).await;
        release().await;
        app.settle().await;
        let chosen = app.engine.select_swipe(app.scope(), target.id, (0, None), None).await.unwrap();

        assert_eq!(refused(outcome), CommandError::MessageBeingWritten);
        assert_eq!((chosen.swipes.count, chosen.swipes.active), (3, 0));
        assert_eq!(tail(&app).await.content, "Hello.");
        app.close().await;
    }

    async fn a_regenerate_selects_its_swipe_despite_a_simultaneous_selection(backend) {
        let app = answered(backend).await;
        regenerate(&app).await.unwrap();
        app.settle().await;
        let target = tail(&app).await;

        let (chosen, planned) = tokio::join!(
            app.engine.select_swipe(app.scope(), target.id, (0, None), None),
            regenerate(&app),
        );
        planned.unwrap();
        app.settle().await;

        if let Err(error) = chosen {
            assert_eq!(refused::<()>(Err(error)), CommandError::MessageBeingWritten);
        }
        let after = tail(&app).await;
        let texts = texts(&app, &after).await;
        assert_eq!((texts.len(), after.active_swipe), (3, 2));
        assert_eq!(texts[2].content, after.content);
        app.close().await;
    }

    async fn with_the_queue_policy_a_post_waits_for_a_regenerate_and_sees_its_text(backend) {
        let app = answered_with(backend, InputPolicy::Queue).await;
        let release = writing(&app).await;

        app.user.post("And then?").await;
        release().await;
        app.settle().await;

        let all: Vec<_> = app.messages().await.into_iter().map(|it| it.content).collect();
        assert_eq!(all, ["Hi.", "One two three.", "And then?", "Hello."]);
        assert!(prompt(&app).contains("One two three."));
        app.close().await;
    }

    async fn hiding_a_message_cancels_its_regenerate(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;
        let target = tail(&app).await;

        let hidden = app.engine.set_visibility(app.scope(), target.id, Visibility::Hidden);
        hidden.await.unwrap();
        app.upstream.wait_for_disconnect(1).await;
        release().await;
        app.settle().await;

        assert_eq!(app.runs().await[1].status, RunStatus::Canceled);
        assert!(texts(&app, &target).await.is_empty());
        app.close().await;
    }

    async fn a_post_without_a_speaker_cancels_a_queued_regenerate(backend) {
        let app = EngineTest::builder(backend).settings(|it| it.workers = 0).open().await;
        app.user.post("Hi.").await;
        let node = app.another_node_with(|it| it.workers = 1);
        node.start().await.unwrap();
        app.until("Ada has answered", async |it| it.messages().await.len() == 2).await;
        app.stop(&node).await;
        app.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        regenerate(&app).await.unwrap();
        let posted = app.user.post("Never mind.").await;

        let run = app.runs().await.pop().unwrap();
        assert_eq!((run.kind, run.status), (RunKind::Regenerate, RunStatus::Canceled));
        assert_eq!(run.superseded_by_message_id, Some(posted.message.id));
        assert!(texts(&app, &app.messages().await[1]).await.is_empty());
        app.close_without_events().await;
    }

    async fn a_failed_regenerate_keeps_the_text_and_can_be_retried(backend) {
        let app = answered(backend).await;
        app.upstream.always(ResponseScript::stream().role().words("One two").close());
        regenerate(&app).await.unwrap();
        app.settle().await;

        let state = app.runtime().await.state();
        let failed = tail(&app).await;
        app.upstream.always(ResponseScript::say("Good day."));
        let retried = app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;

        assert_eq!(state, ConversationState::Idle, "a failed regenerate fails no round");
        assert_eq!(failed.content, "Hello.");
        assert_eq!((retried.kind, retried.reason), (RunKind::Regenerate, RunReason::Retry));
        assert_eq!(retried.target_message_id, Some(failed.id));
        assert_eq!(contents(&texts(&app, &failed).await), ["Hello.", "Good day."]);
        app.close().await;
    }

    async fn a_stopped_regenerate_keeps_the_text(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;

        app.engine.stop(app.conversation, false).await.unwrap();
        release().await;
        app.settle().await;

        let after = tail(&app).await;
        assert_eq!(after.content, "Hello.");
        assert!(texts(&app, &after).await.is_empty());
        app.close().await;
    }

    async fn a_stop_that_keeps_the_partial_text_stores_it_as_a_swipe(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.settle().await;
        release().await;

        let kept = tail(&app).await;
        let texts = texts(&app, &kept).await;
        assert_eq!(contents(&texts), ["Hello.", "One"]);
        assert_eq!((kept.content.as_str(), &kept.metadata["stopped"]), ("One", &Value::from(true)));
        assert_eq!(app.runs().await.pop().unwrap().status, RunStatus::Canceled);
        let back = app.engine.select_swipe(app.scope(), kept.id, (0, None), None).await.unwrap();
        assert!(back.metadata["stopped"].is_null(), "the first swipe was not stopped");
        app.close().await;
    }

    async fn a_message_of_a_muted_member_can_be_regenerated(backend) {
        let app = answered(backend).await;
        app.change_membership("Ada", |it| it.participation = Participation::Muted).await;

        regenerate(&app).await.unwrap();
        app.settle().await;

        assert_eq!(texts(&app, &tail(&app).await).await.len(), 2);
        app.close().await;
    }
}
