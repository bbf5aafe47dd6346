//! Collects a model's reasoning part by part, in the form that its API expects back.

use std::mem;

use llm::reasoning::thought::{MAX_THOUGHT_BYTES, Thought, ThoughtField};

/// The maximum number of bytes of all thoughts of one answer; later ones are dropped.
const MAX_BYTES: usize = 4 * MAX_THOUGHT_BYTES;

/// The thoughts of one answer while they arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThoughtCollector {
    done: Vec<Thought>,
    n_bytes: usize,
    /// A text whose end the API does not mark: it ends where something else begins.
    open: Option<(ThoughtField, String)>,
}

impl ThoughtCollector {
    /// Appends a piece of text. A text that is too long is cut.
    pub fn push_text(&mut self, field: ThoughtField, piece: &str) {
        let (_, text) = self.open.get_or_insert((field, String::new()));
        let free = MAX_THOUGHT_BYTES - text.len();
        text.push_str(&piece[..piece.floor_char_boundary(free)]);
    }

    /// Adds a complete thought and returns it; `None` if the thoughts are too long together.
    pub fn push(&mut self, thought: Thought) -> Option<&Thought> {
        self.n_bytes = self.n_bytes.saturating_add(thought.n_bytes());
        if self.n_bytes > MAX_BYTES {
            return None;
        }
        self.done.push(thought);
        self.done.last()
    }

    /// Ends the open text and returns it, if there is one.
    pub fn close(&mut self) -> Option<&Thought> {
        let (field, text) = mem::take(&mut self.open)?;
        self.push(Thought::Text { field, text })
    }

    /// Returns all thoughts in order.
    pub fn finish(mut self) -> Vec<Thought> {
        self.close();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use llm::reasoning::thought::{MAX_THOUGHT_BYTES, Thought, ThoughtField};

    use super::ThoughtCollector;

    const FIELD: ThoughtField = ThoughtField::ReasoningContent;

    #[test]
    fn a_text_ends_where_something_else_begins() {
        let text = |text: &str| Thought::Text {
            field: FIELD,
            text: text.to_owned(),
        };
        let mut thoughts = ThoughtCollector::default();

        thoughts.push_text(FIELD, "a");
        thoughts.push_text(FIELD, "b");
        assert_eq!(thoughts.close(), Some(&text("ab")));
        assert_eq!(thoughts.close(), None);
        thoughts.push_text(FIELD, "c");

        assert_eq!(thoughts.finish(), [text("ab"), text("c")]);
    }

    #[test]
    fn thoughts_beyond_the_limit_are_dropped() {
        let mut thoughts = ThoughtCollector::default();
        for _ in 0..5 {
            thoughts.push_text(FIELD, &"a".repeat(MAX_THOUGHT_BYTES));
            thoughts.close();
        }

        assert_eq!(thoughts.finish().len(), 4);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut thoughts = ThoughtCollector::default();
        thoughts.push_text(FIELD, &"é".repeat(MAX_THOUGHT_BYTES));
        thoughts.push_text(FIELD, "a");

        let all = thoughts.finish();

        assert_eq!(all[0].text().map(str::len), Some(MAX_THOUGHT_BYTES));
    }
}
