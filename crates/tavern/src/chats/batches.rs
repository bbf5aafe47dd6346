//! Reads a chat file in batches of messages, so that memory use does not grow with the file. Counts
//! the tokens of each message, and reports skipped and repaired lines.

use std::io::BufRead;

use crate::chats::importers::chat_builder::ImportedChat;
use crate::chats::line;
use crate::chats::line::{ChatLine, ChatLineError};
use crate::chats::line_reader::{LineReader, RawLine};
use crate::chats::line_report::LineReport;
use crate::chats::message::{ChatHeader, ChatMessage};

/// The maximum number of messages in a batch. It is written in one transaction, for which other
/// writers wait.
pub const MAX_MESSAGES: usize = 100;
const MAX_BYTES: usize = 256 * 1024;

/// A part of the file that [`read`] or [`emit`] passes to its caller, in order.
#[derive(Debug)]
pub enum BatchEvent {
    Header(Box<ChatHeader>),
    Batch(MessageBatch),
    /// What follows belongs to another chat.
    NextChat,
}

/// Messages, and the position in the file after them.
#[derive(Debug, Default)]
pub struct MessageBatch {
    pub messages: Vec<ChatMessage>,
    pub bytes_read: u64,
    n_bytes: usize,
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
                report.warn(&header.warnings);
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

/// Passes on the chats of a document of `n_bytes` as [`read`] passes on a file.
pub fn emit(
    chats: Vec<ImportedChat>,
    n_bytes: u64,
    count: &dyn Fn(&str) -> i64,
    on_event: &mut dyn FnMut(BatchEvent) -> bool,
) -> LineReport {
    let mut report = LineReport::default();
    let n_messages: usize = chats.iter().map(|it| it.messages.len()).sum();
    let mut n_emitted: usize = 0;
    for (at, chat) in chats.into_iter().enumerate() {
        if at > 0 && !on_event(BatchEvent::NextChat) {
            return report;
        }
        report.warn(&chat.header.warnings);
        report.append(chat.report);
        if !on_event(BatchEvent::Header(Box::new(chat.header))) {
            return report;
        }
        let mut batch = MessageBatch::default();
        let mut messages = chat.messages.into_iter().peekable();
        while let Some(message) = messages.next() {
            batch.push(message, count);
            n_emitted += 1;
            if batch.is_full() || messages.peek().is_none() {
                batch.bytes_read = n_bytes * n_emitted as u64 / n_messages.max(1) as u64;
                if !on_event(BatchEvent::Batch(std::mem::take(&mut batch))) {
                    return report;
                }
            }
        }
    }
    report
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
