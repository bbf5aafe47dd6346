//! The trait `Job`, which every kind of job implements: its database statements, its timing, and
//! the log lines of its failures.

use std::future::pending;
use std::hash::Hash;
use std::pin::Pin;
use std::time::Duration;

use crate::clock_jump_guard::ClockJumpGuard;
use crate::lease::{ActiveLeases, Lease};

/// Resolves when there may be more to claim, for example at the time when the next job is due.
pub type NextWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A kind of leased job. The loops of this crate call it; it owns no loop itself.
///
/// **Invariant:** a statement that ends or releases a job names the lease under which it ran, and
/// changes nothing if that lease is no longer valid.
pub trait Job: Send + Sync + 'static {
    type Id: Clone + Eq + Hash + Send + Sync + 'static;
    /// What else is known about a job while this process executes it.
    type Data: Clone + Send + Sync + 'static;
    type Error: Send + Sync;

    /// Returns the jobs of this kind that this process executes.
    fn leases(&self) -> &ActiveLeases<Self::Id, Self::Data>;

    fn timing(&self) -> JobTiming;

    /// Writes to the log that a call failed; the loop calls it again later.
    fn report(&self, failure: JobFailure<'_, Self::Error>);

    /// Renews the leases of these jobs in one statement and returns those that are still valid.
    fn renew(
        &self,
        held: &[Self::Id],
    ) -> impl Future<Output = Result<Vec<RenewedLease<Self::Id>>, Self::Error>> + Send;

    /// Claims what is due and starts its execution. Returns what to wait for besides the wake-up
    /// signal and the poll interval. The default is for a kind without a queue: the process that
    /// inserts a job also starts it.
    fn claim(&mut self) -> impl Future<Output = Result<NextWork, Self::Error>> + Send {
        async { Ok(Box::pin(pending()) as NextWork) }
    }

    /// Ends or repeats the jobs of dead processes, as soon as the guard permits it. The default is
    /// for a kind whose jobs the recovery of another kind includes.
    fn recover(
        &mut self,
        _guard: &mut ClockJumpGuard,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called for each lease that [`JobTiming::gives_up_stale_leases`] gives up.
    fn on_given_up(&self, _lease: &Lease<Self::Id, Self::Data>) {}

    /// Called after each heartbeat, whether it succeeded or not.
    fn after_heartbeat(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The times of a kind of job.
#[derive(Clone, Copy, Debug)]
pub struct JobTiming {
    /// The interval of the heartbeat.
    pub heartbeat: Duration,
    /// Without a heartbeat for this long, other processes treat this one as dead and recover its
    /// jobs. A heartbeat that takes as long is dropped and sent again.
    pub stale_after: Duration,
    /// Whether this process then cancels its jobs itself, without asking the database.
    pub gives_up_stale_leases: bool,
    /// How often due jobs are claimed without a signal. `None`: only this process adds jobs, and it
    /// signals each.
    pub poll_interval: Option<Duration>,
    pub recovery_interval: Duration,
}

/// A lease that was renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewedLease<Id> {
    pub id: Id,
    pub number: i64,
    /// Whether a user requested the end of the job.
    pub is_cancel_requested: bool,
}

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFailure<'a, Error> {
    Heartbeat(&'a Error),
    HeartbeatTimeout,
    Claim(&'a Error),
    Recovery(&'a Error),
}
