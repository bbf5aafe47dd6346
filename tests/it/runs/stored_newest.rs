//! Tests that the stored references of a conversation to its newest messages equal the result of a
//! search.

use base::ids::ConversationId;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sea_orm::EntityTrait;
use troupe::conversations::message::{MessageRole, Visibility};
use troupe::conversations::newest_messages::NewestMessages;
use troupe::conversations::{conversation, newest_messages};
use troupe::spaces::space::GroupRegenerateMode;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;

/// How many random changes are made.
const N_CHANGES: usize = 60;

on_both! {
    async fn after_random_changes_the_stored_newest_messages_equal_the_found_ones(backend) {
        let room = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| it.group_regenerate_mode = GroupRegenerateMode::LastTurn)
            .open()
            .await;
        let mut dice = ChaCha8Rng::seed_from_u64(14);

        for n in 0..N_CHANGES {
            change(&room, &mut dice).await;
            assert_stored(&room, room.conversation, n).await;
        }

        room.close().await;
    }

    async fn a_branch_stores_its_own_newest_messages(backend) {
        let room = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        for _ in 0..2 {
            room.user.post("Hi.").await;
            room.settle().await;
        }
        let fork = &room.messages().await[1];

        let branch = room.engine.branch(room.conversation, fork.id, String::new()).await.unwrap();

        assert_stored(&room, branch.id, 0).await;
        let row = row(&room, branch.id).await;
        assert_eq!(NewestMessages::from_row(&row), NewestMessages {
            last_speaker: Some(fork.space_membership_id),
            last_assistant_seq: Some(2),
            last_user_seq: Some(1),
        });
        room.close().await;
    }
}

async fn change(room: &EngineTest, dice: &mut ChaCha8Rng) {
    let messages = room.messages().await;
    let any = match messages.len() {
        0 => None,
        n => Some(&messages[dice.random_range(0..n)]),
    };
    let id = room.conversation;
    match (dice.random_range(0..6), any) {
        (0, Some(it)) => {
            let hidden = room
                .engine
                .set_visibility(id, it.id, Visibility::Hidden)
                .await;
            hidden.expect("no branch hangs on it");
        }
        (1, Some(it)) => {
            let shown = room
                .engine
                .set_visibility(id, it.id, Visibility::Normal)
                .await;
            shown.expect("every message can be shown");
        }
        (2, Some(it)) => {
            let excluded = room
                .engine
                .set_visibility(id, it.id, Visibility::Excluded)
                .await;
            excluded.expect("every message can be excluded");
        }
        (3, _) => {
            let forced = room.engine.force_talk(id, None, "Eve".to_owned()).await;
            forced.expect("a character can speak");
        }
        (4, Some(_)) => {
            // Rejected if no visible message can be regenerated.
            let newest = messages.iter().rev();
            let mut newest = newest.filter(|it| it.visibility != Visibility::Hidden);
            if newest
                .next()
                .is_some_and(|it| it.role == MessageRole::Assistant)
            {
                let again = room.engine.regenerate(id, None, "Eve".to_owned()).await;
                again.expect("the newest message is an assistant's");
            }
        }
        _ => _ = room.user.post("Hi.").await,
    }
    room.settle().await;
}

async fn assert_stored(room: &EngineTest, id: ConversationId, n: usize) {
    let stored = NewestMessages::from_row(&row(room, id).await);
    let found = newest_messages::find(room.db.reader(), id).await;
    assert_eq!(
        stored,
        found.expect("the database answers"),
        "after change {n}"
    );
}

async fn row(room: &EngineTest, id: ConversationId) -> conversation::Model {
    let row = conversation::Entity::find_by_id(id).one(room.db.reader());
    row.await.expect("the database answers").expect("it exists")
}
