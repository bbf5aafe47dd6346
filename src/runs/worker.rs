//! The dispatcher of a node: finds due runs, claims them through the gate, executes them.
//!
//! **Invariant:** it claims *any* due run, whoever planned it. A bell only makes it look sooner;
//! without one it sleeps until the next run is due, and looks by itself every [`SLOW_POLL`].
//!
//! What does not fit on the node stays queued; who comes next is told by `fairness.rs`. It also gives
//! permits back to runs whose question was decided, and what is left to copilot candidates; that a
//! node does which only serves, too, and while it drains.

use crate::clock::Timestamp;
use crate::ids::ConversationId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::runs::context::Context;
use crate::runs::due;
use crate::runs::due::Due;
use crate::runs::executor;
use crate::runs::fairness::Held;
use crate::runs::fairness::Places;
use crate::runs::fairness::Wanted;
use crate::runs::scheduler;
use sea_orm::DbErr;
use std::time::Duration;

/// The net under the bell: another node's run, or one whose ring was lost.
const SLOW_POLL: Duration = Duration::from_secs(2);
/// How many runs are claimed at once.
const BATCH: usize = 32;
/// How many spaces one look sees when more waits than one batch takes.
const SPACES: usize = 64;
/// After so long another node is done with what it held when we came.
const A_MOMENT: Duration = Duration::from_millis(50);

/// Claims until the node drains, and grants permits until it puts its runs down.
pub async fn keep_working(context: Context) {
    let letting_go = context.shutdown.releasing.clone();
    let mut dispatcher = Dispatcher::new(context);
    while !letting_go.is_cancelled() {
        let next = match dispatcher.look().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "due runs could not be looked up, trying again: {error}");
                Next::Ring
            }
        };
        tokio::select! {
            () = letting_go.cancelled() => {}
            () = dispatcher.context.bell.heard() => {}
            () = tokio::time::sleep(SLOW_POLL) => {}
            () = dispatcher.until(next) => {}
        }
    }
}

/// What there is to wait for, beside a ring.
#[derive(Debug)]
enum Next {
    /// Nothing else.
    Ring,
    /// A run that is due then.
    At(Timestamp),
    /// A step of this node, which has the conversation.
    Step(ConversationId),
    /// Another node, which has all that is due.
    AnotherNode,
}

struct Dispatcher {
    context: Context,
    /// As they were at the last look.
    places: Places,
    /// The space up to which the last look got.
    after: SpaceId,
}

impl Dispatcher {
    fn new(context: Context) -> Self {
        Self {
            context,
            places: Places::default(),
            after: SpaceId(0),
        }
    }

    async fn until(&self, next: Next) {
        match next {
            Next::Ring => std::future::pending().await,
            Next::At(instant) => self.context.clock.sleep_until(instant).await,
            Next::Step(conversation) => scheduler::until_free(&self.context, conversation).await,
            Next::AnotherNode => tokio::time::sleep(A_MOMENT).await,
        }
    }

