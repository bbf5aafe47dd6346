//! Keeps in memory the newest responses of a WebSocket session that are not stored in the database,
//! so that a later request can name one of them and send only new input.
//!
//! **Invariant:** it holds at most [`MAX_RESPONSES`] responses and [`MAX_BYTES`] bytes; the oldest
//! are removed first. It ends with its session and is never visible to others.

use std::collections::VecDeque;
use std::io;
use std::io::Write;
use std::sync::Arc;

use serde_json::Value;

/// The most responses in a history.
const MAX_RESPONSES: usize = 32;

/// The most bytes of all responses together, as JSON.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The newest responses, oldest first.
#[derive(Default)]
pub struct SessionHistory {
    responses: VecDeque<SessionResponse>,
    n_bytes: usize,
}

struct SessionResponse {
    id: String,
    /// The complete exchange up to its end: history, input and output.
    items: Arc<Vec<Value>>,
    n_bytes: usize,
}

impl SessionHistory {
    /// Returns the complete exchange up to the end of this response.
    pub fn items_of(&self, id: &str) -> Option<Arc<Vec<Value>>> {
        let found = self.responses.iter().find(|it| it.id == id);
        found.map(|it| it.items.clone())
    }

    /// Adds a response.
    pub fn insert(&mut self, id: &str, items: Vec<Value>) {
        let n_bytes = json_size(&items);
        self.n_bytes += n_bytes;
        self.responses.push_back(SessionResponse {
            id: id.to_owned(),
            items: Arc::new(items),
            n_bytes,
        });
        while self.responses.len() > MAX_RESPONSES || self.n_bytes > MAX_BYTES {
            let Some(oldest) = self.responses.pop_front() else {
                return;
            };
            self.n_bytes -= oldest.n_bytes;
        }
    }

    /// Removes a response.
    pub fn remove(&mut self, id: &str) {
        self.responses.retain(|it| it.id != id);
        self.n_bytes = self.responses.iter().map(|it| it.n_bytes).sum();
    }
}

fn json_size(items: &[Value]) -> usize {
    let mut counter = ByteCounter(0);
    // Serializing into a counter cannot fail.
    let _ = serde_json::to_writer(&mut counter, items);
    counter.0
}

/// Counts the bytes written to it.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_BYTES, MAX_RESPONSES, SessionHistory};

    fn contains(it: &SessionHistory, ids: &[usize]) -> Vec<bool> {
        let has = |id: &usize| it.items_of(&id.to_string()).is_some();
        ids.iter().map(has).collect()
    }

    #[test]
    fn the_oldest_responses_are_removed_first() {
        let mut history = SessionHistory::default();
        for id in 0..=MAX_RESPONSES {
            history.insert(&id.to_string(), vec![json!(id)]);
        }

        assert_eq!(
            contains(&history, &[0, 1, MAX_RESPONSES]),
            [false, true, true]
        );
        assert_eq!(*history.items_of("1").unwrap(), [json!(1)]);
    }

    #[test]
    fn a_large_response_evicts_older_ones() {
        let text = "x".repeat(MAX_BYTES / 3);
        let mut history = SessionHistory::default();
        for id in 0..3 {
            history.insert(&id.to_string(), vec![json!(text)]);
        }
        assert_eq!(contains(&history, &[0, 1, 2]), [false, true, true]);

        history.insert("3", vec![json!("x".repeat(MAX_BYTES))]);

        assert_eq!(contains(&history, &[1, 2, 3]), [false, false, false]);
        assert_eq!(history.n_bytes, 0);
    }

    #[test]
    fn a_removed_response_frees_its_bytes() {
        let mut history = SessionHistory::default();
        history.insert("1", vec![json!("x")]);

        history.remove("1");

        assert_eq!(contains(&history, &[1]), [false]);
        assert_eq!(history.n_bytes, 0);
    }
}
