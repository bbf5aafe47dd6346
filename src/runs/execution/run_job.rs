//! Defines `RunJob`, the dispatcher of a node: finds due runs, claims them through the scheduler,
//! starts their execution, renews their leases, and grants permits to runs and copilot candidates
//! that wait for one.
//!
//! **Invariant:** it claims *any* due run, whichever node planned it. A wake-up signal only
//! shortens the wait: without one it sleeps until the next run is due, and polls every
//! [`POLL_INTERVAL`].
//!
//! Runs for which the node has no permit stay queued; `fairness.rs` decides their order. Running
//! runs that wait for a permit are those whose tool approval was decided; copilot candidates get
//! the remaining permits. A node without workers grants permits, too; a node that drains grants
//! them only to runs.

use std::future::pending;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{ConversationId, RunId, SpaceId};
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::job::{Job, JobFailure, JobTiming, NextWork, RenewedLease};

use crate::db::backend::Backend;
use crate::db::clock_offset;
use crate::runs::error::EngineError;
use crate::runs::execution::fairness::{ClaimCapacity, PendingRuns, RunningRun};
use crate::runs::execution::lease::{ActiveRuns, RunLease};
use crate::runs::execution::{executor, recovery};
use crate::runs::scheduling::scheduler;
use crate::runs::services::RunServices;
use crate::runs::store::due_runs::DueRun;
use crate::runs::store::{due_runs, queue};

/// Finds runs of other nodes, and runs whose wake-up signal was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of runs in one claim.
const MAX_CLAIMS: usize = 32;
/// Maximum number of spaces in one query when more runs are due than fit into one claim.
const MAX_SPACES: usize = 64;
/// Delay after which another node has probably released the conversations that it had locked.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Conversation runs, as a kind of leased job.
pub struct RunJob {
    context: RunServices,
    /// What runs on this node, as of the last query.
    capacity: ClaimCapacity,
    /// The last space of the previous query; the next one continues after it.
    last_space: SpaceId,
}

impl Job for RunJob {
    type Id = RunId;
    type Data = ConversationId;
    type Error = EngineError;

    fn leases(&self) -> &ActiveRuns {
        &self.context.leases
    }

    fn timing(&self) -> JobTiming {
        let settings = &self.context.settings;
        JobTiming {
            heartbeat: settings.heartbeat,
            stale_after: settings.stale_after,
            // Other nodes write the runs again, and readers must not see both texts. On SQLite
            // there are no other nodes.
            gives_up_stale_leases: self.context.db.backend() != Backend::Sqlite,
            poll_interval: Some(POLL_INTERVAL),
            recovery_interval: settings.reaper_interval,
        }
    }

    fn report(&self, failure: JobFailure<'_, EngineError>) {
        match failure {
            JobFailure::Heartbeat(error) => {
                tracing::warn!(%error, "heartbeat failed; retrying: {error}");
            }
            JobFailure::HeartbeatTimeout => tracing::warn!("heartbeat timed out; retrying"),
            JobFailure::Claim(error) => {
                tracing::warn!(%error, "failed to query due runs; retrying");
            }
            JobFailure::Recovery(error) => tracing::warn!(%error, "recovery query failed"),
        }
    }

    async fn renew(&self, held: &[RunId]) -> Result<Vec<RenewedLease<RunId>>, EngineError> {
        base::fail_point!("beat.begin", ?);
        let (db, now) = (&self.context.db, self.context.clock.now());
        let connection = db.heartbeat_connection();
        let renewed = queue::heartbeat(connection, &self.context.node, held, now, db.backend());
        let runs = db.run_observed(renewed).await?.into_iter();
        let renewed = runs.map(|run| RenewedLease {
            id: run.id,
            number: run.lease,
            is_cancel_requested: run.cancel_requested_at.is_some(),
        });
        Ok(renewed.collect())
    }

    async fn claim(&mut self) -> Result<NextWork, EngineError> {
        self.claim_due().await
    }

    async fn recover(&mut self, guard: &mut ClockJumpGuard) -> Result<(), EngineError> {
        recovery::recover_guarded(&self.context, guard).await
    }

    fn on_given_up(&self, lease: &RunLease) {
        let live_streams = &self.context.live_streams;
        live_streams.close(lease.data, lease.id, lease.number);
    }

    /// Measures the offset to the database's clock.
    async fn after_heartbeat(&self) {
        let context = &self.context;
        let was_synchronized = context.is_clock_synchronized();
        clock_offset::measure(&context.db, &context.clock).await;
        if !was_synchronized && context.is_clock_synchronized() {
            tracing::info!("database clock offset measured again");
            context.wakeup.notify();
        }
    }
}

impl RunJob {
    /// Creates the job of this node; no run is claimed yet.
    pub fn new(context: RunServices) -> Self {
        Self {
            context,
            capacity: ClaimCapacity::default(),
            last_space: SpaceId(0),
        }
    }

    /// Returns what resolves when the next run is due.
    fn wait_until(&self, due_at: Option<Timestamp>) -> NextWork {
        let clock = self.context.clock.clone();
        Box::pin(async move {
            match due_at {
                Some(instant) => clock.sleep_until(instant).await,
                None => pending().await,
            }
        })
    }

