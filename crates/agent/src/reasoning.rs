//! Collects a model's reasoning, up to a size limit and separate from the text of its answer.

use crate::trim::ReplyTrimmer;

/// Longer reasoning is truncated at this size.
pub const MAX_REASONING_BYTES: usize = 64 * 1024;

/// The reasoning of one answer; never blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasoning {
    pub text: String,
    /// The model sent more than is kept.
    pub is_truncated: bool,
}

/// Collects reasoning chunk by chunk.
#[derive(Debug, Clone)]
pub struct ReasoningBuffer {
    /// Removes characters that the database cannot store, as it does for texts.
    trimmer: ReplyTrimmer,
    text: String,
    is_truncated: bool,
}

impl Default for ReasoningBuffer {
    fn default() -> Self {
        Self {
            trimmer: ReplyTrimmer::without_names(),
            text: String::new(),
            is_truncated: false,
        }
    }
}

impl ReasoningBuffer {
    /// Appends the next chunk.
    pub fn push(&mut self, piece: &str) {
        if self.is_truncated {
            return;
        }
        self.text.push_str(&self.trimmer.push(piece));
        if self.text.len() > MAX_REASONING_BYTES {
            let end = self.text.floor_char_boundary(MAX_REASONING_BYTES);
            self.text.truncate(end);
            self.is_truncated = true;
        }
    }

    /// Returns the collected reasoning, or `None` if there was none.
    pub fn finish(mut self) -> Option<Reasoning> {
        if !self.is_truncated {
            self.text.push_str(&self.trimmer.finish());
        }
        (!self.text.is_empty()).then_some(Reasoning {
            text: self.text,
            is_truncated: self.is_truncated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_REASONING_BYTES, Reasoning, ReasoningBuffer};

    fn buffer_pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Option<Reasoning> {
        let mut buffer = ReasoningBuffer::default();
        pieces.into_iter().for_each(|it| buffer.push(it));
        buffer.finish()
    }

    #[test]
    fn pieces_are_joined_without_characters_that_cannot_be_stored() {
        let reasoning = buffer_pieces(["\n Eve: she\0 a", "sks. \n", "So: "]).unwrap();

        assert_eq!(reasoning.text, "Eve: she asks. \nSo:");
        assert!(!reasoning.is_truncated);
    }

    #[test]
    fn blank_reasoning_is_dropped() {
        assert_eq!(buffer_pieces([]), None);
        assert_eq!(buffer_pieces([" \n", "\0"]), None);
    }

    #[test]
    fn long_reasoning_is_truncated_between_characters() {
        let reasoning = buffer_pieces(std::iter::repeat_n("漢", MAX_REASONING_BYTES)).unwrap();

        assert!(reasoning.is_truncated);
        assert_eq!(reasoning.text.len(), MAX_REASONING_BYTES / 3 * 3);
    }
}
