//! The runs that this node holds: their heartbeat, and the word that one of them must end.
//!
//! **Invariant:** one statement renews every run of the node and brings back what became of them.
//! A run that is missing in the answer is no longer ours; whatever it writes will not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use dashmap::DashMap;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::db::clock_offset;
use crate::db::connect::Backend;
use crate::ids::{ConversationId, RunId};
use crate::runs::services::RunServices;
use crate::runs::{queue, run};

/// The runs of this node. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct ActiveLeases {
    held: Arc<DashMap<RunId, LeaseGuard>>,
    n_held: watch::Sender<usize>,
}

impl Default for ActiveLeases {
    fn default() -> Self {
        Self {
            held: Arc::default(),
            n_held: watch::Sender::new(0),
        }
    }
}

/// One run that this node executes; ends with the executor's work.
#[derive(Clone)]
pub struct LeaseGuard {
    pub run: RunId,
    pub conversation: ConversationId,
    /// The fencing number.
    pub number: i64,
    /// Fires when the run must end; [`Lease::why`] says how.
    pub token: CancellationToken,
    reason: Arc<AtomicU8>,
    /// Whether it holds a permit; not while it waits for people, or for a permit.
    holds_permit: Arc<AtomicBool>,
}

/// Why a run must end before its text is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// It is no longer ours: canceled, reaped, or claimed by another. Nothing is kept.
    Lost,
    /// Somebody pressed stop and wants to keep what there is.
    KeepPartial,
    /// The node closes: somebody else goes on.
    Closing,
}

impl LeaseGuard {
    fn new(run: &run::Model, closing: &CancellationToken) -> Self {
        Self {
            run: run.id,
            conversation: run.conversation_id,
            number: run.lease,
            token: closing.child_token(),
            reason: Arc::new(AtomicU8::new(0)),
            holds_permit: Arc::new(AtomicBool::new(true)),
        }
    }

    /// The run holds its permit, or has returned it.
    pub fn set_permit(&self, is_held: bool) {
        self.holds_permit.store(is_held, Ordering::Release);
    }

    fn holds_permit(&self) -> bool {
        self.holds_permit.load(Ordering::Acquire)
    }

    /// Why the token fired.
    pub fn reason(&self) -> CancelReason {
        match self.reason.load(Ordering::Acquire) {
            1 => CancelReason::Lost,
            2 => CancelReason::KeepPartial,
            _ => CancelReason::Closing,
        }
    }

    fn cancel(&self, reason: CancelReason) {
        let word = match reason {
            CancelReason::Lost => 1,
            CancelReason::KeepPartial => 2,
            CancelReason::Closing => 0,
        };
        // Losing a run wins over every other reason: it must not be written.
        let _ = self
            .reason
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                (old != 1).then_some(word)
            });
        self.token.cancel();
    }
}

impl ActiveLeases {
    /// This node begins to execute a run it claimed.
    pub fn register(&self, run: &run::Model, closing: &CancellationToken) -> LeaseGuard {
        let lease = LeaseGuard::new(run, closing);
        self.held.insert(run.id, lease.clone());
        self.update_count();
        lease
    }

    /// The lease of a run that this node holds.
    pub fn find(&self, run: RunId) -> Option<LeaseGuard> {
        self.held.get(&run).map(|it| it.value().clone())
    }

    /// The executor is done.
    pub fn release(&self, run: RunId) {
        self.held.remove(&run);
        self.update_count();
    }

    /// Ends a run if it is held here; its provider's request is dropped at once.
    pub fn cancel(&self, run: RunId, reason: CancelReason) {
        if let Some(lease) = self.held.get(&run) {
            lease.cancel(reason);
        }
    }

    /// The same, if it is held under this lease or an older one: another node says so.
    pub fn cancel_lease(&self, run: RunId, number: i64, reason: CancelReason) {
        if let Some(lease) = self.held.get(&run).filter(|it| it.number <= number) {
            lease.cancel(reason);
        }
    }

    /// How many runs this node executes.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// How many of them hold a permit.
    pub fn n_permits(&self) -> usize {
        self.held.iter().filter(|it| it.holds_permit()).count()
    }

    /// Whether a run is executed here and holds a permit.
    pub fn holds_permit(&self, run: RunId) -> bool {
        self.held.get(&run).is_some_and(|it| it.holds_permit())
    }

    /// Returns when this node executes no run.
    pub async fn wait_until_empty(&self) {
        // An error would mean that the counter is gone, and we hold it.
        let _ = self
            .n_held
            .subscribe()
            .wait_for(|n_held| *n_held == 0)
            .await;
    }

    fn update_count(&self) {
        self.n_held.send_modify(|n_held| *n_held = self.held.len());
    }

    fn all(&self) -> Vec<LeaseGuard> {
        self.held.iter().map(|it| it.value().clone()).collect()
    }
}

/// Beats until the node has put everything down.
pub async fn run_heartbeat(context: RunServices) {
    let mut tick = tokio::time::interval(context.settings.heartbeat);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        let began = Instant::now();
        let beaten = timeout(context.settings.stale_after, send_heartbeat(&context)).await;
        match beaten {
            Ok(Ok(())) => last = began,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the heartbeat failed, it is tried again: {error}");
            }
            Err(_) => tracing::warn!("the heartbeat got no answer, it is tried again"),
        }
        cancel_lost_leases(&context, last);
        let knew = context.is_clock_synchronized();
        clock_offset::measure(&context.db, &context.clock).await;
        if !knew && context.is_clock_synchronized() {
            tracing::info!("the clock of the database is known again");
            context.wakeup.notify();
        }
    }
}

/// Who has not been heard of since `last` counts as dead among other nodes: they write its runs
/// again, and readers must not see both. On SQLite there are no others.
fn cancel_lost_leases(context: &RunServices, last: Instant) {
    let is_alone = context.db.backend() == Backend::Sqlite;
    if is_alone || last.elapsed() < context.settings.stale_after {
        return;
    }
    for lease in context.leases.all() {
        lease.cancel(CancelReason::Lost);
        context
            .live_streams
            .close(lease.conversation, lease.run, lease.number);
    }
}

/// One heartbeat of the node.
async fn send_heartbeat(context: &RunServices) -> Result<(), sea_orm::DbErr> {
    // Taken before the statement: a run claimed meanwhile is not missed in the answer.
    let held = context.leases.all();
    if held.is_empty() {
        return Ok(());
    }
    crate::fail_point!("beat.begin", ?);
    let (db, now) = (&context.db, context.clock.now());
    let ids: Vec<RunId> = held.iter().map(|it| it.run).collect();
    let beating = queue::heartbeat(
        db.heartbeat_connection(),
        &context.node,
        &ids,
        now,
        db.backend(),
    );
    let alive = db.run_observed(beating).await?;
    for lease in held {
        match alive
            .iter()
            .find(|it| it.id == lease.run && it.lease == lease.number)
        {
            None => lease.cancel(CancelReason::Lost),
            Some(run) if run.cancel_requested_at.is_some() => {
                lease.cancel(CancelReason::KeepPartial)
            }
            Some(_) => {}
        }
    }
    Ok(())
}
