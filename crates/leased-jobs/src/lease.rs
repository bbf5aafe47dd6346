//! The leases of this process: registers the jobs that it executes, cancels them with a reason, and
//! waits for their end at shutdown.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a drain waits for jobs after it has canceled them.
pub const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a job must end before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The lease was lost: the job was ended or claimed elsewhere. Nothing it writes is valid.
    LeaseLost,
    /// A user requested it; what the job has produced so far is kept.
    Requested,
    /// The process shuts down; another one continues the job if it can.
    Shutdown,
    /// The client that waits for the result disconnected.
    ClientDisconnected,
}

/// Cancels one job. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    /// Fires when the job must end; see [`CancelHandle::reason`].
    pub token: CancellationToken,
    reason: Arc<Mutex<Option<CancelReason>>>,
    /// The reason if the token fires without [`CancelHandle::cancel`].
    default_reason: CancelReason,
}

impl Default for CancelHandle {
    /// Returns the handle of a job that its client cancels by dropping the token's guard.
    fn default() -> Self {
        Self::new(CancellationToken::new(), CancelReason::ClientDisconnected)
    }
}

impl CancelHandle {
    /// Returns the handle of a job that ends when `shutdown` fires.
    pub fn child_of(shutdown: &CancellationToken) -> Self {
        Self::new(shutdown.child_token(), CancelReason::Shutdown)
    }

    fn new(token: CancellationToken, default_reason: CancelReason) -> Self {
        Self {
            token,
            reason: Arc::default(),
            default_reason,
        }
    }

    /// Cancels the job. The first reason wins, except that `LeaseLost` always replaces it, because
    /// a lost job must not be written.
    pub fn cancel(&self, reason: CancelReason) {
        let mut known = lock(&self.reason);
        if known.is_none() || reason == CancelReason::LeaseLost {
            *known = Some(reason);
        }
        drop(known);
        self.token.cancel();
    }

    /// Returns why the token fired.
    pub fn reason(&self) -> CancelReason {
        lock(&self.reason).unwrap_or(self.default_reason)
    }
}

/// A job that this process executes. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct Lease<Id, Data = ()> {
    pub id: Id,
    /// The fencing number; 0 if the job is not stored, so that there is nothing to renew.
    pub number: i64,
    pub cancel: CancelHandle,
    pub data: Data,
    holds_permit: Arc<AtomicBool>,
}

impl<Id, Data> Lease<Id, Data> {
    /// Returns a lease that holds a permit.
    pub fn new(id: Id, number: i64, cancel: CancelHandle, data: Data) -> Self {
        Self {
            id,
            number,
            cancel,
            data,
            holds_permit: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Records whether the job holds a permit; `false` while it waits.
    pub fn set_permit(&self, is_held: bool) {
        self.holds_permit.store(is_held, Ordering::Release);
    }

    fn holds_permit(&self) -> bool {
        self.holds_permit.load(Ordering::Acquire)
    }
}

/// The leases of this process. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct ActiveLeases<Id, Data = ()> {
    table: Arc<Mutex<LeaseTable<Id, Data>>>,
    n_held: watch::Sender<usize>,
}

#[derive(Debug)]
struct LeaseTable<Id, Data> {
    leases: HashMap<Id, Lease<Id, Data>>,
    /// Leases that are registered from now on are canceled immediately.
    is_closed: bool,
}

/// A registered lease; dropping the guard releases it.
pub struct LeaseGuard<Id: Eq + Hash, Data> {
    leases: ActiveLeases<Id, Data>,
    lease: Lease<Id, Data>,
}

impl<Id, Data> Default for ActiveLeases<Id, Data> {
    fn default() -> Self {
        let table = LeaseTable {
            leases: HashMap::new(),
            is_closed: false,
        };
        Self {
            table: Arc::new(Mutex::new(table)),
            n_held: watch::Sender::new(0),
        }
    }
}

impl<Id: Clone + Eq + Hash, Data: Clone> ActiveLeases<Id, Data> {
    /// Registers a lease until [`ActiveLeases::release`].
    pub fn register(&self, lease: Lease<Id, Data>) {
        let mut table = lock(&self.table);
        if table.is_closed {
            lease.cancel.cancel(CancelReason::Shutdown);
        }
        table.leases.insert(lease.id.clone(), lease);
        self.n_held.send_replace(table.leases.len());
    }

    /// Registers a lease until the guard is dropped.
    pub fn hold(&self, lease: Lease<Id, Data>) -> LeaseGuard<Id, Data> {
        self.register(lease.clone());
        LeaseGuard {
            leases: self.clone(),
            lease,
        }
    }

    /// Removes the lease of a job that has ended.
    pub fn release(&self, id: Id) {
        let mut table = lock(&self.table);
        table.leases.remove(&id);
        self.n_held.send_replace(table.leases.len());
    }

    /// Returns the lease of a job that this process executes.
    pub fn find(&self, id: &Id) -> Option<Lease<Id, Data>> {
        lock(&self.table).leases.get(id).cloned()
    }

    /// Returns whether this process executes a job under this lease.
    pub fn contains(&self, id: &Id, number: i64) -> bool {
        self.find(id).is_some_and(|lease| lease.number == number)
    }

