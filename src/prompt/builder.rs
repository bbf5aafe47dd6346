//! One prompt from one context: the pieces in the order of the preset, fitted into the window.

use crate::ids::CharacterId;
use crate::llm::request::Message;
use crate::llm::request::PromptRole;
use crate::llm::request::Request;
use crate::presets::document::DEFAULT_ORDER;
use crate::presets::document::GenerationTrigger;
use crate::presets::document::Preset;
use crate::presets::document::PresetEntry;
use crate::presets::document::PromptPosition;
use crate::presets::document::PromptSlot;
use crate::prompt::blocks::Block;
use crate::prompt::blocks::Kind;
use crate::prompt::blocks::messages;
use crate::prompt::budget::ContextOverflow;
use crate::prompt::budget::fit;
use crate::prompt::card_use::CardUse;
use crate::prompt::cards;
use crate::prompt::context::Context;
use crate::prompt::history;
use crate::prompt::in_chat;
use crate::prompt::in_chat::Injection;
use crate::prompt::lore;
use crate::prompt::lore::Told;
use crate::prompt::macros::variables::VariableChanges;
use crate::prompt::note::Position;
use crate::prompt::sections::Sections;
use serde_json::Value;

/// A finished prompt, and how it came about.
#[derive(Clone, Debug)]
pub struct Built {
    /// What is sent, oldest first.
    pub messages: Vec<Message>,
    /// Every piece, dropped ones too, in order.
    pub blocks: Vec<Block>,
    /// The characters whose cards entered.
    pub cards: Vec<CharacterId>,
    /// How long what is sent is.
    pub total_tokens: i64,
    /// How long it may be: the window without what is kept free for the answer.
    pub limit_tokens: i64,
    /// How many lines of the history did not fit.
    pub dropped_messages: usize,
    /// Display name of who is about to speak.
    pub speaker: String,
    /// The order of the prompt, and how the model is to choose its words: the macros in `stop` are
    /// expanded.
    pub preset: Preset,
    /// What of the lore entered and what did not.
    pub lore: Told,
    /// What is to be remembered once the turn has been taken.
    pub memory: Memory,
}

/// What a turn leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// What macros have set.
    pub macros: VariableChanges,
    /// Which lore stays, and which rests.
    pub lore: Option<Value>,
}

/// Builds the prompt of `context`; `count` tells how many tokens a text has.
pub fn build(context: &Context, count: &dyn Fn(&str) -> i64) -> Result<Built, ContextOverflow> {
    let mut world = context.world();
    let lore = lore::find(context, &mut world, count);
    world.take_card_use();
    let cards = cards::read(context, &world);
    let card_text = world.take_card_use().max(CardUse::Entered);
    let sections = Sections {
        card_text,
        context,
        cards: &cards,
        lore: &lore,
        world: &world,
    };
    let mut blocks = in_order(&sections, count);
    for block in blocks.iter_mut().filter(|it| it.kind != Kind::History) {
        block.tokens = count(&block.text);
    }
    let limits = context.limits();
    let limit_tokens = limits.context_tokens - limits.response_tokens;
    let total_tokens = fit(&mut blocks, limit_tokens, context.preset.examples)?;
    let dropped = blocks
        .iter()
        .filter(|it| it.kind == Kind::History && it.dropped);
    let speaker = context.speaking().map(|it| it.name.clone());
    let preset = Preset {
        stop: sections.stop(),
        ..context.preset.clone()
    };
    Ok(Built {
        cards: cards::entered(context),
        messages: messages(&blocks),
        total_tokens,
        limit_tokens,
        dropped_messages: dropped.count(),
        speaker: speaker.unwrap_or_default(),
        preset,
        lore: lore.told(&blocks),
        memory: Memory {
            lore: lore.timed(),
            macros: world.variables.into_inner().changes,
        },
        blocks,
    })
}

