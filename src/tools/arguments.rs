//! The arguments of a call, as a model wrote them: often JSON.

use crate::tools::tool::Arguments;
use serde_json::Value;

/// Reads them. `None`: they are no JSON object, or hold U+0000, which no database takes. A model that
/// writes nothing means the empty object.
pub fn read(text: &str) -> Option<Arguments> {
    parse(text).filter(|it| !has_nul(it))
}

/// Whether a server that looks into them would not stumble.
pub fn is_object(text: &str) -> bool {
    parse(text).is_some()
}

fn parse(text: &str) -> Option<Arguments> {
    match text.trim() {
        "" => Some(Arguments::new()),
        text => serde_json::from_str(text).ok(),
    }
}

fn has_nul(arguments: &Arguments) -> bool {
    Value::Object(arguments.clone())
        .to_string()
        .contains("\\u0000")
}

#[cfg(test)]
mod tests {
    use super::is_object;
    use super::read;

    #[test]
    fn what_is_no_object_is_not_read() {
        assert_eq!(read("  ").map(|it| it.len()), Some(0));
        assert_eq!(read(r#"{"a": 1}"#).map(|it| it.len()), Some(1));
        assert_eq!(read("[1]"), None);
        assert_eq!(read(r#"{"a": "#), None);
        assert_eq!(read(r#"{"a": "\u0000"}"#), None);
        assert!(is_object(r#"{"a": "\u0000"}"#));
    }
}
