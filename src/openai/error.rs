//! Errors in the words of this API: always `{"error": {type, code, message, param}}`.

use crate::accounts::limits::RetryAfter;
use crate::http::error::ApiError;
use crate::responses::approvals::Unanswered;
use crate::responses::open_calls::Misfit;
use crate::responses::refusal::Refusal;
use actix_web::HttpResponse;
use actix_web::ResponseError;
use actix_web::http::StatusCode;
use serde_json::Value;
use serde_json::json;
use std::fmt;

/// No name of ours is longer; those of strangers are not given back whole.
const MAX_PARAM_CHARS: usize = 200;

/// So many calls without outputs are named.
const MAX_NAMED_CALLS: usize = 20;

/// An answer that is an error.
#[derive(Clone, Debug)]
pub struct Problem {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    /// Which field is to blame.
    pub param: Option<String>,
    /// Seconds, on 429 and 503.
    pub retry_after: Option<u64>,
}

/// What every door under `/v1` answers with.
pub type Answer<T> = Result<T, Problem>;

impl Problem {
    /// An error with any status.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
            retry_after: None,
        }
    }

    /// 400.
    pub fn invalid(code: &'static str, param: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message).about(param)
    }

    /// The same error, with the field that is to blame.
    pub fn about(mut self, param: impl AsRef<str>) -> Self {
        self.param = Some(param.as_ref().chars().take(MAX_PARAM_CHARS).collect());
        self
    }

    /// 404: not there, or not for the caller to see.
    pub fn not_found() -> Self {
        Self::new(
            404,
            "not_found",
            "There is nothing here, or it is not yours to see.",
        )
    }

    /// 501: known, and not there yet.
    pub fn not_implemented() -> Self {
        Self::new(501, "not_implemented", "This call is not there yet.")
    }

    /// What is told of it.
    pub fn body(&self) -> Value {
        json!({
            "type": self.kind(), "code": self.code, "message": self.message, "param": self.param,
        })
    }

    fn kind(&self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Problem {}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status_code());
        if let Some(seconds) = self.retry_after {
            answer.insert_header(("retry-after", seconds.to_string()));
        }
        answer.json(json!({ "error": self.body() }))
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self {
            status: error.status.as_u16(),
            code: error.code,
            message: error.message,
            param: error.param,
            retry_after: error.retry_after,
        }
    }
}

impl From<sea_orm::DbErr> for Problem {
    fn from(error: sea_orm::DbErr) -> Self {
        ApiError::from(error).into()
    }
}

impl From<RetryAfter> for Problem {
    fn from(RetryAfter(seconds): RetryAfter) -> Self {
        let message = "This key asks for too many responses. Try again later.";
        Self {
            retry_after: Some(seconds),
            ..Self::new(429, "rate_limited", message)
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let previous = "previous_response_id";
        match refusal {
            Refusal::Database(error) => error.into(),
            Refusal::NotFound => Self::not_found(),
            Refusal::ConversationNotFound => Self::not_found().about("conversation"),
            Refusal::ModelNotFound(model) => {
                let model: String = model.chars().take(MAX_PARAM_CHARS).collect();
                let message = format!("There is no model {model:?}.");
                Self::new(404, "model_not_found", message).about("model")
            }
            Refusal::PreviousNotFound(_) => Self::invalid(
                "previous_response_not_found",
                previous,
                "There is no previous response with this id.",
            ),
            Refusal::PreviousInProgress => Self::invalid(
                "previous_response_in_progress",
                previous,
                "The previous response is not over yet.",
            ),
            Refusal::PreviousNotUsable => Self::invalid(
                "previous_response_not_usable",
                previous,
                "The previous response has failed: nothing can go on from it.",
            ),
            Refusal::UnknownItem(param) => Self::invalid(
                "invalid_value",
                &param,
                "There is no stored item with this id.",
            ),
            Refusal::NoSuchTool(param) => {
                let message = "There is no tool of this type here.";
                Self::invalid("unsupported_tool", &param, message)
            }
            Refusal::Calls(misfit) => Self::of_calls(&misfit),
            Refusal::Approvals(unanswered) => Self::of_approvals(&unanswered),
            Refusal::TooLong { n_tokens, window } => Self::invalid(
                "context_length_exceeded",
                "input",
                format!("{n_tokens} tokens do not fit into the model's window of {window}."),
            ),
            refusal => Self::of_state(&refusal),
        }
    }
}

impl Problem {
    fn of_calls(misfit: &Misfit) -> Self {
        match misfit {
            Misfit::Missing(calls) => {
                let calls = calls.iter().take(MAX_NAMED_CALLS).map(String::as_str);
                let calls = calls.collect::<Vec<_>>().join(", ");
                let message = format!("No output was given for: {calls}.");
                Self::invalid("missing_tool_output", "input", message)
            }
            Misfit::Unknown(param) => {
                let message = "No open call has this id.";
                Self::invalid("unknown_tool_call", param, message)
            }
            Misfit::Doubled(param) => {
                let message = "This call has an output already.";
                Self::invalid("duplicate_tool_output", param, message)
            }
        }
    }

