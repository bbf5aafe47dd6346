//! Replaces carriage returns: `\r\n` and `\r` become `\n` in every text field of an imported file.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The field whose values belong to other programs and are kept byte for byte.
const EXTENSIONS: &str = "extensions";

/// Returns the text with `\n` as its only line ending.
pub fn normalize(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    }
}

/// Normalizes every text in a value. Whatever is in a field `extensions` is left as it is.
pub fn normalize_all(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(normalized) = normalize(text) {
                *text = normalized;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize_all),
        Value::Object(fields) => normalize_fields(fields),
        _ => {}
    }
}

/// Normalizes every text in an object, as [`normalize_all`].
pub fn normalize_fields(fields: &mut Map<String, Value>) {
    for (name, field) in fields {
        if name != EXTENSIONS {
            normalize_all(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{normalize, normalize_all};

    #[test]
    fn each_line_ending_becomes_a_line_feed() {
        assert_eq!(normalize("a\r\nb\rc\nd\r\r\n"), "a\nb\nc\nd\n\n");
        assert_eq!(normalize("plain"), "plain");
    }

    #[test]
    fn the_values_of_extensions_are_unchanged() {
        let mut value = json!({"a": ["x\r\ny"], "extensions": {"a": "x\r\ny"}});

        normalize_all(&mut value);

        assert_eq!(value, json!({"a": ["x\ny"], "extensions": {"a": "x\r\ny"}}));
    }
}
