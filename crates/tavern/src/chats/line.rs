//! Parses one line of a SillyTavern chat file (the header or a message), and repairs irregular
//! messages. No I/O.
//!
//! **Invariant:** no line aborts the import. An unusable line and a repaired message are both
//! recorded in the report.

use base::message_text::{MessageText, MessageTextError};
use base::{display_name, message_text};
use serde_json::{Map, Value};

use crate::chats::message::{ChatHeader, ChatMessage, ChatRole, ChatText};
use crate::chats::{chat_variables, dates, metadata, timed_world_info};
use crate::documents::line_ends;
use crate::import_warning::ImportWarning;

/// Maximum number of swipes of a message; more than users read.
pub(crate) const MAX_SWIPES: usize = 200;

/// The maximum length of a name, the same as elsewhere.
pub(crate) const MAX_NAME: usize = 100;

/// The content of a line.
#[derive(Debug)]
pub enum ChatLine {
    Header(Box<ChatHeader>),
    Message(Box<ChatMessage>),
}

/// Why a line is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatLineError {
    #[error("This line is not a JSON object.")]
    Broken,
    #[error("This line is too long for a message.")]
    TooLong,
    #[error("This line contains no message.")]
    NoMessage,
    #[error("This message has no text.")]
    Blank,
}

impl ChatLineError {
    /// Returns the error as an import warning.
    pub fn describe(self) -> ImportWarning {
        let sentence = self.to_string();
        match self {
            Self::Broken => ImportWarning::new("chat_line_broken", sentence),
            Self::TooLong => ImportWarning::new("chat_line_too_long", sentence),
            Self::NoMessage => ImportWarning::new("chat_line_without_message", sentence),
            Self::Blank => ImportWarning::new("chat_line_blank", sentence),
        }
    }
}

/// Parses a line that is not blank; it may be the header only if `is_first`.
///
/// # Errors
/// Returns why the line is not a message.
pub fn read(line: &[u8], is_first: bool) -> Result<ChatLine, ChatLineError> {
    let line = parse_object(line)?;
    if line.contains_key("mes") || line.contains_key("swipes") {
        return read_message(&line).map(|it| ChatLine::Message(Box::new(it)));
    }
    let of_headers = [
        "chat_metadata",
        "user_name",
        "character_name",
        "create_date",
    ];
    match is_first && of_headers.iter().any(|it| line.contains_key(*it)) {
        true => Ok(ChatLine::Header(Box::new(read_header(&line)))),
        false => Err(ChatLineError::NoMessage),
    }
}

fn parse_object(line: &[u8]) -> Result<Map<String, Value>, ChatLineError> {
    let read = |line: &[u8]| serde_json::from_slice(line).ok();
    let value = read(line).or_else(|| read(&replace_lone_surrogates(line)));
    match value {
        Some(Value::Object(line)) => Ok(line),
        _ => Err(ChatLineError::Broken),
    }
}

/// Returns the line without lone halves of surrogate pairs. Frontends that cut a text inside an
/// emoji write them, and JSON parsers reject them.
fn replace_lone_surrogates(line: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let n_taken = match (unit(at), unit(at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                out.extend_from_slice("\u{fffd}".as_bytes());
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            // An escaped backslash does not start another escape.
            (None, _) if line[at] == b'\\' => 2,
            _ => 1,
        };
        let to = (at + n_taken).min(line.len());
        out.extend_from_slice(&line[at..to]);
        at = to;
    }
    out
}

fn read_header(line: &Map<String, Value>) -> ChatHeader {
    // Newer files have this value instead of both names.
    let name = |key: &str| read_name(line.get(key)).filter(|it| it != "unused");
    let mut header = ChatHeader {
        user_name: name("user_name"),
        character_name: name("character_name"),
        created_at: line.get("create_date").and_then(dates::parse),
        ..ChatHeader::default()
    };
    if let Some(Value::Object(chat)) = line.get("chat_metadata") {
        header.settings = metadata::settings(chat);
        header.variables = chat_variables::read(chat, &mut header.warnings);
        header.timed_effects = timed_world_info::read(chat);
    }
    header
}

fn read_name(value: Option<&Value>) -> Option<String> {
    display_name::truncate(value?.as_str()?, MAX_NAME)
}

