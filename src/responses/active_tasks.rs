//! The response tasks that run on this node, and the handles that cancel them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Why a response task must end before its answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseCancelReason {
    /// The client disconnected. The default if no other reason was given.
    ClientDisconnected,
    /// A user requested it.
    Requested,
    /// The node shuts down.
    Shutdown,
    /// Another node holds the lease now; nothing this task writes is valid.
    LeaseLost,
}

/// Cancels one response task. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct CancelHandle {
    /// Fires when the task must end.
    pub token: CancellationToken,
    /// Notifies when new events were written to the log.
    pub log_written: watch::Sender<()>,
    reason: Arc<Mutex<Option<ResponseCancelReason>>>,
}

impl CancelHandle {
    /// Cancels the task. The first reason wins, except that `LeaseLost` always replaces it.
    pub fn cancel(&self, reason: ResponseCancelReason) {
        let mut known = self.reason.lock();
        if known.is_none() || reason == ResponseCancelReason::LeaseLost {
            *known = Some(reason);
        }
        drop(known);
        self.token.cancel();
    }

    /// Returns why the token fired.
    pub fn reason(&self) -> ResponseCancelReason {
        self.reason
            .lock()
            .unwrap_or(ResponseCancelReason::ClientDisconnected)
    }
}

/// The response tasks of this node. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct ActiveTasks {
    tasks: Arc<DashMap<String, (CancelHandle, i64)>>,
    n_active: watch::Sender<usize>,
    /// Tasks that register from now on are canceled immediately.
    is_closed: Arc<AtomicBool>,
}

/// A registered task; dropping the guard removes it.
pub struct ActiveTaskGuard {
    tasks: ActiveTasks,
    id: String,
    lease: i64,
}

impl ActiveTasks {
    /// Registers a task. `lease` is 0 if the response has no row.
    pub fn register(&self, id: &str, handle: &CancelHandle, lease: i64) -> ActiveTaskGuard {
        self.tasks.insert(id.to_owned(), (handle.clone(), lease));
        self.n_active.send_modify(|it| *it += 1);
        // Checked after the insert: either this reads the flag, or `close` finds the task.
        if self.is_closed.load(Ordering::SeqCst) {
            handle.cancel(ResponseCancelReason::Shutdown);
        }
        ActiveTaskGuard {
            tasks: self.clone(),
            id: id.to_owned(),
            lease,
        }
    }

    /// Cancels a task if it runs on this node.
    pub fn cancel(&self, id: &str, reason: ResponseCancelReason) {
        if let Some(task) = self.tasks.get(id) {
            task.0.cancel(reason);
        }
    }

    /// Cancels every task, also those that register later.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for task in self.tasks.iter() {
            task.0.cancel(ResponseCancelReason::Shutdown);
        }
    }

    /// Returns a receiver that is notified about new log events if the task runs on this node.
    pub fn subscribe_to_log(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.tasks.get(id).map(|it| it.0.log_written.subscribe())
    }

    /// Returns whether this node runs a response under this lease.
    pub fn contains(&self, id: &str, lease: i64) -> bool {
        self.tasks.get(id).is_some_and(|it| it.1 == lease)
    }

    /// Returns the ids and leases of the tasks whose responses have rows.
    pub fn stored_leases(&self) -> Vec<(String, i64)> {
        let all = self.tasks.iter().filter(|it| it.value().1 > 0);
        all.map(|it| (it.key().clone(), it.value().1)).collect()
    }

    /// Returns when no task is registered.
    pub async fn wait_until_empty(&self) {
        // Fails only if the sender is dropped, and `self` owns it.
        let _ = self.n_active.subscribe().wait_for(|it| *it == 0).await;
    }
}

impl Drop for ActiveTaskGuard {
    fn drop(&mut self) {
        // A newer lease may have replaced this entry; it must not be removed here.
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
