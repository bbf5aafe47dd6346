//! The dispatcher of a node: finds due runs, claims them through the gate, executes them.
//!
//! **Invariant:** it claims *any* due run, whoever planned it. A bell only makes it look sooner;
//! without one it sleeps until the next run is due, and looks by itself every [`SLOW_POLL`].
//!
//! What does not fit on the node stays queued; who comes next is told by `fairness.rs`.

use crate::clock::Timestamp;
use crate::ids::ConversationId;
use crate::ids::SpaceId;
use crate::runs::context::Context;
use crate::runs::due;
use crate::runs::due::Due;
use crate::runs::executor;
use crate::runs::fairness::Places;
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

/// Works until the node drains.
pub async fn keep_working(context: Context) {
    let draining = context.shutdown.draining.clone();
    let mut dispatcher = Dispatcher::new(context);
    while !draining.is_cancelled() {
        let next = match dispatcher.look().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "due runs could not be looked up, trying again: {error}");
                Next::Ring
            }
        };
        tokio::select! {
            () = draining.cancelled() => {}
            () = dispatcher.context.bell.heard() => {}
            () = tokio::time::sleep(SLOW_POLL) => {}
            () = dispatcher.until(next) => {}
        }
    }
    // The ring just heard may have been for whoever waits for the last run to end.
    dispatcher.context.bell.ring();
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
            Next::At(instant) => self.context.clock.until(instant).await,
            Next::Step(conversation) => scheduler::until_free(&self.context, conversation).await,
            Next::AnotherNode => tokio::time::sleep(A_MOMENT).await,
        }
    }

    /// Claims what is due and fits; tells what to wait for.
    async fn look(&mut self) -> Result<Next, DbErr> {
        let context = self.context.clone();
        self.places.keep(|run| context.leases.of(run).is_some());
        let n_free = context
            .settings
            .max_running
            .saturating_sub(context.leases.count());
        // A run that ends rings; a closing node begins nothing.
        if n_free == 0 || context.shutdown.draining.is_cancelled() {
            return Ok(Next::Ring);
        }
        let now = context.clock.now();
        let (due, later) = self.waiting(now).await?;
        let is_more = due.len() > BATCH;
        let per_provider = context.settings.max_per_provider;
        let chosen = self.places.choose(due, n_free.min(BATCH), per_provider);
        if chosen.is_empty() {
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
        Ok(match (claims.busy_here, claims.n_decided) {
            (Some(conversation), _) => Next::Step(conversation),
            (None, 0) => Next::AnotherNode,
            (None, n) if is_more || n < n_chosen => Next::At(now),
            (None, _) => later.map_or(Next::Ring, Next::At),
        })
    }

    /// What is due, of every space some, and when the next run will be.
    async fn waiting(&mut self, now: Timestamp) -> Result<(Vec<Due>, Option<Timestamp>), DbErr> {
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
