//! Defines the error of an invalid request: a code, the path of the invalid field, and a message.

use serde_json::Value;

/// The maximum length of the part of a value that a message repeats, in characters.
const MAX_VALUE_CHARS: usize = 64;

/// An invalid request. Its message names the field, its value and what is supported, because SDKs
/// print nothing else. It never repeats a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    pub code: &'static str,
    /// The path of the invalid field, as `input[0].content[1].type`.
    pub param: String,
    pub message: String,
}

/// A field of a valid request whose value refers to something that does not exist or does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongReference {
    /// The path of the field, as `input[1].call_id`.
    pub param: String,
    pub value: String,
}

impl WrongReference {
    /// Returns the message with the field, its value and the reason.
    pub fn message(&self, reason: &str) -> String {
        let (param, value) = (quoted(&self.param), quoted(&self.value));
        format!("Invalid value for {param}: {value}. {reason}")
    }
}

/// Returns the message for a value that is not `expected`.
pub fn must_be(expected: &str) -> String {
    format!("Must be {expected}.")
}

/// Returns the beginning of a text in quotes.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None => format!("'{text}'"),
    }
}

/// Returns a value as a message contains it: of an object or a list, only the type.
pub(in crate::request) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        scalar => scalar.to_string(),
    }
}
