//! Parses and writes one line of a memory file (JSON Lines). No I/O.
//!
//! **Invariant:** a parsed line is a valid memory; writing and parsing it again does not change it.

use base::clock::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content;

/// The maximum length of a line, in bytes. A content of [`content::MAX_CONTENT_CHARS`] needs at most 12
/// bytes for each character if all of them are escaped; the other bytes are for names.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// A memory as a line. `K` is the kind of a memory. In a file, only the content is required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedMemory<K> {
    /// One line.
    pub content: String,
    pub kind: Option<K>,
    /// From 0 to 1.
    pub importance: Option<f64>,
    /// The name of the member who owns it; `None`: it belongs to everyone in the space.
    pub owner: Option<String>,
    /// The name of the member it is about.
    pub about: Option<String>,
    pub created_at: Option<Timestamp>,
    pub pinned: Option<bool>,
}

/// Why a line is not a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryLineError {
    #[error("This line is not a JSON object.")]
    Broken,
    #[error("This line is too long for a memory.")]
    TooLong,
    #[error("The content must have 1 to 2,000 characters.")]
    InvalidContent,
    /// The field has an invalid value.
    #[error("`{0}` has an invalid value.")]
    InvalidField(&'static str),
    /// The memory is limited to an audience; an import would show it to everyone.
    #[error("Only some members may know this memory.")]
    HasAudience,
}

/// Parses a line. Unknown fields are ignored.
///
/// # Errors
/// Returns why the line is not a memory.
pub fn read<K: DeserializeOwned>(line: &[u8]) -> Result<ExportedMemory<K>, MemoryLineError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(MemoryLineError::TooLong);
    }
    let fields = serde_json::from_slice(line).map_err(|_| MemoryLineError::Broken)?;
    let Value::Object(mut fields) = fields else {
        return Err(MemoryLineError::Broken);
    };
    let has_audience = match fields.get("audience") {
        None | Some(Value::Null) => false,
        Some(it) => it.as_array().is_none_or(|it| !it.is_empty()),
    };
    if has_audience {
        return Err(MemoryLineError::HasAudience);
    }
    let content: Option<String> = take(&mut fields, "content")?;
    let content = content.and_then(|it| content::one_line(&it));
    let importance: Option<f64> = take(&mut fields, "importance")?;
    if importance.is_some_and(|it| !(0.0..=1.0).contains(&it)) {
        return Err(MemoryLineError::InvalidField("importance"));
    }
    Ok(ExportedMemory {
        content: content.ok_or(MemoryLineError::InvalidContent)?,
        kind: take(&mut fields, "kind")?,
        importance,
        owner: take(&mut fields, "owner")?,
        about: take(&mut fields, "about")?,
        created_at: take(&mut fields, "created_at")?,
        pinned: take(&mut fields, "pinned")?,
    })
}

/// Returns the value of a field; `None` if it is missing or null.
fn take<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &'static str,
) -> Result<Option<T>, MemoryLineError> {
    let value = fields.remove(name).unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|_| MemoryLineError::InvalidField(name))
}

/// Appends a memory as a line, with its line break.
///
/// # Errors
/// Returns an error if the kind cannot be written as JSON.
pub fn write<K: Serialize>(
    lines: &mut Vec<u8>,
    memory: &ExportedMemory<K>,
) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *lines, memory)?;
    lines.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::json;

    use super::{ExportedMemory, MAX_LINE_BYTES, MemoryLineError, read, write};

    fn error_of(line: &str) -> MemoryLineError {
        read::<String>(line.as_bytes()).expect_err(line)
    }

    #[test]
    fn only_the_content_is_required_and_it_becomes_one_line() {
        let read = read::<String>(br#"{"content": " It\n rained. ", "kind": null, "more": 1}"#);

        assert_eq!(
            read,
            Ok(ExportedMemory {
                content: "It rained.".to_owned(),
                kind: None,
                importance: None,
                owner: None,
                about: None,
                created_at: None,
                pinned: None,
            })
        );
    }

    #[test]
    fn a_written_line_is_read_unchanged() {
        let memory = ExportedMemory {
            content: "Ann says \"\u{1f327}\".".to_owned(),
            kind: Some("event".to_owned()),
            importance: Some(0.3),
            owner: Some("Ann".to_owned()),
            about: Some("Bob".to_owned()),
            created_at: Some(Timestamp(1_700_000_000_123)),
            pinned: Some(true),
        };
        let mut lines = Vec::new();

        write(&mut lines, &memory).unwrap();

        assert_eq!(lines.pop(), Some(b'\n'));
        assert_eq!(read(&lines), Ok(memory));
    }

    #[test]
    fn an_invalid_line_is_an_error_that_names_the_field() {
        use MemoryLineError::{Broken, HasAudience, InvalidContent, InvalidField, TooLong};

        for line in ["", "{", "5", "[]", "\u{feff}x"] {
            assert_eq!(error_of(line), Broken, "{line}");
        }
        let blank = [r#"{}"#, r#"{"content": " "}"#, r#"{"content": null}"#];
        for line in blank {
            assert_eq!(error_of(line), InvalidContent, "{line}");
        }
        let long = json!({"content": "é".repeat(2_001)}).to_string();
        assert_eq!(error_of(&long), InvalidContent);
        for (field, value) in [
            ("content", json!(5)),
            ("importance", json!(1.5)),
            ("importance", json!("high")),
            ("kind", json!([])),
            ("owner", json!(1)),
            ("about", json!({})),
            ("created_at", json!("yesterday")),
            ("pinned", json!("yes")),
        ] {
            let mut line = json!({"content": "It rained."});
            line[field] = value;
            assert_eq!(error_of(&line.to_string()), InvalidField(field), "{line}");
        }
        assert_eq!(
            error_of(r#"{"content": "x", "audience": ["Ann"]}"#),
            HasAudience
        );
        assert_eq!(error_of(&" ".repeat(MAX_LINE_BYTES + 1)), TooLong);
    }
}
