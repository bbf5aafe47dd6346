//! Opens a chat file: JSONL, which is read line by line, or one JSON document of another program,
//! which is converted at once. The content decides, not the name of the file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};

use serde_json::Value;

use crate::chats::batches;
use crate::chats::batches::BatchEvent;
use crate::chats::importers::chat_builder::ImportedChat;
use crate::chats::importers::chat_document;
use crate::chats::line_reader::MAX_LINE;
use crate::chats::line_report::LineReport;
use crate::documents::document;
use crate::documents::document::Document;
use crate::documents::document_error::DocumentError;
use crate::documents::limits::MAX_BYTES;

/// Fields of which a line of JSONL has at least one.
const LINE_FIELDS: [&str; 6] = [
    "mes",
    "swipes",
    "chat_metadata",
    "user_name",
    "character_name",
    "create_date",
];

/// A file whose kind is known.
#[derive(Debug)]
pub enum ChatFile {
    /// JSONL, positioned at its start.
    Lines(File),
    /// The chats of a document, and its size in bytes.
    Document(Vec<ImportedChat>, u64),
}

/// Why a file is refused before anything is imported. The messages are shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum ChatFileError {
    /// The document is of no known kind.
    #[error("{0}")]
    Unknown(String),
    /// The document is of a known kind but has no messages.
    #[error("The file contains no readable message.")]
    NoMessage,
    /// The document exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
    #[error("The file could not be read.")]
    Io(#[from] std::io::Error),
}

/// Determines the kind of a file of `n_bytes` that is positioned at its start. Blocks.
///
/// # Errors
/// Returns `Unknown` for a JSON document that is not a chat, `NoMessage` for a chat without
/// messages, and `TooLarge` for a document beyond the limits of a card. Any other text is read as
/// JSONL, whose lines have their own report.
pub fn open(mut file: File, n_bytes: u64) -> Result<ChatFile, ChatFileError> {
    let first = read_first_line(&mut file)?;
    let begins_as_json = document::begins_as_json(&String::from_utf8_lossy(&first));
    let first: Option<Value> = serde_json::from_slice(&first).ok();
    let is_line = |it: &Value| LINE_FIELDS.iter().any(|field| it.get(*field).is_some());
    if !begins_as_json || first.as_ref().is_some_and(is_line) {
        return Ok(ChatFile::Lines(file));
    }
    if n_bytes > MAX_BYTES as u64 {
        // A first line that is no object is skipped, as in any JSONL file; a document is one object.
        return match first.is_some_and(|it| chat_document::kind_of(&it).is_none()) {
            true => Ok(ChatFile::Lines(file)),
            false => Err(ChatFileError::TooLarge(
                "The file is larger than 5 MiB. Only chats in JSONL may be larger.".into(),
            )),
        };
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    match document::read_json(&bytes) {
        Ok(found) => convert(found, n_bytes),
        Err(DocumentError::TooLarge(reason)) if first.is_none() => {
            Err(ChatFileError::TooLarge(reason))
        }
        Err(_) => {
            file.rewind()?;
            Ok(ChatFile::Lines(file))
        }
    }
}

fn convert(found: Document, n_bytes: u64) -> Result<ChatFile, ChatFileError> {
    let Some(kind) = chat_document::kind_of(&found.value) else {
        let keys = document::describe_keys(&found.value);
        return Err(ChatFileError::Unknown(format!(
            "This JSON file is not a chat of a known program. {keys}"
        )));
    };
    let mut chats = chat_document::convert(kind, &found.value);
    let first = chats.first_mut().ok_or(ChatFileError::NoMessage)?;
    first.header.warnings.extend(found.warning);
    Ok(ChatFile::Document(chats, n_bytes))
}

/// Returns the first line that is not blank, without its end if it is too long for a line, and
/// leaves the file at its start.
fn read_first_line(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut reader = BufReader::new((&mut *file).take(MAX_LINE as u64));
    loop {
        line.clear();
        let n_read = reader.read_until(b'\n', &mut line)?;
        let content = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
        let content = content.trim_ascii().to_vec();
        if n_read == 0 || !content.is_empty() {
            file.rewind()?;
            return Ok(content);
        }
    }
}

impl ChatFile {
    /// Passes on the chats in batches until the end, or until `on_event` returns `false`. Blocks.
    /// `count` returns the number of tokens of a text.
    ///
    /// # Errors
    /// Returns the I/O error if the file cannot be read.
    pub fn read(
        self,
        count: &dyn Fn(&str) -> i64,
        on_event: &mut dyn FnMut(BatchEvent) -> bool,
    ) -> std::io::Result<LineReport> {
        match self {
            Self::Lines(file) => {
                let file = BufReader::with_capacity(64 * 1024, file);
                batches::read(file, count, on_event)
            }
            Self::Document(chats, n_bytes) => Ok(batches::emit(chats, n_bytes, count, on_event)),
        }
    }
}

#[cfg(test)]
#[path = "chat_file_tests.rs"]
mod tests;
