//! Defines the stored form of a block: its text, or what it refers to.
//!
//! **Invariant:** the texts of messages, memories and summaries are not stored, nor are pictures and
//! their descriptions, so that no record contains anything that was deleted.

use std::borrow::Cow;

use base::ids::{AttachmentId, MemoryId, MessageId};
use base::prompt_role::PromptRole;
use serde::{Deserialize, Serialize};
use tavern::instruct::story_string::StoryField;
use tavern::macros::card_use::CardUse;

use crate::attachments::picture_text;
use crate::conversations::annotations::quote;
use crate::prompt::blocks::{
    BlockKind, BlockOrigin, PromptBlock, RecordedQuote, RecordedSummary, RecordedText,
};

/// The maximum text of a stored block, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The same for a block that was not sent.
const MAX_DROPPED_TEXT_BYTES: usize = 1024;
/// The text that is stored instead of the summary that the macro inserted.
const SUMMARY_MACRO: &str = "{{summary}}";

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
    /// The field of the story string in a text completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story_field: Option<StoryField>,
    /// The text; for a message, the prefix added to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The message of a history block, in a record without styles.
    #[serde(rename = "said", default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RecordedText>,
    /// The message that it quotes after its prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Box<RecordedQuote>>,
    /// The pictures of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<RecordedPicture>,
    /// The language of the translation that was sent instead of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated_to: Option<Box<str>>,
    /// The memories that are its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<MemoryId>,
    /// The versions of the summary that are its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<RecordedSummary>,
    /// Whether only those see it who heard all whispers of the prompt.
    #[serde(rename = "whispered", default, skip_serializing_if = "is_false")]
    pub is_from_whispers: bool,
}

/// A picture that was sent, or whose description was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPicture {
    pub id: AttachmentId,
    pub sent: bool,
    pub tokens: i64,
}

/// The current text of a message, and whether it changed after it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextState {
    pub text: String,
    pub is_changed: bool,
}

/// The current texts of what a prompt refers to.
pub trait CurrentTexts {
    /// Returns the text of a swipe; `None` if the message was deleted.
    fn message(&self, source: RecordedText) -> Option<TextState>;
    /// Returns what a reply quotes of a message: its text, or its pictures if it has none; `None` if it was
    /// deleted.
    fn quoted(&self, source: RecordedText) -> Option<TextState> {
        self.message(source)
    }
    /// Returns the text that stands for a picture of a message; `None` if it was deleted.
    fn picture(&self, message: MessageId, id: AttachmentId) -> Option<String>;
    /// Returns the translation of the shown text of a message; `None` if there is none.
    fn translation(&self, message: MessageId, language: &str) -> Option<TextState>;
    /// Returns the block of these memories, without those that were deleted.
    fn memory_block(&self, ids: &[MemoryId]) -> TextState;
    /// Returns the block of these versions of a summary, without those that were deleted.
    fn summary_block(&self, source: RecordedSummary) -> TextState;
    /// Returns whether a message is a whisper that the reader did not hear.
    fn is_unheard(&self, message: MessageId) -> bool;
}

/// Returns the text of a block as it is now.
pub(super) fn current_text(block: &RecordedBlock, current: &impl CurrentTexts) -> TextState {
    match (block.source, block.kind) {
        (Some(source), _) => match current_message(block, source, current) {
            Some(now) => {
                let quoted = current_quote(block.quote.as_deref(), current);
                let text = format!("{}{}{}", block.text, quoted.text, now.text);
                let pictures = current_pictures(block, source, current);
                let is_complete = pictures.iter().all(Option::is_some);
                let pictures = pictures.iter().flatten().map(String::as_str);
                TextState {
                    text: picture_text::after(text, pictures),
                    is_changed: now.is_changed || quoted.is_changed || !is_complete,
                }
            }
            None => TextState {
                text: String::new(),
                is_changed: true,
            },
        },
        (None, BlockKind::Memory) => current.memory_block(&block.memories),
        (None, BlockKind::Summary) => current.summary_block(block.summary.unwrap_or_default()),
        (None, _) => TextState {
            text: block.text.clone(),
            is_changed: false,
        },
    }
}

