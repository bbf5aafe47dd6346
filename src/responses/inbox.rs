//! What a model has said and nobody has shown yet.
//!
//! **Invariant:** putting something in only takes memory, so a model is never kept waiting. How much
//! that can be is bounded by the longest text that a turn may have.

use crate::responses::fold::Happening;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The inbox of one turn.
#[derive(Default)]
pub struct Inbox {
    waiting: Mutex<Vec<Happening>>,
    bell: Notify,
    closed: CancellationToken,
}

impl Inbox {
    /// Puts one more happening in.
    pub fn put(&self, happening: Happening) {
        self.waiting.lock().push(happening);
        self.bell.notify_one();
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.closed.cancel();
        self.bell.notify_one();
    }

    /// Returns when nothing more will come.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// All that waits, and at least one; `None`: it is closed and empty.
    pub async fn take(&self) -> Option<Vec<Happening>> {
        loop {
            // Asked first: what was put in before it was closed is then seen below.
            let is_closed = self.closed.is_cancelled();
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if !waiting.is_empty() {
                return Some(waiting);
            }
            if is_closed {
                return None;
            }
            self.bell.notified().await;
        }
    }
}
