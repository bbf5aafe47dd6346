//! The pieces of a prompt, as they are put in order, weighed, sent, and shown to people who ask.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::llm::request::{Message, PromptRole};
use crate::llm::tool::{AnsweredCall, Attachment, ToolCall};
use crate::prompt::card_use::CardUse;
use crate::prompt::prompt_record::RecordedText;

/// What a piece of a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptBlockKind)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    Main,
    Persona,
    Description,
    Personality,
    Scenario,
    /// A text of the preset.
    Entry,
    Lore,
    Example,
    AuthorNote,
    /// What a card wants inside the history.
    DepthPrompt,
    NewChat,
    History,
    GroupNudge,
    PostHistory,
    Impersonation,
}

/// Where a piece comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlockOrigin {
    /// A card, the preset, a person.
    #[default]
    Written,
    /// This was said; `before` stands before it.
    Message { said: RecordedText, before: String },
    /// The lore entry at this place of those that entered.
    Lore(usize),
}

/// What was said beside a text, or in its place; nothing, in a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockPayload {
    /// What the speaker called.
    pub calls: Vec<ToolCall>,
    /// The text is what came of this call.
    pub answers: Option<AnsweredCall>,
    pub attachments: Vec<Attachment>,
}

impl BlockPayload {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One piece of a prompt, as it is shown to people who ask what was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptBlock)]
pub struct PromptBlock {
    /// What it is.
    pub kind: BlockKind,
    /// What it is called in a list: `Description`, or who said a line.
    pub label: String,
    /// On whose side it stands.
    pub role: PromptRole,
    /// Who said it, if anybody did.
    pub name: Option<String>,
    /// How long it is, its speaker's name counted in.
    pub tokens: i64,
    /// What it says.
    pub text: String,
    /// It did not fit and is not sent.
    pub dropped: bool,
    /// What was said has been changed since it was sent, or deleted.
    pub is_changed: bool,
    /// The caller may not read the card that the text comes from: the text is left out.
    pub withheld: bool,
    /// It goes on where the piece before it ends, a line below.
    #[serde(skip)]
    pub joins: bool,
    /// Of lore: who goes first when not all fits. Lower goes first.
    #[serde(skip)]
    pub priority: (i64, i64),
    #[serde(skip)]
    pub origin: BlockOrigin,
    /// Whether the text comes from a card.
    #[serde(skip)]
    pub card_use: CardUse,
    #[serde(skip)]
    pub payload: BlockPayload,
    /// Of what was said: it is sent, or nothing is.
    #[serde(skip)]
    pub is_required: bool,
}

impl PromptBlock {
    /// A piece that nobody in particular says.
    pub fn new(kind: BlockKind, label: impl Into<String>, role: PromptRole, text: String) -> Self {
        Self {
            kind,
            label: label.into(),
            role,
            name: None,
            tokens: 0,
            text,
            dropped: false,
            is_changed: false,
            withheld: false,
            joins: false,
            priority: (0, 0),
            origin: BlockOrigin::Written,
            card_use: CardUse::None,
            payload: BlockPayload::default(),
            is_required: false,
        }
    }
}

/// What is sent. Neighboring system pieces are one message: many models take only one at a time.
pub fn to_messages(blocks: &[PromptBlock]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for block in blocks.iter().filter(|it| !it.dropped) {
        let neighbor = messages
            .last_mut()
            .filter(|it| it.role == block.role && it.name.is_none() && block.name.is_none());
        match neighbor {
            Some(last) if block.joins || block.role == PromptRole::System => {
                last.content
                    .push_str(if block.joins { "\n" } else { "\n\n" });
                last.content.push_str(&block.text);
            }
            _ => messages.push(Message {
                name: block.name.clone(),
                calls: block.payload.calls.clone(),
                answers: block.payload.answers.clone(),
                attachments: block.payload.attachments.clone(),
                ..Message::new(block.role, &block.text)
            }),
        }
    }
    messages
}
