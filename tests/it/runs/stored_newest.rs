//! Tests that the stored references of a conversation to its newest messages equal the result of a
//! search.

use base::ids::ConversationId;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sea_orm::EntityTrait;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::{MessageRole, Visibility};
use troupe::conversations::newest_messages::NewestMessages;
use troupe::conversations::{conversation, newest_messages};
use troupe::runs::scheduling::command::ForcedTurn;
use troupe::spaces::space::GroupRegenerateMode;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;

/// How many random changes are made.
const N_CHANGES: usize = 60;

on_both! {
    async fn after_random_changes_the_stored_newest_messages_equal_the_found_ones(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| it.group_regenerate_mode = GroupRegenerateMode::LastTurn)
            .open()
            .await;
        let mut rng = ChaCha8Rng::seed_from_u64(14);

        for n in 0..N_CHANGES {
            change(&app, &mut rng).await;
            assert_stored(&app, app.conversation, n).await;
        }

        app.close().await;
    }

    async fn a_branch_stores_its_own_newest_messages(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        for _ in 0..2 {
            app.user.post("Hi.").await;
            app.settle().await;
        }
        let fork = &app.messages().await[1];

        let branch = app.engine.branch(app.conversation, fork.id, String::new()).await.unwrap();

        assert_stored(&app, branch.id, 0).await;
        let row = row(&app, branch.id).await;
        assert_eq!(NewestMessages::from_row(&row), NewestMessages {
            last_speaker: Some(fork.space_membership_id),
            last_assistant_seq: Some(2),
            last_user_seq: Some(1),
        });
        app.close().await;
    }
}

async fn change(app: &EngineTest, rng: &mut ChaCha8Rng) {
    let messages = app.messages().await;
    let any = match messages.len() {
        0 => None,
        n => Some(&messages[rng.random_range(0..n)]),
    };
    let id = app.conversation;
    match (rng.random_range(0..6), any) {
        (0, Some(it)) => {
            let hidden = app
                .engine
                .set_visibility((id, Viewer::Server), it.id, Visibility::Hidden)
                .await;
            hidden.expect("the message was not hidden");
        }
        (1, Some(it)) => {
            let shown = app
                .engine
                .set_visibility((id, Viewer::Server), it.id, Visibility::Normal)
                .await;
            shown.expect("the message was not shown");
        }
        (2, Some(it)) => {
            let excluded = app
                .engine
                .set_visibility((id, Viewer::Server), it.id, Visibility::Excluded)
                .await;
            excluded.expect("the message was not excluded");
        }
        (3, _) => {
            let forced = app
                .engine
                .force_talk(id, ForcedTurn::new(None, "Eve", Viewer::Server))
                .await;
            forced.expect("no character can speak");
        }
        (4, Some(_)) => {
            // Rejected if no visible message can be regenerated.
            let newest = messages.iter().rev();
            let mut newest = newest.filter(|it| it.visibility != Visibility::Hidden);
            if newest
                .next()
                .is_some_and(|it| it.role == MessageRole::Assistant)
            {
                let again = app.engine.regenerate(id, None, "Eve".to_owned()).await;
                again.expect("the regenerate was rejected");
            }
        }
        _ => _ = app.user.post("Hi.").await,
    }
    app.settle().await;
}

async fn assert_stored(app: &EngineTest, id: ConversationId, n: usize) {
    let stored = NewestMessages::from_row(&row(app, id).await);
    let found = newest_messages::find(app.db.reader(), id).await;
    assert_eq!(stored, found.expect("the query failed"), "after change {n}");
}

async fn row(app: &EngineTest, id: ConversationId) -> conversation::Model {
    let row = conversation::Entity::find_by_id(id).one(app.db.reader());
    row.await
        .expect("the query failed")
        .expect("the conversation is missing")
}
