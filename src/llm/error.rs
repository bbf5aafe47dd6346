//! What can go wrong with a model call, in plain words, and which of it is worth another try.
//!
//! **Invariant:** no message holds a key, and none is longer than [`MAX_MESSAGE_CHARS`]: they are
//! stored with the run and shown to people.

use std::time::Duration;

/// The longest message that reaches a person.
pub const MAX_MESSAGE_CHARS: usize = 300;

/// A failed model call. The text of each is a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The provider answered with a status that is not success.
    #[error("{message}")]
    Status {
        status: u16,
        message: String,
        /// How long the provider asked us to wait.
        retry_after: Option<Duration>,
    },
    /// The prompt is longer than the model's window, by the provider's own count.
    #[error("{message}")]
    ContextOverflow { message: String },
    /// No connection, or it broke before the answer began.
    #[error("{message}")]
    Unreachable { message: String },
    /// The connection broke while the answer was coming.
    #[error("{message}")]
    Disconnected { message: String },
    /// The answer itself is an error, or is not what was agreed on.
    #[error("{message}")]
    Upstream { message: String },
    /// The request could not even be made: a base URL, a key or a model name that cannot be sent.
    #[error("{message}")]
    Unusable { message: String },
}

impl LlmError {
    /// Whether the same request may succeed a moment later, as long as nothing of the answer was
    /// shown.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Status { status, .. } => {
                matches!(status, 408 | 409 | 425 | 429 | 499 | 500..=599)
            }
            Self::Unreachable { .. } | Self::Disconnected { .. } => true,
            Self::ContextOverflow { .. } | Self::Upstream { .. } | Self::Unusable { .. } => false,
        }
    }

    /// How long the provider asked us to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The HTTP status, where there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LlmError;

    fn status(status: u16) -> LlmError {
        LlmError::Status {
            status,
            message: String::new(),
            retry_after: None,
        }
    }

    #[test]
    fn only_transient_errors_are_retryable() {
        for passing in [408, 409, 425, 429, 499, 500, 502, 503, 504, 529, 599] {
            assert!(status(passing).is_retryable(), "{passing}");
        }
        for lasting in [400, 401, 402, 403, 404, 413, 422, 301, 600] {
            assert!(!status(lasting).is_retryable(), "{lasting}");
        }
        assert!(
            LlmError::Unreachable {
                message: String::new()
            }
            .is_retryable()
        );
        assert!(
            !LlmError::Upstream {
                message: String::new()
            }
            .is_retryable()
        );
    }
}
