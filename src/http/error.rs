//! The one shape of every error, and where errors of the house become answers.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use sea_orm::DbErr;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Object, ObjectBuilder};

use crate::db::backend;

/// No name of ours is longer; those of strangers are not given back whole.
const MAX_PARAM_CHARS: usize = 200;

/// An answer that is an error: status, a stable code, a sentence for a person.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    /// Which field or parameter is to blame.
    pub param: Option<String>,
    /// Seconds, on 429 and 503.
    pub retry_after: Option<u64>,
    /// The present document, on a conflict of versions.
    pub current: Option<Box<Value>>,
}

/// What every door answers with.
pub type ApiResult<T> = Result<T, ApiError>;

/// The one shape of every error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    pub error: ErrorDetail<'a>,
}

/// What went wrong: for programs and for people.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorBody)]
pub struct ErrorDetail<'a> {
    /// What kind of trouble it is; it follows from the status.
    r#type: ErrorKind,
    /// A stable word for programs.
    code: &'a str,
    /// A sentence for a person.
    message: &'a str,
    /// Which field or parameter is to blame, as `settings.preset.top_p`.
    param: Option<&'a str>,
    /// The present document, when another version of it was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = rare_document)]
    current: Option<&'a Value>,
    /// What to name when asking about a failure of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-rare" = json!(true))))]
    request_id: Option<&'a str>,
}

fn rare_document() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(
            "The present document, when another version of it was meant.",
        ))
        .extensions(Some([("x-rare", true)].into_iter().collect()))
        .build()
}

/// The kinds of errors.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ErrorKind)]
pub enum ErrorKind {
    InvalidRequestError,
    AuthenticationError,
    PermissionError,
    RateLimitError,
    ServerError,
}

impl ApiError {
    /// An error with any status.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            current: None,
        }
    }

    /// The same error, with the field that is to blame; of a long name only its beginning.
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        let param = param.into();
        self.param = Some(match param.char_indices().nth(MAX_PARAM_CHARS) {
            Some((to, _)) => param[..to].to_owned(),
            None => param,
        });
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

    /// 401: nobody is signed in.
    pub fn not_authenticated() -> Self {
        Self::new(401, "not_authenticated", "Sign in first.")
    }

    /// 403: to be seen, but not to be done.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "forbidden", message)
    }

    /// 422: the value of a field is outside of what it may be.
    pub fn invalid_value(param: &str, message: impl Into<String>) -> Self {
        Self::new(422, "invalid_value", message).with_param(param)
    }

    /// 409.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(409, code, message)
    }

    /// 429 with the seconds to wait.
    pub fn rate_limited(retry_after: u64, message: impl Into<String>) -> Self {
        let mut error = Self::new(429, "rate_limited", message);
        error.retry_after = Some(retry_after);
        error
    }

    /// 500; the cause goes to the log, once, here.
    pub fn internal(cause: impl fmt::Display) -> Self {
        tracing::error!(error = %cause, "request failed: {cause}");
        Self::new(
            500,
            "internal",
            "Something went wrong on the server. It has been logged.",
        )
    }

    /// The object inside the envelope.
    pub fn body<'a>(&'a self, request_id: Option<&'a str>) -> ErrorDetail<'a> {
        ErrorDetail {
            r#type: self.kind(),
            code: self.code,
            message: &self.message,
            param: self.param.as_deref(),
            current: self.current.as_deref(),
            request_id: request_id.filter(|_| self.status.is_server_error()),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self.status.as_u16() {
            401 => ErrorKind::AuthenticationError,
            403 => ErrorKind::PermissionError,
            429 => ErrorKind::RateLimitError,
            500.. => ErrorKind::ServerError,
            _ => ErrorKind::InvalidRequestError,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status);
        if let Some(seconds) = self.retry_after {
            answer.insert_header(("retry-after", seconds.to_string()));
        }
        let error = self.body(None);
        answer.json(ErrorBody { error })
    }
}

impl From<DbErr> for ApiError {
    /// A door looks whether what it is asked about is there before it changes it. What another
    /// takes away in between is a 404 as well.
    fn from(error: DbErr) -> Self {
        if backend::is_row_missing(&error) {
            tracing::warn!(%error, "gone before it was changed: {error}");
            return Self::not_found();
        }
        if !backend::is_transient(&error) {
            return Self::internal(error);
        }
        // A failure of the disk was logged as an error where it began.
        tracing::warn!(%error, "the database does not answer: {error}");
        let busy = "The server is busy. Try again in a moment.";
        let mut busy = Self::new(503, "internal", busy);
        busy.retry_after = Some(1);
        busy
    }
}
