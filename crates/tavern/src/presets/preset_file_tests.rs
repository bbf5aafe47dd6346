//! Tests of importing and exporting the preset files in `tests/fixtures/presets`.

use std::fs;
use std::path::PathBuf;

use base::prompt_role::PromptRole;
use serde_json::{Value, json};

use super::{ImportedPreset, MAX_FILE_BYTES, PresetFormat, read, write};
use crate::presets::complete_preset::{
    GenerationTrigger, Preset, PresetEntry, PromptPosition, PromptSlot,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/presets")
}

fn imported(name: &str) -> ImportedPreset {
    read(&fs::read(folder().join(name)).unwrap()).unwrap()
}

fn order(imported: &ImportedPreset) -> Vec<PresetEntry> {
    serde_json::from_value(imported.document["prompt_order"].clone()).unwrap()
}

fn ids(order: &[PresetEntry]) -> Vec<(&str, bool)> {
    order
        .iter()
        .map(|it| (it.id.as_str(), it.enabled))
        .collect()
}

fn refused(file: &Value) -> String {
    read(file.to_string().as_bytes()).unwrap_err().to_string()
}

fn has_warning(imported: &ImportedPreset, word: &str) -> bool {
    imported.warnings.iter().any(|it| it.contains(word))
}

#[test]
fn every_file_survives_export_and_import() {
    let mut n_files = 0;
    for file in fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let Ok(first) = read(&fs::read(&path).unwrap()) else {
            continue;
        };
        for form in [PresetFormat::Own, PresetFormat::SillyTavern] {
            let is_own = first.origin.is_none();
            if is_own && form == PresetFormat::SillyTavern {
                continue; // that format has no field for our keys
            }
            let file = write(form, "Name", &first.document, first.origin.as_ref());
            let again = read(file.to_string().as_bytes()).unwrap();

            assert_eq!(
                again.document,
                first.document,
                "{form:?} {}",
                path.display()
            );
            assert_eq!(again.origin, first.origin, "{form:?} {}", path.display());
        }
        n_files += 1;
    }
    assert_eq!(n_files, 9, "number of fixture files");
}

#[test]
fn an_order_is_imported_with_markers_roles_positions_and_triggers() {
    let modern = imported("modern.json");
    let order = order(&modern);

    assert_eq!(
        ids(&order),
        [
            ("worldInfoBefore", true),
            ("main", true),
            ("personaDescription", true),
            ("charDescription", true),
            ("charPersonality", false),
            ("scenario", true),
            ("enhanceDefinitions", false),
            ("7c1f-rain", true),
            ("nsfw", true),
            ("worldInfoAfter", true),
            ("dialogueExamples", true),
            ("chatHistory", true),
            ("jailbreak", true),
            ("7c1f-unlisted", false),
        ]
    );
    let rain = &order[7];
    assert_eq!((rain.slot, rain.role), (None, PromptRole::Assistant));
    assert_eq!(
        rain.place,
        PromptPosition::InChat {
            depth: 2,
            order: 50
        }
    );
    assert_eq!(
        rain.triggers,
        [GenerationTrigger::Normal, GenerationTrigger::Swipe]
    );
    assert_eq!(rain.extra["sillytavern"]["color"], "grey");
    let main = &order[1];
    assert_eq!(
        (main.slot, main.forbid_overrides),
        (Some(PromptSlot::Main), true)
    );
    assert_eq!(main.text, "Play {{char}} in a small theatre.");
    assert_eq!(order[12].role, PromptRole::User);
    assert_eq!(order[0].slot, Some(PromptSlot::LoreBefore));
}

#[test]
fn samplers_texts_and_names_are_imported() {
    let preset: Preset = serde_json::from_value(imported("modern.json").document).unwrap();

    assert_eq!((preset.temperature, preset.top_p), (Some(0.85), Some(0.95)));
    assert_eq!(preset.samplers.min_p, Some(0.02));
    assert_eq!(preset.samplers.seed, None, "-1 means a random seed");
    assert_eq!(
        (preset.context_tokens, preset.max_tokens),
        (Some(16_384), Some(700))
    );
    assert_eq!(preset.texts.lore_format, "<world>{0}</world>");
    assert_eq!(preset.texts.scenario_format, "Where: {{scenario}}");
    assert_eq!(
        preset.texts.group_nudge_prompt,
        "[It is the turn of {{char}}.]"
    );
    assert_eq!(json!(preset.names), "in_groups");
}

