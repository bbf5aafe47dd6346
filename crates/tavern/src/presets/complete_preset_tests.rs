//! Tests of the preset document: defaults, serialization, unknown keys and triggers.

use base::prompt_role::PromptRole;
use serde_json::json;

use super::{ExampleMessagesMode, GenerationTrigger, Preset, PromptPosition, PromptSlot};
use crate::presets::preset_texts::{GROUP_MAIN_PROMPT, IMPERSONATION_MAIN_PROMPT, MAIN_PROMPT};

#[test]
fn unset_fields_have_their_defaults() {
    let preset: Preset = serde_json::from_value(json!({})).unwrap();

    assert_eq!(preset, Preset::default());
}

#[test]
fn a_preset_survives_serialization() {
    let mut preset = Preset {
        temperature: Some(0.7),
        ..Preset::default()
    };
    preset.samplers.top_k = Some(40);
    preset.order[2].place = PromptPosition::InChat { depth: 2, order: 7 };
    preset.order[2].triggers = vec![GenerationTrigger::Normal];

    let text = serde_json::to_string(&preset).unwrap();

    assert_eq!(serde_json::from_str::<Preset>(&text).unwrap(), preset);
}

#[test]
fn unknown_keys_are_preserved() {
    let given = json!({
        "top_k": 5,
        "from_the_future": {"a": [1]},
        "prompt_order": [{"id": "x", "text": "Rain.", "color": "blue"}],
    });

    let preset: Preset = serde_json::from_value(given).unwrap();

    assert_eq!(preset.samplers.top_k, Some(5));
    assert_eq!(preset.extra["from_the_future"], json!({"a": [1]}));
    assert_eq!(preset.extra.len(), 1);
    assert_eq!(preset.order[0].extra["color"], "blue");
    assert!(preset.order[0].enabled);
    assert_eq!(preset.order[0].role, PromptRole::System);
}

#[test]
fn positions_are_written_as_documented() {
    let given = json!({
        "examples": "always_keep",
        "prompt_order": [
            {"id": "a", "slot": "lore_before"},
            {"id": "b", "place": {"in_chat": {"depth": 0, "order": 100}}, "role": "assistant"},
        ],
    });

    let preset: Preset = serde_json::from_value(given).unwrap();

    assert_eq!(preset.examples, ExampleMessagesMode::AlwaysKeep);
    assert_eq!(preset.order[0].slot, Some(PromptSlot::LoreBefore));
    let at_the_end = PromptPosition::InChat {
        depth: 0,
        order: 100,
    };
    assert_eq!(preset.order[1].place, at_the_end);
}

#[test]
fn an_entry_without_triggers_always_applies_and_a_disabled_one_never() {
    let mut entry = Preset::default().order.remove(0);
    assert!(entry.applies_to(GenerationTrigger::Quiet));

    entry.triggers = vec![GenerationTrigger::Swipe];
    assert!(entry.applies_to(GenerationTrigger::Swipe));
    assert!(!entry.applies_to(GenerationTrigger::Normal));

    entry.enabled = false;
    assert!(!entry.applies_to(GenerationTrigger::Swipe));
}

fn main_prompt(preset: &Preset) -> &str {
    &preset.entry(PromptSlot::Main).unwrap().text
}

fn with_main_prompt(text: &str) -> Preset {
    let mut preset = Preset::default();
    text.clone_into(&mut preset.order[0].text);
    preset
}

#[test]
fn only_the_default_main_prompt_changes_for_impersonation() {
    let default = Preset::default().for_impersonation();
    let custom = with_main_prompt("Write a letter.").for_impersonation();

    assert_eq!(main_prompt(&default), IMPERSONATION_MAIN_PROMPT);
    assert_eq!(main_prompt(&custom), "Write a letter.");
}

#[test]
fn only_the_default_main_prompt_changes_for_a_group_whose_nudge_names_the_speaker() {
    let with_nudge = |nudge: &str| {
        let mut preset = Preset::default();
        nudge.clone_into(&mut preset.texts.group_nudge_prompt);
        preset.for_group()
    };
    let custom = with_main_prompt("Write a letter.").for_group();

    assert_eq!(
        main_prompt(&Preset::default().for_group()),
        GROUP_MAIN_PROMPT
    );
    assert_eq!(
        main_prompt(&with_nudge("[Now {{Char}}.]")),
        GROUP_MAIN_PROMPT
    );
    assert_eq!(main_prompt(&with_nudge("[Keep it short.]")), MAIN_PROMPT);
    assert_eq!(main_prompt(&with_nudge("")), MAIN_PROMPT);
    assert_eq!(main_prompt(&custom), "Write a letter.");
}

#[test]
fn the_main_prompt_of_a_group_depends_neither_on_the_speaker_nor_on_the_last_author() {
    for name in ["{{char}}", "{{notChar}}", "{{user}}"] {
        assert!(!GROUP_MAIN_PROMPT.contains(name), "{name}");
    }
}
