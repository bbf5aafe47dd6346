//! Wakes the dispatcher: something may be due. A ring that is missed costs a moment, never a run;
//! the dispatcher looks by itself too.

use std::sync::Arc;
use tokio::sync::Notify;

/// Cloning gives another rope of the same bell.
#[derive(Clone, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Wakes the dispatcher; if it is busy, it looks once more.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Returns after the next ring, or at once if it rang since the last call.
    pub async fn heard(&self) {
        self.0.notified().await;
    }
}
