//! Defines why a script has no effect on a text.

use crate::pattern::syntax::syntax_error::PatternSyntaxError;

/// Why a script left a text as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("{0}")]
    InvalidPattern(PatternSyntaxError),
    #[error("needs more than 2 000 000 steps")]
    TooManySteps,
    #[error("the scripts of this page or prompt need more than 200 000 000 steps")]
    AllTooManySteps,
    #[error("the result is longer than 64 KiB")]
    TooLong,
    #[error("its macros insert too much")]
    InvalidMacro,
}

impl ScriptError {
    /// Returns the position in the pattern to which it refers, in characters.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::InvalidPattern(error) => Some(error.position),
            _ => None,
        }
    }
}