impl Built {
    /// The call of `model` that asks for this turn.
    pub fn into_request(self, model: impl Into<String>, seed: u64) -> Request {
        Request {
            model: model.into(),
            messages: self.messages,
            temperature: self.preset.temperature,
            top_p: self.preset.top_p,
            max_tokens: self.preset.max_tokens,
            stop: self.preset.stop,
            samplers: self.preset.samplers,
            seed,
            speaker: self.speaker,
            ..Request::default()
        }
    }
}

/// The pieces in their order: each entry of the preset where it stands, and what stands at a depth
/// among what was said.
fn in_order(sections: &Sections<'_>, count: &dyn Fn(&str) -> i64) -> Vec<Block> {
    let context = sections.context;
    let order = context.preset.order.iter();
    let speaking: Vec<_> = order.filter(|it| speaks(it, context.trigger)).collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut injections = Vec::new();
    let mut has_history = false;
    let mut note = Some(sections.note());
    let mut deep_note = Vec::new();
    let mut directions = sections.directions();
    let position = context.note.position;
    if position == Position::Before {
        before.extend(note.take().unwrap_or_default());
    }
    for entry in speaking {
        let is_relative = entry.place == PromptPosition::Relative;
        let ends_cards = matches!(entry.slot, Some(PromptSlot::Examples | PromptSlot::History));
        if ends_cards && is_relative {
            before.extend(directions.take());
        }
        if position == Position::After && ends_cards && is_relative {
            before.extend(note.take().unwrap_or_default());
        }
        match entry.place {
            _ if entry.slot == Some(PromptSlot::History) => has_history = true,
            PromptPosition::Relative if has_history => after.extend(sections.of(entry)),
            PromptPosition::Relative => before.extend(sections.of(entry)),
            PromptPosition::InChat { depth, order } => {
                let depth = usize::try_from(depth).unwrap_or_default();
                let blocks = sections.of(entry).into_iter();
                injections.extend(blocks.map(|block| Injection {
                    depth,
                    order,
                    block,
                }));
            }
        }
    }
    before.extend(directions);
    let rest = note.take().unwrap_or_default();
    match position {
        Position::InChat => deep_note = rest,
        Position::Before | Position::After => before.extend(rest),
    }
    injections.extend(at_depth(sections, deep_note));
    before.extend(sections.new_chat());
    before.extend(in_chat::insert(history::blocks(context, count), injections));
    before.extend(sections.group_nudge());
    before.append(&mut after);
    before.extend(sections.impersonation());
    before
}

/// To write a message anew is a swipe as well: its old text stays beside the new one.
fn speaks(entry: &PresetEntry, trigger: GenerationTrigger) -> bool {
    let is_swipe =
        trigger == GenerationTrigger::Regenerate && entry.applies_to(GenerationTrigger::Swipe);
    entry.applies_to(trigger) || is_swipe
}

/// What stands among the messages beside the entries of the preset: what cards want there, lore, and
/// last, as the strongest, the author's note.
fn at_depth(sections: &Sections<'_>, note: Vec<Block>) -> Vec<Injection> {
    let usual = |depth, block| Injection {
        depth,
        order: DEFAULT_ORDER,
        block,
    };
    let cards = sections.cards.depth_prompts.iter().map(|it| {
        let role = match it.prompt.role.as_str() {
            "user" => PromptRole::User,
            "assistant" => PromptRole::Assistant,
            _ => PromptRole::System,
        };
        let text = it.prompt.prompt.clone();
        let block = Block {
            card_use: sections.card_text,
            ..Block::new(Kind::DepthPrompt, &it.owner, role, text)
        };
        usual(it.prompt.depth, block)
    });
    let lore = sections.lore.at_depths().into_iter();
    let lore = lore.map(|(depth, block)| usual(depth, block));
    let depth = sections.context.note.depth;
    let note = note.into_iter().map(|it| usual(depth, it));
    cards.chain(lore).chain(note).collect()
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "builder_human_tests.rs"]
mod human_tests;

#[cfg(test)]
#[path = "builder_group_tests.rs"]
mod group_tests;

#[cfg(test)]
#[path = "builder_names_tests.rs"]
mod names_tests;

#[cfg(test)]
#[path = "builder_chain_tests.rs"]
mod chain_tests;
