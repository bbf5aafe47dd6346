//! Queues the events of a running model until its response task folds, stores and sends them.
//!
//! **Invariant:** pushing an event never waits, so a model never waits. The size is bounded by the
//! longest text that a response may have.

use agent::tools::ordered_output::ToolUpdate;
use parking_lot::Mutex;
use responses_api::fold::engine_event::EngineEvent;
use responses_api::item::ItemBody;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The event queue of one response task.
#[derive(Default)]
pub struct EventQueue {
    state: Mutex<EventQueueState>,
    pushed: Notify,
    /// Notifies when every pushed event was processed.
    flushed: Notify,
    /// Notifies when a producer waits for that.
    flush_requested: Notify,
    closed: CancellationToken,
}

#[derive(Default)]
struct EventQueueState {
    events: Vec<EngineEvent>,
    /// A batch was taken and is being processed.
    is_flushing: bool,
}

impl EventQueue {
    /// Adds an event.
    pub fn push(&self, event: EngineEvent) {
        self.state.lock().events.push(event);
        self.pushed.notify_one();
    }

    /// Adds the event for an update about a server-side call.
    pub fn push_tool_update(&self, item: &ItemBody, update: ToolUpdate) {
        self.push(match update {
            ToolUpdate::Started => EngineEvent::ToolStarted(item.clone()),
            ToolUpdate::Progress(message) => EngineEvent::ToolProgress(message),
            ToolUpdate::Finished(result) => EngineEvent::ToolFinished(result),
        });
    }

    /// Marks the end of the events.
    pub fn close(&self) {
        self.closed.cancel();
        self.pushed.notify_one();
    }

    /// Returns when the queue is closed or a producer waits for a flush.
    pub async fn wait_for_flush_request(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = self.flush_requested.notified() => {}
        }
    }

    /// Returns all queued events, at least one, or `None` if the queue is closed and empty.
    pub async fn next_batch(&self) -> Option<Vec<EngineEvent>> {
        loop {
            // Read first, so that events pushed before the close are still returned below.
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

    /// Marks the last batch as sent and, if required, stored.
    pub fn mark_flushed(&self) {
        self.state.lock().is_flushing = false;
        self.flushed.notify_one();
    }

    /// Returns when everything pushed so far is processed. For the producer only.
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
    use responses_api::fold::engine_event::EngineEvent;

    use super::EventQueue;

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
