//! What a model thought before it spoke: kept beside its text, never in it.

use crate::generation::trim::ReplyTrimmer;

/// More than anybody reads; what is longer is cut there.
pub const MAX_REASONING_BYTES: usize = 64 * 1024;

/// What was thought in the course of one answer; never blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasoning {
    pub text: String,
    /// There was more of it.
    pub is_truncated: bool,
}

/// Gathers it piece by piece.
#[derive(Debug, Clone)]
pub struct ReasoningBuffer {
    /// What no database takes is dropped here as it is from a text.
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
    /// Takes the next piece.
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

    /// All of it, if there was any.
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
        let mut gathered = ReasoningBuffer::default();
        pieces.into_iter().for_each(|it| gathered.push(it));
        gathered.finish()
    }

    #[test]
    fn pieces_are_put_together_without_what_cannot_be_stored() {
        let reasoning = buffer_pieces(["\n Eve: she\0 a", "sks. \n", "So: "]).unwrap();

        assert_eq!(reasoning.text, "Eve: she asks. \nSo:");
        assert!(!reasoning.is_truncated);
    }

    #[test]
    fn nothing_is_no_reasoning() {
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
