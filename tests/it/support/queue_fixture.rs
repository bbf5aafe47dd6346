//! A fixture for tests of the queue statements: rows of runs, without a running engine.

use std::sync::atomic::{AtomicI64, Ordering};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, RoundId, RunId};
use sea_orm::{DatabaseConnection, DbErr, EntityTrait, IntoActiveModel};
use troupe::db::backend::{Backend, StaleAfter};
use troupe::rounds::round;
use troupe::runs::store::queue::RunEnd;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{new_run, queue, run};

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;

/// The node that owns the runs.
pub const NODE: &str = "node-a";
/// A run with an older heartbeat is stale in these tests.
pub const STALE_MS: i64 = 20 * 60_000;

/// See the module.
pub struct QueueFixture {
    pub engine_test: EngineTest,
    speaker: MembershipId,
    /// Each row gets another number.
    n_new_runs: AtomicI64,
}

impl QueueFixture {
    pub async fn new(backend: TestBackend) -> Self {
        let engine_test = EngineTest::builder(backend).not_started().open().await;
        let speaker = engine_test.membership("Ada").await.id;
        let n_new_runs = AtomicI64::new(1);
        Self {
            engine_test,
            speaker,
            n_new_runs,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.engine_test.clock.now()
    }

    pub fn backend(&self) -> Backend {
        self.engine_test.db.backend()
    }

    pub fn new_run_in(&self, conversation: ConversationId) -> run::Model {
        let (kind, reason) = (run::RunKind::UserTurn, run::RunReason::UserMessage);
        let now = self.now();
        let place = (self.engine_test.space, conversation);
        run::Model {
            run_seq: self.n_new_runs.fetch_add(1, Ordering::Relaxed),
            ..new_run::new_model(RunId::new(), place, Some(self.speaker), kind, reason, now)
        }
    }

    pub fn new_run(&self) -> run::Model {
        self.new_run_in(self.engine_test.conversation)
    }

    /// Returns a run in this status; running ones are stale.
    pub fn in_status(&self, status: RunStatus) -> run::Model {
        let mut run = self.new_run();
        run.status = status;
        if status != RunStatus::Queued {
            run.lease = 3;
            run.worker_id = Some(NODE.to_owned());
            run.started_at = Some(self.now());
            run.heartbeat_at = Some(self.now().plus_ms(-2 * STALE_MS));
            run.cutoff_seq = Some(7);
        }
        run
    }

    /// Returns the writing connection, the same one for every statement.
    pub fn db(&self) -> &DatabaseConnection {
        self.engine_test.db.heartbeat_connection()
    }

    pub async fn try_insert(&self, run: &run::Model) -> Result<(), DbErr> {
        let insert = run::Entity::insert(run.clone().into_active_model());
        insert.exec_without_returning(self.db()).await.map(|_| ())
    }

    pub async fn insert(&self, run: &run::Model) {
        self.try_insert(run).await.expect("the run is inserted");
    }

    /// Returns a finished round.
    pub fn past_round(&self) -> round::Model {
        let (id, kind) = (RoundId::new(), round::RoundKind::UserTurn);
        let here = self.engine_test.conversation;
        round::Model {
            status: round::RoundStatus::Finished,
            ..round::new_model(id, here, kind, 0, self.now(), vec![])
        }
    }

    pub async fn insert_round(&self, round: &round::Model) -> Result<(), DbErr> {
        round::insert(self.db(), round.clone()).await
    }

    pub async fn row(&self, id: RunId) -> run::Model {
        let row = run::Entity::find_by_id(id).one(self.db()).await;
        row.expect("the database answers").expect("the run exists")
    }

    /// Deletes every row.
    pub async fn clear(&self) {
        let deleted = run::Entity::delete_many().exec(self.db()).await;
        deleted.expect("the database answers");
    }

    pub fn stale(&self) -> StaleAfter {
        StaleAfter {
            after_ms: STALE_MS,
            backend: self.backend(),
        }
    }

    /// Tries a transition of `queue.rs` under a lease; returns whether it changed the row.
    pub async fn try_transition(&self, verb: &str, run: &run::Model, lease: i64) -> bool {
        let (db, now) = (self.db(), self.now());
        let error = run_error();
        let changed = match verb {
            "claim" => queue::claim(db, run.id, "node-b", now, self.backend())
                .await
                .map(|it| it.is_some()),
            "skip" => queue::skip(db, run, now).await,
            "cancel_queued" => queue::cancel_queued(db, run, now).await,
            "fail_queued" => queue::fail_queued(db, run, &error, now).await,
            "request_cancel" => queue::request_cancel(db, run.id, now).await,
            "finish" => queue::finish(db, run, lease, &RunEnd::Succeeded, now)
                .await
                .map(|it| it.is_some()),
            "fail" => queue::finish(db, run, lease, &RunEnd::Failed(error), now)
                .await
                .map(|it| it.is_some()),
            "expire" => {
                let end = RunEnd::Failed(error);
                queue::expire(db, run, lease, &end, now, &self.stale()).await
            }
            "hand_back" => queue::release(db, run, lease).await,
            other => panic!("unknown transition: {other}"),
        };
        changed.expect("the database answers")
    }
}

pub fn run_error() -> run::RunError {
    run::RunError {
        code: "upstream_error".to_owned(),
        message: "No.".to_owned(),
        retryable: true,
    }
}
