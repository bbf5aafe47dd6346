//! Defines `TestJob`, an implementation of `Job` for the tests of the loops for claims, heartbeats
//! and recovery: keeps its leases in memory instead of a database, can simulate a database that is
//! down, and records claims, recoveries and reported failures.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::clock_jump_guard::ClockJumpGuard;
use crate::job::{Job, JobFailure, JobTiming, NextWork, RenewedLease};
use crate::lease::{ActiveLeases, CancelHandle, Lease, lock};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub(crate) struct TestJob {
    pub leases: ActiveLeases<&'static str>,
    /// The leases that the database holds.
    pub stored: Arc<Mutex<Vec<RenewedLease<&'static str>>>>,
    pub is_database_down: Arc<AtomicBool>,
    /// The delays that the next claims return.
    pub due_in: Arc<Mutex<Vec<Duration>>>,
    pub claimed_at: Arc<Mutex<Vec<Instant>>>,
    pub recovered_at: Arc<Mutex<Vec<Instant>>>,
    pub failures: Arc<Mutex<Vec<String>>>,
}

impl TestJob {
    /// Stores and registers the lease of a job.
    pub fn claim(&self, id: &'static str, number: i64) -> CancelHandle {
        lock(&self.stored).push(RenewedLease {
            id,
            number,
            is_cancel_requested: false,
        });
        self.register(id, number)
    }

    /// Registers a lease that the database does not hold.
    pub fn register(&self, id: &'static str, number: i64) -> CancelHandle {
        let cancel = CancelHandle::default();
        self.leases
            .register(Lease::new(id, number, cancel.clone(), ()));
        cancel
    }

    pub fn set_database_down(&self, is_down: bool) {
        self.is_database_down.store(is_down, Ordering::SeqCst);
    }

    fn query(&self) -> Result<(), &'static str> {
        match self.is_database_down.load(Ordering::SeqCst) {
            true => Err("database down"),
            false => Ok(()),
        }
    }
}

impl Job for TestJob {
    type Id = &'static str;
    type Data = ();
    type Error = &'static str;

    fn leases(&self) -> &ActiveLeases<&'static str> {
        &self.leases
    }

    fn timing(&self) -> JobTiming {
        JobTiming {
            heartbeat: 5 * SECOND,
            stale_after: 30 * SECOND,
            gives_up_stale_leases: true,
            poll_interval: Some(10 * SECOND),
            recovery_interval: 15 * SECOND,
        }
    }

    fn report(&self, failure: JobFailure<'_, &'static str>) {
        lock(&self.failures).push(format!("{failure:?}"));
    }

    async fn renew(
        &self,
        held: &[&'static str],
    ) -> Result<Vec<RenewedLease<&'static str>>, &'static str> {
        self.query()?;
        let mut renewed = lock(&self.stored).clone();
        renewed.retain(|lease| held.contains(&lease.id));
        Ok(renewed)
    }

    async fn claim(&mut self) -> Result<NextWork, &'static str> {
        self.query()?;
        lock(&self.claimed_at).push(Instant::now());
        Ok(match lock(&self.due_in).pop() {
            Some(delay) => Box::pin(sleep(delay)),
            None => Box::pin(pending()),
        })
    }

    async fn recover(&mut self, guard: &mut ClockJumpGuard) -> Result<(), &'static str> {
        self.query()?;
        if guard.can_recover(Instant::now(), None) {
            lock(&self.recovered_at).push(Instant::now());
        }
        Ok(())
    }
}
