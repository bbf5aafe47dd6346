//! The sink of the rooms: gathers what a model says into slices, so that readers get a steady
//! stream of frames whatever the model does. The first delta goes out at once.

use crate::generation::sink::Sink;
use crate::ids::ConversationId;
use crate::ids::RunId;
use crate::runs::live::Live;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The writing end, for the generator.
pub struct Slices<F> {
    shared: Arc<Shared>,
    /// Told of the first piece, and gone with it.
    at_first: Option<F>,
}

/// The timing end, for the executor: flushes what waits when its slice is over.
pub struct Flusher(Arc<Shared>);

struct Shared {
    live: Live,
    conversation: ConversationId,
    run: RunId,
    slice: Duration,
    waiting: Mutex<Waiting>,
    grew: Notify,
}

#[derive(Default)]
struct Waiting {
    text: String,
    last_flush: Option<Instant>,
}

/// Both ends of a run's stream. A `slice` of zero sends each delta by itself. `at_first` is called
/// when the first piece comes.
pub fn slices<F: FnOnce() + Send>(
    live: Live,
    conversation: ConversationId,
    run: RunId,
    slice: Duration,
    at_first: F,
) -> (Slices<F>, Flusher) {
    let shared = Arc::new(Shared {
        live,
        conversation,
        run,
        slice,
        waiting: Mutex::default(),
        grew: Notify::new(),
    });
    let slices = Slices {
        shared: shared.clone(),
        at_first: Some(at_first),
    };
    (slices, Flusher(shared))
}

impl<F: FnOnce() + Send> Sink for Slices<F> {
    fn on_text(&mut self, text: &str) {
        let mut waiting = self.shared.waiting.lock();
        waiting.text.push_str(text);
        let due = waiting
            .last_flush
            .is_none_or(|at| at.elapsed() >= self.shared.slice);
        if due {
            self.shared.flush(&mut waiting);
        } else {
            self.shared.grew.notify_one();
        }
        drop(waiting);
        if let Some(at_first) = self.at_first.take() {
            at_first();
        }
    }
}

impl Flusher {
    /// Flushes slice after slice; never returns, to be dropped when the text is whole.
    pub async fn keep_flushing(&self) {
        loop {
            self.0.grew.notified().await;
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

impl Shared {
    fn flush(&self, waiting: &mut Waiting) {
        if waiting.text.is_empty() {
            return;
        }
        self.live.append(self.conversation, self.run, &waiting.text);
        waiting.text.clear();
        waiting.last_flush = Some(Instant::now());
    }
}
