//! Builds a prompt from its context: orders the blocks by the preset, drops those that exceed the
//! context window, and converts the rest to a request for the model. Also returns the lore report,
//! and the variables and timed lorebook effects to store. No I/O.

use std::collections::HashMap;

use base::ids::{AttachmentId, CharacterId, MessageId};
use llm::reasoning::thinking_models;
use llm::request::{Message, Request};
use llm::tool::Attachment;
use tavern::instruct::context_template::ReasoningTemplate;
use tavern::instruct::story_string::StoryField;
use tavern::macros::card_use::CardUse;
use tavern::presets::complete_preset::{
    GenerationTrigger, Preset, PresetEntry, PromptPosition, PromptSlot,
};

use crate::prompt::author_note::NotePosition;
use crate::prompt::blocks::{BlockKind, HistoryPicture, PromptBlock, to_messages};
use crate::prompt::budget::fit_blocks;
use crate::prompt::cards::depth_insertion::Injection;
use crate::prompt::cards::{card_texts, depth_insertion};
use crate::prompt::context::PromptContext;
use crate::prompt::history::history_fit::fit_history;
use crate::prompt::history::message_blocks;
use crate::prompt::lore::LoreReport;
use crate::prompt::macro_values::environment::macro_environment;
use crate::prompt::memory_block::RecordedRecall;
use crate::prompt::prompt_error::PromptError;
use crate::prompt::record::prompt_effects::PromptEffects;
use crate::prompt::record::volatile_entries;
use crate::prompt::scripts::script_pass::ScriptPass;
use crate::prompt::sections::Sections;
use crate::prompt::text_completion::text_prompt::BuiltText;
use crate::prompt::text_completion::{story_fields, text_layout, text_prompt};
use crate::prompt::{budget, lore, prefill};
use crate::regex_scripts::script_report::AppliedScript;

/// A finished prompt with the details of its construction.
#[derive(Clone, Debug)]
pub struct BuiltPrompt {
    /// The messages to send, oldest first.
    pub messages: Vec<Message>,
    /// Every block in order, dropped ones included.
    pub blocks: Vec<PromptBlock>,
    /// The characters whose cards are included.
    pub cards: Vec<CharacterId>,
    /// The last message is the beginning of the response.
    pub is_prefilled: bool,
    /// The text that is stored before the reply.
    pub stored_prefix: Option<String>,
    /// The messages as one text, for a text completion.
    pub text: Option<BuiltText>,
    /// The tokens of the messages.
    pub total_tokens: i64,
    /// The token limit: the context window minus the tokens reserved for the reply.
    pub limit_tokens: i64,
    /// The number of messages that did not fit.
    pub dropped_messages: usize,
    /// The display name of the speaker.
    pub speaker: String,
    /// The order of the prompt and the sampling settings; the macros in `stop` are expanded.
    pub preset: Preset,
    /// Whether the stop strings contain text of a card.
    pub stop_card_use: CardUse,
    /// The activated and the dropped lore, and warnings about the whole prompt.
    pub lore: LoreReport,
    /// The lore that would also be activated or dropped without the whispers of the history; `None`: there
    /// are none.
    pub public_lore: Option<LoreReport>,
    /// The whispers that the history contains or quotes.
    pub whispers: Vec<MessageId>,
    /// Which memories are recalled and why, and what came close.
    pub recalls: Vec<RecordedRecall>,
    /// What the regex scripts did.
    pub scripts: Vec<AppliedScript>,
    /// What they would also have done without the whispers of the history; `None`: there are none.
    pub public_scripts: Option<Vec<AppliedScript>>,
    /// The text that `{{summary}}` inserted.
    pub summary: String,
    /// The changes to store if the run succeeds.
    pub effects: PromptEffects,
}

