//! Holds one cancellation token for each step of a shutdown (`draining`, `releasing`, `stopping`),
//! spawns background tasks on the main runtime, and waits without a time limit until they have
//! ended.
//!
//! Shutdown has three steps, each with a token: `draining` (accept no new work, finish what runs),
//! `releasing` (return what still runs to the queue) and `stopping` (end now). Between the last
//! two, clients receive events about the released runs. Every background task is in the tracker.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tokens, and the tracker of background tasks. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Shutdown {
    /// Fires first: nothing new is started.
    pub draining: CancellationToken,
    /// Fires after the grace time: what still runs is released. A child of `stopping`.
    pub releasing: CancellationToken,
    /// Fires last: connections are closed and every task ends.
    pub stopping: CancellationToken,
    tracker: TaskTracker,
    main: Handle,
}

impl Shutdown {
    /// Must be called on the main runtime: connections belong to the reactor that opened them, so
    /// every task that uses the database or the network is spawned there and not on an HTTP worker.
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

    /// Returns the main runtime.
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
