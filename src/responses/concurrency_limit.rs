//! Limits concurrent responses per node and per user. Spaces have separate limits, so API clients
//! cannot starve them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ids::UserId;

/// The permits of one limit on this node. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ConcurrencyLimit {
    limit: usize,
    limit_per_user: usize,
    n_held: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// One permit; released on drop.
pub struct ConcurrencyPermit {
    user: UserId,
    n_held: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// All permits of this node are in use.
    Global,
    /// The user's share is in use.
    PerUser,
}

impl ConcurrencyLimit {
    /// Creates a limit of which one user gets a quarter, rounded up.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            limit_per_user: limit.div_ceil(4),
            n_held: Arc::default(),
        }
    }

    /// Acquires a permit without waiting.
    ///
    /// # Errors
    /// Returns `Global` or `PerUser`, depending on the limit that is reached.
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

    /// Returns how many permits a user holds.
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
        assert_eq!(limit.n_held_by(UserId(1)), 0, "its permits are released");
    }

    #[test]
    fn a_limit_of_one_is_available_to_every_user() {
        assert!(ConcurrencyLimit::new(1).acquire(UserId(1)).is_ok());
    }
}
