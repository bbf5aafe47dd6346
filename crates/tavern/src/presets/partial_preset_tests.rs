//! Tests of the validation of presets.

use serde_json::{Value, json};

use super::PartialPreset;

fn invalid_field(stated: Value) -> Option<String> {
    let stated: PartialPreset = serde_json::from_value(stated).unwrap();
    stated.validate().err().map(|it| it.field)
}

#[test]
fn valid_values_pass() {
    let usual = serde_json::to_value(crate::presets::complete_preset::Preset::default()).unwrap();

    assert_eq!(invalid_field(usual), None);
    assert_eq!(invalid_field(json!({})), None);
    assert_eq!(
        invalid_field(json!({"top_k": 0, "seed": 0, "unheard_of": {}})),
        None
    );
}

#[test]
fn a_value_out_of_its_range_is_named() {
    let entry = |more: Value| {
        let mut entry = json!({"id": "a"});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        json!({"prompt_order": [entry]})
    };
    for (stated, field) in [
        (json!({"temperature": 5.1}), "temperature"),
        (json!({"top_p": -0.1}), "top_p"),
        (json!({"top_k": -1}), "top_k"),
        (json!({"min_p": 1.1}), "min_p"),
        (json!({"frequency_penalty": -2.1}), "frequency_penalty"),
        (json!({"repetition_penalty": 0}), "repetition_penalty"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"context_tokens": 63}), "context_tokens"),
        (json!({"stop": ["a", "b".repeat(1_001)]}), "stop.1"),
        (
            json!({"group_nudge_prompt": "x".repeat(20_001)}),
            "group_nudge_prompt",
        ),
        (entry(json!({"id": ""})), "prompt_order.0.id"),
        (
            entry(json!({"place": {"in_chat": {"depth": -1, "order": 0}}})),
            "prompt_order.0.place.in_chat.depth",
        ),
        (
            json!({"prompt_order": [{"id": "a"}, {"id": "a"}]}),
            "prompt_order.1.id",
        ),
    ] {
        assert_eq!(invalid_field(stated).as_deref(), Some(field));
    }
}

#[test]
fn the_cache_layout_is_one_of_two_words() {
    let parsed = |word: &str| {
        let stated = json!({"cache_layout": word});
        serde_json::from_value::<PartialPreset>(stated).is_ok()
    };

    assert!(parsed("as_listed") && parsed("stable_first"));
    assert!(!parsed("stable"));
}
