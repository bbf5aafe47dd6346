//! Defines the channel (`EventSender`, `EventReceiver`) that passes stream events from a response
//! task, or from the task that reads a stored event log, to one reader. A reader that is too slow
//! is dropped.
//!
//! **Invariant:** the task never waits for its reader. If more than [`MAX_BUFFERED_BYTES`] are
//! unread when further events are pushed, the reader is dropped and `push` returns `false`. A
//! single batch of any size never drops a reader that has read everything before it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use responses_api::event::EncodedEvent;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The most unread bytes a reader may have when more is pushed.
pub const MAX_BUFFERED_BYTES: usize = 4 * 1024 * 1024;

/// The sending half, held by the task; dropping it ends the stream.
pub struct EventSender {
    shared: Arc<StreamBuffer>,
}

/// The receiving half, held by the reader.
pub struct EventReceiver {
    shared: Arc<StreamBuffer>,
}

struct StreamBuffer {
    buffered: Mutex<BufferedEvents>,
    pushed: Notify,
    /// Notifies when an event was read.
    read: Notify,
    /// Fires when the reader disconnects, but not when it is dropped for being too slow.
    disconnected: CancellationToken,
}

#[derive(Default)]
struct BufferedEvents {
    events: VecDeque<EncodedEvent>,
    n_bytes: usize,
    is_closed: bool,
    is_too_slow: bool,
    is_complete: bool,
}

/// Creates a channel. `disconnected` fires when its reader goes away by itself.
pub fn channel(disconnected: CancellationToken) -> (EventSender, EventReceiver) {
    let shared = Arc::new(StreamBuffer {
        buffered: Mutex::default(),
        pushed: Notify::new(),
        read: Notify::new(),
        disconnected,
    });
    let reader = EventReceiver {
        shared: shared.clone(),
    };
    (EventSender { shared }, reader)
}

impl EventSender {
    /// Pushes events. Returns `false` if the reader was too slow and has been dropped.
    pub fn push(&self, events: Vec<EncodedEvent>) -> bool {
        let mut buffered = self.shared.buffered.lock();
        if !events.is_empty() && buffered.n_bytes > MAX_BUFFERED_BYTES {
            buffered.is_too_slow = true;
            buffered.events.clear();
        }
        if !buffered.is_too_slow {
            buffered.n_bytes += events.iter().map(|it| it.json.len()).sum::<usize>();
            buffered.events.extend(events);
        }
        let is_accepted = !buffered.is_too_slow;
        drop(buffered);
        self.shared.pushed.notify_one();
        is_accepted
    }

    /// Waits until the reader has read everything that was pushed. For log readers, which can wait
    /// because they read from the database.
    pub async fn flushed(&self) {
        while self.shared.buffered.lock().n_bytes > 0 {
            self.shared.read.notified().await;
        }
    }

    /// Marks the stream as complete although it carries no terminal event, because the reader
    /// already has that event.
    pub fn finish(&self) {
        self.shared.buffered.lock().is_complete = true;
    }

    /// Returns whether the reader disconnected.
    pub fn is_disconnected(&self) -> bool {
        self.shared.disconnected.is_cancelled()
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.shared.buffered.lock().is_closed = true;
        self.shared.pushed.notify_one();
    }
}

impl EventReceiver {
    /// Returns the next event, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<EncodedEvent> {
        loop {
            {
                let mut buffered = self.shared.buffered.lock();
                if let Some(event) = buffered.events.pop_front() {
                    buffered.n_bytes -= event.json.len();
                    self.shared.read.notify_one();
                    return Some(event);
                }
                if buffered.is_closed || buffered.is_too_slow {
                    return None;
                }
            }
            // A notification sent in between is stored, so it is not missed.
            self.shared.pushed.notified().await;
        }
    }
}

impl EventReceiver {
    /// Returns whether the reader was dropped because it was too slow, so that events were lost.
    pub fn lost_events(&self) -> bool {
        self.shared.buffered.lock().is_too_slow
    }

    /// Returns, after the last event, whether the stream is complete without a terminal event.
    pub fn is_complete(&self) -> bool {
        self.shared.buffered.lock().is_complete
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        if !self.shared.buffered.lock().is_too_slow {
            self.shared.disconnected.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use responses_api::event::EncodedEvent;
    use tokio_util::sync::CancellationToken;

    use super::{MAX_BUFFERED_BYTES, channel};

    fn event(seq: i64, n_bytes: usize) -> EncodedEvent {
        EncodedEvent {
            seq,
            kind: "x".to_owned(),
            json: "x".repeat(n_bytes),
        }
    }

    #[tokio::test]
    async fn pushed_events_are_read_in_order() {
        let (writer, mut reader) = channel(CancellationToken::new());
        writer.push((0..3).map(|seq| event(seq, 1)).collect());
        drop(writer);

        for seq in 0..3 {
            assert_eq!(reader.next().await.map(|it| it.seq), Some(seq));
        }
        assert_eq!(reader.next().await, None);
    }

    #[tokio::test]
    async fn a_slow_reader_is_dropped_without_a_disconnect() {
        let left = CancellationToken::new();
        let (writer, mut reader) = channel(left.clone());

        assert!(writer.push(vec![event(0, MAX_BUFFERED_BYTES), event(1, 1)]));
        assert!(!writer.push(vec![event(2, 1)]));

        assert_eq!(reader.next().await, None);
        drop(reader);
        assert!(!left.is_cancelled());
    }

    #[tokio::test]
    async fn a_large_batch_does_not_drop_a_current_reader() {
        let (writer, mut reader) = channel(CancellationToken::new());
        for seq in 0..3 {
            assert!(writer.push(vec![event(seq, 2 * MAX_BUFFERED_BYTES)]));

            assert_eq!(reader.next().await.map(|it| it.seq), Some(seq));
        }
    }

    #[tokio::test]
    async fn a_fully_read_stream_is_flushed() {
        let (writer, mut reader) = channel(CancellationToken::new());
        writer.push(vec![event(0, 1)]);

        assert!(reader.next().await.is_some());

        writer.flushed().await;
    }

    #[tokio::test]
    async fn a_disconnected_reader_is_detected() {
        let left = CancellationToken::new();
        let (writer, reader) = channel(left.clone());

        drop(reader);

        assert!(left.is_cancelled() && writer.is_disconnected());
    }
}
