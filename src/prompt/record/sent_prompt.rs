//! Defines `SentPrompt`, the stored form of a sent prompt: its blocks with their texts, but
//! messages only by reference.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base::ids::{CharacterId, MemoryId, MessageId, SummaryId};
use llm::compatibility::role_handling::RoleHandling;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use tavern::macros::card_use::CardUse;

use crate::prompt::blocks::{BlockKind, BlockPicture, PromptBlock, RecordedQuote, RecordedText};
use crate::prompt::builder::BuiltPrompt;
use crate::prompt::lore::LoreReport;
use crate::prompt::memory_block::RecordedRecall;
use crate::prompt::record::recorded_block::{
    CurrentTexts, RecordedBlock, TextState, current_text, to_recorded_block,
};
use crate::prompt::record::recorded_piece::{RecordedPiece, to_piece};
use crate::prompt::record::stop_strings::{RecordedStops, StopStrings};
use crate::prompt::text_completion::text_prompt::TextRecord;
use crate::regex_scripts::script_report::AppliedScript;

/// The maximum number of stored blocks; far more than a readable prompt has.
const MAX_PIECES: usize = 5_000;

/// A sent prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct SentPrompt {
    pub model: String,
    /// The characters whose cards are included. `None`: unknown, in an older or imported prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<Vec<CharacterId>>,
    /// What several messages have in common, for example those of one author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub styles: Vec<RecordedBlock>,
    pub pieces: Vec<RecordedPiece>,
    pub lore: LoreReport,
    /// The whispers that its history contains or quotes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whispers: Vec<MessageId>,
    /// The lore for those who did not hear all of these whispers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_lore: Option<LoreReport>,
    /// Which memories were recalled and why, and what came close.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalls: Vec<RecordedRecall>,
    /// What the regex scripts did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<AppliedScript>,
    /// The same for those who did not hear all of the whispers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_scripts: Option<Vec<AppliedScript>>,
    pub total_tokens: i64,
    pub limit_tokens: i64,
    pub dropped_messages: usize,
    /// How it became one text; `None`: it was sent as messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRecord>,
    #[serde(default, skip_serializing_if = "RecordedStops::is_empty")]
    pub stop: RecordedStops,
    /// How the roles of its messages were arranged; `None`: by the API, or unknown in an older prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_handling: Option<RoleHandling>,
}

/// The JSON text of a [`SentPrompt`], as it is stored.
#[derive(Clone, Debug)]
pub struct SentPromptJson(Arc<str>);

impl SentPrompt {
    /// Creates the record of a prompt. Messages that did not fit are counted but not stored.
    pub fn from_built(model: &str, built: &BuiltPrompt, max_stops: usize) -> Self {
        let was_left_out = |it: &&PromptBlock| it.kind == BlockKind::History && it.dropped;
        let blocks = built.blocks.iter().filter(|it| !was_left_out(it));
        let mut styles = Vec::new();
        let pieces = blocks
            .take(MAX_PIECES)
            .map(|it| to_piece(to_recorded_block(it, &built.summary), &mut styles))
            .collect();
        Self {
            model: model.to_owned(),
            cards: Some(built.cards.clone()),
            styles,
            pieces,
            lore: built.lore.clone(),
            whispers: built.whispers.clone(),
            public_lore: built.public_lore.clone(),
            recalls: built.recalls.clone(),
            scripts: built.scripts.clone(),
            public_scripts: built.public_scripts.clone(),
            total_tokens: built.total_tokens,
            limit_tokens: built.limit_tokens,
            dropped_messages: built.dropped_messages,
            text: built.text.as_ref().map(|it| it.record.storable()),
            stop: RecordedStops {
                stops: StopStrings::divide(&built.preset.stop, max_stops),
                card_use: built.stop_card_use,
            },
            role_handling: None,
        }
    }

    /// Serializes the prompt to the JSON that is stored.
    ///
    /// # Errors
    /// Returns an error when serde_json cannot write a value.
    pub fn to_json(&self) -> serde_json::Result<SentPromptJson> {
        Ok(SentPromptJson(serde_json::to_string(self)?.into()))
    }

