//! Defines the error for a prompt that cannot be built.

use tavern::macros::environment::InvalidMacro;

use crate::prompt::budget::ContextOverflow;

/// Why a prompt cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error(transparent)]
    ContextOverflow(#[from] ContextOverflow),
    #[error(transparent)]
    InvalidMacro(#[from] InvalidMacro),
}

impl PromptError {
    /// Returns the code for clients.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ContextOverflow(_) => "context_overflow",
            Self::InvalidMacro(_) => "invalid_macro",
        }
    }
}
