//! Defines the position of a macro in a text and in the texts that macros insert.

use crate::macros::random;

/// Where a macro is.
#[derive(Clone, Copy, Debug, Default)]
pub struct MacroPosition {
    /// How many macros it is in; a text that a macro inserted is in that macro.
    pub depth: usize,
    /// A hash of the positions of the macros that inserted its text.
    path: u64,
}

impl MacroPosition {
    /// Returns the position of the macros in the arguments or the block of this macro.
    pub fn in_argument(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    /// Returns the position of a text that the macro at this byte inserts.
    pub fn in_text_at(self, at: usize) -> Self {
        Self {
            depth: self.depth + 1,
            path: self.hash_at(at),
        }
    }

    /// Returns a hash of the position of the macro at this byte: with it, two macros of a prompt draw
    /// differently.
    pub fn hash_at(self, at: usize) -> u64 {
        random::position_hash(self.path, at)
    }
}