    /// Cancels a job if this process executes it.
    pub fn cancel(&self, id: &Id, reason: CancelReason) {
        self.cancel_lease(id, i64::MAX, reason);
    }

    /// Cancels a job if this process executes it under this lease or an older one.
    pub fn cancel_lease(&self, id: &Id, number: i64, reason: CancelReason) {
        if let Some(lease) = self.find(id).filter(|lease| lease.number <= number) {
            lease.cancel.cancel(reason);
        }
    }

    /// Returns all leases.
    pub fn list(&self) -> Vec<Lease<Id, Data>> {
        lock(&self.table).leases.values().cloned().collect()
    }

    /// Returns how many jobs this process executes.
    pub fn count(&self) -> usize {
        *self.n_held.borrow()
    }

    /// Returns how many of them hold a permit.
    pub fn n_permits(&self) -> usize {
        let table = lock(&self.table);
        let leases = table.leases.values();
        leases.filter(|lease| lease.holds_permit()).count()
    }

    /// Returns whether this process executes a job that holds a permit.
    pub fn holds_permit(&self, id: &Id) -> bool {
        self.find(id).is_some_and(|lease| lease.holds_permit())
    }

    /// Cancels all jobs for the shutdown, also those that are registered later.
    pub fn close(&self) {
        lock(&self.table).is_closed = true;
        for lease in self.list() {
            lease.cancel.cancel(CancelReason::Shutdown);
        }
    }

    /// Waits up to `grace` for the jobs to end, calls `release` with the number of the remaining
    /// ones, and waits up to [`RELEASE_TIMEOUT`] for those. Returns whether all have ended.
    pub async fn drain(&self, grace: Duration, release: impl FnOnce(usize)) -> bool {
        let _ = timeout(grace, self.wait_until_empty()).await;
        release(self.count());
        let released = timeout(RELEASE_TIMEOUT, self.wait_until_empty()).await;
        released.is_ok()
    }

    async fn wait_until_empty(&self) {
        let mut n_held = self.n_held.subscribe();
        // An error would mean that the sender was dropped, but `self` owns it.
        let _ = n_held.wait_for(|n_held| *n_held == 0).await;
    }
}

impl<Id: Eq + Hash, Data> Drop for LeaseGuard<Id, Data> {
    fn drop(&mut self) {
        let mut table = lock(&self.leases.table);
        // A newer lease may have replaced this one; it must not be removed here.
        let held = table.leases.get(&self.lease.id);
        if held.is_some_and(|held| held.number == self.lease.number) {
            table.leases.remove(&self.lease.id);
        }
        self.leases.n_held.send_replace(table.leases.len());
    }
}

/// Locks a mutex whose state is valid even after a panic: no change of it can panic halfway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ActiveLeases, CancelHandle, CancelReason, Lease};

    fn lease(number: i64) -> Lease<&'static str> {
        Lease::new("job", number, CancelHandle::default(), ())
    }

    #[test]
    fn a_lease_registered_after_close_is_canceled() {
        let (leases, lease) = (ActiveLeases::default(), lease(1));
        leases.close();

        let _guard = leases.hold(lease.clone());

        assert!(lease.cancel.token.is_cancelled());
        assert_eq!(lease.cancel.reason(), CancelReason::Shutdown);
    }

    #[test]
    fn a_newer_lease_stays_registered_when_the_older_guard_drops() {
        let leases = ActiveLeases::default();
        let older = leases.hold(lease(1));
        let newer = leases.hold(lease(2));

        drop(older);

        assert!(leases.contains(&"job", 2));
        drop(newer);
        assert_eq!(leases.count(), 0);
    }

    #[test]
    fn the_first_reason_wins_but_a_lost_lease_replaces_it() {
        let lease = lease(1);

        lease.cancel.cancel(CancelReason::Requested);
        lease.cancel.cancel(CancelReason::Shutdown);
        assert_eq!(lease.cancel.reason(), CancelReason::Requested);

        lease.cancel.cancel(CancelReason::LeaseLost);
        assert_eq!(lease.cancel.reason(), CancelReason::LeaseLost);
    }

    #[tokio::test]
    async fn a_lease_is_released_when_its_task_panics() {
        let leases = ActiveLeases::default();
        let guard = leases.hold(lease(1));

        let task = tokio::spawn(async move {
            let _guard = guard;
            panic!("requested by the test");
        });

        assert!(task.await.is_err());
        assert_eq!(leases.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_releases_jobs_that_run_past_the_grace_time() {
        let leases = ActiveLeases::default();
        let (quick, slow) = (
            leases.hold(lease(1)),
            Lease {
                id: "slow",
                ..lease(1)
            },
        );
        let slow_guard = leases.hold(slow.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(quick);
            slow.cancel.token.cancelled().await;
            drop(slow_guard);
        });

        let mut n_released = 0;
        let release = |n| {
            n_released = n;
            leases.close();
        };
        let is_empty = leases.drain(Duration::from_secs(9), release);

        assert!(is_empty.await);
        assert_eq!(n_released, 1);
    }
}
