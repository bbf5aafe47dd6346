//! Tests changes of settings: they apply immediately where something runs, and elsewhere by a
//! marker that survives a crash between the change and the steps.

use sea_orm::{ConnectionTrait, DbErr};
use troupe::runs::scheduling::command::Command;
use troupe::runs::scheduling::state;
use troupe::runs::store::run::{RunCancelReason, RunStatus};
use troupe::runs::store::step_marks;
use troupe::spaces::lifecycle::SpaceRules;
use troupe::spaces::membership_update::MembershipUpdate;
use troupe::spaces::space::ReplyOrder;
use troupe::spaces::{lifecycle, membership, membership_changes, membership_update};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// How many idle conversations the space has in addition to the active one.
const N_IDLE: i64 = 3_000;

on_both! {
    async fn a_change_marks_every_conversation_and_steps_only_those_where_something_runs(backend) {
        let room = queued(backend).await;
        add_conversations(&room, N_IDLE).await;

        mute_ada(&room).await;
        let marked = n_marked(&room).await;
        let live = step_marks::list_live(room.db.reader(), room.space).await.unwrap();
        let ada = room.membership("Ada").await.id;
        room.engine.member_changed(room.space, ada).await.unwrap();

        assert_eq!(marked, N_IDLE + 1, "the marker is part of the change");
        assert_eq!(live, [room.conversation], "the request steps no other conversation");
        assert_eq!(room.only_run().await.status, RunStatus::Skipped);
        room.until("the background applies the rest", async |room| n_marked(room).await == 0).await;
        room.close().await;
    }

    async fn a_change_of_a_crashed_node_is_applied_by_the_next_sweep(backend) {
        let room = queued(backend).await;
        add_conversations(&room, 20).await;
        mute_ada(&room).await;

        let other = room.another_node();
        other.run_recovery().await.unwrap();
        other.run_recovery().await.unwrap();

        assert_eq!(room.only_run().await.status, RunStatus::Skipped);
        assert_eq!(n_marked(&room).await, 0);
        room.close_without_events().await;
    }

    async fn two_nodes_that_sweep_at_once_apply_a_change_once(backend) {
        let room = queued(backend).await;
        add_conversations(&room, 300).await;
        mute_ada(&room).await;

        let (one, two) = (room.another_node(), room.another_node());
        let (first, second) = tokio::join!(one.run_recovery(), two.run_recovery());
        first.unwrap();
        second.unwrap();
        one.run_recovery().await.unwrap(); // the conversation that was locked before

        assert_eq!(room.only_run().await.status, RunStatus::Skipped);
        assert_eq!(n_marked(&room).await, 0);
        room.close_without_events().await;
    }

    async fn a_marked_conversation_applies_the_change_before_its_next_step(backend) {
        let room = EngineTest::builder(backend).rules(|it| it.user_turn_debounce_ms = 500).open().await;
        room.user.post("Hi.").await;
        let manual = SpaceRules { reply_order: Some(ReplyOrder::Manual), ..SpaceRules::default() };
        lifecycle::update(&room.db, room.space, manual, None).await.unwrap();

        room.clock.advance_ms(500);
        room.settle().await;

        let run = room.only_run().await;
        assert_eq!((run.status, run.canceled_because), (RunStatus::Canceled, Some(RunCancelReason::ReplyOrderManual)));
        assert_eq!(room.upstream.n_requests(), 0);
        assert_eq!(n_marked(&room).await, 0);
        room.close().await;
    }

    async fn a_change_that_leaves_the_schedule_alone_marks_nothing(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        let renamed = SpaceRules {
            name: Some("Inn".to_owned()),
            reply_order: Some(ReplyOrder::List),
            ..SpaceRules::default()
        };

        lifecycle::update(&room.db, room.space, renamed, None).await.unwrap();

        assert_eq!(n_marked(&room).await, 0);
        room.close().await;
    }

    async fn the_text_of_a_removed_speaker_is_not_stored(backend) {
        let (room, gate) = speaking(backend).await;
        let ada = room.membership("Ada").await.id;
        let now = room.clock.now();
        membership_changes::remove_member(&room.db, ada, now).await.unwrap();

        gate.open();
        room.settle().await;

        assert_discarded(&room).await;
        room.close().await;
    }

    async fn the_commit_of_a_run_checks_its_speaker_again(backend) {
        let (room, gate) = speaking(backend).await;
        // No marker: only the commit can notice the change.
        room.change_membership("Ada", |it| it.status = membership::MembershipStatus::Removed).await;

        gate.open();
        room.settle().await;

        assert_discarded(&room).await;
        room.close().await;
    }

    async fn a_step_loads_active_members_and_those_it_names(backend) {
        let room = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        room.user.post("Hi.").await;
        room.settle().await;
        room.change_membership("Ada", |it| it.status = membership::MembershipStatus::Removed).await;
        add_removed_guests(&room, 200).await;

        let members = members_of_a_step(&room).await;

        assert_eq!(members, ["Eve", "Bob", "Ada"], "Ada spoke last, no guest is named");
        room.close().await;
    }
}

