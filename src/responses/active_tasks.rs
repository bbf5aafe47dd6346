//! The turns of this node, and the word that one of them must end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Why a turn must end before its answer is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseCancelReason {
    /// Its client is gone. What holds when nobody said anything else.
    ClientDisconnected,
    /// Somebody asked.
    Requested,
    /// The node closes.
    Shutdown,
    /// It is no longer ours; whatever it writes does not count.
    LeaseLost,
}

/// Ends one turn. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct CancelHandle {
    /// Fires when the turn must end.
    pub token: CancellationToken,
    /// Rings when its log has more to read.
    pub log_written: watch::Sender<()>,
    reason: Arc<Mutex<Option<ResponseCancelReason>>>,
}

impl CancelHandle {
    /// Ends the turn. The first reason counts, but a lost turn is lost.
    pub fn cancel(&self, reason: ResponseCancelReason) {
        let mut known = self.reason.lock();
        if known.is_none() || reason == ResponseCancelReason::LeaseLost {
            *known = Some(reason);
        }
        drop(known);
        self.token.cancel();
    }

    /// Why the token fired.
    pub fn reason(&self) -> ResponseCancelReason {
        self.reason
            .lock()
            .unwrap_or(ResponseCancelReason::ClientDisconnected)
    }
}

/// The turns that this node takes. Cloning gives another handle on the same ones.
#[derive(Clone, Default)]
pub struct ActiveTasks {
    tasks: Arc<DashMap<String, (CancelHandle, i64)>>,
    n_active: watch::Sender<usize>,
    /// Whatever is held from now on ends at once.
    is_closed: Arc<AtomicBool>,
}

/// A turn that is held; let go of when this goes.
pub struct ActiveTaskGuard {
    tasks: ActiveTasks,
    id: String,
    lease: i64,
}

impl ActiveTasks {
    /// A turn begins. `lease` 0: it has no row.
    pub fn register(&self, id: &str, handle: &CancelHandle, lease: i64) -> ActiveTaskGuard {
        self.tasks.insert(id.to_owned(), (handle.clone(), lease));
        self.n_active.send_modify(|it| *it += 1);
        // Looked at after the turn is among the others: either this sees the end, or the end sees it.
        if self.is_closed.load(Ordering::SeqCst) {
            handle.cancel(ResponseCancelReason::Shutdown);
        }
        ActiveTaskGuard {
            tasks: self.clone(),
            id: id.to_owned(),
            lease,
        }
    }

    /// Ends a turn if it is taken here.
    pub fn cancel(&self, id: &str, reason: ResponseCancelReason) {
        if let Some(task) = self.tasks.get(id) {
            task.0.cancel(reason);
        }
    }

    /// Ends every turn, and those that are still to come.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for task in self.tasks.iter() {
            task.0.cancel(ResponseCancelReason::Shutdown);
        }
    }

    /// Rings when the log of a turn that is taken here has more to read.
    pub fn subscribe_to_log(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.tasks.get(id).map(|it| it.0.log_written.subscribe())
    }

    /// Whether this node takes a turn under this lease.
    pub fn contains(&self, id: &str, lease: i64) -> bool {
        self.tasks.get(id).is_some_and(|it| it.1 == lease)
    }

    /// Those with rows, and their leases.
    pub fn stored_leases(&self) -> Vec<(String, i64)> {
        let all = self.tasks.iter().filter(|it| it.value().1 > 0);
        all.map(|it| (it.key().clone(), it.value().1)).collect()
    }

    /// Returns when this node takes no turn.
    pub async fn wait_until_empty(&self) {
        // An error would mean that the counter is gone, and we hold it.
        let _ = self.n_active.subscribe().wait_for(|it| *it == 0).await;
    }
}

impl Drop for ActiveTaskGuard {
    fn drop(&mut self) {
        // Taken again meanwhile, it is no longer this one's to remove.
        let is_own = |_: &String, turn: &(CancelHandle, i64)| turn.1 == self.lease;
        self.tasks.tasks.remove_if(&self.id, is_own);
        self.tasks.n_active.send_modify(|it| *it -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::{ActiveTasks, CancelHandle, ResponseCancelReason};

    #[test]
    fn a_task_registered_after_close_is_canceled() {
        let tasks = ActiveTasks::default();
        tasks.close();
        let stop = CancelHandle::default();

        let _hold = tasks.register("resp_1", &stop, 1);

        assert!(stop.token.is_cancelled());
        assert_eq!(stop.reason(), ResponseCancelReason::Shutdown);
    }

    #[test]
    fn a_newer_lease_stays_registered_when_the_older_guard_drops() {
        let tasks = ActiveTasks::default();
        let first = tasks.register("resp_1", &CancelHandle::default(), 1);
        let second = tasks.register("resp_1", &CancelHandle::default(), 2);

        drop(first);

        assert!(tasks.contains("resp_1", 2));
        drop(second);
        assert!(tasks.stored_leases().is_empty());
    }
}
