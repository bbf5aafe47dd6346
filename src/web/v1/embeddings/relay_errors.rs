//! Translates the errors of a request for embeddings for clients.

use llm::embeddings::error::EmbeddingError;
use llm::error::LlmError;
use responses_api::request::create_embeddings::{MAX_TEXT_TOKENS, MAX_TOKENS};
use tokio::time::Instant;

use crate::responses::embeddings::relay_error::RelayError;
use crate::responses::error::ResponseEngineError;
use crate::web::error::ApiError;
use crate::web::v1::error::V1Error;

impl From<RelayError> for V1Error {
    fn from(error: RelayError) -> Self {
        match error {
            RelayError::ModelNotFound(model) => ResponseEngineError::ModelNotFound(model).into(),
            RelayError::TokenIdsNotSupported => {
                Self::wrong_value("input", "text: this model does not accept token ids")
            }
            RelayError::FixedDimensions(n) => Self::wrong_value(
                "dimensions",
                &format!("{n}: this model has no other number of dimensions"),
            ),
            RelayError::TextTooLong { index } => Self::wrong_value(
                &format!("input[{index}]"),
                &format!("a text of at most {MAX_TEXT_TOKENS} tokens"),
            ),
            RelayError::InputTooLong => {
                Self::wrong_value("input", &format!("at most {MAX_TOKENS} tokens in all"))
            }
            RelayError::Busy => ResponseEngineError::ServerBusy.into(),
            RelayError::UserLimitReached => Self {
                retry_after: Some(1),
                ..Self::new(
                    429,
                    "rate_limited",
                    "Too many of your requests for embeddings are in progress.",
                )
            },
            RelayError::Embedding {
                error,
                has_dimensions,
            } => from_provider(&error, has_dimensions),
            RelayError::Provider(_) => ResponseEngineError::ModelUnavailable.into(),
            RelayError::Database(error) => error.into(),
            error @ RelayError::TaskEnded(_) => ApiError::internal(error).into(),
        }
    }
}

/// Translates the error of a provider. The message of the provider is returned only if it refuses the
/// request, because its other errors are not about the request.
fn from_provider(error: &EmbeddingError, has_dimensions: bool) -> V1Error {
    if error.is_refusal() {
        return from_refusal(error, has_dimensions);
    }
    let failed = |message: &str| V1Error::new(502, "upstream_error", message);
    match error {
        EmbeddingError::BreakerOpen { until } => V1Error {
            retry_after: Some(seconds_until(*until)),
            ..failed(&error.to_string())
        },
        EmbeddingError::Call(LlmError::Status {
            status: 429,
            retry_after,
            ..
        }) => V1Error {
            retry_after: Some(retry_after.map_or(1, |it| it.as_secs().max(1))),
            ..V1Error::new(
                429,
                "rate_limit_exceeded",
                "The provider of this model limits its requests. Try again later.",
            )
        },
        EmbeddingError::Call(_) => failed("The provider of this model returned an error."),
        _ => failed(&error.to_string()),
    }
}

/// Returns the whole seconds until an instant, at least one.
fn seconds_until(instant: Instant) -> u64 {
    let left = instant.saturating_duration_since(Instant::now());
    let rounded = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    rounded.max(1)
}

/// 400: the provider does not accept the request.
fn from_refusal(error: &EmbeddingError, has_dimensions: bool) -> V1Error {
    let message = error.to_string();
    if matches!(
        error,
        EmbeddingError::Call(LlmError::ContextOverflow { .. })
    ) {
        return V1Error::invalid("context_length_exceeded", "input", message);
    }
    // Only the message states what the provider refuses. If the request has `dimensions`, the usual reason is
    // that the model has a fixed number of them.
    let param = match has_dimensions {
        true => "dimensions",
        false => "input",
    };
    V1Error::invalid("invalid_value", param, message)
}
