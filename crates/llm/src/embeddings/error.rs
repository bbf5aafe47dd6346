//! The error of an embedding call. Each text is a sentence for users, without the texts that were
//! sent and without anything of the response.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::LlmError;

/// Why a provider returned no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// The time limit is zero, so the provider is never called.
    #[error("Embeddings of this provider are switched off.")]
    Disabled,
    /// Earlier calls failed, and nothing is sent before `until`.
    #[error("The provider failed, and is called again in a moment.")]
    BreakerOpen { until: Instant },
    #[error("The provider returned no embedding within {} seconds.", limit.as_secs_f64())]
    TimedOut { limit: Duration },
    /// The request could not be sent, or its response is an error.
    #[error(transparent)]
    Call(#[from] LlmError),
    #[error("The provider's response is not a list of embeddings.")]
    NoEmbeddingList,
    #[error("The provider returned {n_received} embeddings instead of {n_expected}.")]
    WrongCount {
        n_expected: usize,
        n_received: usize,
    },
    #[error("The provider returned an embedding without an index.")]
    MissingIndex,
    #[error("The provider returned two embeddings with the index {index}.")]
    RepeatedIndex { index: usize },
    #[error("The provider returned an embedding with the index {index}, which was not requested.")]
    IndexOutOfRange { index: usize },
    #[error("The provider returned an embedding that is not valid base64.")]
    InvalidBase64,
    #[error(
        "The provider returned an embedding of {n_received} instead of {n_expected} dimensions."
    )]
    WrongDimensions {
        n_expected: usize,
        n_received: usize,
    },
    #[error("The provider returned an embedding with a component that is not a number.")]
    NotFinite,
    #[error("The provider returned an embedding without direction.")]
    AllZero,
}

impl EmbeddingError {
    /// Returns whether the provider exceeded the time limit.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Returns whether the provider did not answer at all, or not in time or completely.
    pub(super) fn is_no_answer(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Call(error) => matches!(
                error,
                LlmError::Unreachable { .. } | LlmError::Disconnected { .. }
            ),
            _ => false,
        }
    }

    /// Returns whether the provider refused this request and may accept others, for example because a
    /// text is longer than the input of the model.
    pub fn is_refusal(&self) -> bool {
        let Self::Call(error) = self else {
            return false;
        };
        match error {
            LlmError::ContextOverflow { .. } => true,
            // 401, 402, 403, 404, 405 and 407 are the answer to each request.
            LlmError::Status { status, .. } => {
                matches!(status, 400 | 406 | 410..=499) && !error.is_retryable()
            }
            LlmError::Unreachable { .. }
            | LlmError::Disconnected { .. }
            | LlmError::Upstream { .. }
            | LlmError::Unusable { .. } => false,
        }
    }

    /// Returns whether the same request may succeed a moment later. After a timeout it would not
    /// be sent, because the breaker is open.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Call(error) => error.is_retryable(),
            Self::Disabled | Self::BreakerOpen { .. } | Self::TimedOut { .. } => false,
            Self::NoEmbeddingList
            | Self::WrongCount { .. }
            | Self::MissingIndex
            | Self::RepeatedIndex { .. }
            | Self::IndexOutOfRange { .. }
            | Self::InvalidBase64
            | Self::WrongDimensions { .. }
            | Self::NotFinite
            | Self::AllZero => true,
        }
    }

    /// Returns the delay before a retry that the provider requested.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }
}
