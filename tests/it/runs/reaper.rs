//! Tests recovery: the runs of a dead node are recovered once, by the first node that finds them,
//! and a node that resumes can no longer write.

use base::clock::Clock;
use base::ids::RoundId;
use sea_orm::{ActiveModelTrait, IntoActiveModel};
use troupe::db::backend::Backend;
use troupe::rounds::round;
use troupe::runs::execution::recovery::RecoveryReport;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunReason, RunStatus};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// One run failed, and its slot was planned again.
const RECOVERED: RecoveryReport = RecoveryReport {
    failed: 1,
    requeued: 1,
    turns_skipped: 0,
    rounds_closed: 0,
    jobs_continued: 0,
};

/// Ada has produced "One" of "One two three." when her node stops sending heartbeats but continues
/// to run.
async fn silent(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let app = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    app.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    // The node claims nothing more, so the second attempt runs on another node.
    app.engine.context().shutdown.draining.cancel();
    app.set_last_heartbeat(60_000).await;
    (app, gate)
}

on_both! {
    async fn a_run_without_heartbeats_is_recovered_once(backend) {
        let (app, gate) = silent(backend).await;
        let node = app.another_node();

        let report = node.run_recovery().await.unwrap();
        let again = node.run_recovery().await.unwrap();

        assert_eq!((report, again), (RECOVERED, RecoveryReport::default()));
        let runs = app.runs().await;
        assert_eq!((runs[0].status, runs[0].attempt), (RunStatus::Failed, 1));
        assert_eq!(runs[0].error.as_ref().map(|it| it.code.as_str()), Some("stale_running_run"));
        assert_eq!((runs[1].status, runs[1].attempt), (RunStatus::Queued, 2));
        assert_eq!((runs[1].reason, runs[1].round_id), (RunReason::Recovered, runs[0].round_id));
        gate.open();
        app.wait_until_idle().await;
        assert_eq!((app.runs().await[0].usage, app.tokens_used().await), (None, 0));
        app.close_without_events().await;
    }

    async fn a_revived_node_cannot_store_its_reply(backend) {
        let (app, gate) = silent(backend).await;
        let node = app.another_node();
        node.start().await.unwrap();
        node.run_recovery().await.unwrap();
        app.until("the second attempt has answered", async |it| {
            it.answers().await == ["Hello."]
        })
        .await;

        gate.open();
        app.upstream.finished(0).await;
        app.wait_until_idle().await;

        assert_eq!(app.answers().await, ["Hello."]);
        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Failed, RunStatus::Succeeded]);
        let live = app.engine.live_text(app.conversation);
        assert!(live.is_none(), "the lost reply is still shown: {live:?}");
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn a_second_dead_node_fails_the_round(backend) {
        let (app, gate) = silent(backend).await;
        app.another_node().run_recovery().await.unwrap();
        let second = HoldPoint::closed();
        app.upstream.next(ResponseScript::say("Again.").held_at(&second));
        let node = app.another_node();
        node.start().await.unwrap();
        app.upstream.wait_for_requests(2).await;
        app.set_last_heartbeat(60_000).await;

        let report = app.another_node().run_recovery().await.unwrap();

        assert_eq!(report, RecoveryReport { requeued: 0, ..RECOVERED });
        assert_eq!(app.runtime().await.state(), ConversationState::Failed);
        gate.open();
        second.open();
        app.wait_until_idle().await;
        app.stop(&node).await;
        assert!(app.answers().await.is_empty());
        app.close_without_events().await;
    }

    async fn two_simultaneous_recoveries_recover_a_run_once(backend) {
        let (app, gate) = silent(backend).await;
        let (one, two) = (app.another_node(), app.another_node());

        let (one, two) = tokio::join!(one.run_recovery(), two.run_recovery());

        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.failed + two.failed, 1, "{one:?} {two:?}");
        assert_eq!(one.requeued + two.requeued, 1, "{one:?} {two:?}");
        gate.open();
        app.wait_until_idle().await;
        app.close_without_events().await;
    }

    async fn a_run_with_a_recent_heartbeat_is_not_recovered(backend) {
        let (app, gate) = silent(backend).await;
        app.set_last_heartbeat(0).await;

        assert_eq!(app.another_node().run_recovery().await.unwrap(), RecoveryReport::default());
        gate.open();
        app.wait_until_idle().await;
        assert_eq!(app.answers().await, ["One two three."]);
        app.close_without_events().await;
    }

    async fn an_orphaned_round_is_closed_once(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        app.insert_orphaned_round().await;
        let (one, two) = (app.another_node(), app.another_node());

        let (one, two) = tokio::join!(one.run_recovery(), two.run_recovery());

        let closed = [one, two].map(|it| it.unwrap().rounds_closed);
        assert_eq!(closed.iter().sum::<u32>(), 1, "{closed:?}");
        assert!(app.runtime().await.round.is_none());
        app.close_without_events().await;
    }
}

impl EngineTest {
    /// Sets the last heartbeat of all running runs back, by the clock that recovery uses.
    pub async fn set_last_heartbeat(&self, ms_ago: i64) {
        let running = self.runtime().await.running.expect("no run is running");
        let mut row = running.clone().into_active_model();
        let at = match self.db.backend() {
            Backend::Sqlite => self.clock.now(),
            Backend::Postgres => Clock::system().now(),
        };
        row.heartbeat_at = sea_orm::ActiveValue::Set(Some(at.plus_ms(-ms_ago)));
        let saved = row.update(self.db.heartbeat_connection()).await;
        let _: run::Model = saved.expect("the query failed");
    }

    /// Inserts an active round that no run advances.
    async fn insert_orphaned_round(&self) {
        let (id, kind) = (RoundId::new(), round::RoundKind::UserTurn);
        let row = round::new_model(id, self.conversation, kind, 0, self.clock.now(), vec![]);
        let inserted = round::insert(self.db.heartbeat_connection(), row).await;
        inserted.expect("the query failed");
    }
}

/// SQLite only: the file belongs to one process, so runs that are running at startup have no owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_startup_all_running_runs_are_recovered_immediately() {
    for ms_since in [0, 1_000, -3_600_000] {
        let (app, gate) = silent(TestBackend::Sqlite).await;
        app.set_last_heartbeat(0).await;
        // The machine's clock may have been set back while it was off.
        app.clock.advance_ms(ms_since);
        let node = app.another_node();

        node.start().await.unwrap();
        app.until("the second attempt has answered", async |it| {
            it.answers().await == ["Hello."]
        })
        .await;

        gate.open();
        app.wait_until_idle().await;
        app.stop(&node).await;
        app.close_without_events().await;
    }
}