#[test]
fn unused_fields_are_kept_with_a_warning_but_no_password() {
    let modern = imported("modern.json");

    for word in ["1 regex scripts", "passwords"] {
        assert!(has_warning(&modern, word), "{word}: {:?}", modern.warnings);
    }
    let kept = &modern.origin.as_ref().unwrap()["fields"];
    assert_eq!(kept["extensions"]["made_up"]["deep"], json!([1, null, "x"]));
    assert_eq!(kept["squash_system_messages"], true);
    let file = write(
        PresetFormat::SillyTavern,
        "M",
        &modern.document,
        modern.origin.as_ref(),
    );
    assert!(!file.to_string().contains("hush"));
    assert!(!file.to_string().contains("proxy.example"));
    let orders = file["prompt_order"].as_array().unwrap();
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[1]["character_id"], 100_001);
    assert_eq!(orders[1]["order"][1]["pinned"], true);
    assert_eq!(file["prompts"][0]["marker"], true);
}

#[test]
fn slots_that_an_order_does_not_name_are_sent_after_all_others() {
    let old = imported("old_list.json");

    let names: Vec<String> = order(&old).into_iter().map(|it| it.id).collect();
    assert_eq!(
        names,
        [
            "main",
            "worldInfoBefore",
            "charDescription",
            "chatHistory",
            "charPersonality",
            "scenario",
            "worldInfoAfter",
            "personaDescription",
            "dialogueExamples",
        ]
    );
    let names =
        "others: Personality, Scenario, Lore after the character, Persona, Example messages.";
    assert!(has_warning(&old, names), "{:?}", old.warnings);
}

#[test]
fn any_order_is_used_if_none_applies_to_all_characters() {
    let any = imported("one_characters_list.json");

    assert_eq!(
        ids(&order(&any))[..2],
        [("chatHistory", true), ("main", true)]
    );
    assert_eq!(any.origin.unwrap()["character_id"], 7);
}

#[test]
fn a_file_from_before_orders_has_its_texts_in_the_default_order() {
    let order = order(&imported("before_orders.json"));

    let of = |id: &str| order.iter().find(|it| it.id == id).unwrap();
    assert_eq!(of("main").text, "Write the next line of {{char}}.");
    assert_eq!(of("jailbreak").text, "Be brief.");
    assert_eq!(
        (of("nsfw").text.as_str(), of("nsfw").enabled),
        ("Be kind.", false)
    );
    assert!(of("enhanceDefinitions").enabled);
}

#[test]
fn odd_values_are_repaired_or_left_out_with_a_warning() {
    let odd = imported("odd_values.json");
    let preset: Preset = serde_json::from_value(odd.document.clone()).unwrap();

    assert_eq!(preset.temperature, Some(0.7), "a number as text");
    assert_eq!(preset.top_p, None, "out of range");
    assert_eq!(preset.samplers.min_p, None, "not a number");
    assert_eq!(preset.samplers.top_k, None, "-1 means disabled");
    assert_eq!(preset.samplers.seed, Some(4));
    assert_eq!(
        (preset.max_tokens, preset.context_tokens),
        (None, Some(8192))
    );
    assert_eq!(preset.texts.group_nudge_prompt, "");
    for word in [
        "top_p",
        "min_p",
        "new_chat_prompt",
        "twice",
        "gone",
        "Summary",
        "Twelve",
        "chat history",
    ] {
        assert!(has_warning(&odd, word), "{word}: {:?}", odd.warnings);
    }
    assert!(!has_warning(&odd, "top_k") && !has_warning(&odd, "frequency_penalty"));
    assert_eq!(
        ids(&preset.order)[..6],
        [
            ("main", true),
            ("12", true),
            ("fromExtension", false),
            ("charDescription", true),
            ("chatHistory", true),
            ("jailbreak", true),
        ]
    );
    assert_eq!(preset.order[0].text, "Narrate.", "the first of two");
    assert_eq!(preset.order[0].label, "Main prompt");
    assert_eq!(
        preset.order[1].place,
        PromptPosition::InChat {
            depth: 0,
            order: 100
        }
    );
    assert_eq!(preset.order[1].triggers, [GenerationTrigger::Normal]);
}

