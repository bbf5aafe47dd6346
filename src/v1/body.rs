//! Reads JSON request bodies of up to 32 MiB, on demand.

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::web::Payload;
use futures::StreamExt;
use serde_json::{Map, Value};

use crate::app::App;
use crate::http::authentication::CurrentUser;
use crate::http::request_body;
use crate::v1::error::{V1Error, V1Result};

/// The maximum size of a body, in bytes.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A longer body needs a permit before it is received. In bytes.
const MAX_BYTES_WITHOUT_PERMIT: usize = 1024 * 1024;

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
    parse_object(&read_bytes(app, caller, request, payload).await?)
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
    let bytes = read_bytes(app, caller, request, payload).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    require_json(request)?;
    parse_object(&bytes)
}

fn require_json(request: &HttpRequest) -> V1Result<()> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let said = content_type
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let essence = said.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = "Send JSON, with `Content-Type: application/json`.";
        return Err(V1Error::new(415, "unsupported_media_type", message));
    }
    Ok(())
}

async fn read_bytes(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    mut payload: Payload,
) -> V1Result<Vec<u8>> {
    let too_large = || V1Error::new(413, "too_large", "The body is larger than 32 MiB.");
    let content_length = request.headers().get(CONTENT_LENGTH);
    let stated = content_length.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if stated.is_some_and(|it| it > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    let (mut bytes, mut permit) = (Vec::new(), None);
    while let Some(chunk) = payload.next().await {
        let piece = chunk.map_err(|error| match request_body::is_timeout(&error) {
            true => V1Error::new(408, "request_timeout", "The body took too long to arrive."),
            false => invalid_json("The body is incomplete."),
        })?;
        if bytes.len() + piece.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if permit.is_none() && bytes.len() + piece.len() > MAX_BYTES_WITHOUT_PERMIT {
            permit = Some(app.responses.permit_to_receive(caller.id())?);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Parses the text of a body as a JSON object.
///
/// # Errors
/// Returns 400 `invalid_json`, or `invalid_value` when a text contains U+0000, which the database
/// cannot store.
pub fn parse_object(bytes: &[u8]) -> V1Result<Map<String, Value>> {
    let value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        invalid_json(format!(
            "The body is not valid JSON (line {line}, column {column})."
        ))
    })?;
    let Value::Object(fields) = value else {
        return Err(invalid_json("The body is not a JSON object."));
    };
    for (name, value) in &fields {
        if name.contains('\0') || has_nul(value) {
            let message = "A string contains the character U+0000.";
            return Err(V1Error::invalid("invalid_value", name, message));
        }
    }
    Ok(fields)
}

fn invalid_json(message: impl Into<String>) -> V1Error {
    V1Error::new(400, "invalid_json", message)
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}
