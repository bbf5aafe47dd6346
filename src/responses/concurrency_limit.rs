//! The bulkhead: so many responses at once on this node, and of them a share for one person. Rooms
//! have places of their own, so that programs cannot starve them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ids::UserId;

/// The places of this node. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct ConcurrencyLimit {
    limit: usize,
    limit_per_user: usize,
    n_held: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// One place; free again when this goes.
pub struct ConcurrencyPermit {
    user: UserId,
    n_held: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// All are taken.
    Global,
    /// This person has their share.
    PerUser,
}

impl ConcurrencyLimit {
    /// So many, of which one person gets a quarter, and at least one.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit,
            limit_per_user: limit.div_ceil(4),
            n_held: Arc::default(),
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// There is none, or none for this person.
    pub fn acquire(&self, user: UserId) -> Result<ConcurrencyPermit, LimitReached> {
        let mut n_held = self.n_held.lock();
        if n_held.values().sum::<usize>() >= self.limit {
            return Err(LimitReached::Global);
        }
        let own = n_held.entry(user).or_default();
        if *own >= self.limit_per_user {
            return Err(LimitReached::PerUser);
        }
        *own += 1;
        Ok(ConcurrencyPermit {
            user,
            n_held: self.n_held.clone(),
        })
    }

    /// How many this person has.
    pub fn n_held_by(&self, user: UserId) -> usize {
        self.n_held.lock().get(&user).copied().unwrap_or_default()
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut n_held = self.n_held.lock();
        if let Some(own) = n_held.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                n_held.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConcurrencyLimit, LimitReached};
    use crate::ids::UserId;

    #[test]
    fn a_user_gets_a_quarter_of_the_limit() {
        let limit = ConcurrencyLimit::new(8);
        let ann: Vec<_> = (0..2).map(|_| limit.acquire(UserId(1)).unwrap()).collect();

        assert_eq!(limit.acquire(UserId(1)).err(), Some(LimitReached::PerUser));
        let others: Vec<_> = (2..5)
            .flat_map(|it| {
                [
                    limit.acquire(UserId(it)).unwrap(),
                    limit.acquire(UserId(it)).unwrap(),
                ]
            })
            .collect();
        assert_eq!(limit.acquire(UserId(9)).err(), Some(LimitReached::Global));
        drop(others);
        drop(ann);
        assert!(limit.acquire(UserId(1)).is_ok());
        assert_eq!(limit.n_held_by(UserId(1)), 0, "a place that went is free");
    }

    #[test]
    fn a_limit_of_one_is_available_to_every_user() {
        assert!(ConcurrencyLimit::new(1).acquire(UserId(1)).is_ok());
    }
}
