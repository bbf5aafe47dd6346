//! Tests continue: it extends the newest message of an AI in its place, as a swipe, or changes nothing.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use serde_json::{Value, json};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::conversations::{message, swipe};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::{CommandError, VersionRequest};
use troupe::runs::store::run::{RunCancelReason, RunKind, RunReason, RunStatus};
use troupe::runs::store::run_view::RunView;
use troupe::spaces::space::InputPolicy;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// The instruction of the default preset.
const NUDGE: &str = "[Go on with the last message from where it ends. Repeat nothing of it.]";

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

/// Continues the tail.
async fn continue_tail(app: &EngineTest) -> Result<RunView, EngineError> {
    let request = VersionRequest {
        instruction: None,
        message: None,
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    };
    app.engine.continue_message(app.conversation, request).await
}

/// The continuation is held after its first word; the returned function releases it.
async fn writing(app: &EngineTest) -> impl AsyncFnOnce() + use<> {
    let gate = app.upstream.gate();
    app.upstream.next(ResponseScript::say(" One two three."));
    continue_tail(app).await.unwrap();
    gate.step();
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
async fn texts(app: &EngineTest) -> Vec<swipe::Model> {
    let all = swipe::Entity::find()
        .filter(swipe::Column::MessageId.eq(tail(app).await.id))
        .order_by_asc(swipe::Column::Position)
        .all(app.db.reader());
    all.await.expect("the query failed")
}

async fn contents(app: &EngineTest) -> Vec<String> {
    texts(app).await.into_iter().map(|it| it.content).collect()
}

/// The messages of the newest prompt.
fn prompt(app: &EngineTest) -> Vec<Value> {
    let newest = app.upstream.n_requests() - 1;
    let body = app.upstream.body(newest);
    body["messages"].as_array().expect("a list").clone()
}

on_sqlite! {
    async fn the_text_is_extended_and_the_former_one_becomes_the_first_swipe(backend) {
        let app = answered(backend).await;
        let before = tail(&app).await;
        app.upstream.next(ResponseScript::say(" And so on."));

        let run = continue_tail(&app).await.unwrap();
        app.settle().await;

        let after = tail(&app).await;
        assert_eq!((after.id, after.seq), (before.id, before.seq));
        assert_eq!((after.content.as_str(), after.active_swipe), ("Hello. And so on.", 1));
        assert!(after.version > before.version && after.token_count > before.token_count);
        assert_eq!(contents(&app).await, ["Hello.", "Hello. And so on."]);
        assert_eq!(texts(&app).await[1].conversation_run_id, Some(run.id));
        assert_eq!((run.kind, run.reason), (RunKind::Continue, RunReason::Continue));
        assert_eq!(run.target_message_id, Some(before.id));
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        assert_eq!(app.messages().await.len(), 2);
        app.close().await;
    }

    async fn nothing_is_inserted_or_removed_at_the_joint(backend) {
        let app = answered(backend).await;
        for (said, whole) in [
            ("\n\nThen", "Hello.\n\nThen"),
            ("ever.", "Hello.\n\nThenever."),
            ("Ada: Well.", "Hello.\n\nThenever. Well."),
            (" Yes.\nBob: No!", "Hello.\n\nThenever. Well. Yes."),
        ] {
            app.upstream.next(ResponseScript::say(said));
            continue_tail(&app).await.unwrap();
            app.settle().await;
            assert_eq!(tail(&app).await.content, whole);
        }
        app.close().await;
    }

    async fn the_prompt_ends_with_the_text_and_the_nudge(backend) {
        let app = answered(backend).await;
        continue_tail(&app).await.unwrap();
        app.settle().await;

        let prompt = prompt(&app);
        let nudge = prompt.last().expect("a message");
        assert_eq!(nudge["role"], "system");
        assert!(nudge["content"].as_str().unwrap().ends_with(NUDGE), "{nudge}");
        let replies: Vec<_> = prompt.iter().filter(|it| it["role"] == "assistant").collect();
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0]["content"], "Ada: Hello.");
        app.close().await;
    }

    async fn the_nudge_of_the_speaker_wins_over_that_of_the_space(backend) {
        let app = answered(backend).await;
        app.change_rules(|it| it.settings = json!({"continue_nudge_prompt": "More!"})).await;
        continue_tail(&app).await.unwrap();
        app.settle().await;
        let of_space = prompt(&app).pop().unwrap();
        let own = json!({"preset": {"continue_nudge_prompt": "More of {{char}}!"}});
        app.change_membership("Ada", |it| it.settings = own).await;

        continue_tail(&app).await.unwrap();
        app.settle().await;

        let of_speaker = prompt(&app).pop().unwrap();
        assert!(of_space["content"].as_str().unwrap().ends_with("More!"), "{of_space}");
        assert!(of_speaker["content"].as_str().unwrap().ends_with("More of Ada!"), "{of_speaker}");
        app.close().await;
    }

    async fn chunks_are_appended_to_the_existing_text(backend) {
        let app = answered(backend).await;
        let n_frames = app.events.log().len();
        let id = tail(&app).await.id;

        app.upstream.next(ResponseScript::say(" More."));
        continue_tail(&app).await.unwrap();
        app.settle().await;

        let expected = [
            "run_queued", "queue_updated",
            "queue_updated", "typing_start", "stream_chunk",
            "message_updated", "stream_complete(succeeded)", "queue_updated", "typing_stop",
        ];
        assert_eq!(app.events.event_names_since(n_frames), expected);
        let log = app.events.log();
        let of = |name: &str| log.iter().rfind(|it| it["type"] == name).expect("no event");
        assert_eq!(of("typing_start")["kind"], "continue");
        assert_eq!(of("typing_start")["target_message_id"], Value::from(id.0));
        assert_eq!(of("typing_start")["base_length"], 6);
        assert_eq!(of("stream_chunk")["offset"], 6);
        assert_eq!(of("message_updated")["message"]["content"], "Hello. More.");
        app.close().await;
    }

    async fn the_limit_of_a_text_applies_to_both_parts_together(backend) {
        let app = answered(backend).await;
        app.upstream.next(ResponseScript::say(&"x".repeat(70_000)));

        continue_tail(&app).await.unwrap();
        app.settle().await;

        let after = tail(&app).await;
        assert_eq!(after.content.len(), 64 * 1024);
        assert!(after.content.starts_with("Hello.x"));
        assert_eq!(after.metadata["truncated"], true);
        let refusal = refused(continue_tail(&app).await);
        assert_eq!((refusal, app.upstream.n_requests()), (CommandError::TooLong, 2));
        app.close().await;
    }

    async fn a_cut_reply_is_continued_and_is_no_longer_cut(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.next(ResponseScript::stream().role().text("Once upon").finish("length").done());
        app.user.post("Tell me a story.").await;
        app.settle().await;
        assert_eq!(tail(&app).await.metadata["truncated"], true);

        app.upstream.next(ResponseScript::say(" a time."));
        continue_tail(&app).await.unwrap();
        app.settle().await;

        let after = tail(&app).await;
        assert_eq!((after.content.as_str(), &after.metadata), ("Once upon a time.", &json!({})));
        app.close().await;
    }

    async fn a_stopped_continue_keeps_the_former_text(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;

        app.engine.stop(app.conversation, false).await.unwrap();
        release().await;
        app.settle().await;

        assert_eq!(tail(&app).await.content, "Hello.");
        assert!(texts(&app).await.is_empty());
        app.close().await;
    }

    async fn a_stop_that_keeps_the_partial_text_stores_both_parts(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.settle().await;
        release().await;

        let after = tail(&app).await;
        assert_eq!(contents(&app).await, ["Hello.", "Hello. One"]);
        assert_eq!((after.content.as_str(), &after.metadata["stopped"]), ("Hello. One", &json!(true)));
        assert_eq!(app.runs().await[1].status, RunStatus::Canceled);
        app.close().await;
    }

    async fn a_failed_continue_keeps_the_text_and_can_be_retried(backend) {
        let app = answered(backend).await;
        app.upstream.always(ResponseScript::stream().role().words(" One two").close());
        continue_tail(&app).await.unwrap();
        app.settle().await;
        assert_eq!(tail(&app).await.content, "Hello.");

        app.upstream.always(ResponseScript::say(" Again."));
        let retried = app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;

        assert_eq!((retried.kind, retried.reason), (RunKind::Continue, RunReason::Retry));
        assert_eq!(contents(&app).await, ["Hello.", "Hello. Again."]);
        app.close().await;
    }

    async fn a_blank_continuation_fails_and_keeps_the_text(backend) {
        let app = answered(backend).await;
        app.upstream.next(ResponseScript::say(" \n "));
        continue_tail(&app).await.unwrap();
        app.settle().await;

        let run = app.runs().await.pop().unwrap();
        assert_eq!(run.error.map(|it| it.code).as_deref(), Some("empty_response"));
        assert_eq!(tail(&app).await.content, "Hello.");
        app.close().await;
    }

    async fn the_message_cannot_be_changed_or_branched_while_it_is_continued(backend) {
        let app = answered(backend).await;
        continue_tail(&app).await.unwrap();
        app.settle().await;
        let release = writing(&app).await;
        let target = tail(&app).await;

        let edited = app.engine.edit_message(app.scope(), edit_of(&target, "No.")).await;
        let selected = app.engine.select_swipe(app.scope(), target.id, (0, None), None).await;
        let branched = app.engine.branch(app.conversation, target.id, String::new()).await;
        let again = continue_tail(&app).await;
        release().await;
        app.settle().await;

        assert_eq!(refused(edited), CommandError::MessageBeingWritten);
        assert_eq!(refused(selected), CommandError::MessageBeingWritten);
        assert_eq!(refused(branched), CommandError::MessageBeingWritten);
        assert_eq!(refused(again), CommandError::GenerationLocked);
        let selected = app.engine.select_swipe(app.scope(), target.id, (0, None), None).await.unwrap();
        assert_eq!((selected.swipes.count, selected.swipes.active), (3, 0));
        assert_eq!(tail(&app).await.content, "Hello.");
        app.close().await;
    }

    async fn with_the_queue_policy_a_post_waits_for_a_continue_and_sees_its_text(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;

        app.user.post("And then?").await;
        release().await;
        app.settle().await;

        let all: Vec<_> = app.messages().await.into_iter().map(|it| it.content).collect();
        assert_eq!(all, ["Hi.", "Hello. One two three.", "And then?", "Hello."]);
        app.close().await;
    }

    async fn with_the_restart_policy_a_post_cancels_a_continue(backend) {
        let app = answered_with(backend, InputPolicy::Restart).await;
        let release = writing(&app).await;

        let posted = app.user.post("Stop.").await;
        release().await;
        app.settle().await;

        let run = app.runs().await.into_iter().find(|it| it.kind == RunKind::Continue).unwrap();
        assert_eq!(run.canceled_because, Some(RunCancelReason::SupersededByMessage));
        assert_eq!(run.superseded_by_message_id, Some(posted.message.id));
        assert_eq!(app.messages().await[1].content, "Hello.");
        app.close().await;
    }

    async fn hiding_a_message_cancels_its_continue(backend) {
        let app = answered(backend).await;
        let release = writing(&app).await;
        let target = tail(&app).await;

        let hidden = app.engine.set_visibility(app.scope(), target.id, Visibility::Hidden);
        hidden.await.unwrap();
        release().await;
        app.settle().await;

        assert_eq!(app.runs().await[1].status, RunStatus::Canceled);
        app.close().await;
    }
}

