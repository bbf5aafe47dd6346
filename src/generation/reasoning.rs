//! What a model thought before it spoke: kept beside its text, never in it.

use crate::generation::trim::Trim;

/// More than anybody reads; what is longer is cut there.
pub const MAX_REASONING_BYTES: usize = 64 * 1024;

/// What was thought in the course of one answer; never blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasoning {
    pub text: String,
    /// There was more of it.
    pub is_cut: bool,
}

/// Gathers it piece by piece.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// What no database takes is dropped here as it is from a text.
    trim: Trim,
    text: String,
    is_cut: bool,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            trim: Trim::nameless(),
            text: String::new(),
            is_cut: false,
        }
    }
}

impl Gathered {
    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) {
        if self.is_cut {
            return;
        }
        self.text.push_str(&self.trim.push(piece));
        if self.text.len() > MAX_REASONING_BYTES {
            let end = self.text.floor_char_boundary(MAX_REASONING_BYTES);
            self.text.truncate(end);
            self.is_cut = true;
        }
    }

    /// All of it, if there was any.
    pub fn finish(mut self) -> Option<Reasoning> {
        if !self.is_cut {
            self.text.push_str(&self.trim.finish());
        }
        (!self.text.is_empty()).then_some(Reasoning {
            text: self.text,
            is_cut: self.is_cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Gathered;
    use super::MAX_REASONING_BYTES;
    use super::Reasoning;

    fn gathered<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Option<Reasoning> {
        let mut gathered = Gathered::default();
        pieces.into_iter().for_each(|it| gathered.push(it));
        gathered.finish()
    }

    #[test]
    fn pieces_are_put_together_without_what_cannot_be_stored() {
        let reasoning = gathered(["\n Eve: she\0 a", "sks. \n", "So: "]).unwrap();

        assert_eq!(reasoning.text, "Eve: she asks. \nSo:");
        assert!(!reasoning.is_cut);
    }

    #[test]
    fn nothing_is_no_reasoning() {
        assert_eq!(gathered([]), None);
        assert_eq!(gathered([" \n", "\0"]), None);
    }

    #[test]
    fn more_than_anybody_reads_is_cut_between_characters() {
        let reasoning = gathered(std::iter::repeat_n("漢", MAX_REASONING_BYTES)).unwrap();

        assert!(reasoning.is_cut);
        assert_eq!(reasoning.text.len(), MAX_REASONING_BYTES / 3 * 3);
    }
}
