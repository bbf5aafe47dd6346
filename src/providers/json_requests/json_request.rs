//! Requests one JSON object from a model, in the strictest format that its API supports.

use agent::call_limits::CallLimits;
use agent::outcome::{FailureCode, GenerationFailure, GenerationOutcome};
use agent::trim::ReplyTrimmer;
use agent::usage::UsageTotal;
use agent::{model_call, usage};
use base::prompt_role::PromptRole;
use llm::provider::{Capability, Provider};
use llm::request::{Message, Request};
use llm::tool::{OutputFormat, OutputSchema};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::providers::provider;

/// A request that is answered by a JSON object.
#[derive(Clone, Debug)]
pub struct JsonRequest {
    /// The instructions.
    pub system: String,
    /// The data, which contains no instructions.
    pub text: String,
    pub schema_name: &'static str,
    /// A JSON schema that APIs can enforce: all properties are required, and no others are allowed.
    pub schema: Value,
    pub max_tokens: u32,
}

/// What a model answered, and what that has cost.
#[derive(Clone, Debug)]
pub struct JsonResponse {
    /// The text of the answer, which should contain the object.
    pub answer: Result<String, JsonCallError>,
    pub usage: Option<UsageTotal>,
}

/// Why a model returned no text.
#[derive(Clone, Debug)]
pub enum JsonCallError {
    Failed(GenerationFailure),
    Canceled,
}

/// Sends a request within the total time of `limits`. If the server rejects the format, the model is
/// asked once more without it.
pub async fn send(
    provider: &dyn Provider,
    row: &provider::Model,
    request: &JsonRequest,
    limits: &CallLimits,
    cancel: &CancellationToken,
) -> JsonResponse {
    let began = Instant::now();
    let format = Format::of(provider);
    let first = call(provider, format.apply(request, row), limits, cancel).await;
    let is_rejected =
        matches!(&first.answer, Err(JsonCallError::Failed(it)) if format.may_be_rejected(it));
    if !is_rejected {
        return first;
    }
    let left = CallLimits {
        total: limits.total.saturating_sub(began.elapsed()),
        ..*limits
    };
    let again = call(provider, Format::Text.apply(request, row), &left, cancel).await;
    JsonResponse {
        usage: usage::sum(first.usage, again.usage),
        ..again
    }
}

async fn call(
    provider: &dyn Provider,
    request: Request,
    limits: &CallLimits,
    cancel: &CancellationToken,
) -> JsonResponse {
    let trimmer = ReplyTrimmer::verbatim();
    // The outcome has the same text.
    let mut sink = String::new();
    let outcome = model_call::generate(provider, &request, trimmer, limits, &mut sink, cancel);
    let (usage, answer) = match outcome.await {
        GenerationOutcome::Succeeded { text, usage, .. } => (usage, Ok(text)),
        GenerationOutcome::Failed { failure, usage, .. } => {
            (usage, Err(JsonCallError::Failed(failure)))
        }
        GenerationOutcome::Canceled { usage, .. } => (usage, Err(JsonCallError::Canceled)),
    };
    JsonResponse { answer, usage }
}

/// How the API is asked for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// By the schema.
    Schema,
    /// By a JSON mode; the schema is in the prompt.
    Json,
    /// Only by the prompt.
    Text,
}

impl Format {
    /// Returns the strictest format that the API supports.
    fn of(provider: &dyn Provider) -> Self {
        match provider {
            it if it.has_capability(Capability::Schema) => Self::Schema,
            it if it.has_capability(Capability::Json) => Self::Json,
            _ => Self::Text,
        }
    }

    /// Returns whether the call may have failed because the server does not know this format. Some
    /// servers that are compatible with an API reject it.
    fn may_be_rejected(self, failure: &GenerationFailure) -> bool {
        self != Self::Text && failure.code == FailureCode::UpstreamError && !failure.is_retryable
    }

    fn apply(self, request: &JsonRequest, row: &provider::Model) -> Request {
        let mut system = request.system.clone();
        if self != Self::Schema {
            system.push_str("\n\nAnswer with one JSON object that matches this JSON schema:\n");
            system.push_str(&request.schema.to_string());
        }
        let schema = || OutputSchema {
            name: request.schema_name.to_owned(),
            description: None,
            schema: request.schema.clone(),
            strict: Some(true),
        };
        Request {
            model: row.model.clone(),
            messages: vec![
                Message::new(PromptRole::System, system),
                Message::new(PromptRole::User, request.text.clone()),
            ],
            max_tokens: Some(request.max_tokens),
            context_tokens: u32::try_from(row.context_tokens()).ok(),
            format: match self {
                Self::Schema => OutputFormat::Schema(schema()),
                Self::Json => OutputFormat::Json,
                Self::Text => OutputFormat::Text,
            },
            ..Request::default()
        }
    }
}
