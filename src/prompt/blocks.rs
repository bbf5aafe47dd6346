//! Defines `PromptBlock`, a part of a prompt that is ordered, dropped if necessary and shown to
//! users, and converts blocks to the messages for the model.

use base::ids::{AssetId, AttachmentId, MemoryId, MessageId, SummaryId};
use base::prompt_role::PromptRole;
use llm::reasoning::thought::Thought;
use llm::request::Message;
use llm::tool::{AnsweredCall, Attachment, ToolCall};
use serde::{Deserialize, Serialize};
use tavern::instruct::story_string::StoryField;
use tavern::macros::card_use::CardUse;
use utoipa::ToSchema;

/// What a block contains.
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
    /// The Character's Note (depth prompt) of a card.
    DepthPrompt,
    /// The recalled memories.
    Memory,
    /// The summary of the messages before the history.
    Summary,
    NewChat,
    History,
    GroupNudge,
    ContinueNudge,
    PostHistory,
    Impersonation,
    /// The beginning of the reply, which the preset sets.
    Prefill,
}

/// One swipe of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedText {
    pub message: MessageId,
    pub swipe: i64,
}

/// The message that a message quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedQuote {
    #[serde(flatten)]
    pub source: RecordedText,
    /// The name of its author.
    pub name: String,
}

/// The versions of the summary from which a block comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSummary {
    /// The one whose text it contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<SummaryId>,
    /// The one whose pinned facts it contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<SummaryId>,
    /// The number of these facts that did not fit: the last ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_facts_left_out: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Where a block comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlockOrigin {
    /// A card, the preset or a user.
    #[default]
    Written,
    /// A message; `before` is the prefix added to its text, `seq` its position in the timeline.
    /// `quote` follows the prefix. `translated_to` is the language of the text if it is a translation.
    Message {
        source: RecordedText,
        seq: i64,
        before: String,
        quote: Option<RecordedQuote>,
        translated_to: Option<String>,
    },
    /// The activated lore entry with this index.
    Lore(usize),
    /// These memories.
    Memories(Vec<MemoryId>),
    Summary(RecordedSummary),
}

/// What a message carries besides its text. For messages of a space it contains only the pictures that are
/// sent, once their bytes are loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockPayload {
    /// The tool calls of the message.
    pub calls: Vec<ToolCall>,
    /// The reasoning before these calls.
    pub thoughts: Vec<Thought>,
    /// The call of which the text is the result.
    pub answers: Option<AnsweredCall>,
    pub attachments: Vec<Attachment>,
}

impl BlockPayload {
    /// Returns whether there are no calls, results or attachments.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A picture of a message, with what a prompt needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPicture {
    pub id: AttachmentId,
    pub asset: AssetId,
    pub media_type: String,
    /// Width and height in pixels.
    pub size: (i64, i64),
    /// What a model gets that does not accept pictures.
    pub text: String,
}

/// A picture of a message in a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptPicture)]
pub struct BlockPicture {
    pub message_id: MessageId,
    /// Whether the model sees it; otherwise it reads its description.
    pub sent: bool,
    /// The number of tokens.
    pub tokens: i64,
    /// `None` in a stored prompt.
    #[serde(skip)]
    pub picture: Option<HistoryPicture>,
}

/// One part of a prompt, as users see it when they inspect the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PromptBlock)]
pub struct PromptBlock {
    /// The kind of the block.
    pub kind: BlockKind,
    /// The title in a list: `Description`, or the author of a message.
    pub label: String,
    /// The role under which it is sent.
    pub role: PromptRole,
    /// The author's name, if it has one.
    pub name: Option<String>,
    /// The number of tokens, including the author's name.
    pub tokens: i64,
    /// The text.
    pub text: String,
    /// The pictures of the message, whose tokens are included.
    pub pictures: Vec<BlockPicture>,
    /// It exceeded the token budget and is not sent.
    pub dropped: bool,
    /// The message was edited or deleted after the prompt was sent.
    pub is_changed: bool,
    /// The number of pinned facts that did not fit into the block of the summary.
    pub n_facts_left_out: usize,
    /// The text is omitted because the caller may not read the card that it comes from.
    pub withheld: bool,
    /// It continues the previous block's message on a new line.
    #[serde(skip)]
    pub joins: bool,
    /// For example messages: the index of their dialogue, which is dropped as a whole.
    #[serde(skip)]
    pub example_dialogue: Option<usize>,
    /// For lore: the eviction order under the token budget. Lower is dropped first.
    #[serde(skip)]
    pub priority: (i64, i64),
    #[serde(skip)]
    pub origin: BlockOrigin,
    /// The field of the story string of a text completion; `None`: a part of the chat.
    #[serde(skip)]
    pub story_field: Option<StoryField>,
    /// Whether the text comes from a card.
    #[serde(skip)]
    pub card_use: CardUse,
    /// Whether `{{summary}}` may have inserted the summary into the text.
    #[serde(skip)]
    pub has_summary: bool,
    /// Whether it would not be in the prompt without the whispers of its history.
    #[serde(skip)]
    pub is_from_whispers: bool,
    #[serde(skip)]
    pub payload: BlockPayload,
    /// The message must not be dropped; if it does not fit, the prompt is refused.
    #[serde(skip)]
    pub is_required: bool,
}

impl PromptBlock {
    /// Creates a block without an author.
    pub fn new(kind: BlockKind, label: impl Into<String>, role: PromptRole, text: String) -> Self {
        Self {
            kind,
            label: label.into(),
            role,
            name: None,
            tokens: 0,
            text,
            pictures: Vec::new(),
            dropped: false,
            is_changed: false,
            n_facts_left_out: 0,
            withheld: false,
            joins: false,
            example_dialogue: None,
            priority: (0, 0),
            origin: BlockOrigin::Written,
            story_field: None,
            card_use: CardUse::None,
            has_summary: false,
            is_from_whispers: false,
            payload: BlockPayload::default(),
            is_required: false,
        }
    }
}

/// Returns the messages to send. Adjacent system blocks become one message, because many models
/// accept only one at a time.
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
                thoughts: block.payload.thoughts.clone(),
                answers: block.payload.answers.clone(),
                attachments: block.payload.attachments.clone(),
                ..Message::new(block.role, &block.text)
            }),
        }
    }
    messages
}
