//! Reads and parses the JSON bodies of `/v1` requests, of at most 32 MiB; a body of more than 1 MiB
//! needs a permit. Bodies may be compressed with gzip or deflate.

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use actix_web::web::Payload;
use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use crate::app::App;
use crate::web::error::ApiError;
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::request_body::BodyError;
use crate::web::extract::{json_body, request_body};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::compressed_body::BodyEncoding;

/// The maximum size of a body, in bytes.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A longer body needs a permit before it is received. In bytes.
const MAX_BYTES_WITHOUT_PERMIT: usize = 1024 * 1024;

/// The maximum number of values in a body: each needs up to a hundred bytes of memory once it is parsed, but
/// only two in the body, and far less in a compressed one.
const MAX_VALUES: usize = 1_000_000;

/// Reads a body that must be a JSON object.
///
/// # Errors
/// Returns 415, 413 or 400 `invalid_json`, and 503 or 429 when too many long bodies are being
/// received.
pub async fn object(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    payload: Payload,
) -> V1Result<Map<String, Value>> {
    require_json(request)?;
    read(app, caller, request, payload).await?.parse().await
}

/// Like [`object`], but a missing body is the empty object.
///
/// # Errors
/// As [`object`].
pub async fn object_or_empty(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    payload: Payload,
) -> V1Result<Map<String, Value>> {
    let body = read(app, caller, request, payload).await?;
    if body.bytes.is_empty() {
        return Ok(Map::new());
    }
    require_json(request)?;
    body.parse().await
}

fn require_json(request: &HttpRequest) -> V1Result<()> {
    let content_type = header(request, CONTENT_TYPE).unwrap_or_default();
    if !request_body::is_media_type(content_type, "application/json") {
        let message = "Send JSON, with `Content-Type: application/json`.";
        return Err(V1Error::new(415, "unsupported_media_type", message));
    }
    Ok(())
}

fn header(request: &HttpRequest, name: HeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok()
}

/// An unpacked body.
struct ReceivedBody {
    bytes: Vec<u8>,
    permit: Option<ConcurrencyPermit<UserId>>,
}

impl ReceivedBody {
    /// Parses the body. Parsing 32 MiB would delay the other requests of this worker.
    async fn parse(self) -> V1Result<Map<String, Value>> {
        if self.bytes.len() <= MAX_BYTES_WITHOUT_PERMIT {
            return parse_object(&self.bytes);
        }
        let parsing = spawn_blocking(move || {
            let parsed = parse_object(&self.bytes);
            drop(self.permit);
            parsed
        });
        parsing.await.map_err(ApiError::internal)?
    }
}

async fn read(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    payload: Payload,
) -> V1Result<ReceivedBody> {
    let mut permit = None;
    let admit = |n_bytes| {
        if permit.is_none() && n_bytes > MAX_BYTES_WITHOUT_PERMIT {
            permit = Some(app.responses.permit_to_receive(caller.id())?);
        }
        Ok(())
    };
    let content_length = header(request, CONTENT_LENGTH);
    let encoding = BodyEncoding::of(header(request, CONTENT_ENCODING))?;
    let read = request_body::read(payload, content_length, MAX_BODY_BYTES, admit);
    let read: V1Result<Vec<u8>> = read.await;
    let bytes = read?;
    let Some(encoding) = encoding else {
        return Ok(ReceivedBody { bytes, permit });
    };
    if permit.is_none() {
        match encoding.unpack(&bytes, MAX_BYTES_WITHOUT_PERMIT) {
            Err(error) if error.code == "too_large" => {}
            unpacked => return unpacked.map(|bytes| ReceivedBody { bytes, permit }),
        }
        permit = Some(app.responses.permit_to_receive(caller.id())?);
    }
    // Unpacking 32 MiB would delay the other requests of this worker.
    let unpacking = spawn_blocking(move || encoding.unpack(&bytes, MAX_BODY_BYTES));
    let bytes = unpacking.await.map_err(ApiError::internal)??;
    Ok(ReceivedBody { bytes, permit })
}

impl From<BodyError> for V1Error {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::new(413, "too_large", "The body is larger than 32 MiB."),
            BodyError::TimedOut => {
                Self::new(408, "request_timeout", "The body took too long to arrive.")
            }
            BodyError::Incomplete => invalid_json("The body is incomplete."),
        }
    }
}

/// Parses the text of a body as a JSON object.
///
/// # Errors
/// Returns 413 for a body of more than a million values, 400 `invalid_json`, or 400 `invalid_value` when
/// a text contains U+0000, which the database cannot store.
pub fn parse_object(bytes: &[u8]) -> V1Result<Map<String, Value>> {
    if count_values(bytes) > MAX_VALUES {
        let message = "The body contains more than 1000000 values.";
        return Err(V1Error::new(413, "too_large", message));
    }
    let value = serde_json::from_slice(bytes)
        .map_err(|error| invalid_json(json_body::syntax_message(&error)))?;
    let Value::Object(fields) = value else {
        return Err(invalid_json("The body is not a JSON object."));
    };
    for (name, value) in &fields {
        if name.contains('\0') || json_body::reject_nul(value).is_err() {
            let message = "A string contains the character U+0000.";
            return Err(V1Error::invalid("invalid_value", name, message));
        }
    }
    Ok(fields)
}

/// Returns the approximate number of values in a JSON text: most values follow a comma or an opening bracket
/// that is not part of a string.
fn count_values(json: &[u8]) -> usize {
    let (mut n, mut is_in_string, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b',' | b'[' | b'{' if !is_in_string => n += 1,
            _ => {}
        }
    }
    n
}

fn invalid_json(message: impl Into<String>) -> V1Error {
    V1Error::new(400, "invalid_json", message)
}

#[cfg(test)]
mod tests {
    use super::{MAX_VALUES, count_values, parse_object};

    #[test]
    fn only_values_outside_of_strings_are_counted() {
        assert_eq!(count_values(br#"{"a": [1, 2, {"b": 3}]}"#), 5);
        assert_eq!(count_values(br#"{"a": "[1, 2, \"{,"}"#), 1);
    }

    #[test]
    fn a_body_with_too_many_values_is_rejected_before_it_is_parsed() {
        let values = vec!["1"; MAX_VALUES + 1].join(",");

        let error = parse_object(format!("{{\"input\":[{values}]}}").as_bytes()).unwrap_err();

        assert_eq!((error.status, error.code), (413, "too_large"));
    }
}
