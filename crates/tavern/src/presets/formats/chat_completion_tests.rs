//! Tests of the import and export of the prompts and texts of chat-completion presets.

use serde_json::json;

use crate::presets::complete_preset::{GenerationTrigger, Preset, PresetEntry};
use crate::presets::message_formats::{ContinuePostfix, ExampleFormat};
use crate::presets::preset_file;
use crate::presets::preset_file::PresetFormat;

#[test]
fn a_custom_system_prompt_is_marked_and_the_mark_is_exported() {
    let file = json!({
        "prompts": [
            {"identifier": "house", "name": "House rules", "content": "Knock.", "system_prompt": true},
            {"identifier": "own", "name": "Own", "content": "Sit.", "system_prompt": false},
        ],
        "prompt_order": [{"character_id": 100_001, "order": [
            {"identifier": "house", "enabled": true}, {"identifier": "own", "enabled": true},
        ]}],
    });

    let read = preset_file::read(file.to_string().as_bytes()).unwrap();

    assert!(
        read.warnings
            .iter()
            .any(|it| it.contains("“House rules” is not sent"))
    );
    let order: Vec<PresetEntry> =
        serde_json::from_value(read.document["prompt_order"].clone()).unwrap();
    let [house, own] = &order[..2] else {
        panic!("two prompts");
    };
    let normal = GenerationTrigger::Normal;
    assert!(house.enabled && house.system_prompt && !house.applies_to(normal));
    assert!(own.applies_to(normal));
    let written = preset_file::write(PresetFormat::SillyTavern, "H", &read.document, None);
    assert_eq!(written["prompts"][0]["system_prompt"], true);
    assert_eq!(written["prompts"][1]["system_prompt"], false);
}

#[test]
fn prefills_the_example_format_and_the_continue_postfix_are_imported() {
    let file = json!({
        "prompts": [], "assistant_prefill": "Well,", "assistant_impersonation": "I",
        "send_if_empty": "(goes on)", "continue_postfix": "\n", "continue_prefill": true,
    });

    let read = preset_file::read(file.to_string().as_bytes()).unwrap();

    let preset: Preset = serde_json::from_value(read.document.clone()).unwrap();
    assert_eq!(preset.texts.assistant_prefill, "Well,");
    assert_eq!(preset.texts.assistant_impersonation, "I");
    assert_eq!(preset.texts.replace_empty_message, "(goes on)");
    assert_eq!(preset.continue_postfix, ContinuePostfix::Newline);
    assert_eq!(preset.example_format, ExampleFormat::Messages);
    let form = PresetFormat::SillyTavern;
    let written = preset_file::write(form, "P", &read.document, read.origin.as_ref());
    assert_eq!(written["continue_postfix"], "\n");
    assert_eq!(written["send_if_empty"], "(goes on)");
}
