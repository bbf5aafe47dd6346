//! Defines the parsed content of a chat file: its header, and messages with all their texts
//! (swipes).

use base::clock::Timestamp;
use serde_json::{Map, Value, json};

use crate::chats::timed_world_info::NamedTimedEffect;
use crate::import_warning::ImportWarning;
use crate::lorebook_files::file::ParsedLorebook;
use crate::macros::variables::VariableMap;

/// The header, in most files the first line.
#[derive(Clone, Debug, Default)]
pub struct ChatHeader {
    pub user_name: Option<String>,
    pub character_name: Option<String>,
    pub created_at: Option<Timestamp>,
    /// The name of the chat, if the file has one.
    pub title: Option<String>,
    /// Author's note and scenario, as settings of a conversation.
    pub settings: Map<String, Value>,
    /// The variables that macros read and set.
    pub variables: VariableMap,
    /// The timed effects of lorebook entries, by the names of the file.
    pub timed_effects: Vec<NamedTimedEffect>,
    /// The lorebook of the chat, if the file contains one.
    pub lorebook: Option<ParsedLorebook>,
    /// What was changed or left out.
    pub warnings: Vec<ImportWarning>,
}

/// A message with all its texts; `active` is always a valid index.
#[derive(Clone, Debug)]
pub struct ChatMessage {
    /// `None` if the line has no name.
    pub name: Option<String>,
    pub is_user: bool,
    pub role: ChatRole,
    /// Shown, but not sent to models.
    pub is_excluded: bool,
    /// Out of character: shown to people, in no prompt. Always of role `User`.
    pub is_ooc: bool,
    /// The names of the members who see it; `None`: everyone.
    pub audience: Option<Vec<String>>,
    pub sent_at: Option<Timestamp>,
    pub texts: Vec<ChatText>,
    pub active: usize,
    /// The repairs that were applied.
    pub repairs: Vec<ImportWarning>,
}

/// The role of the author of a message; a narrator has the role `System`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    User,
    Assistant,
    System,
}

/// A text of a message.
#[derive(Clone, Debug)]
pub struct ChatText {
    pub content: String,
    /// 0: not counted.
    pub token_count: i64,
    pub metadata: Value,
}

impl ChatText {
    pub(crate) fn new(content: String) -> Self {
        Self {
            content,
            token_count: 0,
            metadata: json!({}),
        }
    }
}
