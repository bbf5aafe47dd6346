//! Tests recovery: the runs of a dead node are recovered once, by the first node that finds them,
//! and a node that resumes can no longer write.

use base::clock::Clock;
use base::ids::RoundId;
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel};
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
    rounds_closed: 0,
    jobs_continued: 0,
};

/// Ada has produced "One" of "One two three." when her node stops sending heartbeats but continues
/// to run.
async fn silent(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let room = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    room.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    // The node claims nothing more, so the second attempt runs on another node.
    room.engine.context().shutdown.draining.cancel();
    room.last_heard(60_000).await;
    (room, gate)
}

on_both! {
    async fn a_silent_run_is_healed_once(backend) {
        let (room, gate) = silent(backend).await;
        let node = room.another_node();

        let report = node.run_recovery().await.unwrap();
        let again = node.run_recovery().await.unwrap();

        assert_eq!((report, again), (RECOVERED, RecoveryReport::default()));
        let runs = room.runs().await;
        assert_eq!((runs[0].status, runs[0].attempt), (RunStatus::Failed, 1));
        assert_eq!(runs[0].error.as_ref().map(|it| it.code.as_str()), Some("stale_running_run"));
        assert_eq!((runs[1].status, runs[1].attempt), (RunStatus::Queued, 2));
        assert_eq!((runs[1].reason, runs[1].round_id), (RunReason::Recovered, runs[0].round_id));
        gate.open();
        room.wait_until_idle().await;
        assert_eq!((room.runs().await[0].usage, room.tokens_used().await), (None, 0));
        room.close_without_events().await;
    }

    async fn a_revived_node_adds_nothing(backend) {
        let (room, gate) = silent(backend).await;
        let node = room.another_node();
        node.start().await.unwrap();
        node.run_recovery().await.unwrap();
        room.until("the second attempt has answered", async |it| {
            it.answers().await == ["Hello."]
        })
        .await;

        gate.open();
        room.upstream.finished(0).await;
        room.wait_until_idle().await;

        assert_eq!(room.answers().await, ["Hello."]);
        let statuses: Vec<_> = room.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Failed, RunStatus::Succeeded]);
        let live = room.engine.live_text(room.conversation);
        assert!(live.is_none(), "nobody is shown what was lost: {live:?}");
        room.stop(&node).await;
        room.close_without_events().await;
    }

    async fn a_second_death_fails_the_round(backend) {
        let (room, gate) = silent(backend).await;
        room.another_node().run_recovery().await.unwrap();
        let second = HoldPoint::closed();
        room.upstream.next(ResponseScript::say("Again.").held_at(&second));
        let node = room.another_node();
        node.start().await.unwrap();
        room.upstream.wait_for_requests(2).await;
        room.last_heard(60_000).await;

        let report = room.another_node().run_recovery().await.unwrap();

        assert_eq!(report, RecoveryReport { requeued: 0, ..RECOVERED });
        assert_eq!(room.runtime().await.state(), ConversationState::Failed);
        gate.open();
        second.open();
        room.wait_until_idle().await;
        room.stop(&node).await;
        assert!(room.answers().await.is_empty());
        room.close_without_events().await;
    }

    async fn two_sweeps_at_once_heal_once(backend) {
        let (room, gate) = silent(backend).await;
        let (one, two) = (room.another_node(), room.another_node());

        let (one, two) = tokio::join!(one.run_recovery(), two.run_recovery());

        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.failed + two.failed, 1, "{one:?} {two:?}");
        assert_eq!(one.requeued + two.requeued, 1, "{one:?} {two:?}");
        gate.open();
        room.wait_until_idle().await;
        room.close_without_events().await;
    }

    async fn a_run_that_beats_is_left_alone(backend) {
        let (room, gate) = silent(backend).await;
        room.last_heard(0).await;

        assert_eq!(room.another_node().run_recovery().await.unwrap(), RecoveryReport::default());
        gate.open();
        room.wait_until_idle().await;
        assert_eq!(room.answers().await, ["One two three."]);
        room.close_without_events().await;
    }

    async fn what_waits_already_comes_before_a_second_attempt(backend) {
        let (room, gate) = silent(backend).await;
        room.user.post("Are you there?").await;

        let report = room.another_node().run_recovery().await.unwrap();

        assert_eq!(report, RecoveryReport { requeued: 0, ..RECOVERED });
        let queued = room.runtime().await.queued.expect("the newer plan");
        assert_eq!((queued.reason, queued.attempt), (RunReason::UserMessage, 1));
        gate.open();
        room.wait_until_idle().await;
        room.close_without_events().await;
    }

    async fn a_round_that_nothing_moves_is_closed_once(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        room.insert_orphaned_round().await;
        let (one, two) = (room.another_node(), room.another_node());

        let (one, two) = tokio::join!(one.run_recovery(), two.run_recovery());

        let closed = [one, two].map(|it| it.unwrap().rounds_closed);
        assert_eq!(closed.iter().sum::<u32>(), 1, "{closed:?}");
        assert!(room.runtime().await.round.is_none());
        room.close_without_events().await;
    }
}

impl EngineTest {
    /// Sets the last heartbeat of all running runs back, by the clock that judges it.
    pub async fn last_heard(&self, ms_ago: i64) {
        let running = self.runtime().await.running.expect("a running run");
        let mut row = running.clone().into_active_model();
        let at = match self.db.backend() {
            Backend::Sqlite => self.clock.now(),
            Backend::Postgres => Clock::system().now(),
        };
        row.heartbeat_at = sea_orm::ActiveValue::Set(Some(at.plus_ms(-ms_ago)));
        let saved = row.update(self.db.heartbeat_connection()).await;
        let _: run::Model = saved.expect("the database answers");
    }

    /// Inserts an active round that no run advances.
    async fn insert_orphaned_round(&self) {
        let row = round::Model {
            id: RoundId::new(),
            conversation_id: self.conversation,
            status: round::RoundStatus::Active,
            kind: round::RoundKind::UserTurn,
            state: round::RoundState::Generating,
            cursor: 0,
            trigger_message_id: None,
            seed: 0,
            ended_reason: None,
            created_at: self.clock.now(),
        };
        let insert = round::Entity::insert(row.into_active_model());
        let inserted = insert
            .exec_without_returning(self.db.heartbeat_connection())
            .await;
        inserted.expect("the database answers");
    }
}

/// SQLite only: the file belongs to one process, so runs that are running at startup have no owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_start_everything_that_runs_is_healed_at_once() {
    for ms_since in [0, 1_000, -3_600_000] {
        let (room, gate) = silent(TestBackend::Sqlite).await;
        room.last_heard(0).await;
        // The machine's clock may have been set back while it was off.
        room.clock.advance_ms(ms_since);
        let node = room.another_node();

        node.start().await.unwrap();
        room.until("the second attempt has answered", async |it| {
            it.answers().await == ["Hello."]
        })
        .await;

        gate.open();
        room.wait_until_idle().await;
        room.stop(&node).await;
        room.close_without_events().await;
    }
}
