//! Parses JSON objects from untrusted sources such as providers, even with invalid Unicode escapes,
//! and reads texts, tool arguments and limited token counts from them.

use serde_json::{Map, Value};

use crate::error::LlmError;

/// Parses a JSON object.
///
/// # Errors
/// Returns `Upstream` when the text is not a JSON object.
pub fn require_object(data: &str) -> Result<Value, LlmError> {
    parse_object(data).ok_or_else(|| LlmError::Upstream {
        message: "The provider sent something that is not JSON.".to_owned(),
    })
}

/// Parses a JSON object; returns `None` if the text is not one.
pub fn parse_object(data: &str) -> Option<Value> {
    let chunk = serde_json::from_str(data).ok().or_else(|| {
        let repaired = replace_lone_surrogates(data)?;
        serde_json::from_str(&repaired).ok()
    });
    chunk.filter(Value::is_object)
}

/// Returns the text at a JSON pointer if it is not empty.
pub fn text_at(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the arguments of a call as an object, for APIs that do not accept text. Arguments that
/// are not an object are returned as text inside one.
pub fn arguments_object(text: &str) -> Value {
    match parse_object(text) {
        Some(object) => object,
        None if text.trim().is_empty() => Value::Object(Map::new()),
        None => Value::Object(Map::from_iter([("arguments".to_owned(), text.into())])),
    }
}

/// More than any call can cost. Reported counts are added up during the whole life of a space, so
/// they must neither overflow the sum nor decrease it.
pub const MAX_TOKEN_COUNT: i64 = 1_000_000_000;

/// Returns a token count, clamped to a plausible range.
pub fn token_count(value: &Value, field: &str) -> Option<i64> {
    let stated = value.get(field).and_then(Value::as_i64);
    stated.map(|it| it.clamp(0, MAX_TOKEN_COUNT))
}

/// Replaces lone halves of surrogate pairs, which JSON allows in strings and Rust does not, by the
/// replacement character. Returns `None` if there are none.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    let mut is_changed = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (surrogate_half(rest), rest.get(6..).and_then(surrogate_half)) {
            (Some(true), Some(false)) => 12,
            (Some(_), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                is_changed = true;
                continue;
            }
            // An escaped backslash must not be mistaken for the beginning of the next escape.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

/// Returns whether an escape is the first (`true`) or second half of a pair.
fn surrogate_half(escape: &str) -> Option<bool> {
    let code = u32::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(true),
        0xdc00..=0xdfff => Some(false),
        _ => None,
    }
}