/// Builds the prompt of `context`; `count` returns the number of tokens of a text by our own tokenizer, to
/// which the factors of the model are applied.
///
/// # Errors
/// `ContextOverflow` when the blocks that must be kept exceed the context window, and `InvalidMacro`
/// when macros exceed a limit.
pub fn build(
    context: &PromptContext,
    count: &dyn Fn(&str) -> i64,
) -> Result<BuiltPrompt, PromptError> {
    let factors = context.token_factors;
    let count = &|text: &str| factors.apply(text, count(text));
    let mut environment = macro_environment(context);
    let lore = lore::activate(context, &mut environment, count);
    environment.take_card_use();
    environment.take_summary_use();
    let cards = card_texts::expand_cards(context, &environment);
    let card_text = environment.take_card_use().max(CardUse::Entered);
    let have_cards_summary = environment.take_summary_use();
    let mut text = text_layout::expand_templates(context, &cards.bindings, &mut environment);
    let scripts = ScriptPass::new(context, &cards.bindings, &environment);
    let sections = Sections {
        card_text,
        have_cards_summary,
        context,
        cards: &cards,
        lore: &lore,
        environment: &environment,
        scripts: &scripts,
    };
    let mut blocks = ordered_blocks(&sections, count);
    environment.take_card_use();
    let mut stop = sections.stop_sequences();
    let mut stop_card_use = sections.origin(environment.take_card_use());
    if let Some(failure) = environment.failure.take() {
        return Err(failure.into());
    }
    scripts.change_lore(&mut blocks, &lore);
    for block in blocks.iter_mut().filter(|it| it.kind != BlockKind::History) {
        block.tokens = count(&block.text);
    }
    match &mut text {
        Some(text) => {
            text.card_use = sections.origin(text.card_use);
            stop_card_use = stop_card_use.max(text.card_use);
            stop = text_prompt::stops(&text.layout, &stop, &context.reply_names().1);
            text_prompt::add_sequence_tokens(&mut blocks, &text.layout, count);
        }
        None => blocks.iter_mut().for_each(|it| it.story_field = None),
    }
    let limit_tokens = context.limit_tokens();
    budget::limit_personas(&mut blocks, limit_tokens);
    let history = fit_history(&mut blocks, context, limit_tokens, count);
    let fitting = (limit_tokens, context.preset.examples);
    let mut total_tokens = fit_blocks(&mut blocks, fitting.0, fitting.1)?;
    let is_prefilled = prefill::is_prefilled(context, &blocks);
    let stored_prefix = prefill::stored_prefix(context, &blocks);
    let mut warnings = context.warnings.clone();
    warnings.extend(prefill::warning(context));
    warnings.extend(volatile_entries::warnings(context, sent_entries(context)));
    let text = match text {
        Some(text) => {
            let (text, more) = text_prompt::fit(&mut blocks, text, is_prefilled, fitting, count)?;
            warnings.extend(more);
            total_tokens = text.tokens;
            Some(text)
        }
        None => None,
    };
    let dropped = blocks
        .iter()
        .filter(|it| it.kind == BlockKind::History && it.dropped);
    let speaker = context.find_speaker().map(|it| it.name.clone());
    let preset = Preset {
        stop,
        max_tokens: u32::try_from(context.limits().response_tokens).ok(),
        ..context.preset.clone()
    };
    Ok(BuiltPrompt {
        cards: card_texts::included_characters(context),
        messages: to_messages(&blocks),
        is_prefilled,
        stored_prefix,
        text,
        stop_card_use,
        total_tokens,
        limit_tokens,
        dropped_messages: dropped.count(),
        speaker: speaker.unwrap_or_default(),
        preset,
        lore: lore.report(&blocks).with_warnings(warnings),
        public_lore: None,
        whispers: context.whispers().map(|(id, _)| id).collect(),
        recalls: recalls(context, &blocks),
        scripts: scripts.into_report(),
        public_scripts: None,
        summary: environment.summary,
        effects: PromptEffects {
            timed_effects: lore.timed_effects(),
            variables: environment.variables.into_inner().changes,
            history,
        },
        blocks,
    })
}

/// Returns what was recalled. Memories that did not fit have no rank.
fn recalls(context: &PromptContext, blocks: &[PromptBlock]) -> Vec<RecordedRecall> {
    let mut recalls = context.memories.found.clone();
    let is_dropped = |it: &PromptBlock| it.kind == BlockKind::Memory && it.dropped;
    if blocks.iter().any(is_dropped) {
        recalls.iter_mut().for_each(|it| it.rank = None);
    }
    recalls
}

impl BuiltPrompt {
    /// Returns the pictures that the model sees.
    pub fn sent_pictures(&self) -> impl Iterator<Item = &HistoryPicture> {
        let kept = self.blocks.iter().filter(|it| !it.dropped);
        let pictures = kept.flat_map(|it| &it.pictures);
        pictures
            .filter(|it| it.sent)
            .filter_map(|it| it.picture.as_ref())
    }

    /// Adds the bytes of these pictures to the messages.
    pub fn attach_pictures(&mut self, loaded: &HashMap<AttachmentId, Attachment>) {
        for block in &mut self.blocks {
            let sent = block.pictures.iter().filter(|it| it.sent);
            let bytes = sent.filter_map(|it| loaded.get(&it.picture.as_ref()?.id).cloned());
            block.payload.attachments.extend(bytes);
        }
        self.messages = to_messages(&self.blocks);
    }

    /// Converts the prompt to a request for `model`. If the model thinks before it answers, the limit of
    /// the reply is raised by the tokens for that.
    pub fn into_request(self, model: impl Into<String>, seed: u64) -> Request {
        let model = model.into();
        let for_thoughts = thinking_models::extra_tokens(&model);
        let max_tokens = self.preset.max_tokens;
        let tags = self.preset.reasoning_tags.as_ref();
        let tags = tags.and_then(ReasoningTemplate::tags);
        let reasoning_tags = tags.map(|(before, after)| (before.to_owned(), after.to_owned()));
        Request {
            model,
            messages: self.messages,
            temperature: self.preset.temperature,
            top_p: self.preset.top_p,
            max_tokens: max_tokens.map(|it| it.saturating_add(for_thoughts)),
            stop: self.preset.stop,
            samplers: self.preset.samplers,
            is_prefilled: self.is_prefilled,
            prompt_text: self.text.map(|it| it.text),
            reasoning_tags,
            seed,
            speaker: self.speaker,
            ..Request::default()
        }
    }
}

