//! Tests that a node uses what it remembers of a conversation only until another node changes it.

use sea_orm::{ConnectionTrait, EntityTrait};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::runs::scheduling::command::ForcedTurn;
use troupe::spaces::membership::Participation;
use troupe::spaces::membership_update::MembershipUpdate;
use troupe::spaces::{membership_update, space};

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;

on_both! {
    async fn a_message_that_another_node_hid_is_not_the_newest(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.another_node();
        app.user.post("One.").await;
        app.settle().await;
        let reply = app.messages().await[1].id;

        other.set_visibility(app.scope(), reply, Visibility::Hidden).await.unwrap();
        let ada = app.membership("Ada").await.id;
        app.engine.force_talk(app.conversation, ForcedTurn::new(Some(ada), "Eve", Viewer::Server)).await.unwrap();
        app.settle().await;

        let runs = app.runs().await;
        let forced = runs.last().expect("the forced run");
        let tail = app.messages().await[0].id;
        assert_eq!(forced.debug.trigger_message_id, Some(tail), "{forced:?}");
        app.close_without_events().await;
    }

    async fn a_foreign_message_is_seen_by_the_next_step(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.another_node();
        app.user.post("One.").await;
        app.settle().await;

        let of_other = app.user_in_conversation(&other, app.conversation).post("Two.").await;
        app.settle().await;
        let third = app.user.post("Three.").await;
        app.settle().await;

        assert_eq!(third.message.seq, of_other.message.seq + 2);
        assert_eq!(app.answers().await.len(), 3);
        app.close_without_events().await;
    }

    async fn a_character_that_another_node_muted_does_not_reply(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("One.").await;
        app.settle().await;

        let muted = MembershipUpdate { participation: Some(Participation::Muted), ..MembershipUpdate::default() };
        let ada = app.membership("Ada").await.id;
        membership_update::update(&app.db, ada, muted, None).await.expect("the update failed");
        app.user.post("Two.").await;
        app.settle().await;

        assert_eq!(app.answers().await.len(), 1);
        app.close_without_events().await;
    }

    async fn a_character_that_another_node_renamed_replies_under_its_new_name(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("One.").await;
        app.settle().await;

        app.change_membership("Ada", |it| it.cached_display_name = "Countess".to_owned()).await;
        app.user.post("Two.").await;
        app.settle().await;

        let second = app.upstream.seen(1).body.to_string();
        assert!(second.contains("Countess"), "{second}");
        app.close_without_events().await;
    }

    async fn each_change_of_a_roster_increments_its_revision_but_a_change_of_a_copilot_does_not(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        let member = app.membership("Ada").await.id;
        let insert = "INSERT INTO space_memberships (space_id, kind, role, status, position, cached_display_name, \
           aliases, settings, created_at) VALUES";
        let changes = [
            (format!("{insert} ({}, 'human', 'guest', 'active', 9, 'Gus', '[]', '{{}}', 0)", app.space), 1),
            (format!("UPDATE space_memberships SET persona = 'A poet.' WHERE id = {member}"), 1),
            (format!("UPDATE space_memberships SET copilot_mode = 'full' WHERE id = {member}"), 1),
            (format!("UPDATE space_memberships SET copilot_remaining_steps = 2 WHERE id = {member}"), 0),
            (format!("UPDATE space_memberships SET copilot_mode = 'none' WHERE id = {member}"), 0),
            (format!("UPDATE space_memberships SET status = 'removed' WHERE id = {member}"), 1),
            (format!("UPDATE space_memberships SET persona = 'A ghost.' WHERE id = {member}"), 0),
            (format!("UPDATE space_memberships SET status = 'active' WHERE id = {member}"), 1),
            ("DELETE FROM space_memberships WHERE cached_display_name = 'Gus'".to_owned(), 1),
        ];
        for (sql, expected) in changes {
            let before = roster_rev(&app).await;
            app.db.heartbeat_connection().execute_unprepared(&sql).await.expect("the change failed");
            assert_eq!(roster_rev(&app).await - before, expected, "{sql}");
        }
        app.close_without_events().await;
    }
}

async fn roster_rev(app: &EngineTest) -> i64 {
    let space = space::Entity::find_by_id(app.space)
        .one(app.db.reader())
        .await;
    let space = space.expect("the query failed").expect("the space exists");
    space.roster_rev
}
