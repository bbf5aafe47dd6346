//! Implements `Sink` for responses: pushes the output of the model to the event queue, and drops
//! reasoning, logprobs and citations that exceed the memory budget of the response.
//!
//! **Invariant:** reasoning, logprobs and citations are bounded for the whole response; the text
//! has a limit of its own.

use std::slice;

use agent::sink::Sink;
use llm::reasoning::thought::Thought;
use responses_api::fold::engine_event::EngineEvent;
use serde_json::Value;

use crate::responses::execution::event_queue::EventQueue;
use crate::responses::input::sealed_reasoning::ReasoningSealer;

/// The budget for logprobs and citations of one response, in bytes of memory; the fold and its
/// events use a multiple of it. It holds the logprobs of about 8 000 tokens, or of 400 tokens with
/// twenty alternatives each.
const MAX_ANNOTATION_BYTES: usize = 8 * 1024 * 1024;

/// The memory overhead of a string or an object entry, in bytes.
const ENTRY_BYTES: usize = 48;

/// The bytes of reasoning, logprobs and citations that a response may still produce; output beyond
/// them is dropped.
pub struct AnnotationBudget {
    n_reasoning_bytes: usize,
    n_annotation_bytes: usize,
    /// Some logprobs were dropped. No later ones are sent either, because clients that match them
    /// with tokens must not find a gap.
    lacks_logprobs: bool,
}

impl AnnotationBudget {
    /// Creates the budget of a new response.
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

/// Returns the approximate memory of a value; a list of small numbers needs twenty times its JSON
/// text.
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

/// Receives the model's output.
pub struct ResponseSink<'a> {
    pub queue: &'a EventQueue,
    pub budget: &'a mut AnnotationBudget,
    /// `None` if no reasoning can be sent back.
    pub sealer: Option<&'a ReasoningSealer>,
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
        let mut text = text.replace('\0', ""); // PostgreSQL cannot store it
        text.truncate(text.floor_char_boundary(self.budget.n_reasoning_bytes));
        self.budget.n_reasoning_bytes -= text.len();
        if !text.is_empty() {
            self.queue.push(EngineEvent::ReasoningDelta(text));
        }
        true
    }

    fn on_thought(&mut self, thought: &Thought) -> bool {
        if let Some(sealer) = self.sealer {
            let sealed = sealer.seal(thought);
            self.queue.push(EngineEvent::ReasoningSealed(sealed));
        }
        self.sealer.is_some()
    }
}

#[cfg(test)]
mod tests {
    use agent::sink::Sink;
    use serde_json::{Value, json};

    use super::{AnnotationBudget, MAX_ANNOTATION_BYTES, ResponseSink, size};
    use crate::responses::execution::event_queue::EventQueue;

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
            let mut sink = ResponseSink {
                queue: &queue,
                budget: &mut budget,
                sealer: None,
            };
            sink.on_logprobs(vec![half.clone()]);
            sink.on_logprobs(vec![json!("small")]);
            sink.on_annotation(json!("a"));
            sink.on_reasoning(&"é".repeat(30));
        }

        let events = queue.next_batch().await.unwrap();
        assert_eq!(
            events.len(),
            2 + 3 + 2,
            "2 logprobs, 3 citations, 2 reasoning deltas"
        );
    }
}