    /// Claims what is due and fits; returns what to wait for.
    async fn claim_due(&mut self) -> Result<NextWork, EngineError> {
        let context = self.context.clone();
        let (leases, permits) = (&context.leases, &context.permits);
        self.capacity
            .retain(|run| leases.holds_permit(&run) || permits.is_held(run));
        let n_held = leases.n_permits() + permits.n_held();
        let n_free = context.settings.max_running.saturating_sub(n_held);
        // A run that ends sends a wake-up signal.
        if n_free == 0 {
            return Ok(self.wait_until(None));
        }
        // Due times need a synchronized clock; the heartbeat sends a signal when it is
        // synchronized.
        if !context.is_clock_synchronized() {
            return Ok(self.wait_until(None));
        }
        let now = context.clock.now();
        let (due, later) = self.list_waiting(now).await?;
        let is_more = due.len() > MAX_CLAIMS;
        let resumed = permits.waiting_runs();
        let resumed_ids: Vec<RunId> = resumed.iter().map(|it| it.id).collect();
        let wanted = PendingRuns { due, resumed };
        let per_provider = context.settings.max_per_provider;
        let chosen = self
            .capacity
            .select(wanted, n_free.min(MAX_CLAIMS), per_provider);
        let n_left = match is_more {
            true => 0,
            false => n_free.min(MAX_CLAIMS) - chosen.len(),
        };
        let (resumed, chosen): (Vec<DueRun>, Vec<DueRun>) = chosen
            .into_iter()
            .partition(|it| resumed_ids.contains(&it.id));
        resumed.iter().for_each(|it| self.resume_run(it));
        if chosen.is_empty() {
            self.start_candidates(n_left);
            return Ok(self.wait_until(later));
        }
        let n_chosen = chosen.len();
        let claims = scheduler::claim(&context, chosen).await?;
        for claimed in claims.runs {
            base::fail_point!("claim.after_commit");
            // The step registered the lease before its events were published.
            let Some(lease) = context.leases.find(&claimed.run.id) else {
                continue;
            };
            self.capacity.add(claimed.running);
            let execute = executor::execute(context.clone(), claimed, lease);
            context.shutdown.spawn(execute);
        }
        self.start_candidates(n_left);
        Ok(match (claims.locked_conversation, claims.n_decided) {
            // A step of this node holds the conversation's lock.
            (Some(conversation), _) => Box::pin(async move {
                scheduler::wait_until_unlocked(&context, conversation).await;
            }),
            // Another node holds the locks of all due conversations.
            (None, 0) => Box::pin(tokio::time::sleep(RETRY_DELAY)),
            (None, n) if is_more || n < n_chosen => self.wait_until(Some(now)),
            (None, _) => self.wait_until(later),
        })
    }

    /// Gives a run that waits on this node its permit back.
    fn resume_run(&mut self, due: &DueRun) {
        let Some(lease) = self.context.leases.find(&due.id) else {
            return;
        };
        // Before the grant, because the run may release the permit immediately.
        lease.set_permit(true);
        match self.context.permits.grant_run(due.id) {
            true => self.capacity.add(RunningRun::from_due(due)),
            false => lease.set_permit(false),
        }
    }

    /// Grants permits to copilot candidates, which come after all due runs.
    fn start_candidates(&mut self, n_left: usize) {
        let context = self.context.clone();
        if context.shutdown.draining.is_cancelled() {
            return;
        }
        let wanted = PendingRuns {
            due: context.permits.waiting_candidates(),
            resumed: Vec::new(),
        };
        let per_provider = context.settings.max_per_provider;
        for it in self.capacity.select(wanted, n_left, per_provider) {
            if context.permits.grant_candidate(it.id) {
                self.capacity.add(RunningRun::from_due(&it));
            }
        }
    }

    /// Returns due runs, some of every space, and when the next run is due. Returns none on a node
    /// without workers or while the node drains.
    async fn list_waiting(
        &mut self,
        now: Timestamp,
    ) -> Result<(Vec<DueRun>, Option<Timestamp>), EngineError> {
        let draining = &self.context.shutdown.draining;
        if self.context.settings.workers == 0 || draining.is_cancelled() {
            return Ok((Vec::new(), None));
        }
        let db = self.context.db.reader();
        let full = self
            .capacity
            .full_providers(self.context.settings.max_per_provider);
        // One more than fits, to detect that there are more.
        let soonest = due_runs::list_next_due(db, &full, MAX_CLAIMS as u64 + 1).await?;
        let (mut due, later): (Vec<DueRun>, Vec<DueRun>) =
            soonest.into_iter().partition(|it| it.is_due(now));
        if due.len() > MAX_CLAIMS {
            let spaces =
                due_runs::list_due_spaces(db, now, self.last_space, MAX_SPACES as u64).await?;
            let is_last = spaces.len() < MAX_SPACES;
            self.last_space = spaces
                .last()
                .copied()
                .filter(|_| !is_last)
                .unwrap_or(SpaceId(0));
            let each = (2 * MAX_CLAIMS / spaces.len().max(1)).clamp(1, MAX_CLAIMS);
            let lines = due_runs::list_for_spaces(db, now, &full, &spaces, each as u64).await?;
            let known: Vec<_> = due.iter().map(|it| it.id).collect();
            due.extend(lines.into_iter().filter(|it| !known.contains(&it.id)));
        }
        // Again, because the queries may have returned a run that was queued after the node began to drain.
        if self.context.shutdown.draining.is_cancelled() {
            return Ok((Vec::new(), None));
        }
        Ok((due, later.first().and_then(|it| it.run_after)))
    }
}
