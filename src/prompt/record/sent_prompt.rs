//! Defines `SentPrompt`, the stored form of a sent prompt: its blocks with their texts, but
//! messages only by reference.

use base::ids::{CharacterId, MessageId};
use base::prompt_role::PromptRole;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use tavern::macros::card_use::CardUse;

use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock, RecordedText};
use crate::prompt::builder::BuiltPrompt;
use crate::prompt::lore::LoreReport;

/// The maximum text of a stored block, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The same for a block that was not sent.
const MAX_DROPPED_TEXT_BYTES: usize = 1024;
/// The maximum number of stored blocks; far more than a readable prompt has.
const MAX_PIECES: usize = 5_000;

/// A sent prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct SentPrompt {
    pub model: String,
    /// The characters whose cards are included. `None`: unknown, in an older or imported prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<Vec<CharacterId>>,
    pub pieces: Vec<RecordedBlock>,
    pub lore: LoreReport,
    pub total_tokens: i64,
    pub limit_tokens: i64,
    pub dropped_messages: usize,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedBlock {
    pub kind: BlockKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    pub role: PromptRole,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub tokens: i64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dropped: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub joins: bool,
    /// Whether the text comes from a card.
    #[serde(default, skip_serializing_if = "CardUse::is_none")]
    pub card_use: CardUse,
    /// The text; for a message, the prefix added to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The message of a history block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<RecordedText>,
}

/// The current text of a message, and whether it changed after it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextState {
    pub text: String,
    pub is_changed: bool,
}

impl SentPrompt {
    /// Creates the record of a prompt. Messages that did not fit are counted but not stored.
    pub fn from_built(model: &str, built: &BuiltPrompt) -> Self {
        let was_left_out = |it: &&PromptBlock| it.kind == BlockKind::History && it.dropped;
        let pieces = built.blocks.iter().filter(|it| !was_left_out(it));
        Self {
            model: model.to_owned(),
            cards: Some(built.cards.clone()),
            pieces: pieces.take(MAX_PIECES).map(to_recorded_block).collect(),
            lore: built.lore.clone(),
            total_tokens: built.total_tokens,
            limit_tokens: built.limit_tokens,
            dropped_messages: built.dropped_messages,
        }
    }

    /// Returns the texts of messages that are needed to show it.
    pub fn recorded_texts(&self) -> Vec<RecordedText> {
        self.pieces.iter().filter_map(|it| it.said).collect()
    }

    /// Replaces the message ids. A block whose message has no new id is removed.
    pub fn remap_messages(mut self, number: impl Fn(MessageId) -> Option<MessageId>) -> Self {
        self.pieces.retain_mut(|it| match &mut it.said {
            None => true,
            Some(said) => match number(said.message) {
                Some(number) => {
                    said.message = number;
                    true
                }
                None => false,
            },
        });
        self
    }

    /// Returns the blocks with the current texts of messages; the text of a deleted message is
    /// empty.
    pub fn into_blocks(
        self,
        present: impl Fn(RecordedText) -> Option<TextState>,
    ) -> Vec<PromptBlock> {
        let is_old = self.cards.is_none();
        let shown = self.pieces.into_iter().map(|it| {
            let found = it.said.map(&present);
            let (text, is_changed) = match found {
                None => (it.text, false),
                Some(None) => (String::new(), true),
                Some(Some(now)) => (it.text + &now.text, now.is_changed),
            };
            let card_use = match is_old && it.kind != BlockKind::History {
                true => CardUse::Unknown,
                false => it.card_use,
            };
            PromptBlock {
                card_use,
                name: it.name,
                tokens: it.tokens,
                dropped: it.dropped,
                is_changed,
                joins: it.joins,
                ..PromptBlock::new(it.kind, it.label, it.role, text)
            }
        });
        shown.collect()
    }
}

fn to_recorded_block(block: &PromptBlock) -> RecordedBlock {
    let (text, said) = match &block.origin {
        BlockOrigin::Message { said, before } => (before.as_str(), Some(*said)),
        BlockOrigin::Written | BlockOrigin::Lore(_) => (block.text.as_str(), None),
    };
    let max_bytes = if block.dropped {
        MAX_DROPPED_TEXT_BYTES
    } else {
        MAX_TEXT_BYTES
    };
    let kept = &text[..text.floor_char_boundary(max_bytes)];
    let suffix = if kept.len() < text.len() { "…" } else { "" };
    RecordedBlock {
        kind: block.kind,
        label: block.label.clone(),
        role: block.role,
        name: block.name.clone(),
        tokens: block.tokens,
        dropped: block.dropped,
        joins: block.joins,
        card_use: block.card_use,
        // PostgreSQL does not store NUL in JSON.
        text: kept.replace('\0', "") + suffix,
        said,
    }
}

fn is_false(it: &bool) -> bool {
    !it
}
