//! The error of an attempt to make the vectors of a space, and its text for members.

use llm::embeddings::error::EmbeddingError;
use llm::error::LlmError;
use sea_orm::DbErr;

use crate::providers::provider_factory::ProviderError;

/// Why the vectors of a space could not be made. Each text is a sentence for users.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingTaskError {
    #[error(transparent)]
    Database(#[from] DbErr),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
}

impl EmbeddingTaskError {
    /// Returns the text for logs and members. The provider's own message is left out, because it may
    /// repeat the content of a memory.
    pub fn to_public_text(&self) -> String {
        match self {
            Self::Embedding(EmbeddingError::Call(error)) => match error {
                LlmError::Status { status, .. } => {
                    format!("The provider returned the HTTP status {status}.")
                }
                LlmError::ContextOverflow { .. } | LlmError::Upstream { .. } => {
                    "The provider returned an error.".to_owned()
                }
                LlmError::Unreachable { .. }
                | LlmError::Disconnected { .. }
                | LlmError::Unusable { .. } => error.to_string(),
            },
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use llm::embeddings::error::EmbeddingError;
    use llm::error::LlmError;

    use super::EmbeddingTaskError;

    #[test]
    fn the_message_of_a_provider_is_not_shown() {
        let error = LlmError::Status {
            status: 400,
            message: "planted".to_owned(),
            retry_after: None,
        };
        let error = EmbeddingTaskError::Embedding(EmbeddingError::Call(error));

        let text = error.to_public_text();

        assert_eq!(text, "The provider returned the HTTP status 400.");
    }
}
