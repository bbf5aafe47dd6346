//! What a connection remembers of its newest responses that are stored nowhere, so that the next one
//! may go on from them with new input alone.
//!
//! **Invariant:** it never holds more than [`MOST`] of them, nor more than [`MOST_BYTES`]; the oldest
//! go first. It ends with its connection, and nobody else ever sees it.

use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::io::Write;
use std::sync::Arc;

/// Responses.
const MOST: usize = 32;

/// Of all of them together, as JSON.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The newest responses, oldest first.
#[derive(Default)]
pub struct Remembered {
    responses: VecDeque<One>,
    n_bytes: usize,
}

struct One {
    id: String,
    /// All that was said up to its end: what it went on from, its input, its output.
    items: Arc<Vec<Value>>,
    n_bytes: usize,
}

impl Remembered {
    /// All that was said up to the end of this response.
    pub fn items_of(&self, id: &str) -> Option<Arc<Vec<Value>>> {
        let found = self.responses.iter().find(|it| it.id == id);
        found.map(|it| it.items.clone())
    }

    /// Remembers a response.
    pub fn keep(&mut self, id: &str, items: Vec<Value>) {
        let n_bytes = n_bytes(&items);
        self.n_bytes += n_bytes;
        self.responses.push_back(One {
            id: id.to_owned(),
            items: Arc::new(items),
            n_bytes,
        });
        while self.responses.len() > MOST || self.n_bytes > MOST_BYTES {
            let Some(oldest) = self.responses.pop_front() else {
                return;
            };
            self.n_bytes -= oldest.n_bytes;
        }
    }

    /// Forgets a response.
    pub fn forget(&mut self, id: &str) {
        self.responses.retain(|it| it.id != id);
        self.n_bytes = self.responses.iter().map(|it| it.n_bytes).sum();
    }
}

fn n_bytes(items: &[Value]) -> usize {
    let mut scale = Scale(0);
    // Nothing that is only counted can fail to be written.
    let _ = serde_json::to_writer(&mut scale, items);
    scale.0
}

/// Counts what is written to it.
struct Scale(usize);

impl Write for Scale {
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
    use super::MOST;
    use super::MOST_BYTES;
    use super::Remembered;
    use serde_json::json;

    fn remembers(it: &Remembered, ids: &[usize]) -> Vec<bool> {
        let has = |id: &usize| it.items_of(&id.to_string()).is_some();
        ids.iter().map(has).collect()
    }

    #[test]
    fn the_newest_are_remembered_and_the_oldest_go_first() {
        let mut remembered = Remembered::default();
        for id in 0..=MOST {
            remembered.keep(&id.to_string(), vec![json!(id)]);
        }

        assert_eq!(remembers(&remembered, &[0, 1, MOST]), [false, true, true]);
        assert_eq!(*remembered.items_of("1").unwrap(), [json!(1)]);
    }

    #[test]
    fn large_ones_push_others_out_and_what_is_too_large_is_not_remembered() {
        let text = "x".repeat(MOST_BYTES / 3);
        let mut remembered = Remembered::default();
        for id in 0..3 {
            remembered.keep(&id.to_string(), vec![json!(text)]);
        }
        assert_eq!(remembers(&remembered, &[0, 1, 2]), [false, true, true]);

        remembered.keep("3", vec![json!("x".repeat(MOST_BYTES))]);

        assert_eq!(remembers(&remembered, &[1, 2, 3]), [false, false, false]);
        assert_eq!(remembered.n_bytes, 0);
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let mut remembered = Remembered::default();
        remembered.keep("1", vec![json!("x")]);

        remembered.forget("1");

        assert_eq!(remembers(&remembered, &[1]), [false]);
        assert_eq!(remembered.n_bytes, 0);
    }
}
