//! Builds the messages of a chat of another program: cleans their texts, splits texts that are too
//! long for one message, and reports items without a text.

use base::clock::Timestamp;
use base::display_name;
use base::message_text::MAX_BYTES;
use serde_json::{Map, Value, json};

use crate::chats::line::{ChatLineError, MAX_NAME, MAX_SWIPES, clean_text};
use crate::chats::line_report::LineReport;
use crate::chats::message::{ChatHeader, ChatMessage, ChatRole, ChatText};
use crate::chats::metadata;
use crate::import_warning::ImportWarning;
use crate::lorebook_files::file;

/// The maximum number of chats in a file; each becomes a conversation.
pub const MAX_CHATS: usize = 500;

/// A chat as it is imported.
#[derive(Debug, Default)]
pub struct ImportedChat {
    pub header: ChatHeader,
    pub messages: Vec<ChatMessage>,
    /// Skipped and changed items. The line of a problem is the number of the message.
    pub report: LineReport,
}

/// A message before its texts are cleaned.
#[derive(Clone, Debug)]
pub struct DraftMessage {
    pub name: Option<String>,
    pub role: ChatRole,
    pub is_excluded: bool,
    pub is_ooc: bool,
    pub sent_at: Option<Timestamp>,
    /// The text that is shown, then its alternatives.
    pub texts: Vec<String>,
    /// The index of the text that is shown.
    pub active: usize,
}

impl DraftMessage {
    /// Creates a message with one text.
    pub fn new(role: ChatRole, text: impl Into<String>) -> Self {
        Self {
            name: None,
            role,
            is_excluded: false,
            is_ooc: false,
            sent_at: None,
            texts: vec![text.into()],
            active: 0,
        }
    }
}

/// Collects the messages of a chat in order.
#[derive(Debug, Default)]
pub struct ChatBuilder {
    chat: ImportedChat,
    n_items: u64,
}

impl ChatBuilder {
    /// Creates a builder with the header of the chat.
    pub fn new(header: ChatHeader) -> Self {
        let chat = ImportedChat {
            header,
            ..ImportedChat::default()
        };
        Self { chat, n_items: 0 }
    }

    /// Adds a message. One without a visible text is skipped and reported.
    pub fn push(&mut self, draft: DraftMessage) {
        self.n_items += 1;
        let is_single = draft.texts.len() == 1;
        if is_single && draft.texts[0].len() > MAX_BYTES {
            for piece in split_long(&draft.texts[0]) {
                let texts = vec![piece];
                self.add(DraftMessage {
                    texts,
                    ..draft.clone()
                });
            }
            return;
        }
        self.add(draft);
    }

    /// Reports an item that is not a message.
    pub fn skip(&mut self) {
        self.n_items += 1;
        let warning = ChatLineError::NoMessage.describe();
        self.chat.report.record(self.n_items, &warning, true);
    }

    fn add(&mut self, draft: DraftMessage) {
        let mut repairs = Vec::new();
        let mut texts: Vec<ChatText> = Vec::new();
        let mut active = None;
        for (at, text) in draft.texts.iter().enumerate().take(MAX_SWIPES) {
            let Some(content) = clean_text(text, &mut repairs) else {
                continue;
            };
            let known = texts.iter().position(|it| it.content == content);
            if at == draft.active {
                active = Some(known.unwrap_or(texts.len()));
            }
            if known.is_none() {
                texts.push(ChatText::new(content));
            }
        }
        if texts.is_empty() {
            let warning = ChatLineError::Blank.describe();
            return self.chat.report.record(self.n_items, &warning, true);
        }
        if draft.texts.len() > MAX_SWIPES {
            let sentence = "Swipes beyond the limit were left out.";
            repairs.push(ImportWarning::new("chat_versions_left_out", sentence));
        }
        if let Some(repair) = repairs.first() {
            self.chat.report.record(self.n_items, repair, false);
        }
        self.chat.messages.push(ChatMessage {
            name: draft
                .name
                .and_then(|it| display_name::truncate(&it, MAX_NAME)),
            is_user: draft.role == ChatRole::User,
            role: draft.role,
            is_excluded: draft.is_excluded,
            is_ooc: draft.is_ooc && draft.role == ChatRole::User,
            audience: None,
            sent_at: draft.sent_at,
            active: active.unwrap_or(0),
            texts,
            repairs,
        });
    }

    /// Returns the chat.
    pub fn finish(self) -> ImportedChat {
        self.chat
    }
}