/// Returns the blocks in order: the preset's entries, and among the messages the blocks with a
/// depth.
fn ordered_blocks(sections: &Sections<'_>, count: &dyn Fn(&str) -> i64) -> Vec<PromptBlock> {
    let context = sections.context;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut injections = Vec::new();
    let mut has_history = false;
    let mut note = Some(sections.note());
    let mut deep_note = Vec::new();
    let mut directions = sections.instructions();
    let position = context.note.position;
    if position == NotePosition::Before {
        let note = note.take().unwrap_or_default();
        before.extend(story_fields::in_field(note, StoryField::AnchorBefore));
    }
    let mut is_after_main = false;
    for entry in sent_entries(context) {
        let is_relative = entry.place == PromptPosition::Relative;
        let ends_cards = matches!(entry.slot, Some(PromptSlot::Examples | PromptSlot::History));
        if ends_cards && is_relative {
            before.extend(story_fields::in_field(
                directions.take(),
                StoryField::AnchorAfter,
            ));
        }
        if position == NotePosition::After && ends_cards && is_relative {
            let note = note.take().unwrap_or_default();
            before.extend(story_fields::in_field(note, StoryField::AnchorAfter));
        }
        is_after_main |= entry.slot == Some(PromptSlot::Main);
        match entry.place {
            _ if entry.slot == Some(PromptSlot::History) => has_history = true,
            PromptPosition::Relative if has_history => after.extend(sections.blocks_for(entry)),
            PromptPosition::Relative => {
                let blocks = sections.blocks_for(entry);
                before.extend(story_fields::of_entry(blocks, entry.slot, is_after_main));
            }
            PromptPosition::InChat { depth, order } => {
                let depth = usize::try_from(depth).unwrap_or_default();
                let blocks = sections.blocks_for(entry).into_iter();
                injections.extend(blocks.map(|block| Injection {
                    depth,
                    order,
                    block,
                }));
            }
        }
    }
    before.extend(story_fields::in_field(directions, StoryField::AnchorAfter));
    let rest = note.take().unwrap_or_default();
    match position {
        NotePosition::InChat => deep_note = rest,
        NotePosition::Before | NotePosition::After => {
            before.extend(story_fields::in_field(rest, StoryField::AnchorAfter));
        }
    }
    injections.extend(depth_insertion::card_injections(sections, deep_note));
    before.extend(sections.new_chat());
    let mut messages = message_blocks::blocks(context, sections.scripts, count);
    let continued = prefill::take_continued(context, &mut messages);
    let needs_replacement = prefill::needs_empty_message_replacement(context, &messages);
    before.extend(depth_insertion::insert(messages, injections));
    before.extend(
        needs_replacement
            .then(|| sections.empty_message())
            .flatten(),
    );
    before.extend(sections.group_nudge());
    before.append(&mut after);
    before.extend(sections.impersonation());
    before.extend(sections.continue_nudge());
    before.extend(continued.or_else(|| sections.prefill()));
    before
}

/// Returns the entries of the preset that apply to this kind of generation, in order.
fn sent_entries(context: &PromptContext) -> impl Iterator<Item = &PresetEntry> {
    let order = context.preset.order.iter();
    order.filter(|it| applies(it, context.trigger))
}

/// Entries for swipes apply to a regeneration too, because it creates a swipe.
fn applies(entry: &PresetEntry, trigger: GenerationTrigger) -> bool {
    let is_swipe =
        trigger == GenerationTrigger::Regenerate && entry.applies_to(GenerationTrigger::Swipe);
    entry.applies_to(trigger) || is_swipe
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "builder_impersonation_tests.rs"]
mod human_tests;

#[cfg(test)]
#[path = "builder_continue_tests.rs"]
mod continue_tests;

#[cfg(test)]
#[path = "builder_prefill_tests.rs"]
mod prefill_tests;

#[cfg(test)]
#[path = "builder_pictures_tests.rs"]
mod picture_tests;

#[cfg(test)]
#[path = "builder_group_tests.rs"]
mod group_tests;

#[cfg(test)]
#[path = "builder_lore_tests.rs"]
mod lore_tests;

#[cfg(test)]
#[path = "builder_macro_tests.rs"]
mod macro_tests;

#[cfg(test)]
#[path = "builder_names_tests.rs"]
mod names_tests;

#[cfg(test)]
#[path = "builder_text_tests.rs"]
mod text_tests;

#[cfg(test)]
#[path = "builder_scripts_tests.rs"]
mod scripts_tests;

#[cfg(test)]
#[path = "builder_v1_tests.rs"]
mod chain_tests;

#[cfg(test)]
#[path = "builder_whispers_tests.rs"]
mod whispers_tests;

#[cfg(test)]
#[path = "builder_window_tests.rs"]
mod window_tests;

#[cfg(test)]
#[path = "builder_cache_tests.rs"]
mod cache_tests;

#[cfg(test)]
#[path = "builder_prefix_share_tests.rs"]
mod prefix_share_tests;
