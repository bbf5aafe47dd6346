//! Defines [`ApiError`], the error of API endpoints with its uniform response body, and converts
//! database errors into it.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Object, ObjectBuilder};

use crate::db::backend;
use crate::db::backend::DbError;

/// Longer than any of our names; longer ones come from clients and are not echoed completely.
const MAX_PARAM_CHARS: usize = 200;

/// An error response: status, a stable code, and a sentence for people.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    /// The field or parameter that caused it.
    pub param: Option<String>,
    /// Seconds, for 429 and 503.
    pub retry_after: Option<u64>,
    /// The current document, for a version conflict.
    pub current: Option<Box<Value>>,
}

/// The result of every endpoint.
pub type ApiResult<T> = Result<T, ApiError>;

/// The body of every error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    pub error: ErrorDetail<'a>,
}

/// The error, for programs and for people.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorBody)]
pub struct ErrorDetail<'a> {
    /// The kind of error; follows from the status.
    r#type: ErrorKind,
    /// A stable word for programs.
    code: &'a str,
    /// A sentence for people.
    message: &'a str,
    /// The field or parameter that caused it, as `settings.preset.top_p`.
    param: Option<&'a str>,
    /// The current document, if the request named another version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_document)]
    current: Option<&'a Value>,
    /// The seconds after which a repetition may succeed; also in the header `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-optional" = json!(true))))]
    retry_after: Option<u64>,
    /// Include this when you report a server error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-optional" = json!(true))))]
    request_id: Option<&'a str>,
}

fn optional_document() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(
            "The current document, if the request named another version of it.",
        ))
        .extensions(Some([("x-optional", true)].into_iter().collect()))
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
    /// Creates an error with any status.
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

    /// Puts `outer` before the path of the field that caused the error. Without a field, `outer` caused it.
    pub fn within(self, outer: &str) -> Self {
        let param = match &self.param {
            Some(inner) => format!("{outer}.{inner}"),
            None => outer.to_owned(),
        };
        self.with_param(param)
    }

    /// Adds the field that caused the error; a long name is truncated.
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        let param = param.into();
        self.param = Some(match param.char_indices().nth(MAX_PARAM_CHARS) {
            Some((to, _)) => param[..to].to_owned(),
            None => param,
        });
        self
    }

    /// 404: does not exist, or the caller may not see it.
    pub fn not_found() -> Self {
        Self::new(
            404,
            "not_found",
            "This does not exist, or you cannot see it.",
        )
    }

    /// 401: not signed in.
    pub fn not_authenticated() -> Self {
        Self::new(401, "not_authenticated", "Sign in first.")
    }

    /// 403: the caller may see it, but not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "forbidden", message)
    }

    /// 422: the value of a field is not allowed.
    pub fn invalid_value(param: &str, message: impl Into<String>) -> Self {
        Self::new(422, "invalid_value", message).with_param(param)
    }

    /// 409: the current state does not allow this.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(409, code, message)
    }

    /// 429 with the seconds to wait.
    pub fn rate_limited(retry_after: u64, message: impl Into<String>) -> Self {
        let mut error = Self::new(429, "rate_limited", message);
        error.retry_after = Some(retry_after);
        error
    }

    /// 500; the cause is logged once, here.
    pub fn internal(cause: impl fmt::Display) -> Self {
        tracing::error!(error = %cause, "request failed: {cause}");
        Self::new(
            500,
            "internal",
            "Internal server error. It has been logged.",
        )
    }

    /// Returns the object in the field `error`.
    pub fn body<'a>(&'a self, request_id: Option<&'a str>) -> ErrorDetail<'a> {
        ErrorDetail {
            r#type: self.kind(),
            code: self.code,
            message: &self.message,
            param: self.param.as_deref(),
            current: self.current.as_deref(),
            retry_after: self.retry_after,
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

impl From<DbError> for ApiError {
    /// Handlers check that a row exists before they change it. If it is deleted in between, that is
    /// also a 404.
    fn from(error: DbError) -> Self {
        if backend::is_row_missing(&error) {
            tracing::warn!(%error, "row was deleted before it could be changed: {error}");
            return Self::not_found();
        }
        if !backend::is_transient(&error) {
            return Self::internal(error);
        }
        // A storage failure has already been logged as an error.
        tracing::warn!(%error, "request failed: the database is not available: {error}");
        let busy = "The server is busy. Try again in a moment.";
        let mut busy = Self::new(503, "internal", busy);
        busy.retry_after = Some(1);
        busy
    }
}