fn read_message(line: &Map<String, Value>) -> Result<ChatMessage, ChatLineError> {
    let mut repairs = Vec::new();
    let (current, swipes) = current_and_swipes(line);
    let current = current.and_then(|it| clean_text(it, &mut repairs));
    let active_in_file = line.get("swipe_id").and_then(Value::as_u64);
    let is_user = is_true(line.get("is_user"));
    let role = match (metadata::is_narrator(line), is_user) {
        (true, _) => ChatRole::System,
        (false, true) => ChatRole::User,
        (false, false) => ChatRole::Assistant,
    };
    let infos = line.get("swipe_info").and_then(Value::as_array);
    let mut texts = Vec::new();
    let mut active = None;
    for (at, swipe) in swipes.iter().enumerate().take(MAX_SWIPES) {
        let Some(content) = unwrap_text(swipe).and_then(|it| clean_text(it, &mut repairs)) else {
            continue;
        };
        if active_in_file == Some(at as u64) {
            active = Some(texts.len());
        }
        let mut text = ChatText::new(content);
        if let Some(info) = infos.and_then(|it| it.get(at)).and_then(Value::as_object) {
            text.metadata = metadata::metadata(info, role);
        }
        texts.push(text);
    }
    if swipes.len() > MAX_SWIPES {
        let sentence = "Swipes beyond the limit were left out.";
        repairs.push(ImportWarning::new("chat_versions_left_out", sentence));
    }
    let active =
        select_active(current, &mut texts, active, &mut repairs).ok_or(ChatLineError::Blank)?;
    let about = metadata::metadata(line, role);
    // The metadata of the line applies to its current text. For a narrator it applies even if
    // empty.
    if role == ChatRole::System || about.as_object().is_some_and(|it| !it.is_empty()) {
        texts[active].metadata = about;
    }
    for text in &mut texts {
        metadata::keep_avatars(line, &mut text.metadata);
    }
    let extra = line.get("extra");
    let is_ooc =
        role == ChatRole::User && extra.is_some_and(|it| is_true(it.get(metadata::OOC_KEY)));
    Ok(ChatMessage {
        name: read_name(line.get("name")),
        is_user,
        role,
        is_excluded: is_true(line.get("is_system")) && !is_ooc,
        is_ooc,
        audience: metadata::audience(line),
        sent_at: line.get("send_date").and_then(dates::parse),
        texts,
        active,
        repairs,
    })
}

/// Returns the current text and the swipes, also when both are nested in `mes`.
fn current_and_swipes(line: &Map<String, Value>) -> (Option<&str>, &[Value]) {
    let mes = line.get("mes");
    let nested = mes.and_then(|it| it.get("swipes"));
    let lists = [line.get("swipes"), nested];
    let swipes = lists.into_iter().flatten().find_map(Value::as_array);
    (mes.and_then(unwrap_text), swipes.map_or(&[], Vec::as_slice))
}

/// Returns a text that is either a string or wrapped in an object.
fn unwrap_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(wrapped) => ["message", "mes", "content"]
            .iter()
            .find_map(|it| wrapped.get(*it)?.as_str()),
        _ => None,
    }
}

/// Finds or inserts the current text among the texts, and returns its index.
fn select_active(
    current: Option<String>,
    texts: &mut Vec<ChatText>,
    stated_active: Option<usize>,
    repairs: &mut Vec<ImportWarning>,
) -> Option<usize> {
    let Some(current) = current else {
        let last = texts.len().checked_sub(1)?;
        let sentence = "It had no current text; one of its swipes is shown.";
        repairs.push(ImportWarning::new("chat_without_own_text", sentence));
        return Some(stated_active.unwrap_or(last));
    };
    if let Some(at) = stated_active.filter(|at| texts[*at].content == current) {
        return Some(at);
    }
    if let Some(at) = texts.iter().position(|it| it.content == current) {
        let sentence = "Its swipe number did not match its text and was corrected.";
        repairs.push(ImportWarning::new("chat_other_version", sentence));
        return Some(at);
    }
    if !texts.is_empty() {
        let sentence = "Its text was not among its swipes and was added to them.";
        repairs.push(ImportWarning::new("chat_version_added", sentence));
    }
    texts.push(ChatText::new(current));
    Some(texts.len() - 1)
}

/// Cleans a text so that a message may have it; returns `None` if nothing visible is left.
pub(crate) fn clean_text(text: &str, repairs: &mut Vec<ImportWarning>) -> Option<String> {
    let text = &*line_ends::normalize(text);
    match MessageText::parse(text) {
        Ok(text) => Some(text.into_string()),
        Err(MessageTextError::Blank) => None,
        Err(MessageTextError::Nul) => {
            let sentence = "NUL characters were removed.";
            repairs.push(ImportWarning::new("chat_signs_removed", sentence));
            clean_text(&text.replace('\0', ""), repairs)
        }
        Err(MessageTextError::TooLong) => {
            let sentence = "It was longer than 64 KiB and was truncated.";
            repairs.push(ImportWarning::new("chat_text_cut", sentence));
            let to = text.floor_char_boundary(message_text::MAX_BYTES);
            clean_text(&text[..to], repairs)
        }
    }
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(it)) => *it,
        Some(Value::Number(it)) => it.as_f64() != Some(0.0),
        Some(Value::String(it)) => it.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