#[test]
fn samplers_for_text_completion_are_imported_without_an_order() {
    let text = imported("text_completion.json");

    let expected = json!({
        "temperature": 1.1, "top_p": 0.9, "min_p": 0.05, "top_a": 0, "typical_p": 1,
        "repetition_penalty": 1.15, "frequency_penalty": 0, "presence_penalty": 0.2,
        "tfs": 0.95, "dry_multiplier": 0.8, "top_k": 60, "max_tokens": 400,
        "repetition_range": 1024, "mirostat_mode": 0, "context_tokens": 12288,
    });
    assert_eq!(text.document, expected);
    assert!(!has_warning(&text, "samplers"), "{:?}", text.warnings);
}

#[test]
fn the_samplers_and_the_templates_of_a_file_with_all_settings_are_imported() {
    let all = imported("all_settings.json");

    assert_eq!(all.document["repetition_penalty"], 1.05);
    assert_eq!(all.name.as_deref(), Some("Inside"));
    assert!(all.document["instruct"].is_object());
}

#[test]
fn our_own_format_keeps_unknown_fields() {
    let own = imported("own.json");

    assert_eq!(own.name.as_deref(), Some("From home"));
    assert_eq!(own.document["of_tomorrow"]["x"], 1);
    assert_eq!(own.warnings, [] as [String; 0]);
}

#[test]
fn the_error_for_another_file_names_its_kind() {
    for (file, word) in [
        (json!({"entries": {}}), "lorebook"),
        (json!({"spec": "chara_card_v2", "data": {}}), "card"),
        (json!({"a": 1}), "Its top-level keys: `a`."),
        (json!([1]), "a list"),
        (json!({"prompts": [], "x": "a\u{0}b"}), "U+0000"),
        (json!({"spec": "troupe_preset"}), "document"),
        (
            json!({"spec": "troupe_preset", "document": {"top_p": 3}}),
            "top_p",
        ),
        (
            json!({"spec": "troupe_preset", "document": {"prompt_order": 3}}),
            "read",
        ),
        (
            json!({"spec": "troupe_preset", "document": {"preset_id": 3}}),
            "another",
        ),
    ] {
        let reason = refused(&file);
        assert!(reason.contains(word), "{word}: {reason}");
    }
}

#[test]
fn a_file_has_limits_of_size_depth_and_number() {
    let deep = format!("{{\"prompts\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(read(deep.as_bytes()).is_err());
    assert!(read(&vec![b' '; MAX_FILE_BYTES + 1]).is_err());

    let prompt = |at: usize| json!({"identifier": at.to_string(), "content": "x"});
    let many: Vec<Value> = (0..301).map(prompt).collect();
    assert!(refused(&json!({"prompts": many})).contains("prompt_order"));
    let long = json!({"prompts": [{"identifier": "a", "content": "x".repeat(100_001)}]});
    assert!(refused(&long).contains("text"));
    let heavy: Vec<Value> = (0..9)
        .map(|at| json!({"identifier": at.to_string(), "content": "x".repeat(60_000)}))
        .collect();
    assert!(refused(&json!({"prompts": heavy})).contains("512 KiB"));
    let bom = [b"\xef\xbb\xbf".as_slice(), b"{\"prompts\":[]}"].concat();
    assert!(read(&bom).is_ok());
}

#[test]
fn unknown_macros_are_listed_by_entry() {
    let file = json!({"spec": "troupe_preset", "document": {
        "new_chat_prompt": "{{foo}}",
        "prompt_order": [{"id": "a", "label": "Rules", "text": "{{char}} {{bar::1}}"}, {"id": "b", "text": "{{user}}"}],
    }});

    let imported = read(file.to_string().as_bytes()).unwrap();

    assert_eq!(imported.warnings.len(), 2, "{:?}", imported.warnings);
    assert!(has_warning(
        &imported,
        "`new_chat_prompt` contains unknown macros"
    ));
    assert!(has_warning(
        &imported,
        "`Rules` contains unknown macros, which are sent as they are: {{bar}}."
    ));
}
