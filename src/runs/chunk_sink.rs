//! The sink of the rooms: gathers what a model says into slices, so that readers get a steady
//! stream of frames whatever the model does. The first delta goes out at once.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::generation::sink::Sink;
use crate::ids::{ConversationId, RunId};
use crate::runs::live_streams::LiveStreams;

/// The writing end, for the generator.
pub struct ChunkSink<F> {
    shared: Arc<ChunkBuffer>,
    /// Told of the first piece, and gone with it.
    on_first_chunk: Option<F>,
}

/// The timing end, for the executor: flushes what waits when its slice is over.
pub struct ChunkFlusher(Arc<ChunkBuffer>);

struct ChunkBuffer {
    live: LiveStreams,
    conversation: ConversationId,
    run: RunId,
    slice: Duration,
    waiting: Mutex<PendingText>,
    text_added: Notify,
}

#[derive(Default)]
struct PendingText {
    text: String,
    last_flush: Option<Instant>,
}

/// Both ends of a run's stream. A `slice` of zero sends each delta by itself. `at_first` is called
/// when the first piece comes.
pub fn new<F: FnOnce() + Send>(
    live: LiveStreams,
    conversation: ConversationId,
    run: RunId,
    slice: Duration,
    at_first: F,
) -> (ChunkSink<F>, ChunkFlusher) {
    let shared = Arc::new(ChunkBuffer {
        live,
        conversation,
        run,
        slice,
        waiting: Mutex::default(),
        text_added: Notify::new(),
    });
    let slices = ChunkSink {
        shared: shared.clone(),
        on_first_chunk: Some(at_first),
    };
    (slices, ChunkFlusher(shared))
}

impl<F: FnOnce() + Send> Sink for ChunkSink<F> {
    fn on_text(&mut self, text: &str) {
        let mut waiting = self.shared.waiting.lock();
        waiting.text.push_str(text);
        let due = waiting
            .last_flush
            .is_none_or(|at| at.elapsed() >= self.shared.slice);
        if due {
            self.shared.flush(&mut waiting);
        } else {
            self.shared.text_added.notify_one();
        }
        drop(waiting);
        if let Some(at_first) = self.on_first_chunk.take() {
            at_first();
        }
    }
}

impl ChunkFlusher {
    /// Flushes slice after slice; never returns, to be dropped when the text is whole.
    pub async fn run(&self) {
        loop {
            self.0.text_added.notified().await;
            let last_flush = self.0.waiting.lock().last_flush;
            if let Some(at) = last_flush {
                tokio::time::sleep_until(at + self.0.slice).await;
            }
            self.flush();
        }
    }

    /// Sends what waits now.
    pub fn flush(&self) {
        self.0.flush(&mut self.0.waiting.lock());
    }
}

impl ChunkBuffer {
    fn flush(&self, waiting: &mut PendingText) {
        if waiting.text.is_empty() {
            return;
        }
        self.live.append(self.conversation, self.run, &waiting.text);
        waiting.text.clear();
        waiting.last_flush = Some(Instant::now());
    }
}
