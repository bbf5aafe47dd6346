//! Tests branches: what is cloned, that nothing else changes, and what has to wait.

use base::ids::{ConversationId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use troupe::conversations::message::Visibility;
use troupe::conversations::{conversation, message, read_mark, swipe};
use troupe::runs::error::EngineError;
use troupe::runs::message_versions::RegenerateResult;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run::{RunKind, RunStatus};
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::ResponseScript;

/// A conversation: Eve "Hi.", Ada "Hello.", Eve "And?", Ada "Well."
async fn talked(backend: TestBackend) -> EngineTest {
    let room = EngineTest::builder(backend).open().await;
    for (said, answer) in [("Hi.", "Hello."), ("And?", "Well.")] {
        room.upstream.next(ResponseScript::say(answer));
        room.user.post(said).await;
        room.settle().await;
    }
    room
}

async fn branch(
    room: &EngineTest,
    of: ConversationId,
    at: &message::Model,
) -> Result<conversation::Model, EngineError> {
    room.engine
        .branch(of, at.id, "Another way".to_owned())
        .await
}

async fn messages_of(room: &EngineTest, id: ConversationId) -> Vec<message::Model> {
    let all = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .order_by_asc(message::Column::Seq)
        .all(room.db.reader());
    all.await.expect("the database answers")
}

async fn texts_of(room: &EngineTest, of: &message::Model) -> Vec<swipe::Model> {
    let all = swipe::Entity::find()
        .filter(swipe::Column::MessageId.eq(of.id))
        .order_by_asc(swipe::Column::Position)
        .all(room.db.reader());
    all.await.expect("the database answers")
}

fn contents(messages: &[message::Model]) -> Vec<&str> {
    messages.iter().map(|it| it.content.as_str()).collect()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn regenerate(room: &EngineTest, at: Option<&message::Model>) -> RegenerateResult {
    let (at, by) = (at.map(|it| it.id), "Eve".to_owned());
    let planned = room.engine.regenerate(room.conversation, at, by).await;
    planned.expect("it is planned")
}

on_both! {
    async fn a_branch_has_all_that_is_shown_up_to_its_fork_point(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        room.engine.set_visibility(room.conversation, origins[1].id, Visibility::Hidden).await.unwrap();
        room.engine.set_visibility(room.conversation, origins[0].id, Visibility::Excluded).await.unwrap();
        let origins = room.messages().await;

        let made = branch(&room, room.conversation, &origins[2]).await.unwrap();

        let clones = messages_of(&room, made.id).await;
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
        let parent = room.row().await;
        assert_eq!((made.kind, made.parent_conversation_id), (conversation::ConversationKind::Branch, Some(parent.id)));
        assert_eq!((made.forked_from_message_id, made.last_seq, made.rev), (Some(origins[2].id), 3, 1));
        assert_eq!(room.messages().await, origins, "the origin stays as it is");
        room.close().await;
    }
}

on_sqlite! {
    async fn every_text_and_the_one_that_is_shown_go_along(backend) {
        let room = talked(backend).await;
        room.upstream.next(ResponseScript::say("Quite."));
        regenerate(&room, None).await;
        room.settle().await;
        let tail = room.messages().await.pop().unwrap();
        room.engine.select_swipe(room.conversation, tail.id, 0, None).await.unwrap();
        let tail = room.messages().await.pop().unwrap();

        let made = branch(&room, room.conversation, &tail).await.unwrap();

        let clone = messages_of(&room, made.id).await.pop().unwrap();
        let told = |texts: &[swipe::Model]| -> Vec<_> {
            let all = texts.iter();
            all.map(|it| (it.position, it.content.clone(), it.conversation_run_id, it.token_count)).collect()
        };
        assert_eq!(clone.active_swipe, 0);
        let (cloned, of_origin) = (texts_of(&room, &clone).await, texts_of(&room, &tail).await);
        assert_eq!(told(&cloned), told(&of_origin));
        assert_eq!(cloned.len(), 2);
        room.close().await;
    }

    async fn a_branch_goes_its_own_way(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        let made = branch(&room, room.conversation, &origins[1]).await.unwrap();

        let engine = room.engine.clone();
        let said = room.user_in_conversation(&engine, made.id).post("Something else.").await;
        room.until("it is answered there", async |it| messages_of(it, made.id).await.len() == 4).await;
        room.wait_until_idle().await;

        assert_eq!(said.message.seq, 3);
        assert_eq!(contents(&messages_of(&room, made.id).await), ["Hi.", "Hello.", "Something else.", "Hello."]);
        assert_eq!(room.messages().await, origins);
        room.close().await;
    }

    async fn a_branch_can_be_branched(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        let first = branch(&room, room.conversation, &origins[3]).await.unwrap();
        let clones = messages_of(&room, first.id).await;

        let second = branch(&room, first.id, &clones[1]).await.unwrap();

        let again = messages_of(&room, second.id).await;
        assert_eq!(contents(&again), ["Hi.", "Hello."]);
        assert_eq!(again[1].origin_message_id, Some(clones[1].id));
        assert_eq!(second.parent_conversation_id, Some(first.id));
        room.close().await;
    }

    async fn read_marks_are_copied_to_the_branch(backend) {
        let room = talked(backend).await;
        let eve = UserId(1);
        read_mark::advance(&room.db, eve, room.conversation, 3).await.unwrap();
        let origins = room.messages().await;

        let short = branch(&room, room.conversation, &origins[1]).await.unwrap();
        let long = branch(&room, room.conversation, &origins[3]).await.unwrap();

        let marks = read_mark::list_for_user(room.db.reader(), eve, &[short.id, long.id]).await.unwrap();
        assert_eq!((marks[&short.id], marks[&long.id]), (2, 3));
        room.close().await;
    }

    async fn a_fork_point_is_neither_edited_nor_deleted_nor_switched_while_its_branch_lives(backend) {
        let room = talked(backend).await;
        let tail = room.messages().await.pop().unwrap();
        let made = branch(&room, room.conversation, &tail).await.unwrap();
        let (conversation, engine) = (room.conversation, &room.engine);

        let edited = engine.edit_message(conversation, edit_of(&tail, "Else.")).await;
        let hidden = engine.set_visibility(conversation, tail.id, Visibility::Hidden).await;
        let switched = engine.select_swipe(conversation, tail.id, 0, None).await;
        let dimmed = engine.set_visibility(conversation, tail.id, Visibility::Excluded).await;
        conversation::delete(&room.db, made.id).await.unwrap();
        let free = engine.edit_message(conversation, edit_of(&tail, "Else.")).await;

        assert_eq!(refused(edited), CommandError::ForkPoint);
        assert_eq!(refused(hidden), CommandError::ForkPoint);
        assert_eq!(refused(switched), CommandError::ForkPoint);
        assert!(dimmed.is_ok() && free.is_ok());
        room.close().await;
    }

    async fn a_branch_needs_a_message_that_is_there(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        let other = room.another_conversation().await;
        room.engine.set_visibility(room.conversation, origins[3].id, Visibility::Hidden).await.unwrap();

        assert_eq!(refused(branch(&room, room.conversation, &origins[3]).await), CommandError::NotFound);
        assert_eq!(refused(branch(&room, other, &origins[0]).await), CommandError::NotFound);
        room.close().await;
    }

    async fn a_message_being_regenerated_is_no_fork_point(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        let gate = room.upstream.gate();
        regenerate(&room, None).await;
        room.events.wait_for_events("typing_start", 3).await;

        let refusal = refused(branch(&room, room.conversation, &origins[3]).await);
        let earlier = branch(&room, room.conversation, &origins[1]).await;
        gate.open();
        room.settle().await;

        assert_eq!(refusal, CommandError::MessageBeingWritten);
        assert!(earlier.is_ok());
        assert!(branch(&room, room.conversation, &origins[3]).await.is_ok());
        room.close().await;
    }

    async fn an_earlier_message_is_regenerated_in_a_branch_of_which_it_is_the_tail(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        room.upstream.next(ResponseScript::say("Good day."));

        let planned = regenerate(&room, Some(&origins[1])).await;
        room.until("it is written", async |it| {
            it.engine.runtime(planned.conversation).await.unwrap().state() == ConversationState::Idle
        }).await;
        room.wait_until_idle().await;

        let made = planned.branch.expect("a branch was made");
        assert_eq!((made.id, made.forked_from_message_id), (planned.conversation, Some(origins[1].id)));
        let clones = messages_of(&room, made.id).await;
        assert_eq!(contents(&clones), ["Hi.", "Good day."]);
        assert_eq!(texts_of(&room, &clones[1]).await.len(), 2);
        assert_eq!(planned.run.target_message_id, Some(clones[1].id));
        let told = room.upstream.body(2)["messages"].to_string();
        assert!(!told.contains("Hello.") && !told.contains("And?"), "{told}");
        assert_eq!(room.messages().await, origins, "the origin stays as it is");
        room.close().await;
    }

    async fn a_fork_point_on_the_tail_is_regenerated_in_another_branch(backend) {
        let room = talked(backend).await;
        let tail = room.messages().await.pop().unwrap();
        branch(&room, room.conversation, &tail).await.unwrap();

        let planned = regenerate(&room, None).await;
        room.wait_until_idle().await;

        assert!(planned.branch.is_some());
        assert_eq!(room.messages().await.pop(), Some(tail));
        room.close().await;
    }
}

on_both! {
    async fn two_branches_at_once_are_two_whole_branches(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;

        let (one, two) = tokio::join!(
            branch(&room, room.conversation, &origins[3]),
            branch(&room, room.conversation, &origins[3]),
        );

        for made in [one.unwrap(), two.unwrap()] {
            assert_eq!(contents(&messages_of(&room, made.id).await), ["Hi.", "Hello.", "And?", "Well."]);
        }
        room.close().await;
    }

    async fn a_branch_and_the_deletion_of_its_origin_exclude_each_other(backend) {
        let room = talked(backend).await;
        let origins = room.messages().await;
        let first = branch(&room, room.conversation, &origins[3]).await.unwrap();
        let clone = messages_of(&room, first.id).await.pop().unwrap();

        let (made, deleted) = tokio::join!(
            branch(&room, first.id, &clone),
            conversation::delete(&room.db, first.id),
        );

        match (made, deleted.unwrap()) {
            (Ok(made), None) => assert_eq!(messages_of(&room, made.id).await.len(), 4),
            (Err(error), Some(_)) => assert_eq!(refused::<()>(Err(error)), CommandError::NotFound),
            other => panic!("both or neither: {other:?}"),
        }
        room.close().await;
    }
}

on_sqlite! {
    async fn in_manual_order_an_earlier_reply_is_regenerated_by_its_author(backend) {
        let room = talked(backend).await;
        room.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        let origins = room.messages().await;

        let planned = regenerate(&room, Some(&origins[1])).await;
        room.wait_until_idle().await;

        assert_eq!((planned.run.kind, planned.run.status), (RunKind::Regenerate, RunStatus::Queued));
        room.close().await;
    }
}
