//! Chats in JSON lines: messages are valid and within the limits, and export and import keep a
//! message unchanged.

use base::clock::Timestamp;
use base::message_text::MAX_BYTES;
use tavern::chats::batches::{BatchEvent, MAX_MESSAGES};
use tavern::chats::export::{ExportedChatMessage, ExportedText};
use tavern::chats::line::ChatLine;
use tavern::chats::message::{ChatMessage, ChatText};
use tavern::chats::{batches, export, line};

/// Reads the bytes as a chat file.
pub fn check(data: &[u8]) {
    let mut n_messages = 0;
    let count = |text: &str| text.len() as i64;
    let report = batches::read(data, &count, &mut |event| {
        if let BatchEvent::Batch(batch) = event {
            assert!(batch.messages.len() <= MAX_MESSAGES);
            assert!(batch.bytes_read <= data.len() as u64);
            n_messages += batch.messages.len();
            batch.messages.iter().for_each(check_message);
        }
        true
    });
    let report = report.expect("bytes can be read");
    let n_lines = data.split(|it| *it == b'\n').count();
    assert!(report.n_skipped as usize + n_messages <= n_lines);
}

/// Checks a message, and that export and import keep it.
pub fn check_message(read: &ChatMessage) {
    for text in &read.texts {
        let content = &text.content;
        assert!(
            !content.trim().is_empty() && content.len() <= MAX_BYTES && !content.contains('\0')
        );
    }
    let texts: Vec<ExportedText<'_>> = read.texts.iter().map(exported).collect();
    let audience: Option<Vec<&str>> = read
        .audience
        .as_ref()
        .map(|names| names.iter().map(String::as_str).collect());
    let message = ExportedChatMessage {
        author: read.name.as_deref().unwrap_or("Ada"),
        role: read.role,
        is_excluded: read.is_excluded,
        is_ooc: read.is_ooc,
        audience: audience.as_deref(),
        sent_at: read.sent_at.unwrap_or(Timestamp(0)),
        text: texts[read.active],
        active: read.active as i64,
    };
    let line = export::message_line(&message, &texts);
    let line = serde_json::to_vec(&line).expect("a line serializes to JSON");
    let Ok(ChatLine::Message(back)) = line::read(&line, false) else {
        panic!(
            "an exported message cannot be imported: {}",
            String::from_utf8_lossy(&line)
        );
    };
    let of = |it: &ChatMessage| {
        (
            it.role,
            (it.is_excluded, it.is_ooc),
            it.active,
            contents(it),
        )
    };
    assert_eq!(of(&back), of(read), "{}", String::from_utf8_lossy(&line));
    assert_eq!(back.repairs, [], "an exported message was repaired");
}

fn contents(message: &ChatMessage) -> Vec<(String, String)> {
    let text = |it: &ChatText| (it.content.clone(), it.metadata.to_string());
    message.texts.iter().map(text).collect()
}

fn exported(text: &ChatText) -> ExportedText<'_> {
    ExportedText {
        content: &text.content,
        metadata: &text.metadata,
    }
}
