//! Tests of the import and export of templates, with files in the forms that SillyTavern writes.

use serde_json::{Value, json};

use crate::presets::preset_file::{ImportedPreset, PresetFormat, read, write};

fn import(file: &Value) -> ImportedPreset {
    read(file.to_string().as_bytes()).unwrap()
}

fn export(imported: &ImportedPreset) -> Value {
    let form = PresetFormat::SillyTavern;
    write(form, "A name", &imported.document, imported.origin.as_ref())
}

fn instruct() -> Value {
    json!({
        "input_sequence": "<|u|>", "output_sequence": "<|a|>", "system_sequence": "<|s|>",
        "first_output_sequence": "", "last_output_sequence": "<|a|>x", "stop_sequence": "<|e|>",
        "wrap": false, "macro": true, "names_behavior": "always", "activation_regex": "/q/i",
        "input_suffix": "<|e|>", "output_suffix": "<|e|>", "system_suffix": "",
        "user_alignment_message": "", "system_same_as_user": "true", "skip_examples": 1,
        "sequences_as_stop_strings": true, "something_new": [1], "name": "My format",
    })
}

#[test]
fn an_instruct_template_becomes_a_part_of_a_preset() {
    let imported = import(&instruct());

    assert_eq!(imported.name.as_deref(), Some("My format"));
    let part = &imported.document["instruct"];
    assert_eq!(part["last_output_sequence"], "<|a|>x");
    assert_eq!(
        (&part["wrap"], &part["skip_examples"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(part["system_same_as_user"], true);
    assert_eq!(part["something_new"], json!([1]));
    assert!(imported.warnings.is_empty());
}

#[test]
fn a_template_is_exported_as_it_was_imported() {
    for file in [
        instruct(),
        json!({"name": "C", "story_string": "{{#if system}}{{system}}\n{{/if}}{{trim}}", "chat_start": "***",
            "example_separator": "", "use_stop_strings": false, "story_string_depth": 1}),
        json!({"name": "S", "content": "Write.", "post_history": "Now."}),
        json!({"name": "R", "prefix": "<r>\n", "suffix": "\n</r>", "separator": "\n"}),
    ] {
        let exported = export(&import(&file));
        let mut expected = file;
        for name in ["system_same_as_user", "skip_examples"] {
            if expected.get(name).is_some() {
                expected[name] = json!(true);
            }
        }
        assert_eq!(exported, expected);
    }
}

#[test]
fn older_keys_are_read() {
    let imported = import(&json!({
        "name": "Old", "system_prompt": "Be brief.", "input_sequence": "U:", "output_sequence": "A:",
        "system_sequence_prefix": "BEGIN", "system_sequence_suffix": "END",
        "separator_sequence": "\n", "wrap": true, "names": true, "names_force_groups": true,
    }));

    let part = &imported.document["instruct"];
    assert_eq!(part["story_string_prefix"], "BEGIN");
    assert_eq!(part["story_string_suffix"], "END");
    assert_eq!(part["output_suffix"], "\n");
    assert_eq!(part["names_behavior"], "always");
    assert!(part.get("names").is_none() && part.get("system_prompt").is_none());
    assert_eq!(imported.document["sysprompt"]["content"], "Be brief.");

    let never = json!({"name": "N", "input_sequence": "", "output_sequence": "", "names": false});
    assert_eq!(
        import(&never).document["instruct"]["names_behavior"],
        "none"
    );
}

#[test]
fn a_master_file_becomes_one_preset_with_all_parts() {
    let master = json!({
        "instruct": instruct(),
        "context": {"name": "C", "story_string": "{{description}}"},
        "sysprompt": {"name": "S", "content": "Write."},
        "reasoning": {"name": "R", "prefix": "<r>", "suffix": "</r>", "separator": "\n"},
        "preset": {"temp": 0.7, "rep_pen": 1.1, "top_p": 0.9, "genamt": 300},
    });

    let imported = import(&master);

    assert_eq!(imported.document["temperature"], 0.7);
    assert_eq!(imported.document["max_tokens"], 300);
    for part in ["instruct", "context", "sysprompt", "reasoning"] {
        assert!(imported.document[part].is_object(), "{part}");
    }
    let exported = export(&imported);
    assert_eq!(exported["context"], master["context"]);
    assert_eq!(exported["reasoning"], master["reasoning"]);
    assert_eq!(exported["preset"]["temp"], 0.7);
    assert_eq!(import(&exported).document, imported.document);
}

#[test]
fn a_master_file_without_samplers_is_accepted() {
    let imported = import(&json!({ "sysprompt": {"name": "S", "content": "Write."} }));

    assert_eq!(
        imported.document,
        json!({"sysprompt": {"name": "S", "content": "Write."}})
    );
}

#[test]
fn settings_without_effect_are_listed() {
    let file = json!({"name": "C", "story_string": "", "trim_sentences": true, "story_string_position": 1});

    let imported = import(&file);

    assert_eq!(imported.warnings.len(), 1);
    assert_eq!(
        imported.warnings[0].params["names"],
        "story_string_position, trim_sentences"
    );
    assert_eq!(imported.document["context"]["trim_sentences"], true);
}

#[test]
fn an_invalid_template_is_refused_with_its_key() {
    for (file, key) in [
        (
            json!({"name": "C", "story_string": "{{#if system}}"}),
            "context.story_string",
        ),
        (
            json!({"name": "I", "input_sequence": "x".repeat(2_001)}),
            "instruct.input_sequence",
        ),
    ] {
        let error = read(file.to_string().as_bytes()).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn a_value_that_is_neither_on_nor_off_is_skipped() {
    let file = json!({"name": "I", "input_sequence": "U", "wrap": "perhaps"});

    let imported = import(&file);

    assert_eq!(
        imported.warnings,
        ["`wrap` of the template is neither on nor off; it was skipped."]
    );
    assert!(imported.document["instruct"].get("wrap").is_none());
}
