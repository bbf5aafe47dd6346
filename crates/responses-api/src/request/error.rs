//! Defines the error of an invalid request: a code, the path of the invalid field, and a message.

/// An invalid request. Its message never repeats the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    pub code: &'static str,
    /// The path of the invalid field, as `input[0].content[1].type`.
    pub param: String,
    pub message: String,
}

/// Returns the message for a value that is not `expected`.
pub fn must_be(expected: &str) -> String {
    format!("Must be {expected}.")
}
