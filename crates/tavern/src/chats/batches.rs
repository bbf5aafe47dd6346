//! Reads a chat file in batches of messages, so that memory use does not grow with the file. Counts
//! the tokens of each message, and reports skipped and repaired lines.

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::chats::line;
use crate::chats::line::{ChatLine, ChatLineError};
use crate::chats::line_reader::{LineReader, RawLine};
use crate::chats::message::{ChatHeader, ChatMessage};
use crate::import_warning::ImportWarning;

/// The maximum number of messages in a batch. It is written in one transaction, for which other
/// writers wait.
pub const MAX_MESSAGES: usize = 100;
const MAX_BYTES: usize = 256 * 1024;

/// Maximum number of problems that are listed; further ones are only counted.
const MAX_REPORTED: usize = 100;

/// A part of the file that [`read`] passes to its caller, in order.
#[derive(Debug)]
pub enum BatchEvent {
    Header(ChatHeader),
    Batch(MessageBatch),
}

/// Messages, and the position in the file after them.
#[derive(Debug, Default)]
pub struct MessageBatch {
    pub messages: Vec<ChatMessage>,
    pub bytes_read: u64,
    n_bytes: usize,
}

/// Problems in the lines of an imported file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportReport)]
pub struct LineReport {
    /// Number of skipped lines: they contain no usable message.
    #[serde(default)]
    pub n_skipped: u64,
    /// Number of messages that were imported with changes.
    #[serde(default)]
    pub n_repaired: u64,
    /// The first hundred skipped or changed lines.
    #[serde(default)]
    pub lines: Vec<LineProblem>,
}

/// A problem in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportTrouble)]
pub struct LineProblem {
    /// Counted from 1.
    pub line: u64,
    pub reason: String,
    /// A stable code for `reason`. Empty in reports written before codes existed.
    #[serde(default)]
    pub code: String,
    /// Whether the line was skipped.
    pub skipped: bool,
}

impl LineReport {
    /// Adds a problem of a line; of more than a hundred only the number.
    pub fn record(&mut self, line: u64, warning: &ImportWarning, skipped: bool) {
        match skipped {
            true => self.n_skipped += 1,
            false => self.n_repaired += 1,
        }
        if self.lines.len() < MAX_REPORTED {
            self.lines.push(LineProblem {
                line,
                reason: warning.message.clone(),
                code: warning.code.to_string(),
                skipped,
            });
        }
    }
}

/// Reads a file to its end, or until `on_event` returns `false`. `count` returns the number of
/// tokens of a text.
///
/// # Errors
/// Returns the I/O error if the file cannot be read.
pub fn read(
    file: impl BufRead,
    count: &dyn Fn(&str) -> i64,
    on_event: &mut dyn FnMut(BatchEvent) -> bool,
) -> std::io::Result<LineReport> {
    let mut lines = LineReader::new(file);
    let mut report = LineReport::default();
    let mut batch = MessageBatch::default();
    let mut is_first = true;
    while let Some((number, raw_line)) = lines.next_line()? {
        let read = match raw_line {
            RawLine::Line([]) => continue,
            RawLine::Line(line) => line::read(line, is_first),
            RawLine::TooLong => Err(ChatLineError::TooLong),
        };
        is_first = false;
        match read {
            Ok(ChatLine::Header(header)) => {
                if !on_event(BatchEvent::Header(header)) {
                    return Ok(report);
                }
            }
            Ok(ChatLine::Message(message)) => {
                if let Some(repair) = message.repairs.first() {
                    report.record(number, repair, false);
                }
                batch.push(*message, count);
            }
            Err(error) => report.record(number, &error.describe(), true),
        }
        if batch.is_full() {
            batch.bytes_read = lines.n_bytes();
            if !on_event(BatchEvent::Batch(std::mem::take(&mut batch))) {
                return Ok(report);
            }
        }
    }
    batch.bytes_read = lines.n_bytes();
    on_event(BatchEvent::Batch(batch));
    Ok(report)
}

impl MessageBatch {
    fn push(&mut self, mut message: ChatMessage, count: &dyn Fn(&str) -> i64) {
        for text in &mut message.texts {
            text.token_count = count(&text.content);
            self.n_bytes += text.content.len();
        }
        self.messages.push(message);
    }

    fn is_full(&self) -> bool {
        self.messages.len() >= MAX_MESSAGES || self.n_bytes >= MAX_BYTES
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
