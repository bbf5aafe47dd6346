//! Parses the arguments of a tool call, JSON text that a model has written, to an object, or
//! returns `None` if they are not one. Does not check them against the schema of the tool.

use serde_json::Value;

use crate::tools::tool::ToolArguments;

/// Parses arguments; empty text means the empty object. Returns `None` if they are not a JSON
/// object or contain U+0000, which databases reject.
pub fn parse(text: &str) -> Option<ToolArguments> {
    parse_object(text).filter(|it| !has_nul(it))
}

/// Returns whether the arguments are a JSON object, so that a provider which parses them accepts
/// them.
pub fn is_object(text: &str) -> bool {
    parse_object(text).is_some()
}

fn parse_object(text: &str) -> Option<ToolArguments> {
    match text.trim() {
        "" => Some(ToolArguments::new()),
        text => serde_json::from_str(text).ok(),
    }
}

fn has_nul(arguments: &ToolArguments) -> bool {
    Value::Object(arguments.clone())
        .to_string()
        .contains("\\u0000")
}

#[cfg(test)]
mod tests {
    use super::{is_object, parse};

    #[test]
    fn anything_but_an_object_is_rejected() {
        assert_eq!(parse("  ").map(|it| it.len()), Some(0));
        assert_eq!(parse(r#"{"a": 1}"#).map(|it| it.len()), Some(1));
        assert_eq!(parse("[1]"), None);
        assert_eq!(parse(r#"{"a": "#), None);
        assert_eq!(parse(r#"{"a": "\u0000"}"#), None);
        assert!(is_object(r#"{"a": "\u0000"}"#));
    }
}
