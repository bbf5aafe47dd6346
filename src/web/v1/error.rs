//! Defines [`V1Error`], the error of the Responses API with the body `{"error": {type, code,
//! message, param}}`, and converts the errors of other modules into it.

use std::fmt;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use responses_api::failure_codes;
use responses_api::pending_tool_calls::ToolOutputError;
use responses_api::request::error::{RequestError, WrongReference, must_be};
use serde_json::{Value, json};

use crate::db::backend::DbError;
use crate::rate_limit::sliding_window::RetryAfter;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::mcp::approvals::ApprovalError;
use crate::web::error::ApiError;

/// The header by which OpenAI's SDKs decide whether they repeat a failed request.
const SHOULD_RETRY: &str = "x-should-retry";

/// Longer than every parameter name of the API; client-supplied names are truncated to it.
const MAX_PARAM_CHARS: usize = 200;

/// The maximum number of calls that an error message lists.
const MAX_LISTED_CALLS: usize = 20;

/// An error response.
#[derive(Clone, Debug)]
pub struct V1Error {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    /// The path of the invalid field.
    pub param: Option<String>,
    /// Seconds until a retry makes sense; set with 429 and 503.
    pub retry_after: Option<u64>,
    /// The methods of the path; set with 405.
    pub allowed_methods: Option<String>,
}

/// The result of every handler under `/v1`.
pub type V1Result<T> = Result<T, V1Error>;

impl V1Error {
    /// Creates an error with any status.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            allowed_methods: None,
        }
    }

    /// Creates an error with status 400.
    pub fn invalid(code: &'static str, param: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message).for_param(param)
    }

    /// Returns the error with the path of the invalid field.
    pub fn for_param(mut self, param: impl AsRef<str>) -> Self {
        self.param = Some(param.as_ref().chars().take(MAX_PARAM_CHARS).collect());
        self
    }

    /// Creates an error with status 400 for a value that refers to something that does not exist or cannot be
    /// used here.
    fn of_reference(code: &'static str, field: &WrongReference, reason: &str) -> Self {
        Self::invalid(code, &field.param, field.message(reason))
    }

    /// As [`V1Error::of_reference`], for a field of the request itself.
    fn of_value(code: &'static str, param: &str, value: String, reason: &str) -> Self {
        let param = param.to_owned();
        Self::of_reference(code, &WrongReference { param, value }, reason)
    }

    fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// 400 `invalid_value`.
    pub fn wrong_value(param: &str, expected: &str) -> Self {
        let message = format!("Invalid value for '{param}'. {}", must_be(expected));
        Self::invalid("invalid_value", param, message)
    }

    /// 404: does not exist, or is not visible to the caller.
    pub fn not_found() -> Self {
        Self::new(
            404,
            "not_found",
            "This does not exist, or you cannot see it.",
        )
    }

    /// 404: no endpoint has this path.
    pub fn no_endpoint(method: &str, path: &str) -> Self {
        let path: String = path.chars().take(MAX_PARAM_CHARS).collect();
        let message = format!("No such endpoint: {method} {path}.");
        Self::new(404, "not_found", message)
    }

    /// 409: the first request with this key is still in progress.
    pub fn key_in_use() -> Self {
        let message = "The first request with this `Idempotency-Key` is still in progress.";
        Self::new(409, "idempotency_key_in_use", message)
    }

    /// 405: the path does not support the method.
    pub fn method_not_allowed(method: &str, allowed: &str) -> Self {
        let message =
            format!("This path does not support the method {method}; supported: {allowed}.");
        Self {
            allowed_methods: Some(allowed.to_owned()),
            ..Self::new(405, "method_not_allowed", message)
        }
    }

    /// Returns the `error` object of the response body.
    pub fn body(&self) -> Value {
        let param = self.param.as_deref();
        failure_codes::error_object(self.status, self.code, &self.message, param)
    }
}

impl fmt::Display for V1Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for V1Error {}

