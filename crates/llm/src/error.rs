//! The error of a model call: its kind, a sentence for users, and whether the call may be retried.
//!
//! **Invariant:** no message contains a key or is longer than [`MAX_MESSAGE_CHARS`], because
//! messages are stored with the run and shown to users.

use std::time::Duration;

use outbound_http::error::OutboundError;

/// Maximum length of a message for users, in characters.
pub const MAX_MESSAGE_CHARS: usize = 300;

/// A failed model call. Each text is a sentence for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The provider returned an error status.
    #[error("{message}")]
    Status {
        status: u16,
        message: String,
        /// The delay that the provider requested.
        retry_after: Option<Duration>,
    },
    /// The prompt exceeds the model's context window, according to the provider.
    #[error("{message}")]
    ContextOverflow { message: String },
    /// No connection, or it broke before the response began.
    #[error("{message}")]
    Unreachable { message: String },
    /// The connection broke during the response.
    #[error("{message}")]
    Disconnected { message: String },
    /// The response is an error, or is not valid in this API.
    #[error("{message}")]
    Upstream { message: String },
    /// The request could not be built, because a base URL, a key or a model name cannot be sent.
    #[error("{message}")]
    Unusable { message: String },
}

impl LlmError {
    /// Returns whether the same request may succeed a moment later, provided that nothing of the
    /// response was shown.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Status { status, .. } => {
                matches!(status, 408 | 409 | 425 | 429 | 499 | 500..=599)
            }
            Self::Unreachable { .. } | Self::Disconnected { .. } => true,
            Self::ContextOverflow { .. } | Self::Upstream { .. } | Self::Unusable { .. } => false,
        }
    }

    /// Returns the error with each of these secrets replaced by `…` in its message, which may quote a request.
    pub fn without_secrets(mut self, secrets: &[String]) -> Self {
        let (Self::Status { message, .. }
        | Self::ContextOverflow { message }
        | Self::Unreachable { message }
        | Self::Disconnected { message }
        | Self::Upstream { message }
        | Self::Unusable { message }) = &mut self;
        for secret in secrets {
            *message = message.replace(secret.as_str(), "…");
        }
        self
    }

    /// Returns whether the provider rejected a request with a message that mentions reasoning. APIs have
    /// no common code for a model that does not reason.
    pub fn rejects_reasoning(&self) -> bool {
        let Self::Status {
            status: 400 | 422,
            message,
            ..
        } = self
        else {
            return false;
        };
        let message = message.to_lowercase();
        ["reasoning", "thinking", "effort"]
            .iter()
            .any(|it| message.contains(it))
    }

    /// Returns whether a request with images may have been rejected because of them: with status 400, which
    /// has many reasons, or with a message that mentions images. APIs have no common code for a model that
    /// accepts no images.
    pub fn may_reject_images(&self) -> bool {
        let Self::Status {
            status, message, ..
        } = self
        else {
            return false;
        };
        let message = message.to_lowercase();
        let is_named = ["image", "vision", "multimodal", "multi-modal", "mmproj"]
            .iter()
            .any(|it| message.contains(it));
        *status == 400 || matches!(status, 404 | 415 | 422 | 500 | 501) && is_named
    }

    /// Returns the delay before a retry that the provider requested.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the HTTP status, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl From<OutboundError> for LlmError {
    fn from(error: OutboundError) -> Self {
        Self::Unusable { message: error.0 }
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
    fn only_a_rejection_that_mentions_reasoning_rejects_it() {
        let rejected = |status, message: &str| {
            LlmError::Status {
                status,
                message: message.to_owned(),
                retry_after: None,
            }
            .rejects_reasoning()
        };

        assert!(rejected(400, "Unrecognized argument: reasoning_effort"));
        assert!(rejected(422, "\"m\" does not support Thinking"));
        assert!(!rejected(400, "No such model.") && !rejected(500, "thinking"));
    }

    #[test]
    fn an_error_that_mentions_images_may_reject_them() {
        let may = |status, message: &str| {
            LlmError::Status {
                status,
                message: message.to_owned(),
                retry_after: None,
            }
            .may_reject_images()
        };

        assert!(may(400, "Bad request."));
        assert!(may(404, "No endpoints found that support image input"));
        assert!(may(500, "image input is not supported; provide the mmproj"));
        assert!(!may(404, "No such model.") && !may(401, "image") && !may(429, "image"));
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
