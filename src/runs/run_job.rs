//! The dispatcher of a node: finds due runs, claims them through the gate, executes them.
//!
//! **Invariant:** it claims *any* due run, whoever planned it. A bell only makes it look sooner;
//! without one it sleeps until the next run is due, and looks by itself every [`SLOW_POLL`].
//!
//! What does not fit on the node stays queued; who comes next is told by `fairness.rs`. It also gives
//! permits back to runs whose question was decided, and what is left to copilot candidates; that a
//! node does which only serves, too, and while it drains.

use std::time::Duration;

use sea_orm::DbErr;

use crate::clock::Timestamp;
use crate::ids::{ConversationId, RunId, SpaceId};
use crate::runs::due_runs::DueRun;
use crate::runs::fairness::{ClaimCapacity, PendingRuns, RunningRun};
use crate::runs::services::RunServices;
use crate::runs::{due_runs, executor, scheduler};

/// The net under the bell: another node's run, or one whose ring was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How many runs are claimed at once.
const MAX_CLAIMS: usize = 32;
/// How many spaces one look sees when more waits than one batch takes.
const MAX_SPACES: usize = 64;
/// After so long another node is done with what it held when we came.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Claims until the node drains, and grants permits until it puts its runs down.
pub async fn run_worker(context: RunServices) {
    let letting_go = context.shutdown.releasing.clone();
    let mut dispatcher = RunJob::new(context);
    while !letting_go.is_cancelled() {
        let next = match dispatcher.claim_due().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "due runs could not be looked up, trying again: {error}");
                NextWork::Wakeup
            }
        };
        tokio::select! {
            () = letting_go.cancelled() => {}
            () = dispatcher.context.wakeup.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = dispatcher.wait_for(next) => {}
        }
    }
}

/// What there is to wait for, beside a ring.
#[derive(Debug)]
enum NextWork {
    /// Nothing else.
    Wakeup,
    /// A run that is due then.
    At(Timestamp),
    /// A step of this node, which has the conversation.
    StepUnlocked(ConversationId),
    /// Another node, which has all that is due.
    AnotherNode,
}

struct RunJob {
    context: RunServices,
    /// As they were at the last look.
    capacity: ClaimCapacity,
    /// The space up to which the last look got.
    last_space: SpaceId,
}

impl RunJob {
    fn new(context: RunServices) -> Self {
        Self {
            context,
            capacity: ClaimCapacity::default(),
            last_space: SpaceId(0),
        }
    }

    async fn wait_for(&self, next: NextWork) {
        match next {
            NextWork::Wakeup => std::future::pending().await,
            NextWork::At(instant) => self.context.clock.sleep_until(instant).await,
            NextWork::StepUnlocked(conversation) => {
                scheduler::wait_until_unlocked(&self.context, conversation).await
            }
            NextWork::AnotherNode => tokio::time::sleep(RETRY_DELAY).await,
        }
    }

    /// Claims what is due and fits; tells what to wait for.
    async fn claim_due(&mut self) -> Result<NextWork, DbErr> {
        let context = self.context.clone();
        let (leases, permits) = (&context.leases, &context.permits);
        self.capacity
            .retain(|run| leases.holds_permit(run) || permits.is_held(run));
        let n_held = leases.n_permits() + permits.n_held();
        let n_free = context.settings.max_running.saturating_sub(n_held);
        // A run that ends rings.
        if n_free == 0 {
            return Ok(NextWork::Wakeup);
        }
        // What is due is decided by the time; the heartbeat rings when it knows it again.
        if !context.is_clock_synchronized() {
            return Ok(NextWork::Wakeup);
        }
        let now = context.clock.now();
        let (due, later) = self.list_waiting(now).await?;
        let is_more = due.len() > MAX_CLAIMS;
        let resumed = permits.waiting_runs();
        let going_on: Vec<RunId> = resumed.iter().map(|it| it.id).collect();
        let wanted = PendingRuns { due, resumed };
        let per_provider = context.settings.max_per_provider;
        let chosen = self
            .capacity
            .select(wanted, n_free.min(MAX_CLAIMS), per_provider);
        let n_left = match is_more {
            true => 0,
            false => n_free.min(MAX_CLAIMS) - chosen.len(),
        };
        let (resumed, chosen): (Vec<DueRun>, Vec<DueRun>) =
            chosen.into_iter().partition(|it| going_on.contains(&it.id));
        resumed.iter().for_each(|it| self.resume_run(it));
        if chosen.is_empty() {
            self.start_candidates(n_left);
            return Ok(later.map_or(NextWork::Wakeup, NextWork::At));
        }
        let n_chosen = chosen.len();
        let claims = scheduler::claim(&context, chosen).await?;
        for claimed in claims.runs {
            crate::fail_point!("claim.after_commit");
            // The step holds the lease from before its events went out.
            let Some(lease) = context.leases.find(claimed.run.id) else {
                continue;
            };
            self.capacity.add(claimed.running);
            let execute = executor::execute(context.clone(), claimed, lease);
            context.shutdown.spawn(execute);
        }
        self.start_candidates(n_left);
        Ok(match (claims.locked_conversation, claims.n_decided) {
            (Some(conversation), _) => NextWork::StepUnlocked(conversation),
            (None, 0) => NextWork::AnotherNode,
            (None, n) if is_more || n < n_chosen => NextWork::At(now),
            (None, _) => later.map_or(NextWork::Wakeup, NextWork::At),
        })
    }

    /// Gives a run that waits here its permit back, if it still waits.
    fn resume_run(&mut self, due: &DueRun) {
        let Some(lease) = self.context.leases.find(due.id) else {
            return;
        };
        // Before the grant: the run may return it at once.
        lease.set_permit(true);
        match self.context.permits.grant_run(due.id) {
            true => self.capacity.add(RunningRun::from_due(due)),
            false => lease.set_permit(false),
        }
    }

    /// Copilot candidates come after all due runs.
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

    /// What is due, of every space some, and when the next run will be. Nothing is claimed where the
    /// node only serves, or closes.
    async fn list_waiting(
        &mut self,
        now: Timestamp,
    ) -> Result<(Vec<DueRun>, Option<Timestamp>), DbErr> {
        let draining = &self.context.shutdown.draining;
        if self.context.settings.workers == 0 || draining.is_cancelled() {
            return Ok((Vec::new(), None));
        }
        let db = self.context.db.reader();
        let full = self
            .capacity
            .full_providers(self.context.settings.max_per_provider);
        // One more than fits, to see that there is more.
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
        Ok((due, later.first().and_then(|it| it.run_after)))
    }
}