/// Returns the texts that stood for pictures, as they are now; `None` for a deleted one.
fn current_pictures(
    block: &RecordedBlock,
    source: RecordedText,
    current: &impl CurrentTexts,
) -> Vec<Option<String>> {
    let described = block.pictures.iter().filter(|it| !it.sent);
    let texts = described.map(|it| current.picture(source.message, it.id));
    texts.collect()
}

/// Returns the text of a message, or the translation that was sent instead; the message itself, as changed,
/// if it has been changed or its translation was deleted.
fn current_message(
    block: &RecordedBlock,
    source: RecordedText,
    current: &impl CurrentTexts,
) -> Option<TextState> {
    let now = current.message(source)?;
    let Some(language) = &block.translated_to else {
        return Some(now);
    };
    let translation = current.translation(source.message, language);
    Some(translation.unwrap_or(TextState {
        is_changed: true,
        ..now
    }))
}

/// Returns the line that quotes a message as it is now; empty if it was deleted, or if the reader did not
/// hear it.
fn current_quote(quote: Option<&RecordedQuote>, current: &impl CurrentTexts) -> TextState {
    let heard = quote.filter(|it| !current.is_unheard(it.source.message));
    let Some(quote) = heard else {
        return TextState::default();
    };
    match current.quoted(quote.source) {
        Some(now) => TextState {
            text: quote::prompt_line(&quote.name, &now.text),
            is_changed: now.is_changed,
        },
        None => TextState {
            text: String::new(),
            is_changed: true,
        },
    }
}

/// Converts a block to its stored form. In its text, the macro replaces the `summary` that it inserted;
/// the texts of other blocks may contain the same words.
pub(super) fn to_recorded_block(block: &PromptBlock, summary: &str) -> RecordedBlock {
    let (text, source) = match &block.origin {
        BlockOrigin::Message { source, before, .. } => (before.as_str(), Some(*source)),
        BlockOrigin::Memories(_) | BlockOrigin::Summary(_) => ("", None),
        BlockOrigin::Written | BlockOrigin::Lore(_) => (block.text.as_str(), None),
    };
    // A variable or an outlet may contain the summary.
    let has_summary = block.has_summary || block.card_use == CardUse::Unknown;
    let text = match summary.trim() {
        summary if has_summary && !summary.is_empty() => {
            Cow::Owned(text.replace(summary, SUMMARY_MACRO))
        }
        _ => Cow::Borrowed(text),
    };
    let quote = match &block.origin {
        BlockOrigin::Message { quote, .. } => quote.clone().map(Box::new),
        _ => None,
    };
    let translated_to = match &block.origin {
        BlockOrigin::Message { translated_to, .. } => translated_to.as_deref().map(Box::from),
        _ => None,
    };
    let memories = match &block.origin {
        BlockOrigin::Memories(ids) => ids.clone(),
        _ => Vec::new(),
    };
    let summary = match block.origin {
        BlockOrigin::Summary(source) => Some(source),
        _ => None,
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
        story_field: block.story_field,
        // A message is shown as it is now, without what scripts have put into it.
        card_use: match source {
            Some(_) => CardUse::None,
            None => block.card_use,
        },
        // PostgreSQL does not store NUL in JSON.
        text: kept.replace('\0', "") + suffix,
        source,
        quote,
        pictures: block
            .pictures
            .iter()
            .filter_map(|it| {
                Some(RecordedPicture {
                    id: it.picture.as_ref()?.id,
                    sent: it.sent,
                    tokens: it.tokens,
                })
            })
            .collect(),
        translated_to,
        memories,
        summary,
        is_from_whispers: block.is_from_whispers,
    }
}

fn is_false(it: &bool) -> bool {
    !it
}
