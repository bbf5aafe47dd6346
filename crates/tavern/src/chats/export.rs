//! Returns the lines of an exported chat: JSON objects for a JSONL file of SillyTavern (the header
//! and messages), or messages as plain text. No I/O.

use std::fmt::Write as _;

use base::clock::Timestamp;
use serde_json::{Map, Value, json};

use crate::chats::message::ChatRole;
use crate::chats::timed_world_info::NamedTimedEffect;
use crate::chats::{chat_variables, metadata, timed_world_info};
use crate::macros::variables::VariableMap;

/// The name that the header has if the chat has no user or no character.
const NO_NAME: &str = "unused";

/// What the header of a file contains.
#[derive(Clone, Copy, Debug)]
pub struct ExportedHeader<'a> {
    pub user_name: Option<&'a str>,
    pub character_name: Option<&'a str>,
    pub created_at: Timestamp,
    /// The settings of the conversation.
    pub settings: &'a Value,
    /// The variables of the conversation that macros read and set.
    pub variables: &'a VariableMap,
    /// The timed effects of lorebook entries, by the names of the file.
    pub timed_effects: &'a [NamedTimedEffect],
}

/// A message as it is exported.
#[derive(Clone, Copy, Debug)]
pub struct ExportedChatMessage<'a> {
    pub author: &'a str,
    pub role: ChatRole,
    /// Shown, but not sent to models.
    pub is_excluded: bool,
    /// Out of character: SillyTavern gets it as excluded, so that it does not send it either.
    pub is_ooc: bool,
    /// The names of the members who see it, if it is a whisper. SillyTavern has no whispers; it keeps the
    /// names.
    pub audience: Option<&'a [&'a str]>,
    pub sent_at: Timestamp,
    /// The text that is shown.
    pub text: ExportedText<'a>,
    /// The index of that text among the swipes.
    pub active: i64,
}

/// A text of a message.
#[derive(Clone, Copy, Debug)]
pub struct ExportedText<'a> {
    pub content: &'a str,
    pub metadata: &'a Value,
}

/// Returns the first line of a JSONL file.
pub fn header_line(header: &ExportedHeader<'_>) -> Value {
    let mut chat_metadata = metadata::to_chat_metadata(header.settings);
    chat_metadata.extend(chat_variables::write(header.variables));
    chat_metadata.extend(timed_world_info::write(header.timed_effects));
    json!({
        "user_name": header.user_name.unwrap_or(NO_NAME),
        "character_name": header.character_name.unwrap_or(NO_NAME),
        "create_date": header.created_at,
        "chat_metadata": chat_metadata,
    })
}

/// Returns a message as SillyTavern stores it. `swipes` are all its texts.
pub fn message_line(message: &ExportedChatMessage<'_>, swipes: &[ExportedText<'_>]) -> Value {
    let mut line = Map::new();
    let mut insert_field = |key: &str, value: Value| line.insert(key.to_owned(), value);
    insert_field("name", json!(message.author));
    insert_field("is_user", json!(message.role == ChatRole::User));
    insert_field("is_system", json!(message.is_excluded || message.is_ooc));
    insert_field("send_date", json!(message.sent_at));
    insert_field("mes", json!(message.text.content));
    for (key, value) in metadata::extra_of_line(message.text.metadata, message.role) {
        insert_field(&key, value);
    }
    for field in metadata::AVATAR_FIELDS {
        // A swipe that was generated here has none; those of the file do.
        let of_text = |it: &ExportedText<'_>| it.metadata[metadata::IMPORTED].get(field).cloned();
        if !line.contains_key(field)
            && let Some(avatar) = swipes.iter().find_map(of_text)
        {
            line.insert(field.to_owned(), avatar);
        }
    }
    let marks = [
        (metadata::OOC_KEY, message.is_ooc.then(|| json!(true))),
        (metadata::AUDIENCE_KEY, message.audience.map(|it| json!(it))),
    ];
    for (key, value) in marks {
        if let Some(value) = value {
            let extra = line.entry("extra").or_insert_with(|| json!({}));
            extra[key] = value;
        }
    }
    let mut insert_field = |key: &str, value: Value| line.insert(key.to_owned(), value);
    if swipes.len() > 1 {
        let contents: Vec<&str> = swipes.iter().map(|it| it.content).collect();
        let infos = swipes.iter().map(|it| swipe_info(*it, message));
        insert_field("swipe_id", json!(message.active));
        insert_field("swipes", json!(contents));
        insert_field("swipe_info", Value::Array(infos.collect()));
    }
    Value::Object(line)
}

fn swipe_info(text: ExportedText<'_>, message: &ExportedChatMessage<'_>) -> Value {
    let mut info = metadata::extra_of_message(text.metadata, message.role);
    for field in metadata::AVATAR_FIELDS {
        info.shift_remove(field);
    }
    info.insert("send_date".to_owned(), json!(message.sent_at));
    Value::Object(info)
}

/// Writes a message as plain text.
pub fn write_plain_text(out: &mut String, message: &ExportedChatMessage<'_>) {
    let sent_at = message.sent_at.to_utc().format("%Y-%m-%d %H:%M");
    let (author, text) = (message.author, message.text.content.trim());
    let to = message.audience.map_or_else(String::new, |names| {
        let others: Vec<&str> = names.iter().copied().filter(|it| *it != author).collect();
        format!(", whisper to {}", others.join(", "))
    });
    // Writing to a string cannot fail.
    let _ = write!(out, "{author} ({sent_at} UTC{to}):\n{text}\n\n");
}
