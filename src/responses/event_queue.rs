//! What a model has said and nobody has shown yet.
//!
//! **Invariant:** putting something in only takes memory, so a model is never kept waiting. How much
//! that can be is bounded by the longest text that a turn may have.

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::responses::engine_event::EngineEvent;

/// The inbox of one turn.
#[derive(Default)]
pub struct EventQueue {
    state: Mutex<EventQueueState>,
    pushed: Notify,
    /// Rings when all that was put in was shown.
    flushed: Notify,
    /// Rings when somebody waits for that.
    flush_requested: Notify,
    closed: CancellationToken,
}

#[derive(Default)]
struct EventQueueState {
    events: Vec<EngineEvent>,
    /// Some were taken out, and are being shown.
    is_flushing: bool,
}

impl EventQueue {
    /// Puts one more happening in.
    pub fn push(&self, event: EngineEvent) {
        self.state.lock().events.push(event);
        self.pushed.notify_one();
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.closed.cancel();
        self.pushed.notify_one();
    }

    /// Returns when nothing more will come, or somebody waits for what is there to be shown.
    pub async fn wait_for_flush_request(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = self.flush_requested.notified() => {}
        }
    }

    /// All that waits, and at least one; `None`: it is closed and empty.
    pub async fn next_batch(&self) -> Option<Vec<EngineEvent>> {
        loop {
            // Asked first: what was put in before it was closed is then seen below.
            let is_closed = self.closed.is_cancelled();
            {
                let mut state = self.state.lock();
                if !state.events.is_empty() {
                    state.is_flushing = true;
                    return Some(std::mem::take(&mut state.events));
                }
            }
            if is_closed {
                return None;
            }
            self.pushed.notified().await;
        }
    }

    /// What was taken last is shown, and written where it must be.
    pub fn mark_flushed(&self) {
        self.state.lock().is_flushing = false;
        self.flushed.notify_one();
    }

    /// Returns when all that was put in so far is shown. For the one who puts things in.
    pub async fn flush(&self) {
        loop {
            {
                let state = self.state.lock();
                if state.events.is_empty() && !state.is_flushing {
                    return;
                }
            }
            self.flush_requested.notify_one();
            self.flushed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::EventQueue;
    use crate::responses::engine_event::EngineEvent;

    #[tokio::test]
    async fn the_queue_is_flushed_when_the_last_batch_is_marked() {
        let queue = EventQueue::default();
        assert!(queue.flush().now_or_never().is_some());

        queue.push(EngineEvent::Started);
        assert!(queue.flush().now_or_never().is_none());
        queue.next_batch().await;
        assert!(queue.flush().now_or_never().is_none());
        queue.mark_flushed();

        assert!(queue.flush().now_or_never().is_some());
    }
}
