//! Limits how many jobs of this process run at the same time, in total and for each owner.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::lease::lock;

/// The permits of one limit. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ConcurrencyLimit<Owner> {
    limit: usize,
    limit_per_owner: usize,
    /// While fewer permits than this are held in total, one owner may hold more than its share.
    n_unshared: usize,
    n_held: Arc<Mutex<HashMap<Owner, usize>>>,
}

/// One permit; released on drop.
pub struct ConcurrencyPermit<Owner: Eq + Hash> {
    owner: Owner,
    n_held: Arc<Mutex<HashMap<Owner, usize>>>,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// All permits of this process are in use.
    Global,
    /// The owner's share is in use.
    PerOwner,
}

impl<Owner: Copy + Eq + Hash> ConcurrencyLimit<Owner> {
    /// Creates a limit of which one owner gets at most a quarter, rounded up.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            limit_per_owner: limit.div_ceil(4),
            n_unshared: 0,
            n_held: Arc::default(),
        }
    }

    /// Applies the share of an owner only while at least `n_unshared` permits are held in total.
    pub fn with_unshared(self, n_unshared: usize) -> Self {
        Self { n_unshared, ..self }
    }

    /// Acquires a permit without waiting.
    ///
    /// # Errors
    /// Returns `Global` or `PerOwner`, depending on the limit that is reached.
    pub fn acquire(&self, owner: Owner) -> Result<ConcurrencyPermit<Owner>, LimitReached> {
        let mut n_held = lock(&self.n_held);
        let n_all: usize = n_held.values().sum();
        if n_all >= self.limit {
            return Err(LimitReached::Global);
        }
        let own = n_held.entry(owner).or_default();
        if n_all >= self.n_unshared && *own >= self.limit_per_owner {
            return Err(LimitReached::PerOwner);
        }
        *own += 1;
        Ok(ConcurrencyPermit {
            owner,
            n_held: self.n_held.clone(),
        })
    }

    /// Returns how many permits an owner holds.
    pub fn n_held_by(&self, owner: Owner) -> usize {
        lock(&self.n_held).get(&owner).copied().unwrap_or_default()
    }
}

impl<Owner: Eq + Hash> Drop for ConcurrencyPermit<Owner> {
    fn drop(&mut self) {
        let mut n_held = lock(&self.n_held);
        if let Some(own) = n_held.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                n_held.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConcurrencyLimit, LimitReached};

    #[test]
    fn an_owner_gets_a_quarter_of_the_limit() {
        let limit = ConcurrencyLimit::new(8);
        let ann: Vec<_> = (0..2)
            .map(|_| limit.acquire(1).expect("a free permit"))
            .collect();

        assert_eq!(limit.acquire(1).err(), Some(LimitReached::PerOwner));
        let others: Vec<_> = (2..5)
            .flat_map(|it| {
                [
                    limit.acquire(it).expect("a free permit"),
                    limit.acquire(it).expect("a free permit"),
                ]
            })
            .collect();
        assert_eq!(limit.acquire(9).err(), Some(LimitReached::Global));
        drop(others);
        drop(ann);
        assert!(limit.acquire(1).is_ok());
        assert_eq!(limit.n_held_by(1), 0, "its permits are released");
    }

    #[test]
    fn a_share_is_limited_only_while_the_unshared_permits_are_in_use() {
        let limit = ConcurrencyLimit::new(8).with_unshared(4);
        let mut ann: Vec<_> = (0..4)
            .map(|_| limit.acquire(1).expect("a free permit"))
            .collect();

        assert_eq!(limit.acquire(1).err(), Some(LimitReached::PerOwner));
        let bob = limit.acquire(2).expect("a free permit");
        ann.truncate(2);
        assert!(limit.acquire(1).is_ok());
        drop(bob);
    }

    #[test]
    fn a_limit_of_one_is_available_to_every_owner() {
        assert!(ConcurrencyLimit::new(1).acquire(1).is_ok());
    }
}
