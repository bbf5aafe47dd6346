//! Assigns the blocks before the chat to the fields of the story string.

use tavern::instruct::story_string::StoryField;
use tavern::presets::complete_preset::PromptSlot;

use crate::prompt::blocks::{BlockKind, PromptBlock};

/// Returns the blocks of an entry before the chat with their field; `is_after_main`: whether the main
/// prompt precedes them.
pub fn of_entry(
    blocks: Vec<PromptBlock>,
    slot: Option<PromptSlot>,
    is_after_main: bool,
) -> impl Iterator<Item = PromptBlock> {
    let field = match slot {
        Some(PromptSlot::Main) => StoryField::System,
        Some(PromptSlot::LoreBefore) => StoryField::WiBefore,
        Some(PromptSlot::LoreAfter) => StoryField::WiAfter,
        Some(PromptSlot::Persona) => StoryField::Persona,
        Some(PromptSlot::Description) => StoryField::Description,
        Some(PromptSlot::Personality) => StoryField::Personality,
        Some(PromptSlot::Scenario) => StoryField::Scenario,
        Some(PromptSlot::Examples) => StoryField::MesExamples,
        None | Some(PromptSlot::PostHistory | PromptSlot::History) if is_after_main => {
            StoryField::AnchorAfter
        }
        None | Some(PromptSlot::PostHistory | PromptSlot::History) => StoryField::AnchorBefore,
    };
    in_field(blocks, field)
}

/// Returns the blocks with this field.
pub fn in_field(
    blocks: impl IntoIterator<Item = PromptBlock>,
    field: StoryField,
) -> impl Iterator<Item = PromptBlock> {
    blocks.into_iter().map(move |block| PromptBlock {
        story_field: Some(field),
        ..block
    })
}

/// Returns whether a block is a line without sequences.
pub fn is_plain(block: &PromptBlock) -> bool {
    block.kind == BlockKind::NewChat
}