    fn of_approvals(unanswered: &Unanswered) -> Self {
        match unanswered {
            Unanswered::Missing(requests) => {
                let requests = requests.iter().take(MAX_NAMED_CALLS).map(String::as_str);
                let requests = requests.collect::<Vec<_>>().join(", ");
                let message = format!("Nobody said whether these calls may be made: {requests}.");
                Self::invalid("approval_required", "input", message)
            }
            Unanswered::Unknown(param) => {
                let message = "No call that waits for an approval has this id.";
                Self::invalid("unknown_approval", param, message)
            }
        }
    }

    /// What lies in the state of things, not in the request.
    fn of_state(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::ConversationLocked => Self::new(
                409,
                "conversation_locked",
                "Another response of this conversation is not over yet.",
            ),
            Refusal::NotCancellable => Self::new(
                400,
                "not_cancellable",
                "Only a background response can be cancelled. End another by closing its connection.",
            ),
            Refusal::StreamNotAvailable => Self::invalid(
                "stream_not_available",
                "stream",
                "Only background responses have a stream to show again, for an hour after their end.",
            ),
            Refusal::CannotKeep(param) => Self::invalid(
                "unsupported_parameter",
                param,
                "This model cannot be asked for that.",
            ),
            Refusal::TooMuch(most) => Self::invalid(
                "context_length_exceeded",
                "input",
                format!("What it goes on from is larger than {} MiB.", most >> 20),
            ),
            Refusal::SpaceArchived => {
                Self::new(403, "space_archived", "This space is archived.").about("model")
            }
            Refusal::TokenLimit => Self::new(
                403,
                "token_limit_exceeded",
                "This space has used up its tokens. Its owner can raise the limit.",
            )
            .about("model"),
            Refusal::NoSpeaker => Self::invalid(
                "no_speaker",
                "model",
                "No character of this space can speak.",
            ),
            Refusal::ServerAddress(label) => Self::invalid(
                "invalid_value",
                "tools",
                format!(
                    "The address of the server {label:?} may not be called: it takes https, and leads into no private network."
                ),
            ),
            Refusal::Unsealed(param) => Self::invalid(
                "invalid_encrypted_content",
                param,
                "This was not sealed here, or not for you.",
            ),
            Refusal::TooLongForModel => Self::invalid(
                "context_length_exceeded",
                "input",
                "The input is longer than the model's window.",
            ),
            Refusal::Upstream(message) => Self::new(502, "upstream_error", message.clone()),
            Refusal::ShareTaken => Self {
                retry_after: Some(1),
                ..Self::new(
                    429,
                    "rate_limited",
                    "Too many of your responses are being written.",
                )
            },
            Refusal::Unusable => Self::new(
                502,
                "upstream_error",
                "The model's provider cannot be asked.",
            ),
            _ => Self {
                retry_after: Some(1),
                ..Self::new(503, "overloaded", "The server has too much to do.")
            },
        }
    }
}
