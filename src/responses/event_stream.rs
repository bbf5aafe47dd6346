//! Carries events from a turn to the one who reads along.
//!
//! **Invariant:** a turn never waits for its reader. What is not read yet is bounded: who is further
//! behind than [`MAX_BEHIND`] when more comes is let go, and the turn is told how its reader went.
//! What comes at once, however much, lets nobody go who has read what came before it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::responses::fold::StreamEvent;

/// So many bytes may wait for a reader.
pub const MAX_BUFFERED_BYTES: usize = 4 * 1024 * 1024;

/// The end that a turn holds; the reader gets the end of the stream when it goes.
pub struct EventSender {
    shared: Arc<StreamBuffer>,
}

/// The end that a reader holds.
pub struct EventReceiver {
    shared: Arc<StreamBuffer>,
}

struct StreamBuffer {
    buffered: Mutex<BufferedEvents>,
    pushed: Notify,
    /// Rings when something was read.
    read: Notify,
    /// Fires when the reader has left; not when it was let go.
    disconnected: CancellationToken,
}

#[derive(Default)]
struct BufferedEvents {
    events: VecDeque<StreamEvent>,
    n_bytes: usize,
    is_closed: bool,
    is_too_slow: bool,
    is_complete: bool,
}

/// A new pipe. `left` fires when its reader leaves by itself.
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
    /// Hands on events. `false`: the reader was too slow, and is let go.
    pub fn push(&self, events: Vec<StreamEvent>) -> bool {
        let mut buffered = self.shared.buffered.lock();
        if !events.is_empty() && buffered.n_bytes > MAX_BUFFERED_BYTES {
            buffered.is_too_slow = true;
            buffered.events.clear();
        }
        if !buffered.is_too_slow {
            buffered.n_bytes += events.iter().map(|it| it.json.len()).sum::<usize>();
            buffered.events.extend(events);
        }
        let is_well = !buffered.is_too_slow;
        drop(buffered);
        self.shared.pushed.notify_one();
        is_well
    }

    /// Waits until the reader has read what was pushed: for one who reads from a log, and need not
    /// hurry.
    pub async fn flushed(&self) {
        while self.shared.buffered.lock().n_bytes > 0 {
            self.shared.read.notified().await;
        }
    }

    /// Nothing follows, and nothing lacks: for a reader that has the end already.
    pub fn finish(&self) {
        self.shared.buffered.lock().is_complete = true;
    }

    /// Whether the reader has left.
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
    /// The next event; `None`: there are no more.
    pub async fn next(&mut self) -> Option<StreamEvent> {
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
            // A ring that came in between is kept for us.
            self.shared.pushed.notified().await;
        }
    }
}

impl EventReceiver {
    /// After the last event: whether nothing lacks, though no end was among them.
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
    use tokio_util::sync::CancellationToken;

    use super::{MAX_BUFFERED_BYTES, channel};
    use crate::responses::fold::StreamEvent;

    fn event(seq: i64, n_bytes: usize) -> StreamEvent {
        StreamEvent {
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