/// Splits a text into pieces that a message may have, after a line or a word if possible.
fn split_long(mut text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    while text.len() > MAX_BYTES {
        let limit = text.floor_char_boundary(MAX_BYTES);
        let head = &text[..limit];
        let breaks = [head.rfind('\n'), head.rfind(' ')];
        let at = breaks.into_iter().flatten().find(|it| *it > limit / 2);
        let (piece, rest) = text.split_at(at.unwrap_or(limit));
        pieces.push(piece.to_owned());
        text = rest;
    }
    pieces.push(text.to_owned());
    pieces
}

/// Returns the settings of a conversation with an author's note and a scenario.
pub fn settings(note: Option<&Value>, scenario: Option<&Value>) -> Map<String, Value> {
    let mut chat = Map::new();
    for (key, value) in [("note_prompt", note), ("scenario", scenario)] {
        if let Some(text) = value.and_then(Value::as_str) {
            chat.insert(key.to_owned(), json!(text));
        }
    }
    metadata::settings(&chat)
}

/// Reads the lorebook of a chat into its header; an unreadable one is reported.
pub fn add_lorebook(header: &mut ChatHeader, document: Value, name: &str) {
    match file::from_value(document, name) {
        Ok(book) => {
            header.warnings.extend(book.warnings.iter().cloned());
            header.lorebook = (!book.entries.is_empty()).then_some(book);
        }
        Err(error) => {
            let sentence = format!("The lorebook of the chat was not read: {error}");
            let warning = ImportWarning::new("chat_lorebook_unreadable", sentence);
            header.warnings.push(warning);
        }
    }
}

/// Warns about parts of the file that contain something and have no place here.
pub fn warn_left_out(header: &mut ChatHeader, document: &Value, fields: &[&str]) {
    let is_filled = |value: &Value| match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    };
    let left_out = fields
        .iter()
        .filter(|it| document.get(**it).is_some_and(is_filled));
    let names: Vec<&str> = left_out.copied().collect();
    if !names.is_empty() {
        let names = names.join(", ");
        let sentence = format!("Parts of the file have no place here and were left out: {names}.");
        let warning = ImportWarning::new("chat_parts_left_out", sentence);
        header.warnings.push(warning.with("names", names));
    }
}

/// Returns the warning about a file with more chats than are imported.
pub fn chats_cut() -> ImportWarning {
    let sentence = format!("Only the first {MAX_CHATS} chats of the file were imported.");
    ImportWarning::new("chats_cut", sentence).with("n", MAX_CHATS)
}

/// Returns a text field; numbers and other values are no text.
pub fn text<'a>(fields: &'a Value, name: &str) -> Option<&'a str> {
    fields.get(name)?.as_str()
}

/// Returns a list field; empty if there is none.
pub fn list<'a>(fields: &'a Value, name: &str) -> &'a [Value] {
    let items = fields.get(name).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// Returns whether a field is `true`.
pub fn flag(fields: &Value, name: &str) -> bool {
    fields.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use base::message_text::MAX_BYTES;
    use serde_json::json;

    use super::{ChatBuilder, DraftMessage, warn_left_out};
    use crate::chats::message::{ChatHeader, ChatRole};

    #[test]
    fn equal_alternatives_are_one_swipe_and_blank_messages_are_reported() {
        let mut builder = ChatBuilder::default();
        builder.push(DraftMessage::new(ChatRole::User, " \r\n"));
        builder.push(DraftMessage {
            texts: ["b\r\nc", "", "a", "a"].map(str::to_owned).to_vec(),
            active: 3,
            ..DraftMessage::new(ChatRole::Assistant, "")
        });

        let chat = builder.finish();

        let [message] = chat.messages.as_slice() else {
            panic!("{:?}", chat.messages)
        };
        let texts: Vec<&str> = message.texts.iter().map(|it| it.content.as_str()).collect();
        assert_eq!((texts, message.active), (vec!["b\nc", "a"], 1));
        assert_eq!((chat.report.n_skipped, chat.report.lines[0].line), (1, 1));
    }

    #[test]
    fn a_text_that_is_too_long_becomes_several_messages() {
        let long = "word ".repeat(MAX_BYTES / 2);
        let mut builder = ChatBuilder::default();
        builder.push(DraftMessage::new(ChatRole::Assistant, long.clone()));

        let chat = builder.finish();

        assert!(chat.messages.len() > 2);
        let whole: String = chat
            .messages
            .iter()
            .map(|it| it.texts[0].content.as_str())
            .collect();
        assert_eq!(whole, long);
        assert_eq!(chat.report.n_repaired, 0);
    }

    #[test]
    fn only_parts_with_content_are_named() {
        let mut header = ChatHeader::default();

        warn_left_out(
            &mut header,
            &json!({"a": "x", "b": "", "c": [], "d": {"x": 1}}),
            &["a", "b", "c", "d"],
        );

        assert_eq!(header.warnings[0].params["names"], "a, d");
    }
}
