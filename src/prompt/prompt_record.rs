//! What is kept of a prompt that was sent: its pieces with their texts, but of what was said only
//! where it stands in the timeline.

use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};

use crate::ids::{CharacterId, MessageId};
use crate::llm::request::PromptRole;
use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock};
use crate::prompt::builder::BuiltPrompt;
use crate::prompt::card_use::CardUse;
use crate::prompt::lore::LoreReport;

/// The longest text of a piece that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The same of one that was not sent.
const MAX_DROPPED_TEXT_BYTES: usize = 1024;
/// More pieces than a prompt has that anybody reads.
const MAX_PIECES: usize = 5_000;

/// A prompt that was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct SentPrompt {
    pub model: String,
    /// The characters whose cards entered. `None`: not known, of an older or an imported prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<Vec<CharacterId>>,
    pub pieces: Vec<RecordedBlock>,
    pub lore: LoreReport,
    pub total_tokens: i64,
    pub limit_tokens: i64,
    pub dropped_messages: usize,
}

/// One piece of it.
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
    /// What it says; of a line of the history what stands before it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Of a line of the history: which message it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<RecordedText>,
}

/// A text of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedText {
    pub message: MessageId,
    pub swipe: i64,
}

/// What became of a text since it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextState {
    pub text: String,
    pub is_changed: bool,
}

impl SentPrompt {
    /// What is kept of a prompt. Lines that did not fit are counted, and not kept.
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

    /// Which texts of messages it needs to be shown.
    pub fn recorded_texts(&self) -> Vec<RecordedText> {
        self.pieces.iter().filter_map(|it| it.said).collect()
    }

    /// The same with other numbers for the messages. A piece whose message has none is left out.
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

    /// The pieces, with what was said as it reads now; a message that is gone says nothing.
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
        // PostgreSQL refuses NUL in a document.
        text: kept.replace('\0', "") + suffix,
        said,
    }
}

fn is_false(it: &bool) -> bool {
    !it
}
