//! Buffers the text that a model streams for a run and publishes it in time slices, so that readers
//! get a steady rate of frames. The first delta is published immediately.

use std::sync::Arc;
use std::time::Duration;

use agent::sink::Sink;
use base::ids::{ConversationId, RunId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::runs::execution::live_streams::LiveStreams;

/// The writing half, for the generator.
pub struct ChunkSink<F> {
    shared: Arc<ChunkBuffer>,
    /// Called after the first piece of text, then dropped.
    on_first_chunk: Option<F>,
}

/// The timing half, for the executor: flushes pending text at the end of each slice.
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

/// Returns both halves of a run's stream. With a `slice` of zero each delta is sent separately.
/// `at_first` is called when the first piece of text arrives.
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
    /// Flushes at the end of each slice. Never returns; the caller drops it when the text is
    /// complete.
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

    /// Sends the pending text now.
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

#[cfg(test)]
#[path = "wire_size_tests.rs"]
mod wire_size_tests;
