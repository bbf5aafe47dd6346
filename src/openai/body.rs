//! Bodies: JSON, up to 32 MiB, read on demand.

use crate::app::App;
use crate::http::authentication::CurrentUser;
use crate::http::request_body;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::Payload;
use futures::StreamExt;
use serde_json::Map;
use serde_json::Value;

/// The longest body.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// What is longer needs a place before it is received.
const SHORT_BYTES: usize = 1024 * 1024;

/// Reads a body that must be an object.
///
/// # Errors
/// 415, 413, 400 `invalid_json`; 503 or 429 where too many long ones are on their way.
pub async fn object(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    payload: Payload,
) -> Answer<Map<String, Value>> {
    must_be_json(request)?;
    read(&bytes(app, caller, request, payload).await?)
}

/// The same; no body at all is the empty object.
///
/// # Errors
/// As [`object`].
pub async fn object_or_empty(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    payload: Payload,
) -> Answer<Map<String, Value>> {
    let bytes = bytes(app, caller, request, payload).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    must_be_json(request)?;
    read(&bytes)
}

fn must_be_json(request: &HttpRequest) -> Answer<()> {
    let said = request.headers().get(CONTENT_TYPE);
    let said = said.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = said.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = "Send JSON, with `Content-Type: application/json`.";
        return Err(Problem::new(415, "unsupported_media_type", message));
    }
    Ok(())
}

async fn bytes(
    app: &App,
    caller: &CurrentUser,
    request: &HttpRequest,
    mut payload: Payload,
) -> Answer<Vec<u8>> {
    let too_large = || Problem::new(413, "too_large", "The body is larger than 32 MiB.");
    let stated = request.headers().get(CONTENT_LENGTH);
    let stated = stated.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if stated.is_some_and(|it| it > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    let (mut bytes, mut place) = (Vec::new(), None);
    while let Some(piece) = payload.next().await {
        let piece = piece.map_err(|error| match request_body::is_timeout(&error) {
            true => Problem::new(408, "request_timeout", "The body took too long to arrive."),
            false => broken("The body did not arrive whole."),
        })?;
        if bytes.len() + piece.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if place.is_none() && bytes.len() + piece.len() > SHORT_BYTES {
            place = Some(app.responses.place_to_receive(caller.id())?);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Reads an object out of the text of a body.
///
/// # Errors
/// 400 `invalid_json`; `invalid_value` for a character that no database takes.
pub fn read(bytes: &[u8]) -> Answer<Map<String, Value>> {
    let value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        broken(format!(
            "The body is no valid JSON (line {line}, column {column})."
        ))
    })?;
    let Value::Object(fields) = value else {
        return Err(broken("The body is no JSON object."));
    };
    for (name, value) in &fields {
        if name.contains('\0') || has_nul(value) {
            let message = "A text holds the character U+0000.";
            return Err(Problem::invalid("invalid_value", name, message));
        }
    }
    Ok(fields)
}

fn broken(message: impl Into<String>) -> Problem {
    Problem::new(400, "invalid_json", message)
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
