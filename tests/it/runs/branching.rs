//! Tests branches: what is cloned, that nothing else changes, and what has to wait.

use base::ids::{ConversationId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::conversations::{conversation, message, read_mark, swipe};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::regeneration::RegenerateResult;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunKind, RunStatus};
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::ResponseScript;

/// A conversation: Eve "Hi.", Ada "Hello.", Eve "And?", Ada "Well."
async fn talked(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend).open().await;
    for (said, answer) in [("Hi.", "Hello."), ("And?", "Well.")] {
        app.upstream.next(ResponseScript::say(answer));
        app.user.post(said).await;
        app.settle().await;
    }
    app
}

async fn branch(
    app: &EngineTest,
    of: ConversationId,
    at: &message::Model,
) -> Result<conversation::Model, EngineError> {
    app.engine.branch(of, at.id, "Another way".to_owned()).await
}

async fn messages_of(app: &EngineTest, id: ConversationId) -> Vec<message::Model> {
    let all = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .order_by_asc(message::Column::Seq)
        .all(app.db.reader());
    all.await.expect("the query failed")
}

async fn texts_of(app: &EngineTest, of: &message::Model) -> Vec<swipe::Model> {
    let all = swipe::Entity::find()
        .filter(swipe::Column::MessageId.eq(of.id))
        .order_by_asc(swipe::Column::Position)
        .all(app.db.reader());
    all.await.expect("the query failed")
}

