//! Tests changes of settings: they apply immediately where something runs, and elsewhere by a
//! marker that survives a crash between the change and the steps.

use sea_orm::{ConnectionTrait, DbErr};
use troupe::runs::scheduling::command::Command;
use troupe::runs::scheduling::space_changes;
use troupe::runs::scheduling::state::state_cache::StateCache;
use troupe::runs::scheduling::state::state_loader;
use troupe::runs::store::run::{RunCancelReason, RunStatus};
use troupe::spaces::lifecycle::SpaceRules;
use troupe::spaces::membership_update::MembershipUpdate;
use troupe::spaces::space::ReplyOrder;
use troupe::spaces::{lifecycle, membership, membership_update, roster_changes};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// How many idle conversations the space has in addition to the active one.
const N_IDLE: i64 = 3_000;

on_both! {
    async fn a_change_marks_every_conversation_and_steps_only_active_ones(backend) {
        let app = queued(backend).await;
        add_conversations(&app, N_IDLE).await;

        mute_ada(&app).await;
        let marked = n_marked(&app).await;
        let live = space_changes::list_live(app.db.reader(), app.space).await.unwrap();
        let ada = app.membership("Ada").await.id;
        app.engine.member_changed(app.space, ada).await.unwrap();

        assert_eq!(marked, N_IDLE + 1, "a conversation was not marked");
        assert_eq!(live, [app.conversation], "the request steps another conversation");
        assert_eq!(app.only_run().await.status, RunStatus::Skipped);
        app.until("the background applies the rest", async |app| n_marked(app).await == 0).await;
        app.close().await;
    }

    async fn a_change_of_a_crashed_node_is_applied_by_the_next_recovery(backend) {
        let app = queued(backend).await;
        add_conversations(&app, 20).await;
        mute_ada(&app).await;

        let other = app.another_node();
        other.run_recovery().await.unwrap();
        other.run_recovery().await.unwrap();

        assert_eq!(app.only_run().await.status, RunStatus::Skipped);
        assert_eq!(n_marked(&app).await, 0);
        app.close_without_events().await;
    }

    async fn two_simultaneous_recoveries_apply_a_change_once(backend) {
        let app = queued(backend).await;
        add_conversations(&app, 300).await;
        mute_ada(&app).await;

        let (one, two) = (app.another_node(), app.another_node());
        let (first, second) = tokio::join!(one.run_recovery(), two.run_recovery());
        first.unwrap();
        second.unwrap();
        one.run_recovery().await.unwrap(); // the conversation that was locked before

        assert_eq!(app.only_run().await.status, RunStatus::Skipped);
        assert_eq!(n_marked(&app).await, 0);
        app.close_without_events().await;
    }

    async fn a_marked_conversation_applies_the_change_before_its_next_step(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.user_turn_debounce_ms = 500).open().await;
        app.user.post("Hi.").await;
        let manual = SpaceRules { reply_order: Some(ReplyOrder::Manual), ..SpaceRules::default() };
        lifecycle::update(&app.db, app.space, manual, None).await.unwrap();

        app.clock.advance_ms(500);
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!((run.status, run.canceled_because), (RunStatus::Canceled, Some(RunCancelReason::ReplyOrderManual)));
        assert_eq!(app.upstream.n_requests(), 0);
        assert_eq!(n_marked(&app).await, 0);
        app.close().await;
    }

    async fn a_change_that_does_not_affect_scheduling_marks_no_conversation(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        let renamed = SpaceRules {
            name: Some("Inn".to_owned()),
            reply_order: Some(ReplyOrder::List),
            ..SpaceRules::default()
        };

        lifecycle::update(&app.db, app.space, renamed, None).await.unwrap();

        assert_eq!(n_marked(&app).await, 0);
        app.close().await;
    }

    async fn the_text_of_a_removed_speaker_is_not_stored(backend) {
        let (app, gate) = speaking(backend).await;
        let ada = app.membership("Ada").await.id;
        let now = app.clock.now();
        roster_changes::remove_member(&app.db, ada, now).await.unwrap();

        gate.open();
        app.settle().await;

        assert_discarded(&app).await;
        app.close().await;
    }

    async fn the_commit_of_a_run_checks_its_speaker_again(backend) {
        let (app, gate) = speaking(backend).await;
        // No marker: only the commit can notice the change.
        app.change_membership("Ada", |it| it.status = membership::MembershipStatus::Removed).await;

        gate.open();
        app.settle().await;

        assert_discarded(&app).await;
        app.close().await;
    }

    async fn a_step_loads_active_members_and_those_it_names(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        app.user.post("Hi.").await;
        app.settle().await;
        app.change_membership("Ada", |it| it.status = membership::MembershipStatus::Removed).await;
        add_removed_guests(&app, 200).await;

        let members = members_of_a_step(&app).await;

        assert_eq!(members, ["Eve", "Bob", "Ada"], "Ada spoke last, no guest is named");
        app.close().await;
    }
}

/// A reply of Ada is queued and not due yet; the node is not started.
async fn queued(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend)
        .rules(|it| it.user_turn_debounce_ms = 60_000)
        .not_started()
        .open()
        .await;
    app.user.post("Hi.").await;
    app
}

/// Ada has begun a reply.
async fn speaking(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let app = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    app.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    (app, gate)
}

async fn assert_discarded(app: &EngineTest) {
    let run = app.only_run().await;
    let reason = Some(RunCancelReason::SpeakerUnavailable);
    assert_eq!(
        (run.status, run.canceled_because),
        (RunStatus::Canceled, reason)
    );
    assert!(app.answers().await.is_empty());
    assert_eq!(app.runtime().await.round.map(|it| it.state), None);
}

/// Only stores the change, like a node that crashes afterwards.
async fn mute_ada(app: &EngineTest) {
    let muted = MembershipUpdate {
        participation: Some(membership::Participation::Muted),
        ..MembershipUpdate::default()
    };
    let ada = app.membership("Ada").await.id;
    let changed = membership_update::update(&app.db, ada, muted, None).await;
    changed.expect("the update failed");
}

async fn add_conversations(app: &EngineTest, n: i64) {
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
         INSERT INTO conversations (space_id, title, settings, variables, created_at) \
         SELECT {}, 'Conversation ' || i, '{{}}', '{{}}', 0 FROM n",
        app.space
    );
    let added = app.db.heartbeat_connection().execute_unprepared(&sql).await;
    added.expect("the conversations were not inserted");
}

async fn add_removed_guests(app: &EngineTest, n: i64) {
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
         INSERT INTO space_memberships (space_id, kind, role, status, position, cached_display_name, \
           aliases, settings, created_at) \
         SELECT {}, 'human', 'guest', 'removed', i, 'Guest ' || i, '[]', '{{}}', 0 FROM n",
        app.space
    );
    let added = app.db.heartbeat_connection().execute_unprepared(&sql).await;
    added.expect("the memberships were not inserted");
}

async fn n_marked(app: &EngineTest) -> i64 {
    let mut facts = app.facts().await;
    let sql = "SELECT CAST(count(*) AS TEXT) FROM conversations WHERE needs_step";
    facts.number(sql).await
}

async fn members_of_a_step(app: &EngineTest) -> Vec<String> {
    let id = app.conversation;
    let loaded: Result<_, DbErr> = app
        .db
        .write(move |tx| {
            Box::pin(async move {
                state_loader::load(tx, &StateCache::default(), id, &Command::ApplyChanges).await
            })
        })
        .await;
    let loaded = loaded
        .expect("the query failed")
        .expect("the conversation is missing");
    let names = loaded.members.into_iter();
    names.map(|it| it.cached_display_name).collect()
}
