//! Defines a line of `summaries.jsonl` in the export file of a space: one summary in use.

use base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use tavern::chats::line_reader::RawLine;
use tavern::import_warning::ImportWarning;

use crate::memories::summaries::summary::{
    MAX_FACT_CHARS, MAX_FACTS, SummaryLevel, SummaryOrigin, SummaryStatus,
};
use crate::memories::summaries::summary_request::MAX_CONTENT_CHARS;

/// The maximum length of a line, in bytes. A text of [`MAX_CONTENT_CHARS`] with [`MAX_FACTS`] facts needs at
/// most 12 bytes for each character if all of them are escaped; the other bytes are for the other fields.
const MAX_LINE_BYTES: usize = 192 * 1024;
/// The maximum length of the name of a model, in characters.
const MAX_MODEL_CHARS: usize = 300;

/// A summary in use. Conversations are referred to by their keys in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedSummary {
    pub conversation: i64,
    /// 0: a part; 1: a running summary, which covers all messages up to `to_seq`.
    pub level: i64,
    pub from_seq: i64,
    pub to_seq: i64,
    /// Empty if the text may not be used.
    pub content: String,
    #[serde(default)]
    pub pinned_facts: Vec<String>,
    pub status: SummaryStatus,
    pub origin: SummaryOrigin,
    /// The name of the model that wrote it.
    #[serde(default)]
    pub model: Option<String>,
    /// The username of the person who wrote it.
    #[serde(default)]
    pub author: Option<String>,
    /// `false` if a message that it covers was deleted.
    pub is_usable: bool,
    pub created_at: Timestamp,
}

/// Why a line cannot be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryLineError {
    #[error("This line is not a valid summary.")]
    Invalid,
    #[error("This line is too long for a summary.")]
    TooLong,
    #[error("The file does not contain the conversation of this summary.")]
    UnknownConversation,
    #[error(
        "The messages of this summary are missing in its conversation, or already have a summary."
    )]
    RangeTaken,
}

impl SummaryLineError {
    /// Returns the warning for the report of the import.
    pub fn warning(self) -> ImportWarning {
        let sentence = self.to_string();
        match self {
            Self::Invalid => ImportWarning::new("summary_line_invalid", sentence),
            Self::TooLong => ImportWarning::new("summary_line_too_long", sentence),
            Self::UnknownConversation => {
                ImportWarning::new("summary_conversation_unknown", sentence)
            }
            Self::RangeTaken => ImportWarning::new("summary_no_place", sentence),
        }
    }
}

impl ExportedSummary {
    /// Returns the level; `None` if there is no such level.
    pub fn level(&self) -> Option<SummaryLevel> {
        match self.level {
            0 => Some(SummaryLevel::Part),
            1 => Some(SummaryLevel::Running),
            _ => None,
        }
    }

    fn is_valid(&self) -> bool {
        let is_fact = |it: &String| is_text(it, MAX_FACT_CHARS) && !it.contains('\n');
        self.level().is_some()
            && self.status != SummaryStatus::Superseded
            && is_text(&self.content, MAX_CONTENT_CHARS)
            && self.pinned_facts.len() <= MAX_FACTS
            && self.pinned_facts.iter().all(is_fact)
            && self
                .model
                .as_ref()
                .is_none_or(|it| is_text(it, MAX_MODEL_CHARS))
    }
}

/// Returns whether a text has at most this many characters, and no U+0000, which PostgreSQL does not store.
fn is_text(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && !text.contains('\0')
}

/// Parses a line. Unknown fields are ignored.
///
/// # Errors
/// Returns `TooLong` or `Invalid`.
pub fn read(line: RawLine<'_>) -> Result<ExportedSummary, SummaryLineError> {
    let line = match line {
        RawLine::Line(line) if line.len() <= MAX_LINE_BYTES => line,
        RawLine::Line(_) | RawLine::TooLong => return Err(SummaryLineError::TooLong),
    };
    let summary: Option<ExportedSummary> = serde_json::from_slice(line).ok();
    let valid = summary.filter(ExportedSummary::is_valid);
    valid.ok_or(SummaryLineError::Invalid)
}

/// Appends a summary as a line, with its line break.
///
/// # Errors
/// Returns an error if serde_json cannot write it.
pub fn write(lines: &mut Vec<u8>, summary: &ExportedSummary) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *lines, summary)?;
    lines.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tavern::chats::line_reader::RawLine;

    use super::{MAX_LINE_BYTES, SummaryLineError, read, write};

    fn line() -> Value {
        json!({
            "conversation": 4, "level": 1, "from_seq": 1, "to_seq": 30, "content": "They met.",
            "pinned_facts": ["Vera is a spy."], "status": "stale", "origin": "person", "model": null,
            "author": "ann", "is_usable": true, "created_at": "2026-11-28T10:00:00.000Z",
        })
    }

    #[test]
    fn a_written_line_is_read_unchanged() {
        let text = line().to_string();
        let summary = read(RawLine::Line(text.as_bytes())).expect("a valid line");
        let mut written = Vec::new();

        write(&mut written, &summary).expect("a line");

        assert_eq!(written.pop(), Some(b'\n'));
        assert_eq!(read(RawLine::Line(&written)), Ok(summary));
    }

    #[test]
    fn a_line_with_an_invalid_value_is_an_error() {
        for (field, value) in [
            ("level", json!(2)),
            ("status", json!("superseded")),
            ("origin", json!("nobody")),
            ("content", json!("x".repeat(8_001))),
            ("content", json!("a\u{0}b")),
            ("pinned_facts", json!(["two\nlines"])),
            ("pinned_facts", json!(vec!["x"; 21])),
            ("pinned_facts", json!(["x".repeat(301)])),
            ("model", json!("x".repeat(301))),
            ("to_seq", json!(null)),
        ] {
            let mut line = line();
            line[field] = value;
            let read = read(RawLine::Line(line.to_string().as_bytes()));
            assert_eq!(read, Err(SummaryLineError::Invalid), "{line}");
        }
        let long = " ".repeat(MAX_LINE_BYTES + 1);
        assert_eq!(
            read(RawLine::Line(long.as_bytes())),
            Err(SummaryLineError::TooLong)
        );
        assert_eq!(read(RawLine::TooLong), Err(SummaryLineError::TooLong));
    }
}
