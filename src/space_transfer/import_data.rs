//! Defines the data of a space import: `FileHead`, the parsed documents of the file, and `IdMap`,
//! the ids of the created memberships and conversations by their keys in the file.

use std::collections::{BTreeSet, HashMap, HashSet};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use serde_json::{Value, json};
use tavern::lorebook_files::file::ParsedLorebook;
use tavern::macros::variables::VariableMap;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::message;
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

/// Rows per statement.
const ROWS_PER_STATEMENT: usize = 500;

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
    /// The memberships of characters.
    pub characters: HashSet<MembershipId>,
}

impl IdMap {
    /// Returns the audience with these keys and the members who always belong to it; `None`: everyone, if
    /// there are no keys, or no one is left. Unknown keys are left out: an audience never grows.
    pub fn audience(
        &self,
        keys: Option<&[i64]>,
        always: impl IntoIterator<Item = MembershipId>,
    ) -> Option<Audience> {
        let known = keys?.iter().filter_map(|it| self.memberships.get(it));
        Audience::new(known.copied().chain(always))
    }

    /// Returns whether an audience has keys of unknown memberships.
    pub fn has_unknown(&self, audience: Option<&[i64]>) -> bool {
        let mut keys = audience.iter().copied().flatten();
        keys.any(|it| !self.memberships.contains_key(it))
    }

    /// Returns whether no character belongs to an audience.
    pub fn is_for_people(&self, audience: Option<&Audience>) -> bool {
        audience.is_some_and(|it| !it.members().iter().any(|it| self.characters.contains(it)))
    }

    /// Returns the audience of a round, to which the members of its slots belong; an error is a round that
    /// no one would see.
    pub fn audience_of_round(
        &self,
        round: &document::ExportedRound,
    ) -> Result<Option<Audience>, ChatImportError> {
        let slots = round.slots.iter();
        let speakers = slots.filter_map(|it| self.memberships.get(&it.membership?).copied());
        let keys = round.audience.as_deref();
        match self.audience(keys, speakers) {
            None if keys.is_some() => Err(invalid_file("the rounds")),
            audience => Ok(audience),
        }
    }
}

/// Returns the ids of the messages of a conversation with these `seq`s.
pub async fn load_message_ids(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    seqs: BTreeSet<i64>,
) -> Result<HashMap<i64, MessageId>, DbErr> {
    let seqs: Vec<i64> = seqs.into_iter().collect();
    let mut ids = HashMap::new();
    for piece in seqs.chunks(ROWS_PER_STATEMENT) {
        let found: Vec<(i64, MessageId)> = message::Entity::find()
            .select_only()
            .column(message::Column::Seq)
            .column(message::Column::Id)
            .filter(message::Column::ConversationId.eq(conversation))
            .filter(message::Column::Seq.is_in(piece.iter().copied()))
            .into_tuple()
            .all(tx)
            .await?;
        ids.extend(found);
    }
    Ok(ids)
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
