//! Creates the provider that answers a request, and checks that it supports the parameters and
//! attachments of the request.

use std::sync::Arc;

use llm::provider::{Capability, Provider};
use llm::request::Request;
use llm::tool::{OutputFormat, ToolChoice};

use crate::providers::provider;
use crate::responses::error::ResponseEngineError;
use crate::responses::request::StoredRequest;
use crate::responses::services::ResponseServices;

/// Creates the provider of this row and checks that it supports the request.
///
/// # Errors
/// Returns `ModelUnavailable` when it cannot be created, and `UnsupportedParameter` when it lacks a
/// capability.
pub fn load_provider(
    services: &ResponseServices,
    row: &provider::Model,
    stored: &StoredRequest,
) -> Result<Arc<dyn Provider>, ResponseEngineError> {
    let provider = services.models.create(row).map_err(|error| {
        tracing::warn!(%error, "cannot use provider {}: {error}", row.id);
        ResponseEngineError::ModelUnavailable
    })?;
    require_supported(provider.as_ref(), stored)?;
    Ok(provider)
}

/// Returns how many tokens a prompt and its answer may have together: as many as the model accepts, or
/// fewer if the request limits its prompt. `None` means that the limit is unknown.
pub fn context_window(row: &provider::Model, stored: &StoredRequest) -> Option<i64> {
    let of_model = row.known_context_tokens();
    let answer = stored.sampling.max_output_tokens.map_or(0, i64::from);
    let of_request = stored.max_prompt_tokens.map(|it| i64::from(it) + answer);
    [of_model, of_request].into_iter().flatten().min()
}

/// Checks that the model's API supports all parameters of a request.
///
/// # Errors
/// Returns `UnsupportedParameter` with the first unsupported one.
fn require_supported(
    provider: &dyn Provider,
    stored: &StoredRequest,
) -> Result<(), ResponseEngineError> {
    let has_form = match &stored.format {
        OutputFormat::Text => true,
        OutputFormat::Json => provider.has_capability(Capability::Json),
        OutputFormat::Schema(_) => provider.has_capability(Capability::Schema),
    };
    let is_free = matches!(stored.tools.choice, ToolChoice::Auto | ToolChoice::None);
    let asks_for_logprobs = stored.sampling.top_logprobs.is_some();
    if !has_form {
        Err(ResponseEngineError::UnsupportedParameter("text.format"))
    } else if !is_free && !provider.has_capability(Capability::RequiredToolCall) {
        Err(ResponseEngineError::UnsupportedParameter("tool_choice"))
    } else if asks_for_logprobs && !provider.has_capability(Capability::Logprobs) {
        Err(ResponseEngineError::UnsupportedParameter("top_logprobs"))
    } else {
        Ok(())
    }
}

/// Checks that the model can read all attachments of its prompt.
///
/// # Errors
/// Returns `UnsupportedParameter` when it cannot read documents.
pub fn require_readable_attachments(
    provider: &dyn Provider,
    request: &Request,
) -> Result<(), ResponseEngineError> {
    let mut attached = request.messages.iter().flat_map(|it| &it.attachments);
    match attached.all(|it| it.is_image()) || provider.has_capability(Capability::Documents) {
        true => Ok(()),
        false => Err(ResponseEngineError::UnsupportedParameter("input")),
    }
}
