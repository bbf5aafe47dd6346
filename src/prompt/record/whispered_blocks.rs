//! Finds the parts of a prompt that come from whispers, by comparison with the prompt that would be built
//! without them: a macro may insert a whisper into any block, and it may activate lore or change which
//! memories are recalled.
//!
//! **Invariant:** who did not hear a whisper sees only parts that a prompt without it has, too. A run
//! stores only effects that it would have without whispers, because the prompts of all speakers read them.

use tavern::presets::complete_preset::Preset;

use crate::prompt::blocks::{BlockOrigin, PromptBlock};
use crate::prompt::builder::BuiltPrompt;
use crate::prompt::record::prompt_effects::PromptEffects;

/// Returns a prompt as a reader sees it who did not hear all of its whispers; `heard` is the prompt without
/// these. The totals stay those of the whole prompt.
pub fn shown(prompt: BuiltPrompt, heard: &BuiltPrompt) -> BuiltPrompt {
    let blocks = prompt.blocks.iter();
    let blocks = blocks.filter_map(|it| shown_block(it, heard)).collect();
    let text = prompt.text.map(|mut it| {
        it.record.layout = None;
        it
    });
    // The names of personas are among the stop strings.
    let preset = Preset {
        stop: Vec::new(),
        ..prompt.preset
    };
    BuiltPrompt {
        text,
        preset,
        blocks,
        lore: prompt.lore.in_common_with(&heard.lore),
        scripts: heard.scripts.clone(),
        ..prompt
    }
}

/// Marks the parts of a prompt that come from its whispers; `public` is the prompt without any whisper,
/// `None` if there is none.
pub fn mark(prompt: &mut BuiltPrompt, public: Option<&BuiltPrompt>) {
    for block in &mut prompt.blocks {
        let is_public = public.is_some_and(|it| shown_block(block, it).is_some());
        block.is_from_whispers = !is_public && message_of(block).is_none();
    }
    let lore = public.map(|it| prompt.lore.in_common_with(&it.lore));
    prompt.public_lore = Some(lore.unwrap_or_default());
    let scripts = public.map(|it| it.scripts.clone());
    prompt.public_scripts = Some(scripts.unwrap_or_default());
    prompt.effects = PromptEffects {
        history: prompt.effects.history,
        ..public.map(|it| it.effects.clone()).unwrap_or_default()
    };
}

/// Returns a block as it is in the other prompt; `None` if that prompt does not have it.
fn shown_block(block: &PromptBlock, other: &BuiltPrompt) -> Option<PromptBlock> {
    let mut others = other.blocks.iter();
    if let Some(message) = message_of(block) {
        // Without the quotation of a whisper.
        let same = others.find(|it| message_of(it) == Some(message))?;
        return Some(PromptBlock {
            dropped: block.dropped,
            ..same.clone()
        });
    }
    // The text of a summary never comes from whispers; they may only decide which version is sent.
    let is_summary = matches!(block.origin, BlockOrigin::Summary(_));
    let is_there = is_summary || others.any(|it| has_same_text(it, block));
    is_there.then(|| block.clone())
}

fn message_of(block: &PromptBlock) -> Option<i64> {
    match block.origin {
        BlockOrigin::Message { seq, .. } => Some(seq),
        _ => None,
    }
}

fn has_same_text(one: &PromptBlock, other: &PromptBlock) -> bool {
    let key = |it: &PromptBlock| (it.kind, it.role, it.joins);
    key(one) == key(other)
        && message_of(one).is_none()
        && (&one.label, &one.name, &one.text) == (&other.label, &other.name, &other.text)
}
