//! Limits how many calls run at the same time; the others wait. A released permit is assigned to the
//! waiting owner that holds the fewest permits, so an owner may hold all permits until others wait. If
//! several owners hold the fewest, the one whose last assignment is the oldest is next.
//!
//! **Invariant:** while a call waits, there is no free permit that its owner may hold.
//!
//! **Invariant:** a call that stops waiting holds no permit.

use std::collections::HashMap;
use std::sync::Arc;

use base::ids::{SpaceId, UserId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The user or the space whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitOwner {
    User(UserId),
    Space(SpaceId),
}

/// The permits of one limit. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct FairPermits(Arc<SharedPermits>);

/// A permit for one call; released on drop.
#[must_use = "a permit that is dropped at once permits nothing"]
pub struct FairPermit {
    permits: Arc<SharedPermits>,
    owner: PermitOwner,
}

struct SharedPermits {
    limit: usize,
    /// This many permits are kept for owners that hold less than a quarter of all permits.
    n_reserved: usize,
    usage: Mutex<PermitUsage>,
}

#[derive(Default)]
struct PermitUsage {
    n_held: usize,
    /// The owners whose calls run or wait.
    owners: HashMap<PermitOwner, OwnerUsage>,
    /// In the order of their arrival.
    waiting: Vec<WaitingCall>,
    /// The number of the next event: a call begins to wait, or a permit is assigned.
    next_number: u64,
}

#[derive(Clone, Copy, Default)]
struct OwnerUsage {
    n_held: usize,
    n_waiting: usize,
    /// The number of the last assignment to this owner; 0 if there was none.
    last_assigned: u64,
}

struct WaitingCall {
    number: u64,
    owner: PermitOwner,
    granted: oneshot::Sender<FairPermit>,
}

impl FairPermits {
    /// Creates a limit of `limit` calls. One owner may use all of it while no other owner waits.
    pub fn new(limit: usize) -> Self {
        Self::with_reserved(limit, 0)
    }

    /// Creates a limit of `limit` calls, of which one owner may use three quarters, so that a permit
    /// is free for others even if its calls are slow.
    pub fn with_reserved_quarter(limit: usize) -> Self {
        Self::with_reserved(limit, limit / 4)
    }

    fn with_reserved(limit: usize, n_reserved: usize) -> Self {
        Self(Arc::new(SharedPermits {
            limit,
            n_reserved,
            usage: Mutex::default(),
        }))
    }

    /// Waits for a permit.
    ///
    /// # Cancel safety
    /// A future that is dropped stops waiting and holds no permit.
    pub async fn acquire(&self, owner: PermitOwner) -> FairPermit {
        let mut waiting = {
            let mut usage = self.0.usage.lock();
            if self.0.may_acquire(&usage, owner) {
                return self.0.assign(&mut usage, owner);
            }
            let (granted, permit) = oneshot::channel();
            let number = usage.next_number();
            usage.owners.entry(owner).or_default().n_waiting += 1;
            usage.waiting.push(WaitingCall {
                number,
                owner,
                granted,
            });
            PendingAcquire {
                permits: &self.0,
                number,
                permit,
            }
        };
        let permit = (&mut waiting.permit).await;
        permit.expect("a waiting call is removed with its permit, or when this future is dropped")
    }

    /// Returns how many calls run.
    pub fn n_running(&self) -> usize {
        self.0.usage.lock().n_held
    }

    /// Returns how many calls wait.
    pub fn n_waiting(&self) -> usize {
        self.0.usage.lock().waiting.len()
    }

    /// Returns whether a call runs or waits, or another clone exists.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl SharedPermits {
    fn may_acquire(&self, usage: &PermitUsage, owner: PermitOwner) -> bool {
        let is_reserved = usage.n_held + self.n_reserved >= self.limit;
        let has_share = usage.of(owner).n_held >= self.limit.div_ceil(4);
        usage.n_held < self.limit && !(self.n_reserved > 0 && is_reserved && has_share)
    }

    fn assign(self: &Arc<Self>, usage: &mut PermitUsage, owner: PermitOwner) -> FairPermit {
        usage.n_held += 1;
        let number = usage.next_number();
        let own = usage.owners.entry(owner).or_default();
        own.n_held += 1;
        own.last_assigned = number;
        FairPermit {
            permits: self.clone(),
            owner,
        }
    }

    /// Assigns the next permit to a waiting call. Returns `None` if no call may have one, `Some(None)`
    /// if the call received it, and the permit if the call has just stopped waiting.
    fn assign_next(self: &Arc<Self>, usage: &mut PermitUsage) -> Option<Option<FairPermit>> {
        let waiting = usage.waiting.iter().enumerate();
        let allowed = waiting.filter(|(_, it)| self.may_acquire(usage, it.owner));
        let (at, _) = allowed.min_by_key(|(at, it)| {
            let own = usage.of(it.owner);
            (own.n_held, own.last_assigned, *at)
        })?;
        let call = usage.waiting.remove(at);
        let permit = self.assign(usage, call.owner);
        usage.stop_waiting(call.owner);
        Some(call.granted.send(permit).err())
    }

    fn release(self: &Arc<Self>, owner: PermitOwner) {
        let mut unclaimed = Vec::new();
        let mut usage = self.usage.lock();
        usage.release(owner);
        while let Some(permit) = self.assign_next(&mut usage) {
            unclaimed.extend(permit);
        }
        drop(usage);
        // Dropping each of them locks the usage again.
        drop(unclaimed);
    }
}

impl PermitUsage {
    fn of(&self, owner: PermitOwner) -> OwnerUsage {
        self.owners.get(&owner).copied().unwrap_or_default()
    }

    fn next_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn release(&mut self, owner: PermitOwner) {
        self.n_held -= 1;
        self.change(owner, |own| own.n_held -= 1);
    }

    fn stop_waiting(&mut self, owner: PermitOwner) {
        self.change(owner, |own| own.n_waiting -= 1);
    }

    /// Changes the usage of an owner, and removes it if the owner has no calls left.
    fn change(&mut self, owner: PermitOwner, change: impl FnOnce(&mut OwnerUsage)) {
        let own = self.owners.entry(owner).or_default();
        change(own);
        if own.n_held + own.n_waiting == 0 {
            self.owners.remove(&owner);
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        self.permits.release(self.owner);
    }
}

/// A call that waits; it leaves the queue on drop. A permit that was assigned to it, but not yet
/// received, is dropped with it.
struct PendingAcquire<'a> {
    permits: &'a SharedPermits,
    number: u64,
    permit: oneshot::Receiver<FairPermit>,
}

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        let mut usage = self.permits.usage.lock();
        let at = usage.waiting.iter().position(|it| it.number == self.number);
        if let Some(at) = at {
            let call = usage.waiting.remove(at);
            usage.stop_waiting(call.owner);
        }
    }
}

#[cfg(test)]
#[path = "fair_permits_tests.rs"]
mod tests;
