//! The arguments of a call, as a model wrote them: often JSON.

use serde_json::Value;

use crate::tools::tool::ToolArguments;

/// Reads them. `None`: they are no JSON object, or hold U+0000, which no database takes. A model that
/// writes nothing means the empty object.
pub fn parse(text: &str) -> Option<ToolArguments> {
    parse_object(text).filter(|it| !has_nul(it))
}

/// Whether a server that looks into them would not stumble.
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
    fn what_is_no_object_is_not_read() {
        assert_eq!(parse("  ").map(|it| it.len()), Some(0));
        assert_eq!(parse(r#"{"a": 1}"#).map(|it| it.len()), Some(1));
        assert_eq!(parse("[1]"), None);
        assert_eq!(parse(r#"{"a": "#), None);
        assert_eq!(parse(r#"{"a": "\u0000"}"#), None);
        assert!(is_object(r#"{"a": "\u0000"}"#));
    }
}
