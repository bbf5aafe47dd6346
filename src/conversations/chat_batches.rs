//! A chat file as batches of messages: what is held at once does not grow with the file.

use crate::conversations::chat_line;
use crate::conversations::chat_line::ChatMessage;
use crate::conversations::chat_line::Header;
use crate::conversations::chat_line::Line;
use crate::conversations::chat_line::LineError;
use crate::conversations::chat_reader::Lines;
use crate::conversations::chat_reader::Piece;
use crate::import_warning::ImportWarning;
use serde::Deserialize;
use serde::Serialize;
use std::io::BufRead;
use utoipa::ToSchema;

/// A batch is written in one transaction, which others wait for.
pub const MAX_MESSAGES: usize = 100;
const MAX_BYTES: usize = 256 * 1024;

/// So many troubles are told one by one, the others as a number.
const MAX_TOLD: usize = 100;

/// What comes out of a file, in order.
#[derive(Debug)]
pub enum Step {
    Header(Header),
    Batch(Batch),
}

/// Some messages, and how far the file is read.
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<ChatMessage>,
    pub bytes_read: u64,
    n_bytes: usize,
}

/// What became of the lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportReport)]
pub struct Report {
    /// Lines that hold no message that can be kept.
    #[serde(default)]
    pub n_skipped: u64,
    /// Messages that could not be kept quite as they are.
    #[serde(default)]
    pub n_repaired: u64,
    /// The first hundred of both.
    #[serde(default)]
    pub lines: Vec<Trouble>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportTrouble)]
pub struct Trouble {
    /// From 1.
    pub line: u64,
    pub reason: String,
    /// The same for programs. Empty in what was told before there were codes.
    #[serde(default)]
    pub code: String,
    /// Whether the line was left out.
    pub skipped: bool,
}

impl Report {
    fn tell(&mut self, line: u64, what: &ImportWarning, skipped: bool) {
        match skipped {
            true => self.n_skipped += 1,
            false => self.n_repaired += 1,
        }
        if self.lines.len() < MAX_TOLD {
            self.lines.push(Trouble {
                line,
                reason: what.message.clone(),
                code: what.code.to_string(),
                skipped,
            });
        }
    }
}

/// Reads a file to its end, or until `take` wants no more. `count` tells how long a text is for a
/// model.
///
/// # Errors
/// When the file cannot be read.
pub fn read(
    file: impl BufRead,
    count: &dyn Fn(&str) -> i64,
    take: &mut dyn FnMut(Step) -> bool,
) -> std::io::Result<Report> {
    let mut lines = Lines::of(file);
    let mut report = Report::default();
    let mut batch = Batch::default();
    let mut is_first = true;
    while let Some((number, piece)) = lines.next_line()? {
        let read = match piece {
            Piece::Line([]) => continue,
            Piece::Line(line) => chat_line::read(line, is_first),
            Piece::TooLong => Err(LineError::TooLong),
        };
        is_first = false;
        match read {
            Ok(Line::Header(header)) => {
                if !take(Step::Header(header)) {
                    return Ok(report);
                }
            }
            Ok(Line::Message(message)) => {
                if let Some(repair) = message.repairs.first() {
                    report.tell(number, repair, false);
                }
                batch.push(*message, count);
            }
            Err(error) => report.tell(number, &error.told(), true),
        }
        if batch.is_full() {
            batch.bytes_read = lines.n_bytes();
            if !take(Step::Batch(std::mem::take(&mut batch))) {
                return Ok(report);
            }
        }
    }
    batch.bytes_read = lines.n_bytes();
    take(Step::Batch(batch));
    Ok(report)
}

impl Batch {
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
#[path = "chat_batches_tests.rs"]
mod tests;
