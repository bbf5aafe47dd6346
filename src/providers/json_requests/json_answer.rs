//! Reads the JSON object of a model's answer. Models often put it into a fenced block, or write a
//! sentence before or after it.

use serde_json::{Map, Value};

/// Returns the object in this text, from the first opening brace to the last closing one.
pub fn parse_object(text: &str) -> Option<Map<String, Value>> {
    let (from, to) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(from..=to)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::parse_object;

    fn parsed(text: &str) -> Option<String> {
        parse_object(text).map(|it| Value::Object(it).to_string())
    }

    #[test]
    fn an_object_may_be_fenced_or_surrounded_by_text() {
        for text in [
            r#"{"a":1}"#,
            "```json\n{\"a\": 1}\n```",
            "Here it is:\n```\n{\"a\": 1}\n```\nAnything else?",
            "Sure! {\"a\": 1}",
        ] {
            assert_eq!(parsed(text).as_deref(), Some(r#"{"a":1}"#), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_object() {
        for text in [
            "",
            "[1]",
            "}{",
            r#"{"a": 1"#,
            "none",
            r#"{"a": 1} {"b": 2}"#,
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
