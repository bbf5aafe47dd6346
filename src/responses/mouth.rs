//! What a model says in a round, put where the turn shows it from.
//!
//! **Invariant:** what stands beside the text is bounded for the whole turn; the text has a limit of
//! its own.

use crate::generation::sink::Sink;
use crate::responses::happening::Happening;
use crate::responses::inbox::Inbox;
use serde_json::Value;
use std::slice;

/// What is told beside the text of one turn, in bytes of memory, of which a fold and its events take
/// several times as many. It holds how likely some 8 000 tokens were alone, or 400 with twenty others
/// each.
const MAX_NOTES_BYTES: usize = 8 * 1024 * 1024;

/// What an entry of an object, and a text, take beside what they hold.
const ENTRY_BYTES: usize = 48;

/// What a turn may still tell beside its text, in bytes. What is beyond is dropped.
pub struct Spare {
    thoughts: usize,
    notes: usize,
    /// How likely some tokens were was dropped. Those behind them are not told either: whoever counts
    /// tokens must not find a gap.
    lacks_logprobs: bool,
}

impl Spare {
    /// Of a turn that begins.
    pub fn new(max_text_bytes: usize) -> Self {
        Self {
            thoughts: max_text_bytes,
            notes: MAX_NOTES_BYTES,
            lacks_logprobs: false,
        }
    }

    fn takes(&mut self, notes: &[Value]) -> bool {
        let n_bytes: usize = notes.iter().map(size).sum();
        let left = self.notes.checked_sub(n_bytes);
        self.notes = left.unwrap_or(self.notes);
        left.is_some()
    }
}

/// About what a value takes in memory: a list of small numbers takes twenty times its letters.
fn size(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => ENTRY_BYTES + text.len(),
        Value::Array(all) => all.iter().map(size).sum(),
        Value::Object(all) => {
            let entry = |(name, it): (&String, &Value)| 2 * ENTRY_BYTES + name.len() + size(it);
            all.iter().map(entry).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

/// Takes what the model says.
pub struct Mouth<'a> {
    pub inbox: &'a Inbox,
    pub spare: &'a mut Spare,
}

impl Sink for Mouth<'_> {
    fn on_text(&mut self, text: &str) {
        self.inbox.put(Happening::Said(text.to_owned()));
    }

    fn on_refusal(&mut self, text: &str) {
        self.inbox.put(Happening::Refused(text.to_owned()));
    }

    fn on_logprobs(&mut self, logprobs: Vec<Value>) {
        self.spare.lacks_logprobs |= !self.spare.takes(&logprobs);
        if !self.spare.lacks_logprobs {
            self.inbox.put(Happening::Weighed(logprobs));
        }
    }

    fn on_annotation(&mut self, citation: Value) {
        if self.spare.takes(slice::from_ref(&citation)) {
            self.inbox.put(Happening::Cited(citation));
        }
    }

    fn on_reasoning(&mut self, text: &str) -> bool {
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
    use super::size;
    use crate::generation::sink::Sink;
    use crate::responses::inbox::Inbox;
    use serde_json::Value;
    use serde_json::json;

    #[test]
    fn small_numbers_count_for_what_they_take() {
        let letters = json!({ "bytes": "x".repeat(100) });
        let numbers = json!({ "bytes": vec![1; 100] });

        assert!(size(&numbers) > 10 * size(&letters));
        assert!(size(&letters) < 500);
    }

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
            mouth.on_logprobs(vec![half.clone()]);
            mouth.on_logprobs(vec![json!("small")]);
            mouth.on_annotation(json!("a"));
            mouth.on_reasoning(&"é".repeat(30));
        }

        let told = inbox.take().await.unwrap();
        assert_eq!(
            told.len(),
            2 + 3 + 2,
            "a half, what follows it, and no more"
        );
    }
}
