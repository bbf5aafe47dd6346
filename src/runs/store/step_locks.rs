//! Locks in memory that serialize the steps of one conversation on this node: one lock per
//! conversation, created on demand.
//!
//! **Invariant:** two conversations never share a lock; an entry exists exactly as long as a caller
//! holds its lock or waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::ids::ConversationId;
use parking_lot::Mutex;
use sea_orm::{ConnAcquireErr, DbErr};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// How long a step waits for another step of its conversation. The same as PostgreSQL's
/// `lock_timeout`, which limits the wait for the row lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

type Entries = Mutex<HashMap<ConversationId, Weak<AsyncMutex<()>>>>;

/// The locks of a node. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct StepLocks {
    entries: Arc<Entries>,
}

/// A held lock; dropping it lets the next step of that conversation begin.
pub struct StepGuard {
    // Fields drop in this order: the lock must be free before its entry is checked for use.
    _guard: OwnedMutexGuard<()>,
    _entry: EntryUse,
}

/// One use of an entry, by a holder or by a caller that waits.
struct EntryUse {
    entries: Arc<Entries>,
    id: ConversationId,
    lock: Option<Arc<AsyncMutex<()>>>,
}

impl StepLocks {
    /// Waits for the lock of a conversation.
    ///
    /// Returns `ConnectionAcquire` with a timeout when the lock is not free within 10 s.
    pub async fn lock(&self, id: ConversationId) -> Result<StepGuard, DbErr> {
        let (entry, lock) = self.entry(id);
        let guard = tokio::time::timeout(LOCK_TIMEOUT, lock.lock_owned()).await;
        Ok(StepGuard {
            _guard: guard.map_err(|_| DbErr::ConnectionAcquire(ConnAcquireErr::Timeout))?,
            _entry: entry,
        })
    }

    /// The lock of a conversation, if no one holds it.
    pub fn try_lock(&self, id: ConversationId) -> Option<StepGuard> {
        let (entry, lock) = self.entry(id);
        Some(StepGuard {
            _guard: lock.try_lock_owned().ok()?,
            _entry: entry,
        })
    }

    /// Returns when no one holds the lock of a conversation.
    pub async fn wait_until_unlocked(&self, id: ConversationId) {
        let (_entry, lock) = self.entry(id);
        drop(lock.lock_owned().await);
    }

    /// How many conversations have an entry now.
    pub fn count(&self) -> usize {
        self.entries.lock().len()
    }

    fn entry(&self, id: ConversationId) -> (EntryUse, Arc<AsyncMutex<()>>) {
        let mut entries = self.entries.lock();
        let known = entries.get(&id).and_then(Weak::upgrade);
        let lock = known.unwrap_or_default();
        entries.insert(id, Arc::downgrade(&lock));
        let entry = EntryUse {
            entries: self.entries.clone(),
            id,
            lock: Some(lock.clone()),
        };
        (entry, lock)
    }
}

impl Drop for EntryUse {
    fn drop(&mut self) {
        let mut entries = self.entries.lock();
        // Under the map's lock, so that the entry cannot be used between the count and the removal.
        self.lock = None;
        if let Some(entry) = entries.get(&self.id)
            && entry.strong_count() == 0
        {
            entries.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ids::ConversationId;
    use futures::FutureExt;

    use super::StepLocks;

    #[tokio::test]
    async fn two_conversations_never_share_a_lock() {
        let locks = StepLocks::default();
        let held = locks.try_lock(ConversationId(2)).unwrap();

        let others = (3..2_000).map(|id| locks.try_lock(ConversationId(id)));
        assert!(others.collect::<Option<Vec<_>>>().is_some());
        assert!(locks.try_lock(ConversationId(2)).is_none());
        drop(held);
        assert!(locks.try_lock(ConversationId(2)).is_some());
    }

    #[tokio::test]
    async fn an_entry_is_removed_after_its_last_use() {
        let locks = StepLocks::default();
        let held = locks.lock(ConversationId(2)).await.unwrap();
        let mut waits = Box::pin(locks.lock(ConversationId(2)));
        assert!((&mut waits).now_or_never().is_none());

        drop(held);
        assert_eq!(locks.count(), 1, "one still waits");
        drop(waits.await);
        assert_eq!(locks.count(), 0);

        let held = locks.lock(ConversationId(2)).await.unwrap();
        assert!(locks.lock(ConversationId(2)).now_or_never().is_none());
        drop(held);
        assert_eq!(locks.count(), 0, "a dropped wait leaves no entry");
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_waits_ten_seconds_at_most() {
        let locks = StepLocks::default();
        let _held = locks.lock(ConversationId(2)).await.unwrap();

        assert!(locks.lock(ConversationId(2)).await.is_err());
    }
}
