//! Who tells that the house closes, and who waits for whom.
//!
//! Three tokens, because closing has three steps: `draining` (take no new work, finish what runs),
//! `letting_go` (give back what still runs) and `stopping` (put everything down now). Between the
//! last two, listeners are told what was given back. Every background task is in the tracker.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Cloning gives another handle on the same shutdown.
#[derive(Clone)]
pub struct Shutdown {
    /// Fires first: nothing new is begun.
    pub draining: CancellationToken,
    /// Fires after the grace time: what still runs is given back. A child of `stopping`.
    pub releasing: CancellationToken,
    /// Fires last: listeners are left, and every task ends.
    pub stopping: CancellationToken,
    tracker: TaskTracker,
    main: Handle,
}

impl Shutdown {
    /// Must be made on the main runtime: connections belong to the reactor that opened them, so
    /// every task that touches database or network is spawned there and not on an HTTP worker.
    pub fn new() -> Self {
        let stopping = CancellationToken::new();
        Self {
            draining: CancellationToken::new(),
            releasing: stopping.child_token(),
            stopping,
            tracker: TaskTracker::new(),
            main: Handle::current(),
        }
    }

    /// Runs a task on the main runtime; [`Shutdown::wait`] waits for its end.
    pub fn spawn<F>(&self, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn_on(task, &self.main)
    }

    /// The main runtime.
    pub fn main(&self) -> &Handle {
        &self.main
    }

    /// Returns when every spawned task has ended.
    pub async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}
