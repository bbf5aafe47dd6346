//! Reads a file that is one JSON or YAML document within the limits of a card, and names the
//! top-level keys of a document that no importer knows.

use serde_json::Value;

use crate::documents::document_error::DocumentError;
use crate::documents::limits::{MAX_BYTES, MAX_DEPTH, MAX_VALUES, count_depth_and_values};
use crate::documents::{decoding, yaml};
use crate::import_warning::ImportWarning;

/// How many keys of an unknown document are named.
const MAX_NAMED_KEYS: usize = 20;
/// The length at which a named key is cut, in characters.
const MAX_KEY_CHARS: usize = 40;

/// A document that was read.
#[derive(Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    /// Names the first invalid byte, if the file is not valid UTF-8.
    pub warning: Option<ImportWarning>,
}

/// Reads a JSON document, or a YAML document if the file does not begin as JSON does.
///
/// # Errors
/// Returns `Invalid` when the file is not a document, and `TooLarge` when a limit is exceeded.
pub fn read(bytes: &[u8]) -> Result<Document, DocumentError> {
    read_with(bytes, |text| match begins_as_json(text) {
        true => parse_json(text),
        false => yaml::parse(text),
    })
}

/// Reads a JSON document.
///
/// # Errors
/// As [`read`].
pub fn read_json(bytes: &[u8]) -> Result<Document, DocumentError> {
    read_with(bytes, parse_json)
}

fn read_with(
    bytes: &[u8],
    parse: impl FnOnce(&str) -> Result<Value, DocumentError>,
) -> Result<Document, DocumentError> {
    if bytes.len() > MAX_BYTES {
        return Err(DocumentError::TooLarge(
            "The file is larger than 5 MiB.".into(),
        ));
    }
    let decoded = decoding::decode(bytes);
    // Text has no NUL, but most binary files do.
    if decoded.warning.is_some() && decoded.text.contains('\0') {
        return Err(DocumentError::reason("The file is not text in UTF-8."));
    }
    if decoded.text.trim().is_empty() {
        return Err(DocumentError::reason("The file is empty."));
    }
    Ok(Document {
        value: parse(&decoded.text)?,
        warning: decoded.warning,
    })
}

/// Returns whether a text begins as a JSON object or list.
pub fn begins_as_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn parse_json(text: &str) -> Result<Value, DocumentError> {
    let (depth, n_values) = count_depth_and_values(text.as_bytes());
    if depth >= MAX_DEPTH {
        return Err(DocumentError::too_deep());
    }
    if n_values > MAX_VALUES {
        return Err(DocumentError::too_many_values());
    }
    serde_json::from_str(text)
        .map_err(|error| DocumentError::reason(format!("The file is not valid JSON: {error}.")))
}

/// Returns a sentence that names the top-level keys of a document, for the error that refuses it.
pub fn describe_keys(document: &Value) -> String {
    let keys = match document {
        Value::Object(fields) if fields.is_empty() => return "It has no fields.".to_owned(),
        Value::Object(fields) => fields.keys(),
        Value::Array(_) => return "It is a list.".to_owned(),
        _ => return "It is a single value.".to_owned(),
    };
    let n_more = keys.len().saturating_sub(MAX_NAMED_KEYS);
    let named = keys.take(MAX_NAMED_KEYS).map(|key| {
        let shown: String = key.chars().take(MAX_KEY_CHARS).collect();
        format!("`{}`", shown.replace(['`', '\n', '\r', '\0'], " "))
    });
    let named: Vec<String> = named.collect();
    let more = match n_more {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("Its top-level keys: {}{more}.", named.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DocumentError, MAX_BYTES, describe_keys, read};

    #[test]
    fn json_and_yaml_are_told_apart_by_their_beginning() {
        let value = |bytes: &[u8]| read(bytes).expect("a document").value;

        assert_eq!(value(b"\xEF\xBB\xBF {\"a\": 1}"), json!({"a": 1}));
        assert_eq!(value(b"a: 1\nb: two"), json!({"a": 1, "b": "two"}));
        assert_eq!(value(b"{\"a\": \"\xFF\"}"), json!({"a": "\u{FFFD}"}));
    }

    #[test]
    fn anything_else_is_refused() {
        let large = vec![b' '; MAX_BYTES + 1];
        let deep = "[".repeat(200);
        let many = format!("[{}0]", "0,".repeat(300_000));
        for bytes in [large.as_slice(), deep.as_bytes(), many.as_bytes()] {
            assert!(matches!(read(bytes), Err(DocumentError::TooLarge(_))));
        }
        for bytes in [&b""[..], b" \n", b"{\"a\"", b"\x89PNG\r\n\x1a\n\0\0"] {
            assert!(matches!(read(bytes), Err(DocumentError::Invalid(_))));
        }
    }

    #[test]
    fn at_most_twenty_keys_are_named() {
        let many: serde_json::Map<_, _> = (0..22).map(|n| (format!("k{n}"), json!(n))).collect();

        let described = describe_keys(&json!(many));

        assert!(
            described.starts_with("Its top-level keys: `k0`, `k1`"),
            "{described}"
        );
        assert!(described.ends_with("`k19` and 2 more."), "{described}");
        assert_eq!(describe_keys(&json!([])), "It is a list.");
    }
}
