//! Tracks the runs that this node executes: renews their leases and cancels them.
//!
//! **Invariant:** one statement renews all runs of the node and returns their state. A run that is
//! missing in the result is lost; its fenced writes have no effect.

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

/// The runs of this node. Cheap to clone; clones share state.
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

/// A run that this node executes; exists until the executor has finished.
#[derive(Clone)]
pub struct LeaseGuard {
    pub run: RunId,
    pub conversation: ConversationId,
    /// The fencing number.
    pub number: i64,
    /// Fires when the run must end; see [`LeaseGuard::reason`].
    pub token: CancellationToken,
    reason: Arc<AtomicU8>,
    /// Whether the run holds a permit; `false` while it waits for an approval or a permit.
    holds_permit: Arc<AtomicBool>,
}

/// Why a run must end before its text is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The lease was lost: canceled, recovered, or claimed by another node. Nothing is kept.
    Lost,
    /// A person stopped the run and wants to keep the text so far.
    KeepPartial,
    /// The node closes; another one continues the run.
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

    /// Records whether the run holds a permit.
    pub fn set_permit(&self, is_held: bool) {
        self.holds_permit.store(is_held, Ordering::Release);
    }

    fn holds_permit(&self) -> bool {
        self.holds_permit.load(Ordering::Acquire)
    }

    /// Returns why the token fired.
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
        // `Lost` wins over every other reason, because a lost run must not be written.
        let _ = self
            .reason
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                (old != 1).then_some(word)
            });
        self.token.cancel();
    }
}

impl ActiveLeases {
    /// Registers a run that this node has claimed.
    pub fn register(&self, run: &run::Model, closing: &CancellationToken) -> LeaseGuard {
        let lease = LeaseGuard::new(run, closing);
        self.held.insert(run.id, lease.clone());
        self.update_count();
        lease
    }

    /// Returns the lease of a run that this node executes.
    pub fn find(&self, run: RunId) -> Option<LeaseGuard> {
        self.held.get(&run).map(|it| it.value().clone())
    }

    /// Removes a run whose executor has finished.
    pub fn release(&self, run: RunId) {
        self.held.remove(&run);
        self.update_count();
    }

    /// Cancels a run if it executes here; this drops the request to its provider.
    pub fn cancel(&self, run: RunId, reason: CancelReason) {
        if let Some(lease) = self.held.get(&run) {
            lease.cancel(reason);
        }
    }

    /// Cancels a run on a signal of another node, if it executes here under this lease or an older
    /// one.
    pub fn cancel_lease(&self, run: RunId, number: i64, reason: CancelReason) {
        if let Some(lease) = self.held.get(&run).filter(|it| it.number <= number) {
            lease.cancel(reason);
        }
    }

    /// Returns how many runs this node executes.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// Returns how many of them hold a permit.
    pub fn n_permits(&self) -> usize {
        self.held.iter().filter(|it| it.holds_permit()).count()
    }

    /// Returns whether a run executes here and holds a permit.
    pub fn holds_permit(&self, run: RunId) -> bool {
        self.held.get(&run).is_some_and(|it| it.holds_permit())
    }

    /// Waits until this node executes no run.
    pub async fn wait_until_empty(&self) {
        // An error would mean that the sender was dropped, but `self` owns it.
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

/// Renews the leases periodically until the node stops.
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
                tracing::warn!(%error, "heartbeat failed; retrying: {error}");
            }
            Err(_) => tracing::warn!("heartbeat timed out; retrying"),
        }
        cancel_lost_leases(&context, last);
        let knew = context.is_clock_synchronized();
        clock_offset::measure(&context.db, &context.clock).await;
        if !knew && context.is_clock_synchronized() {
            tracing::info!("database clock offset measured again");
            context.wakeup.notify();
        }
    }
}

/// Cancels all runs if no heartbeat has succeeded for the stale time since `last`: other nodes then
/// treat this node as dead and write its runs again, and readers must not see both texts. On SQLite
/// there are no other nodes.
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

/// Sends one heartbeat for all runs of the node.
async fn send_heartbeat(context: &RunServices) -> Result<(), sea_orm::DbErr> {
    // Read before the statement: a run that is claimed meanwhile must not count as missing.
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
