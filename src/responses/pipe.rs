//! Carries events from a turn to the one who reads along.
//!
//! **Invariant:** a turn never waits for its reader. What is not read yet is bounded: who is further
//! behind than [`MAX_BEHIND`] when more comes is let go, and the turn is told how its reader went.
//! What comes at once, however much, lets nobody go who has read what came before it.

use crate::responses::fold::Event;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// So many bytes may wait for a reader.
pub const MAX_BEHIND: usize = 4 * 1024 * 1024;

/// The end that a turn holds; the reader gets the end of the stream when it goes.
pub struct Writer {
    shared: Arc<Shared>,
}

/// The end that a reader holds.
pub struct Reader {
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    bell: Notify,
    /// Rings when something was read.
    room: Notify,
    /// Fires when the reader has left; not when it was let go.
    left: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    n_bytes: usize,
    is_closed: bool,
    is_too_slow: bool,
    is_whole: bool,
}

/// A new pipe. `left` fires when its reader leaves by itself.
pub fn pipe(left: CancellationToken) -> (Writer, Reader) {
    let shared = Arc::new(Shared {
        waiting: Mutex::default(),
        bell: Notify::new(),
        room: Notify::new(),
        left,
    });
    let reader = Reader {
        shared: shared.clone(),
    };
    (Writer { shared }, reader)
}

impl Writer {
    /// Hands on events. `false`: the reader was too slow, and is let go.
    pub fn push(&self, events: Vec<Event>) -> bool {
        let mut waiting = self.shared.waiting.lock();
        if !events.is_empty() && waiting.n_bytes > MAX_BEHIND {
            waiting.is_too_slow = true;
            waiting.events.clear();
        }
        if !waiting.is_too_slow {
            waiting.n_bytes += events.iter().map(|it| it.json.len()).sum::<usize>();
            waiting.events.extend(events);
        }
        let is_well = !waiting.is_too_slow;
        drop(waiting);
        self.shared.bell.notify_one();
        is_well
    }

    /// Waits until the reader has read what was pushed: for one who reads from a log, and need not
    /// hurry.
    pub async fn drained(&self) {
        while self.shared.waiting.lock().n_bytes > 0 {
            self.shared.room.notified().await;
        }
    }

    /// Nothing follows, and nothing lacks: for a reader that has the end already.
    pub fn finish(&self) {
        self.shared.waiting.lock().is_whole = true;
    }

    /// Whether the reader has left.
    pub fn is_left(&self) -> bool {
        self.shared.left.is_cancelled()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.waiting.lock().is_closed = true;
        self.shared.bell.notify_one();
    }
}

impl Reader {
    /// The next event; `None`: there are no more.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            {
                let mut waiting = self.shared.waiting.lock();
                if let Some(event) = waiting.events.pop_front() {
                    waiting.n_bytes -= event.json.len();
                    self.shared.room.notify_one();
                    return Some(event);
                }
                if waiting.is_closed || waiting.is_too_slow {
                    return None;
                }
            }
            // A ring that came in between is kept for us.
            self.shared.bell.notified().await;
        }
    }
}

impl Reader {
    /// After the last event: whether nothing lacks, though no end was among them.
    pub fn is_whole(&self) -> bool {
        self.shared.waiting.lock().is_whole
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.shared.waiting.lock().is_too_slow {
            self.shared.left.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_BEHIND;
    use super::pipe;
    use crate::responses::fold::Event;
    use tokio_util::sync::CancellationToken;

    fn event(seq: i64, n_bytes: usize) -> Event {
        Event {
            seq,
            kind: "x".to_owned(),
            json: "x".repeat(n_bytes),
        }
    }

    #[tokio::test]
    async fn what_was_pushed_is_read_in_order_up_to_the_end() {
        let (writer, mut reader) = pipe(CancellationToken::new());
        writer.push((0..3).map(|seq| event(seq, 1)).collect());
        drop(writer);

        for seq in 0..3 {
            assert_eq!(reader.next().await.map(|it| it.seq), Some(seq));
        }
        assert_eq!(reader.next().await, None);
    }

    #[tokio::test]
    async fn who_is_too_far_behind_is_let_go_and_has_not_left() {
        let left = CancellationToken::new();
        let (writer, mut reader) = pipe(left.clone());

        assert!(writer.push(vec![event(0, MAX_BEHIND), event(1, 1)]));
        assert!(!writer.push(vec![event(2, 1)]));

        assert_eq!(reader.next().await, None);
        drop(reader);
        assert!(!left.is_cancelled());
    }

    #[tokio::test]
    async fn who_reads_what_comes_is_not_let_go_however_much_comes_at_once() {
        let (writer, mut reader) = pipe(CancellationToken::new());
        for seq in 0..3 {
            assert!(writer.push(vec![event(seq, 2 * MAX_BEHIND)]));

            assert_eq!(reader.next().await.map(|it| it.seq), Some(seq));
        }
    }

    #[tokio::test]
    async fn who_reads_all_has_drained_it() {
        let (writer, mut reader) = pipe(CancellationToken::new());
        writer.push(vec![event(0, 1)]);

        assert!(reader.next().await.is_some());

        writer.drained().await;
    }

    #[tokio::test]
    async fn who_leaves_is_noticed() {
        let left = CancellationToken::new();
        let (writer, reader) = pipe(left.clone());

        drop(reader);

        assert!(left.is_cancelled() && writer.is_left());
    }
}
