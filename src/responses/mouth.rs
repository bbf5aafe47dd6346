//! What a model says in a round, put where the turn shows it from.
//!
//! **Invariant:** what stands beside the text is bounded for the whole turn; the text has a limit of
//! its own.

use crate::generation::sink::Sink;
use crate::responses::happening::Happening;
use crate::responses::inbox::Inbox;
use serde_json::Value;
use std::slice;

/// What is told beside the text of one turn. It holds how likely some 40 000 tokens were alone, or
/// 2 500 with twenty others each.
const MAX_NOTES_BYTES: usize = 4 * 1024 * 1024;

/// What a turn may still tell beside its text, in bytes. What is beyond is dropped.
pub struct Spare {
    thoughts: usize,
    notes: usize,
}

impl Spare {
    /// Of a turn that begins.
    pub fn new(max_text_bytes: usize) -> Self {
        Self {
            thoughts: max_text_bytes,
            notes: MAX_NOTES_BYTES,
        }
    }

    fn takes(&mut self, notes: &[Value]) -> bool {
        let n_bytes: usize = notes.iter().map(|it| it.to_string().len()).sum();
        let left = self.notes.checked_sub(n_bytes);
        self.notes = left.unwrap_or(self.notes);
        left.is_some()
    }
}

/// Takes what the model says.
pub struct Mouth<'a> {
    pub inbox: &'a Inbox,
    pub spare: &'a mut Spare,
}

impl Sink for Mouth<'_> {
    fn delta(&mut self, text: &str) {
        self.inbox.put(Happening::Said(text.to_owned()));
    }

    fn refused(&mut self, text: &str) {
        self.inbox.put(Happening::Refused(text.to_owned()));
    }

    fn weighed(&mut self, logprobs: Vec<Value>) {
        if self.spare.takes(&logprobs) {
            self.inbox.put(Happening::Weighed(logprobs));
        }
    }

    fn cited(&mut self, citation: Value) {
        if self.spare.takes(slice::from_ref(&citation)) {
            self.inbox.put(Happening::Cited(citation));
        }
    }

    fn thought(&mut self, text: &str) -> bool {
        let mut text = text.replace('\0', ""); // no database takes it
        text.truncate(text.floor_char_boundary(self.spare.thoughts));
        self.spare.thoughts -= text.len();
        if !text.is_empty() {
            self.inbox.put(Happening::Thought(text));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_NOTES_BYTES;
    use super::Mouth;
    use super::Spare;
    use crate::generation::sink::Sink;
    use crate::responses::inbox::Inbox;
    use serde_json::Value;
    use serde_json::json;

    #[tokio::test]
    async fn what_stands_beside_the_text_has_its_bound_for_the_whole_turn() {
        let inbox = Inbox::default();
        let mut spare = Spare::new(100);
        let half = Value::String("x".repeat(MAX_NOTES_BYTES / 2));

        for _ in 0..3 {
            let mut mouth = Mouth {
                inbox: &inbox,
                spare: &mut spare,
            };
            mouth.weighed(vec![half.clone()]);
            mouth.cited(json!("a"));
            mouth.thought(&"é".repeat(30));
        }

        let told = inbox.take().await.unwrap();
        assert_eq!(told.len(), 1 + 3 + 2, "{told:?}");
    }
}
