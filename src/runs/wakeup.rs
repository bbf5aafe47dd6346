//! The wake-up signal of the dispatcher: something may be due. A lost signal costs a moment, never
//! a run, because the dispatcher also polls.

use std::sync::Arc;

use tokio::sync::Notify;

/// Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct WakeupSignal(Arc<Notify>);

impl WakeupSignal {
    /// Wakes the dispatcher; if it is busy, it checks once more.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    /// Returns after the next signal, or immediately if one was sent since the last call.
    pub async fn notified(&self) {
        self.0.notified().await;
    }
}
