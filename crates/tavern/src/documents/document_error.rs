//! Defines the error for a file that is not accepted as a JSON or YAML document.

use crate::documents::limits::{MAX_DEPTH, MAX_VALUES};

/// Why a file is not accepted. The messages are shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is neither JSON nor YAML.
    #[error("{0}")]
    Invalid(String),
    /// It exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
}

impl DocumentError {
    /// Creates an `Invalid` error with this reason.
    pub fn reason(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Creates the error for a document that is nested too deep.
    pub fn too_deep() -> Self {
        Self::TooLarge(format!(
            "The file is nested {MAX_DEPTH} levels deep or deeper."
        ))
    }

    /// Creates the error for a document with too many values.
    pub fn too_many_values() -> Self {
        Self::TooLarge(format!("The file contains more than {MAX_VALUES} values."))
    }
}