fn contents(messages: &[message::Model]) -> Vec<&str> {
    messages.iter().map(|it| it.content.as_str()).collect()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

async fn regenerate(app: &EngineTest, at: Option<&message::Model>) -> RegenerateResult {
    let (at, by) = (at.map(|it| it.id), "Eve".to_owned());
    let planned = app.engine.regenerate(app.conversation, at, by).await;
    planned.expect("the regenerate was rejected")
}

on_both! {
    async fn a_branch_copies_all_visible_messages_up_to_its_fork_point(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        app.engine.set_visibility(app.scope(), origins[1].id, Visibility::Hidden).await.unwrap();
        app.engine.set_visibility(app.scope(), origins[0].id, Visibility::Excluded).await.unwrap();
        app.engine.set_remembered(app.scope(), origins[2].id, false).await.unwrap();
        let origins = app.messages().await;

        let made = branch(&app, app.conversation, &origins[2]).await.unwrap();

        let clones = messages_of(&app, made.id).await;
        assert_eq!(contents(&clones), ["Hi.", "And?"]);
        for (clone, origin) in clones.iter().zip([&origins[0], &origins[2]]) {
            let expected = message::Model {
                id: clone.id,
                conversation_id: made.id,
                origin_message_id: Some(origin.id),
                client_id: None,
                rev: 1,
                ..origin.clone()
            };
            assert_eq!(*clone, expected);
        }
        let parent = app.row().await;
        assert_eq!((made.kind, made.parent_conversation_id), (conversation::ConversationKind::Branch, Some(parent.id)));
        assert_eq!((made.forked_from_message_id, made.last_seq, made.rev), (Some(origins[2].id), 3, 1));
        assert_eq!(app.messages().await, origins, "the origin was changed");
        app.close().await;
    }
}

on_sqlite! {
    async fn a_branch_copies_all_swipes_and_the_active_one(backend) {
        let app = talked(backend).await;
        app.upstream.next(ResponseScript::say("Quite."));
        regenerate(&app, None).await;
        app.settle().await;
        let tail = app.messages().await.pop().unwrap();
        app.engine.select_swipe(app.scope(), tail.id, (0, None), None).await.unwrap();
        let tail = app.messages().await.pop().unwrap();

        let made = branch(&app, app.conversation, &tail).await.unwrap();

        let clone = messages_of(&app, made.id).await.pop().unwrap();
        let fields = |texts: &[swipe::Model]| -> Vec<_> {
            let all = texts.iter();
            all.map(|it| (it.position, it.content.clone(), it.conversation_run_id, it.token_count)).collect()
        };
        assert_eq!(clone.active_swipe, 0);
        let (cloned, of_origin) = (texts_of(&app, &clone).await, texts_of(&app, &tail).await);
        assert_eq!(fields(&cloned), fields(&of_origin));
        assert_eq!(cloned.len(), 2);
        app.close().await;
    }

    async fn a_post_in_a_branch_leaves_the_origin_unchanged(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        let made = branch(&app, app.conversation, &origins[1]).await.unwrap();

        let engine = app.engine.clone();
        let said = app.user_in_conversation(&engine, made.id).post("Something else.").await;
        app.until("the branch is answered", async |it| messages_of(it, made.id).await.len() == 4).await;
        app.wait_until_idle().await;

        assert_eq!(said.message.seq, 3);
        assert_eq!(contents(&messages_of(&app, made.id).await), ["Hi.", "Hello.", "Something else.", "Hello."]);
        assert_eq!(app.messages().await, origins);
        app.close().await;
    }

    async fn a_branch_can_be_branched(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        let first = branch(&app, app.conversation, &origins[3]).await.unwrap();
        let clones = messages_of(&app, first.id).await;

        let second = branch(&app, first.id, &clones[1]).await.unwrap();

        let again = messages_of(&app, second.id).await;
        assert_eq!(contents(&again), ["Hi.", "Hello."]);
        assert_eq!(again[1].origin_message_id, Some(clones[1].id));
        assert_eq!(second.parent_conversation_id, Some(first.id));
        app.close().await;
    }

    async fn read_marks_are_copied_to_the_branch(backend) {
        let app = talked(backend).await;
        let eve = UserId(1);
        read_mark::advance(&app.db, eve, app.conversation, 3).await.unwrap();
        let origins = app.messages().await;

        let short = branch(&app, app.conversation, &origins[1]).await.unwrap();
        let long = branch(&app, app.conversation, &origins[3]).await.unwrap();

        let marks = read_mark::list_for_user(app.db.reader(), eve, &[short.id, long.id]).await.unwrap();
        assert_eq!((marks[&short.id], marks[&long.id]), (2, 3));
        app.close().await;
    }

    async fn a_fork_point_can_be_edited_and_swiped_but_not_hidden(backend) {
        let app = talked(backend).await;
        let tail = app.messages().await.pop().unwrap();
        let made = branch(&app, app.conversation, &tail).await.unwrap();
        let (conversation, engine) = (app.conversation, &app.engine);

        let edited = engine.edit_message((conversation, Viewer::Server), edit_of(&tail, "Else.")).await;
        let hidden = engine.set_visibility((conversation, Viewer::Server), tail.id, Visibility::Hidden).await;
        let switched = engine.select_swipe((conversation, Viewer::Server), tail.id, (0, None), None).await;
        let dimmed = engine.set_visibility((conversation, Viewer::Server), tail.id, Visibility::Excluded).await;
        engine.delete_conversation(made.id, UserId(1)).await.unwrap().expect("it is deleted");
        let free = engine.set_visibility((conversation, Viewer::Server), tail.id, Visibility::Hidden).await;

        assert_eq!(refused(hidden), CommandError::ForkPoint);
        assert!(edited.is_ok() && switched.is_ok() && dimmed.is_ok() && free.is_ok());
        app.close().await;
    }

    async fn a_branch_needs_a_visible_message_of_the_conversation(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        let other = app.another_conversation().await;
        app.engine.set_visibility(app.scope(), origins[3].id, Visibility::Hidden).await.unwrap();

        assert_eq!(refused(branch(&app, app.conversation, &origins[3]).await), CommandError::NotFound);
        assert_eq!(refused(branch(&app, other, &origins[0]).await), CommandError::NotFound);
        app.close().await;
    }

    async fn a_message_being_regenerated_cannot_be_a_fork_point(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        let gate = app.upstream.gate();
        regenerate(&app, None).await;
        app.events.wait_for_events("typing_start", 3).await;

        let refusal = refused(branch(&app, app.conversation, &origins[3]).await);
        let earlier = branch(&app, app.conversation, &origins[1]).await;
        gate.open();
        app.settle().await;

        assert_eq!(refusal, CommandError::MessageBeingWritten);
        assert!(earlier.is_ok());
        assert!(branch(&app, app.conversation, &origins[3]).await.is_ok());
        app.close().await;
    }

    async fn an_earlier_message_is_regenerated_as_the_tail_of_a_branch(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        app.upstream.next(ResponseScript::say("Good day."));

        let planned = regenerate(&app, Some(&origins[1])).await;
        app.until("the reply is stored", async |it| {
            it.engine.runtime(planned.conversation).await.unwrap().state() == ConversationState::Idle
        }).await;
        app.wait_until_idle().await;

        let made = planned.branch.expect("no branch was created");
        assert_eq!((made.id, made.forked_from_message_id), (planned.conversation, Some(origins[1].id)));
        let clones = messages_of(&app, made.id).await;
        assert_eq!(contents(&clones), ["Hi.", "Good day."]);
        assert_eq!(texts_of(&app, &clones[1]).await.len(), 2);
        assert_eq!(planned.run.target_message_id, Some(clones[1].id));
        let prompt = app.upstream.body(2)["messages"].to_string();
        assert!(!prompt.contains("Hello.") && !prompt.contains("And?"), "{prompt}");
        assert_eq!(app.messages().await, origins, "the origin was changed");
        app.close().await;
    }

    async fn a_tail_that_is_a_fork_point_is_regenerated_in_another_branch(backend) {
        let app = talked(backend).await;
        let tail = app.messages().await.pop().unwrap();
        branch(&app, app.conversation, &tail).await.unwrap();

        let planned = regenerate(&app, None).await;
        app.wait_until_idle().await;

        assert!(planned.branch.is_some());
        assert_eq!(app.messages().await.pop(), Some(tail));
        app.close().await;
    }
}

on_both! {
    async fn two_simultaneous_branches_are_both_complete(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;

        let (one, two) = tokio::join!(
            branch(&app, app.conversation, &origins[3]),
            branch(&app, app.conversation, &origins[3]),
        );

        for made in [one.unwrap(), two.unwrap()] {
            assert_eq!(contents(&messages_of(&app, made.id).await), ["Hi.", "Hello.", "And?", "Well."]);
        }
        app.close().await;
    }

    async fn a_branch_and_the_deletion_of_its_origin_exclude_each_other(backend) {
        let app = talked(backend).await;
        let origins = app.messages().await;
        let first = branch(&app, app.conversation, &origins[3]).await.unwrap();
        let clone = messages_of(&app, first.id).await.pop().unwrap();

        let (made, deleted) = tokio::join!(
            branch(&app, first.id, &clone),
            app.engine.delete_conversation(first.id, UserId(1)),
        );

        match (made, deleted.unwrap()) {
            (Ok(made), None) => assert_eq!(messages_of(&app, made.id).await.len(), 4),
            (Err(error), Some(_)) => assert_eq!(refused::<()>(Err(error)), CommandError::NotFound),
            other => panic!("the branch and the deletion disagree: {other:?}"),
        }
        app.close().await;
    }
}

on_sqlite! {
    async fn in_manual_order_an_earlier_reply_is_regenerated_by_its_author(backend) {
        let app = talked(backend).await;
        app.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        let origins = app.messages().await;

        let planned = regenerate(&app, Some(&origins[1])).await;
        app.until("the reply is stored", async |it| {
            it.engine.runtime(planned.conversation).await.unwrap().state() == ConversationState::Idle
        }).await;
        app.wait_until_idle().await;

        let run = run::find(app.db.reader(), planned.run.id).await.unwrap().expect("the run exists");
        assert_eq!((run.kind, run.status), (RunKind::Regenerate, RunStatus::Succeeded));
        app.close().await;
    }
}