impl ResponseError for V1Error {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status_code());
        match self.retry_after {
            Some(seconds) => {
                answer.insert_header((header::RETRY_AFTER, seconds.to_string()));
            }
            // The model was called several times already.
            None if self.status == 502 => {
                answer.insert_header((SHOULD_RETRY, "false"));
            }
            None => {}
        }
        if let Some(methods) = &self.allowed_methods {
            answer.insert_header((header::ALLOW, methods.as_str()));
        }
        if self.status == 401 {
            answer.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        answer.json(json!({ "error": self.body() }))
    }
}

impl From<RequestError> for V1Error {
    fn from(error: RequestError) -> Self {
        Self::invalid(error.code, &error.param, error.message)
    }
}

impl From<ApiError> for V1Error {
    fn from(error: ApiError) -> Self {
        Self {
            status: error.status.as_u16(),
            code: error.code,
            message: error.message,
            param: error.param,
            retry_after: error.retry_after,
            allowed_methods: None,
        }
    }
}

impl From<DbError> for V1Error {
    fn from(error: DbError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<RetryAfter> for V1Error {
    fn from(RetryAfter(seconds): RetryAfter) -> Self {
        let message = "Too many requests with this API key. Try again later.";
        Self {
            retry_after: Some(seconds),
            ..Self::new(429, "rate_limited", message)
        }
    }
}

impl From<ResponseEngineError> for V1Error {
    fn from(refusal: ResponseEngineError) -> Self {
        let previous = "previous_response_id";
        match refusal {
            ResponseEngineError::Database(error) => error.into(),
            error @ ResponseEngineError::TaskEnded(_) => ApiError::internal(error).into(),
            ResponseEngineError::NotFound => Self::not_found(),
            ResponseEngineError::ConversationNotFound(id) => {
                let reason = "This does not exist, or you cannot see it.";
                Self::of_value("not_found", "conversation", id, reason).with_status(404)
            }
            ResponseEngineError::ModelNotFound(model) => {
                let model: String = model.chars().take(MAX_PARAM_CHARS).collect();
                let message = format!("The model {model:?} does not exist.");
                Self::new(404, "model_not_found", message).for_param("model")
            }
            ResponseEngineError::PreviousNotFound(id) => {
                let reason = "No response of yours has this id.";
                Self::of_value("previous_response_not_found", previous, id, reason)
            }
            ResponseEngineError::PreviousInProgress(id) => {
                let reason = "This response is still in progress.";
                Self::of_value("previous_response_in_progress", previous, id, reason)
            }
            ResponseEngineError::PreviousNotUsable(id) => {
                let reason = "This response failed and cannot be continued.";
                Self::of_value("previous_response_not_usable", previous, id, reason)
            }
            ResponseEngineError::UnknownItem(field) => {
                let reason = "No stored item of yours has this id.";
                Self::of_reference("invalid_value", &field, reason)
            }
            ResponseEngineError::UnknownTool(field) => {
                let reason = "This server does not run this tool for this model.";
                Self::of_reference("unsupported_tool", &field, reason)
            }
            ResponseEngineError::InvalidToolOutputs(error) => Self::from_tool_output_error(&error),
            ResponseEngineError::InvalidApprovals(unanswered) => {
                Self::from_approval_error(&unanswered)
            }
            ResponseEngineError::PromptTooLong { n_tokens, window } => Self::invalid(
                "context_length_exceeded",
                "input",
                format!(
                    "The prompt of {n_tokens} tokens, which contains 'input', exceeds the context window of {window}."
                ),
            ),
            ResponseEngineError::InvalidMacro(error) => {
                Self::new(400, "invalid_macro", error.to_string()).for_param("model")
            }
            refusal => Self::from_state_error(&refusal),
        }
    }
}

impl V1Error {
    fn from_tool_output_error(error: &ToolOutputError) -> Self {
        match error {
            ToolOutputError::Missing(calls) => {
                let calls = calls.iter().take(MAX_LISTED_CALLS).map(String::as_str);
                let calls = calls.collect::<Vec<_>>().join(", ");
                let message = format!("'input' contains no outputs for these calls: {calls}.");
                Self::invalid("missing_tool_output", "input", message)
            }
            ToolOutputError::Unknown(field) => {
                Self::of_reference("unknown_tool_call", field, "No open call has this id.")
            }
            ToolOutputError::Duplicate(field) => {
                let reason = "This call already has an output.";
                Self::of_reference("duplicate_tool_output", field, reason)
            }
        }
    }

    fn from_approval_error(error: &ApprovalError) -> Self {
        match error {
            ApprovalError::Missing(requests) => {
                let requests = requests.iter().take(MAX_LISTED_CALLS).map(String::as_str);
                let requests = requests.collect::<Vec<_>>().join(", ");
                let message = format!(
                    "'input' contains no responses to these approval requests: {requests}."
                );
                Self::invalid("approval_required", "input", message)
            }
            ApprovalError::Unknown(field) => {
                let reason = "No pending approval request has this id.";
                Self::of_reference("unknown_approval", field, reason)
            }
        }
    }

    /// Translates errors that depend on stored data, not on the request alone.
    fn from_state_error(error: &ResponseEngineError) -> Self {
        match error {
            ResponseEngineError::ConversationLocked => Self::new(
                409,
                "conversation_locked",
                "Another response of this 'conversation' is still in progress.",
            ),
            ResponseEngineError::IdempotencyKeyInUse => Self::key_in_use(),
            ResponseEngineError::NotCancellable => Self::new(
                400,
                "not_cancellable",
                "Only background responses can be cancelled. To end another one, close its connection.",
            ),
            ResponseEngineError::StreamNotAvailable => Self::invalid(
                "stream_not_available",
                "stream",
                "Invalid value for 'stream': true. Only background responses can be streamed again, until one hour after their end.",
            ),
            ResponseEngineError::UnsupportedParameter(param) => Self::invalid(
                "unsupported_parameter",
                param,
                format!(
                    "Unsupported parameter: '{param}'. The model does not support it, or not this value."
                ),
            ),
            ResponseEngineError::HistoryTooLarge(most) => Self::invalid(
                "context_length_exceeded",
                "input",
                format!("The items before 'input' exceed {} MiB.", most >> 20),
            ),
            ResponseEngineError::SpaceArchived => {
                let message = "The space that 'model' names is archived.";
                Self::new(403, "space_archived", message).for_param("model")
            }
            ResponseEngineError::TokenLimitReached => Self::new(
                403,
                "token_limit_exceeded",
                "The space that 'model' names has used up its token limit. Its owner can raise it.",
            )
            .for_param("model"),
            ResponseEngineError::NoSpeaker => Self::invalid(
                "no_speaker",
                "model",
                "No character of the space that 'model' names can speak.",
            ),
            ResponseEngineError::ForbiddenServerAddress(label) => Self::invalid(
                "invalid_value",
                "tools",
                format!(
                    "The 'server_url' of the server {label:?} in 'tools' is not allowed: it must use https and must not lead into a private network."
                ),
            ),
            ResponseEngineError::UndecryptableItem(param) => Self::invalid(
                "invalid_encrypted_content",
                param,
                format!(
                    "Invalid value for '{param}'. It was not encrypted by this server for you."
                ),
            ),
            ResponseEngineError::TooLongForModel => Self::invalid(
                "context_length_exceeded",
                "input",
                "The prompt, which contains 'input', exceeds the model's context window.",
            ),
            ResponseEngineError::Upstream(message) => {
                Self::new(502, "upstream_error", message.clone())
            }
            ResponseEngineError::UserLimitReached => Self {
                retry_after: Some(1),
                ..Self::new(
                    429,
                    "rate_limited",
                    "Too many of your responses are in progress.",
                )
            },
            ResponseEngineError::ProviderBusy => Self {
                retry_after: Some(1),
                ..Self::new(
                    503,
                    "provider_busy",
                    "Too many requests wait for the provider of this model.",
                )
            },
            ResponseEngineError::ModelUnavailable => Self::new(
                502,
                "upstream_error",
                "The model's provider is unavailable.",
            ),
            _ => Self {
                retry_after: Some(1),
                ..Self::new(503, "overloaded", "The server is overloaded.")
            },
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
