//! Wakes the dispatcher: something may be due. A ring that is missed costs a moment, never a run;
//! the dispatcher looks by itself too.

use std::sync::Arc;

use tokio::sync::Notify;

/// Cloning gives another rope of the same bell.
#[derive(Clone, Default)]
pub struct WakeupSignal(Arc<Notify>);

impl WakeupSignal {
    /// Wakes the dispatcher; if it is busy, it looks once more.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    /// Returns after the next ring, or at once if it rang since the last call.
    pub async fn notified(&self) {
        self.0.notified().await;
    }
}
