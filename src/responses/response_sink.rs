//! What a model says in a round, put where the turn shows it from.
//!
//! **Invariant:** what stands beside the text is bounded for the whole turn; the text has a limit of
//! its own.

use std::slice;

use serde_json::Value;

use crate::generation::sink::Sink;
use crate::responses::engine_event::EngineEvent;
use crate::responses::event_queue::EventQueue;

/// What is told beside the text of one turn, in bytes of memory, of which a fold and its events take
/// several times as many. It holds how likely some 8 000 tokens were alone, or 400 with twenty others
/// each.
const MAX_ANNOTATION_BYTES: usize = 8 * 1024 * 1024;

/// What an entry of an object, and a text, take beside what they hold.
const ENTRY_BYTES: usize = 48;

/// What a turn may still tell beside its text, in bytes. What is beyond is dropped.
pub struct AnnotationBudget {
    n_reasoning_bytes: usize,
    n_annotation_bytes: usize,
    /// How likely some tokens were was dropped. Those behind them are not told either: whoever counts
    /// tokens must not find a gap.
    lacks_logprobs: bool,
}

impl AnnotationBudget {
    /// Of a turn that begins.
    pub fn new(max_text_bytes: usize) -> Self {
        Self {
            n_reasoning_bytes: max_text_bytes,
            n_annotation_bytes: MAX_ANNOTATION_BYTES,
            lacks_logprobs: false,
        }
    }

    fn try_spend(&mut self, values: &[Value]) -> bool {
        let n_bytes: usize = values.iter().map(size).sum();
        let left = self.n_annotation_bytes.checked_sub(n_bytes);
        self.n_annotation_bytes = left.unwrap_or(self.n_annotation_bytes);
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
pub struct ResponseSink<'a> {
    pub queue: &'a EventQueue,
    pub budget: &'a mut AnnotationBudget,
}

impl Sink for ResponseSink<'_> {
    fn on_text(&mut self, text: &str) {
        self.queue.push(EngineEvent::TextDelta(text.to_owned()));
    }

    fn on_refusal(&mut self, text: &str) {
        self.queue.push(EngineEvent::RefusalDelta(text.to_owned()));
    }

    fn on_logprobs(&mut self, logprobs: Vec<Value>) {
        self.budget.lacks_logprobs |= !self.budget.try_spend(&logprobs);
        if !self.budget.lacks_logprobs {
            self.queue.push(EngineEvent::Logprobs(logprobs));
        }
    }

    fn on_annotation(&mut self, citation: Value) {
        if self.budget.try_spend(slice::from_ref(&citation)) {
            self.queue.push(EngineEvent::Annotation(citation));
        }
    }

    fn on_reasoning(&mut self, text: &str) -> bool {
        let mut text = text.replace('\0', ""); // no database takes it
        text.truncate(text.floor_char_boundary(self.budget.n_reasoning_bytes));
        self.budget.n_reasoning_bytes -= text.len();
        if !text.is_empty() {
            self.queue.push(EngineEvent::ReasoningDelta(text));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AnnotationBudget, MAX_ANNOTATION_BYTES, ResponseSink, size};
    use crate::generation::sink::Sink;
    use crate::responses::event_queue::EventQueue;

    #[test]
    fn small_numbers_count_with_their_memory_size() {
        let letters = json!({ "bytes": "x".repeat(100) });
        let numbers = json!({ "bytes": vec![1; 100] });

        assert!(size(&numbers) > 10 * size(&letters));
        assert!(size(&letters) < 500);
    }

    #[tokio::test]
    async fn annotations_are_limited_for_the_whole_response() {
        let queue = EventQueue::default();
        let mut budget = AnnotationBudget::new(100);
        let half = Value::String("x".repeat(MAX_ANNOTATION_BYTES / 2));

        for _ in 0..3 {
            let mut mouth = ResponseSink {
                queue: &queue,
                budget: &mut budget,
            };
            mouth.on_logprobs(vec![half.clone()]);
            mouth.on_logprobs(vec![json!("small")]);
            mouth.on_annotation(json!("a"));
            mouth.on_reasoning(&"é".repeat(30));
        }

        let events = queue.next_batch().await.unwrap();
        assert_eq!(
            events.len(),
            2 + 3 + 2,
            "a half, what follows it, and no more"
        );
    }
}