/// A reply of Ada is queued and not due yet; the node is not started.
async fn queued(backend: TestBackend) -> EngineTest {
    let room = EngineTest::builder(backend)
        .rules(|it| it.user_turn_debounce_ms = 60_000)
        .not_started()
        .open()
        .await;
    room.user.post("Hi.").await;
    room
}

/// Ada has begun a reply.
async fn speaking(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let room = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    room.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    (room, gate)
}

async fn assert_discarded(room: &EngineTest) {
    let run = room.only_run().await;
    let reason = Some(RunCancelReason::SpeakerUnavailable);
    assert_eq!(
        (run.status, run.canceled_because),
        (RunStatus::Canceled, reason)
    );
    assert!(room.answers().await.is_empty());
    assert_eq!(room.runtime().await.round.map(|it| it.row.state), None);
}

/// Only stores the change, like a node that crashes afterwards.
async fn mute_ada(room: &EngineTest) {
    let muted = MembershipUpdate {
        participation: Some(membership::Participation::Muted),
        ..MembershipUpdate::default()
    };
    let ada = room.membership("Ada").await.id;
    let changed = membership_update::update(&room.db, ada, muted, None).await;
    changed.expect("Ada is a member");
}

async fn add_conversations(room: &EngineTest, n: i64) {
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
         INSERT INTO conversations (space_id, title, settings, variables, created_at) \
         SELECT {}, 'Conversation ' || i, '{{}}', '{{}}', 0 FROM n",
        room.space
    );
    let added = room
        .db
        .heartbeat_connection()
        .execute_unprepared(&sql)
        .await;
    added.expect("conversations can be inserted");
}

async fn add_removed_guests(room: &EngineTest, n: i64) {
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
         INSERT INTO space_memberships (space_id, kind, role, status, position, cached_display_name, \
           aliases, settings, created_at) \
         SELECT {}, 'human', 'guest', 'removed', i, 'Guest ' || i, '[]', '{{}}', 0 FROM n",
        room.space
    );
    let added = room
        .db
        .heartbeat_connection()
        .execute_unprepared(&sql)
        .await;
    added.expect("memberships can be inserted");
}

async fn n_marked(room: &EngineTest) -> i64 {
    let mut facts = room.facts().await;
    let sql = "SELECT CAST(count(*) AS TEXT) FROM conversations WHERE needs_step";
    facts.number(sql).await
}

async fn members_of_a_step(room: &EngineTest) -> Vec<String> {
    let id = room.conversation;
    let loaded: Result<_, DbErr> = room
        .db
        .write(move |tx| Box::pin(async move { state::load(tx, id, &Command::ApplyChanges).await }))
        .await;
    let situation = loaded.expect("the database answers").expect("it exists");
    let names = situation.members.into_iter();
    names.map(|it| it.cached_display_name).collect()
}
