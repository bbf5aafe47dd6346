//! The codes of a failed model call with the HTTP status of each, and the error object in the bodies of
//! answers and in the streams of chat completions.

use serde_json::{Value, json};

/// Each code, with the status of a request that failed with it before its first output.
const STATUSES: [(&str, u16); 8] = [
    ("context_length_exceeded", 400),
    ("rate_limit_exceeded", 429),
    ("server_error", 500),
    ("cancelled", 500),
    (UPSTREAM_ERROR, 502),
    ("upstream_timeout", 502),
    ("upstream_disconnected", 502),
    ("instance_lost", 503),
];

const UPSTREAM_ERROR: &str = "upstream_error";

/// Returns this code and its status; an unknown code is an error of the model's API.
pub fn with_status(code: &str) -> (&'static str, u16) {
    let known = STATUSES.iter().find(|it| it.0 == code);
    known.copied().unwrap_or((UPSTREAM_ERROR, 502))
}

/// Returns the type that OpenAI's API gives to errors with this status.
pub fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

/// Returns the error object of a failure with this status.
pub fn error_object(status: u16, code: &str, message: &str, param: Option<&str>) -> Value {
    json!({ "type": kind(status), "code": code, "message": message, "param": param })
}