    /// Returns the blocks, each style of messages once.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut RecordedBlock> {
        let blocks = self.pieces.iter_mut().filter_map(|it| match it {
            RecordedPiece::Block(block) => Some(block),
            RecordedPiece::Message(_) => None,
        });
        self.styles.iter_mut().chain(blocks)
    }

    /// Returns the texts of messages that are needed to show it.
    pub fn recorded_texts(&self) -> Vec<RecordedText> {
        self.pieces
            .iter()
            .flat_map(|it| it.source().into_iter().chain(it.quoted()))
            .collect()
    }

    /// Returns the languages into which messages were translated, each once, and these messages.
    pub fn translations(&self) -> HashMap<&str, Vec<MessageId>> {
        let mut found: HashMap<&str, Vec<MessageId>> = HashMap::new();
        for piece in &self.pieces {
            if let (Some(language), Some(source)) = (piece.language(&self.styles), piece.source()) {
                found.entry(language).or_default().push(source.message);
            }
        }
        found
    }

    /// Removes what comes from whispers in general, for those who did not hear all of them: blocks, lore,
    /// and which memories were found, because a whisper may have caused it. Messages and quotations stay.
    pub fn without_derived_from_whispers(mut self) -> Self {
        self.pieces.retain(|it| match it {
            RecordedPiece::Block(block) => !block.is_from_whispers,
            RecordedPiece::Message(_) => true,
        });
        if let Some(lore) = self.public_lore.take() {
            self.lore = lore;
        }
        if let Some(scripts) = self.public_scripts.take() {
            self.scripts = scripts;
        }
        self.recalls.clear();
        if let Some(text) = &mut self.text {
            text.layout = None;
        }
        // The names of personas.
        self.stop = RecordedStops::default();
        self
    }

    /// Replaces the message ids. A block whose message has no new id is removed, and so is a quotation. If
    /// that message is a whisper, what comes from whispers is removed, too.
    /// Pictures, which have other ids there, are left out.
    pub fn remap_messages(mut self, number: impl Fn(MessageId) -> Option<MessageId>) -> Self {
        let n_whispers = self.whispers.len();
        self.whispers = self.whispers.into_iter().filter_map(&number).collect();
        if self.whispers.len() < n_whispers {
            self = self.without_derived_from_whispers();
        }
        for block in self.blocks_mut() {
            block.pictures.clear();
            block.quote = block.quote.take().and_then(|it| {
                let message = number(it.source.message)?;
                let source = RecordedText {
                    message,
                    ..it.source
                };
                Some(Box::new(RecordedQuote { source, ..*it }))
            });
        }
        self.pieces.retain_mut(|it| match it.message_mut() {
            None => true,
            Some(message) => match number(*message) {
                Some(number) => {
                    *message = number;
                    true
                }
                None => false,
            },
        });
        self.clear_unused_styles();
        self
    }

    /// Removes the names and texts of styles whose messages were removed. The styles stay, because the
    /// pieces refer to their positions.
    fn clear_unused_styles(&mut self) {
        let used: HashSet<usize> = self
            .pieces
            .iter()
            .filter_map(RecordedPiece::style)
            .collect();
        for (index, style) in self.styles.iter_mut().enumerate() {
            if !used.contains(&index) {
                (style.name, style.quote) = (None, None);
                style.label.clear();
                style.text.clear();
            }
        }
    }

    /// Returns the memories that are needed to show it.
    pub fn memories(&self) -> Vec<MemoryId> {
        let recalled = self.recalls.iter().map(|it| it.memory);
        let in_blocks = self.pieces.iter().flat_map(|it| match it {
            RecordedPiece::Block(block) => block.memories.as_slice(),
            RecordedPiece::Message(_) => &[],
        });
        recalled.chain(in_blocks.copied()).collect()
    }

    /// Returns the versions of summaries that are needed to show it.
    pub fn summaries(&self) -> Vec<SummaryId> {
        let sources = self.pieces.iter().filter_map(|it| match it {
            RecordedPiece::Block(block) => block.summary,
            RecordedPiece::Message(_) => None,
        });
        sources
            .flat_map(|it| [it.version, it.facts])
            .flatten()
            .collect()
    }

    /// Removes memories and summaries, which exist only in their space: their blocks stay, without
    /// text.
    pub fn without_memories(mut self) -> Self {
        self.recalls.clear();
        for block in self.blocks_mut() {
            block.memories.clear();
            block.summary = None;
        }
        self
    }

    /// Returns the prompt as the reader of the texts sees it: without the whispers that they did not hear,
    /// and without what comes from these.
    pub fn heard_by_reader(mut self, current: &impl CurrentTexts) -> Self {
        let is_heard = |it: MessageId| !current.is_unheard(it);
        if !self.whispers.iter().all(|it| is_heard(*it)) {
            self = self.without_derived_from_whispers();
        }
        self.pieces
            .retain(|it| it.source().is_none_or(|it| is_heard(it.message)));
        self
    }

    /// Returns the blocks that were sent.
    pub fn sent_blocks(&self) -> impl Iterator<Item = RecordedBlock> {
        let pieces = self.pieces.iter().cloned();
        let blocks = pieces.filter_map(|it| it.into_block(&self.styles));
        blocks.filter(|it| !it.dropped)
    }

    /// Returns the blocks with the current texts of messages, memories and summaries; what was deleted
    /// is missing.
    pub fn into_blocks(self, current: &impl CurrentTexts) -> Vec<PromptBlock> {
        let is_old = self.cards.is_none();
        let styles = self.styles;
        let blocks = self.pieces.into_iter();
        let shown = blocks.filter_map(|it| it.into_block(&styles)).map(|it| {
            let TextState { text, is_changed } = current_text(&it, current);
            let pictures = block_pictures(&it);
            let card_use = match is_old && it.kind != BlockKind::History {
                true => CardUse::Unknown,
                false => it.card_use,
            };
            PromptBlock {
                card_use,
                name: it.name,
                tokens: it.tokens,
                pictures,
                dropped: it.dropped,
                is_changed,
                n_facts_left_out: it.summary.map_or(0, |it| it.n_facts_left_out),
                story_field: it.story_field,
                joins: it.joins,
                ..PromptBlock::new(it.kind, it.label, it.role, text)
            }
        });
        shown.collect()
    }
}

/// Returns the pictures of a stored block.
fn block_pictures(block: &RecordedBlock) -> Vec<BlockPicture> {
    let Some(source) = block.source else {
        return Vec::new();
    };
    let pictures = block.pictures.iter().map(|it| BlockPicture {
        message_id: source.message,
        sent: it.sent,
        tokens: it.tokens,
        picture: None,
    });
    pictures.collect()
}

impl SentPromptJson {
    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
#[path = "sent_prompt_tests.rs"]
mod tests;
