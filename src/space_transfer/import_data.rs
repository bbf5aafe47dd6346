//! Defines the data of a space import: `FileHead`, the parsed documents of the file, and `IdMap`,
//! the ids of the created memberships and conversations by their keys in the file.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId};
use serde_json::{Value, json};
use tavern::lorebook_files::file::ParsedLorebook;
use tavern::macros::variables::VariableMap;

use crate::conversations::chats::import_writer::ChatImportError;
use crate::space_transfer::document;

/// The documents of a file: everything except messages, run history and assets.
#[derive(Debug)]
pub struct FileHead {
    pub space: document::ExportedSpace,
    /// The space-wide macro variables.
    pub variables: VariableMap,
    pub memberships: Vec<document::ExportedMembership>,
    pub characters: Vec<document::ExportedCharacter>,
    pub presets: Vec<document::ExportedPreset>,
    pub lorebooks: Vec<ArchivedLorebook>,
    pub lorebook_links: Vec<document::ExportedLorebookLink>,
    /// A parent precedes its branches.
    pub conversations: Vec<document::ExportedConversation>,
}

/// A parsed lorebook of a file, in order.
#[derive(Debug)]
pub struct ArchivedLorebook {
    pub key: i64,
    pub draft: ParsedLorebook,
    pub entry_keys: Vec<i64>,
    pub created_at: Timestamp,
}

/// Maps the keys of a file to the new ids, as far as they exist.
#[derive(Clone, Debug, Default)]
pub struct IdMap {
    pub memberships: HashMap<i64, MembershipId>,
    pub conversations: HashMap<i64, ConversationId>,
}

/// Returns the error for invalid content of a file.
pub fn invalid_file(what: &str) -> ChatImportError {
    ChatImportError::NotASpace(format!("Invalid content in {what}."))
}

/// Returns an empty object if the value is not an object.
pub fn object_or_empty(value: &Value) -> Value {
    match value.is_object() {
        true => value.clone(),
        false => json!({}),
    }
}
