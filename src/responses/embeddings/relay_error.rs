//! Defines why a program gets no embeddings; `web/v1/embeddings/relay_errors.rs` translates it for clients.

use llm::embeddings::error::EmbeddingError;
use sea_orm::DbErr;
use tokio::task::JoinError;

use crate::providers::provider_factory::ProviderError;

/// A request for embeddings failed.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("the embedding model {0} does not exist")]
    ModelNotFound(String),
    #[error("the model does not accept token ids")]
    TokenIdsNotSupported,
    /// The number of dimensions that the model has.
    #[error("the model has only {0} dimensions")]
    FixedDimensions(usize),
    #[error("the text {index} is too long")]
    TextTooLong { index: usize },
    #[error("the texts are too long together")]
    InputTooLong,
    #[error("too many requests for embeddings wait")]
    Busy,
    #[error("too many requests for embeddings of the user exist")]
    UserLimitReached,
    #[error("the provider cannot be called: {0}")]
    Provider(#[from] ProviderError),
    #[error("the provider returned no embeddings: {error}")]
    Embedding {
        error: EmbeddingError,
        /// Whether the request named a number of dimensions.
        has_dimensions: bool,
    },
    #[error(transparent)]
    Database(#[from] DbErr),
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
}

impl RelayError {
    /// Returns why a request that was started failed, as a word for the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Embedding { error, .. } if error.is_refusal() => "refused",
            Self::Embedding { error, .. } if error.is_timeout() => "upstream_timeout",
            Self::Embedding { .. } | Self::Provider(_) => "upstream_error",
            _ => "internal",
        }
    }
}