    /// Claims what is due and fits; tells what to wait for.
    async fn look(&mut self) -> Result<Next, DbErr> {
        let context = self.context.clone();
        let (leases, permits) = (&context.leases, &context.permits);
        self.places
            .keep(|run| leases.holds_permit(run) || permits.is_held(run));
        let n_held = leases.n_permits() + permits.n_held();
        let n_free = context.settings.max_running.saturating_sub(n_held);
        // A run that ends rings.
        if n_free == 0 {
            return Ok(Next::Ring);
        }
        // What is due is decided by the time; the heartbeat rings when it knows it again.
        if !context.knows_the_time() {
            return Ok(Next::Ring);
        }
        let now = context.clock.now();
        let (due, later) = self.waiting(now).await?;
        let is_more = due.len() > BATCH;
        let resumed = permits.runs();
        let going_on: Vec<RunId> = resumed.iter().map(|it| it.id).collect();
        let wanted = Wanted { due, resumed };
        let per_provider = context.settings.max_per_provider;
        let chosen = self.places.choose(wanted, n_free.min(BATCH), per_provider);
        let n_left = match is_more {
            true => 0,
            false => n_free.min(BATCH) - chosen.len(),
        };
        let (resumed, chosen): (Vec<Due>, Vec<Due>) =
            chosen.into_iter().partition(|it| going_on.contains(&it.id));
        resumed.iter().for_each(|it| self.go_on(it));
        if chosen.is_empty() {
            self.let_candidates_begin(n_left);
            return Ok(later.map_or(Next::Ring, Next::At));
        }
        let n_chosen = chosen.len();
        let claims = scheduler::claim(&context, chosen).await?;
        for claimed in claims.runs {
            crate::fail_point!("claim.after_commit");
            // The step holds the lease from before its events went out.
            let Some(lease) = context.leases.of(claimed.run.id) else {
                continue;
            };
            self.places.take(claimed.held);
            let execute = executor::execute(context.clone(), claimed, lease);
            context.shutdown.spawn(execute);
        }
        self.let_candidates_begin(n_left);
        Ok(match (claims.busy_here, claims.n_decided) {
            (Some(conversation), _) => Next::Step(conversation),
            (None, 0) => Next::AnotherNode,
            (None, n) if is_more || n < n_chosen => Next::At(now),
            (None, _) => later.map_or(Next::Ring, Next::At),
        })
    }

    /// Gives a run that waits here its permit back, if it still waits.
    fn go_on(&mut self, due: &Due) {
        let Some(lease) = self.context.leases.of(due.id) else {
            return;
        };
        // Before the grant: the run may return it at once.
        lease.set_permit(true);
        match self.context.permits.grant_run(due.id) {
            true => self.places.take(Held::by(due)),
            false => lease.set_permit(false),
        }
    }

    /// Copilot candidates come after all due runs.
    fn let_candidates_begin(&mut self, n_left: usize) {
        let context = self.context.clone();
        if context.shutdown.draining.is_cancelled() {
            return;
        }
        let wanted = Wanted {
            due: context.permits.candidates(),
            resumed: Vec::new(),
        };
        let per_provider = context.settings.max_per_provider;
        for it in self.places.choose(wanted, n_left, per_provider) {
            if context.permits.grant_candidate(it.id) {
                self.places.take(Held::by(&it));
            }
        }
    }

    /// What is due, of every space some, and when the next run will be. Nothing is claimed where the
    /// node only serves, or closes.
    async fn waiting(&mut self, now: Timestamp) -> Result<(Vec<Due>, Option<Timestamp>), DbErr> {
        let draining = &self.context.shutdown.draining;
        if self.context.settings.workers == 0 || draining.is_cancelled() {
            return Ok((Vec::new(), None));
        }
        let db = self.context.db.reader();
        let full = self.places.full(self.context.settings.max_per_provider);
        // One more than fits, to see that there is more.
        let soonest = due::soonest(db, &full, BATCH as u64 + 1).await?;
        let (mut due, later): (Vec<Due>, Vec<Due>) =
            soonest.into_iter().partition(|it| it.is_due(now));
        if due.len() > BATCH {
            let spaces = due::spaces(db, now, self.after, SPACES as u64).await?;
            let is_last = spaces.len() < SPACES;
            self.after = spaces
                .last()
                .copied()
                .filter(|_| !is_last)
                .unwrap_or(SpaceId(0));
            let each = (2 * BATCH / spaces.len().max(1)).clamp(1, BATCH);
            let lines = due::of_spaces(db, now, &full, &spaces, each as u64).await?;
            let known: Vec<_> = due.iter().map(|it| it.id).collect();
            due.extend(lines.into_iter().filter(|it| !known.contains(&it.id)));
        }
        Ok((due, later.first().and_then(|it| it.run_after)))
    }
}
