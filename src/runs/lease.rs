//! The runs that this node holds: their heartbeat, and the word that one of them must end.
//!
//! **Invariant:** one statement renews every run of the node and brings back what became of them.
//! A run that is missing in the answer is no longer ours; whatever it writes will not count.

use crate::db::clock_offset;
use crate::db::connect::Backend;
use crate::ids::ConversationId;
use crate::ids::RunId;
use crate::runs::context::Context;
use crate::runs::queue;
use crate::runs::run;
use dashmap::DashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The runs of this node. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct Leases {
    held: Arc<DashMap<RunId, Lease>>,
    n_held: watch::Sender<usize>,
}

impl Default for Leases {
    fn default() -> Self {
        Self {
            held: Arc::default(),
            n_held: watch::Sender::new(0),
        }
    }
}

/// One run that this node executes; ends with the executor's work.
#[derive(Clone)]
pub struct Lease {
    pub run: RunId,
    pub conversation: ConversationId,
    /// The fencing number.
    pub number: i64,
    /// Fires when the run must end; [`Lease::why`] says how.
    pub token: CancellationToken,
    why: Arc<AtomicU8>,
    /// Whether it holds a permit; not while it waits for people, or for a permit.
    holds_permit: Arc<AtomicBool>,
}

/// Why a run must end before its text is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is no longer ours: canceled, reaped, or claimed by another. Nothing is kept.
    Lost,
    /// Somebody pressed stop and wants to keep what there is.
    KeepPartial,
    /// The node closes: somebody else goes on.
    Closing,
}

impl Lease {
    fn new(run: &run::Model, closing: &CancellationToken) -> Self {
        Self {
            run: run.id,
            conversation: run.conversation_id,
            number: run.lease,
            token: closing.child_token(),
            why: Arc::new(AtomicU8::new(0)),
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
    pub fn why(&self) -> Why {
        match self.why.load(Ordering::Acquire) {
            1 => Why::Lost,
            2 => Why::KeepPartial,
            _ => Why::Closing,
        }
    }

    fn end(&self, why: Why) {
        let word = match why {
            Why::Lost => 1,
            Why::KeepPartial => 2,
            Why::Closing => 0,
        };
        // Losing a run wins over every other reason: it must not be written.
        let _ = self
            .why
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                (old != 1).then_some(word)
            });
        self.token.cancel();
    }
}

impl Leases {
    /// This node begins to execute a run it claimed.
    pub fn hold(&self, run: &run::Model, closing: &CancellationToken) -> Lease {
        let lease = Lease::new(run, closing);
        self.held.insert(run.id, lease.clone());
        self.count_anew();
        lease
    }

    /// The lease of a run that this node holds.
    pub fn of(&self, run: RunId) -> Option<Lease> {
        self.held.get(&run).map(|it| it.value().clone())
    }

    /// The executor is done.
    pub fn release(&self, run: RunId) {
        self.held.remove(&run);
        self.count_anew();
    }

    /// Ends a run if it is held here; its provider's request is dropped at once.
    pub fn end(&self, run: RunId, why: Why) {
        if let Some(lease) = self.held.get(&run) {
            lease.end(why);
        }
    }

    /// The same, if it is held under this lease or an older one: another node says so.
    pub fn end_under(&self, run: RunId, number: i64, why: Why) {
        if let Some(lease) = self.held.get(&run).filter(|it| it.number <= number) {
            lease.end(why);
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
    pub async fn none_left(&self) {
        // An error would mean that the counter is gone, and we hold it.
        let _ = self
            .n_held
            .subscribe()
            .wait_for(|n_held| *n_held == 0)
            .await;
    }

    fn count_anew(&self) {
        self.n_held.send_modify(|n_held| *n_held = self.held.len());
    }

    fn all(&self) -> Vec<Lease> {
        self.held.iter().map(|it| it.value().clone()).collect()
    }
}

/// Beats until the node has put everything down.
pub async fn keep_beating(context: Context) {
    let mut tick = tokio::time::interval(context.settings.heartbeat);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        let began = Instant::now();
        let beaten = timeout(context.settings.stale_after, beat(&context)).await;
        match beaten {
            Ok(Ok(())) => last = began,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the heartbeat failed, it is tried again: {error}");
            }
            Err(_) => tracing::warn!("the heartbeat got no answer, it is tried again"),
        }
        put_down_what_others_took(&context, last);
        let knew = context.knows_the_time();
        clock_offset::measure(&context.db, &context.clock).await;
        if !knew && context.knows_the_time() {
            tracing::info!("the clock of the database is known again");
            context.bell.ring();
        }
    }
}

/// Who has not been heard of since `last` counts as dead among other nodes: they write its runs
/// again, and readers must not see both. On SQLite there are no others.
fn put_down_what_others_took(context: &Context, last: Instant) {
    let is_alone = context.db.backend() == Backend::Sqlite;
    if is_alone || last.elapsed() < context.settings.stale_after {
        return;
    }
    for lease in context.leases.all() {
        lease.end(Why::Lost);
        context
            .live
            .close(lease.conversation, lease.run, lease.number);
    }
}

/// One heartbeat of the node.
async fn beat(context: &Context) -> Result<(), sea_orm::DbErr> {
    // Taken before the statement: a run claimed meanwhile is not missed in the answer.
    let held = context.leases.all();
    if held.is_empty() {
        return Ok(());
    }
    crate::fail_point!("beat.begin", ?);
    let (db, now) = (&context.db, context.clock.now());
    let ids: Vec<RunId> = held.iter().map(|it| it.run).collect();
    let beating = queue::beat(
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
            None => lease.end(Why::Lost),
            Some(run) if run.cancel_requested_at.is_some() => lease.end(Why::KeepPartial),
            Some(_) => {}
        }
    }
    Ok(())
}
