//! Tests edits, selections of swipes and new versions of messages that are not the newest, also while a
//! reply is generated: they change one text and not the schedule.

use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message;
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::{CommandError, VersionRequest};
use troupe::runs::store::run::{RunKind, RunStatus};

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::ResponseScript;

/// Eve has posted "Hi." and "Well?", and Ada has answered "Hello." to both.
async fn talked(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend).cast(&["Ada"]).open().await;
    for text in ["Hi.", "Well?"] {
        app.user.post(text).await;
        app.settle().await;
    }
    app
}

async fn texts(app: &EngineTest) -> Vec<String> {
    let all = app.messages().await;
    all.into_iter().map(|it| it.content).collect()
}

async fn regenerate_in_place(app: &EngineTest, target: &message::Model) {
    let request = VersionRequest {
        instruction: None,
        message: Some(target.id),
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    };
    let planned = app.engine.regenerate_in_place(app.conversation, request);
    planned.await.unwrap();
}

/// The newest prompt that the model received, as one text.
fn prompt(app: &EngineTest) -> String {
    let newest = app.upstream.n_requests() - 1;
    app.upstream.body(newest)["messages"].to_string()
}

on_both! {
    async fn a_regenerate_in_place_changes_an_earlier_message_and_its_prompt_ends_before_it(backend) {
        let app = talked(backend).await;
        let target = app.messages().await[1].clone();
        app.upstream.next(ResponseScript::say("Good day."));

        regenerate_in_place(&app, &target).await;
        app.settle().await;

        assert_eq!(texts(&app).await, ["Hi.", "Good day.", "Well?", "Hello."]);
        let written = app.messages().await[1].clone();
        assert_eq!((written.active_swipe, written.version), (1, 2));
        let sent = prompt(&app);
        assert!(sent.contains("Hi.") && !sent.contains("Well?") && !sent.contains("Hello."), "{sent}");
        let run = app.runs().await.pop().unwrap();
        assert_eq!((run.kind, run.status), (RunKind::Regenerate, RunStatus::Succeeded));
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }
}

on_sqlite! {
    async fn other_messages_can_be_changed_while_one_is_regenerated_in_place(backend) {
        let app = talked(backend).await;
        let all = app.messages().await;
        let gate = app.upstream.gate();
        app.upstream.next(ResponseScript::say("One two three."));
        regenerate_in_place(&app, &all[1]).await;
        gate.step();
        app.events.wait_for_text("One").await;

        let locked = app.engine.edit_message(app.scope(), edit_of(&all[1], "Mine.")).await;
        let before = app.engine.edit_message(app.scope(), edit_of(&all[0], "Hey.")).await;
        let after = app.engine.edit_message(app.scope(), edit_of(&all[3], "Howdy.")).await;
        gate.open();
        app.settle().await;

        let expected = CommandError::MessageBeingWritten;
        assert!(matches!(locked, Err(EngineError::Rejected(it)) if it == expected));
        assert!(before.is_ok() && after.is_ok());
        assert_eq!(texts(&app).await, ["Hey.", "One two three.", "Well?", "Howdy."]);
        app.close().await;
    }

    async fn an_edit_during_a_reply_leaves_it_and_the_next_prompt_has_the_new_text(backend) {
        let app = talked(backend).await;
        let all = app.messages().await;
        let gate = app.upstream.gate();
        app.upstream.next(ResponseScript::say("One two three."));
        app.user.post("And?").await;
        gate.step();
        app.events.wait_for_text("One").await;

        let post = app.messages().await.pop().unwrap();
        let edited = app.engine.edit_message(app.scope(), edit_of(&post, "And then?")).await.unwrap();
        app.engine.edit_message(app.scope(), edit_of(&all[0], "Good morning.")).await.unwrap();
        let state = app.runtime().await.state();
        gate.open();
        app.settle().await;
        app.user.post("Go on.").await;
        app.settle().await;

        assert_eq!(edited.version, 2);
        assert_eq!(state, ConversationState::Generating);
        let statuses: Vec<_> = app.runs().await.into_iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded; 4]);
        let sent = prompt(&app);
        assert!(sent.contains("Good morning.") && sent.contains("And then?"), "{sent}");
        assert!(sent.contains("One two three.") && !sent.contains("Hi."), "{sent}");
        app.close().await;
    }

    async fn a_failed_regenerate_in_place_is_retried_only_by_a_person_who_may_edit(backend) {
        let app = talked(backend).await;
        let target = app.messages().await[1].clone();
        app.upstream.always(ResponseScript::stream().role().words("One two").close());
        regenerate_in_place(&app, &target).await;
        app.settle().await;

        let refused = app.engine.retry(app.scope(), false).await;
        app.upstream.always(ResponseScript::say("Good day."));
        app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::InPlaceForbidden))));
        assert_eq!(texts(&app).await, ["Hi.", "Good day.", "Well?", "Hello."]);
        app.close().await;
    }

    async fn a_new_version_takes_no_effects_of_its_earlier_prompt(backend) {
        let app = talked(backend).await;
        let target = app.messages().await[1].clone();
        let before = app.row().await.prompt_starts;

        regenerate_in_place(&app, &target).await;
        app.settle().await;

        assert_eq!(app.row().await.prompt_starts, before);
        app.close().await;
    }
}