on_both! {
    async fn a_post_against_a_continue_loses_no_text(backend) {
        let app = answered(backend).await;
        app.upstream.always(ResponseScript::say(" More."));

        let (posted, planned) = tokio::join!(app.user.try_post("And?"), continue_tail(&app));
        posted.unwrap();
        app.settle().await;

        let messages = app.messages().await;
        assert_eq!((messages.len(), messages[2].content.as_str()), (4, "And?"));
        let runs = app.runs().await;
        let run = runs.iter().find(|it| it.kind == RunKind::Continue);
        let expected = match (planned, run.map(|it| it.status)) {
            (Ok(_), Some(RunStatus::Succeeded)) => "Hello. More.",
            (Ok(_), Some(RunStatus::Canceled)) | (Err(_), None) => "Hello.",
            other => panic!("{other:?}"),
        };
        assert_eq!(messages[1].content, expected);
        app.close().await;
    }

    async fn a_continue_of_a_dead_node_is_recovered_with_the_former_text(backend) {
        let app = answered(backend).await;
        let gate = HoldPoint::closed();
        app.upstream.next(ResponseScript::say(" One two three.").held_at(&gate));
        continue_tail(&app).await.unwrap();
        gate.step();
        gate.step();
        app.events.wait_for_text("One").await;
        app.engine.context().shutdown.draining.cancel();
        app.set_last_heartbeat(60_000).await;
        app.upstream.always(ResponseScript::say(" Recovered."));
        let node = app.another_node();
        node.start().await.unwrap();

        node.run_recovery().await.unwrap();
        app.until("the second attempt has written", async |it| {
            tail(it).await.content == "Hello. Recovered."
        })
        .await;
        gate.open();
        app.wait_until_idle().await;

        let runs = app.runs().await;
        let statuses: Vec<_> = runs.iter().map(|it| (it.kind, it.status, it.attempt)).collect();
        assert_eq!(statuses[1..], [
            (RunKind::Continue, RunStatus::Failed, 1),
            (RunKind::Continue, RunStatus::Succeeded, 2),
        ]);
        assert_eq!(contents(&app).await, ["Hello.", "Hello. Recovered."]);
        app.stop(&node).await;
        app.close_without_events().await;
    }
}
