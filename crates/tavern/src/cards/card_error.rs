//! Defines the error for a file that is not accepted as a card: it is invalid, or exceeds a limit.

use crate::documents::document_error::DocumentError;

/// Why a file is not accepted as a card. The messages are shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// It is not a valid card.
    #[error("{0}")]
    NotACard(String),
    /// It exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
}

impl CardError {
    /// Creates a `NotACard` error with this reason.
    pub fn reason(reason: impl Into<String>) -> Self {
        Self::NotACard(reason.into())
    }
}

impl From<DocumentError> for CardError {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Invalid(reason) => Self::NotACard(reason),
            DocumentError::TooLarge(reason) => Self::TooLarge(reason),
        }
    }
}
