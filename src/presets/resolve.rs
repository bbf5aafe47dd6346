//! Merges the preset of a prompt, key by key, from the settings and presets of its membership and
//! space and the settings of its provider.
//!
//! From the top: the membership's own settings, the membership's preset, the space's own settings,
//! the preset that these name, the settings of the provider, and the defaults. The topmost layer
//! that sets a key decides; an order of entries is one key.

use base::ids::PresetId;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::{Map, Value};
use tavern::presets::complete_preset::{Preset, PromptSlot};

use crate::presets::preset;

/// Keys that override the text of one entry, and the slot of the entry.
const SLOT_TEXT_KEYS: [(&str, PromptSlot); 2] = [
    ("main_prompt", PromptSlot::Main),
    ("post_history_instructions", PromptSlot::PostHistory),
];

/// The part of a preset that sets the texts of these entries, and the keys of its texts in that order.
const SYSTEM_PROMPT: &str = "sysprompt";
const SYSTEM_PROMPT_TEXTS: [&str; 2] = ["content", "post_history"];

/// The key of the reasoning template in presets, and of the reasoning effort in the settings of a provider.
const REASONING: &str = "reasoning";

/// The key of the continue nudge, in presets and in the settings of a space.
const CONTINUE_NUDGE: &str = "continue_nudge_prompt";

/// The layers of a membership, its space and its provider.
#[derive(Clone, Copy, Debug)]
pub struct PresetLayers<'a> {
    /// `settings.preset` of the membership.
    pub membership: &'a Value,
    /// The preset of the membership.
    pub membership_preset: Option<PresetId>,
    /// The [`space_layer`] of the space; its `preset_id` names a preset.
    pub space: &'a Value,
    /// `settings` of the provider, with the context window of its model.
    pub provider: &'a Value,
}

/// Returns the preset that the settings of a space name.
pub fn preset_id_of(settings: &Value) -> Option<PresetId> {
    settings["preset_id"].as_i64().map(PresetId)
}

/// Returns the keys of the preset that the settings of a space set: `preset`, and its continue nudge,
/// which replaces that of the presets it names, but not that of the speaker.
pub fn space_layer(settings: &Value) -> Value {
    let mut layer = match &settings["preset"] {
        Value::Object(own) => own.clone(),
        _ => Map::new(),
    };
    if let Some(nudge) = settings[CONTINUE_NUDGE].as_str() {
        layer.insert(CONTINUE_NUDGE.to_owned(), nudge.into());
    }
    Value::Object(layer)
}

/// Returns the preset of a prompt. Queries the database only if a layer names a preset.
pub async fn resolve(db: &impl ConnectionTrait, layers: PresetLayers<'_>) -> Result<Preset, DbErr> {
    let of_space = preset_id_of(layers.space);
    let chosen: Vec<PresetId> = of_space
        .into_iter()
        .chain(layers.membership_preset)
        .collect();
    let documents = preset::load_documents(db, &chosen).await?;
    let document = |id: Option<PresetId>| id.and_then(|it| documents.get(&it));
    let stack = [
        Some(layers.provider),
        document(of_space),
        Some(layers.space),
        document(layers.membership_preset),
        Some(layers.membership),
    ];
    Ok(from_merged(merge_layers(stack.into_iter().flatten())))
}

/// Merges objects; later ones win.
fn merge_layers<'a>(layers: impl Iterator<Item = &'a Value>) -> Map<String, Value> {
    let mut all = Map::new();
    for layer in layers.filter_map(Value::as_object) {
        if layer.get("prompt_order").is_some_and(|it| !it.is_null()) {
            // An order contains its own texts, so overrides of lower layers do not apply.
            all.retain(|key, _| SLOT_TEXT_KEYS.iter().all(|(text, _)| key != text));
        }
        let is_setting = |key: &str, value: &Value| {
            let is_effort = key == REASONING && !value.is_object();
            !value.is_null() && key != SYSTEM_PROMPT && !is_effort
        };
        all.extend(system_prompt_texts(layer));
        let stated = layer.iter().filter(|(key, value)| is_setting(key, value));
        all.extend(stated.map(|(key, value)| (key.clone(), value.clone())));
    }
    all
}

/// Returns the texts of entries that the system prompt template of a layer sets. Blank ones are not set.
fn system_prompt_texts(layer: &Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    let template = layer.get(SYSTEM_PROMPT);
    let keys = SLOT_TEXT_KEYS.into_iter().zip(SYSTEM_PROMPT_TEXTS);
    keys.filter_map(move |((key, _), text)| {
        let text = template?.get(text)?;
        let is_set = text.as_str().is_some_and(|it| !it.trim().is_empty());
        is_set.then(|| (key.to_owned(), text.clone()))
    })
}

/// Parses the merged keys. A key stored before it was validated may be invalid: then its default
/// applies.
fn from_merged(mut all: Map<String, Value>) -> Preset {
    let texts = SLOT_TEXT_KEYS.map(|(key, slot)| (slot, all.shift_remove(key)));
    let mut preset = serde_json::from_value(Value::Object(all.clone())).unwrap_or_else(|_| {
        all.retain(|key, value| {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            serde_json::from_value::<Preset>(Value::Object(alone)).is_ok()
        });
        serde_json::from_value(Value::Object(all)).unwrap_or_default()
    });
    drop_unsupported(&mut preset);
    // Older settings store 0 for "not set".
    preset.max_tokens = preset.max_tokens.filter(|it| *it > 0);
    preset.context_tokens = preset.context_tokens.filter(|it| *it > 0);
    for (slot, text) in texts {
        let entry = preset.order.iter_mut().find(|it| it.slot == Some(slot));
        if let (Some(entry), Some(Value::String(text))) = (entry, text) {
            entry.text = text;
        }
    }
    preset
}

/// Removes samplers that the model rejects, as listed in `leave_out` of its settings.
fn drop_unsupported(preset: &mut Preset) {
    let Some(Value::Array(names)) = preset.extra.shift_remove("leave_out") else {
        return;
    };
    for name in names.iter().filter_map(Value::as_str) {
        match name {
            "temperature" => preset.temperature = None,
            "top_p" => preset.top_p = None,
            "top_k" => preset.samplers.top_k = None,
            "min_p" => preset.samplers.min_p = None,
            "top_a" => preset.samplers.top_a = None,
            "typical_p" => preset.samplers.typical_p = None,
            "frequency_penalty" => preset.samplers.frequency_penalty = None,
            "presence_penalty" => preset.samplers.presence_penalty = None,
            "repetition_penalty" => preset.samplers.repetition_penalty = None,
            "seed" => preset.samplers.seed = None,
            "stop" => preset.stop = Vec::new(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tavern::presets::complete_preset::{Preset, PromptSlot};

    use super::{from_merged, merge_layers};

    fn preset_of(layers: &[Value]) -> Preset {
        from_merged(merge_layers(layers.iter()))
    }

    #[test]
    fn each_key_is_decided_by_the_topmost_layer_that_sets_it() {
        let preset = preset_of(&[
            json!({"temperature": 0.1, "top_p": 0.1, "max_tokens": 10}),
            json!({"temperature": 0.2, "top_k": 20}),
            json!({"temperature": null, "top_p": 0.3}),
            json!({"temperature": 0.4}),
        ]);

        assert_eq!(preset.temperature, Some(0.4));
        assert_eq!(preset.top_p, Some(0.3));
        assert_eq!(preset.max_tokens, Some(10));
        assert_eq!(preset.samplers.top_k, Some(20));
    }

    #[test]
    fn keys_that_no_layer_sets_have_their_defaults() {
        assert_eq!(preset_of(&[]), Preset::default());
        assert_eq!(preset_of(&[json!(null), json!({})]), Preset::default());
    }

    #[test]
    fn a_main_prompt_overrides_the_text_of_its_entry() {
        let main = |layers: &[Value]| {
            preset_of(layers)
                .entry(PromptSlot::Main)
                .unwrap()
                .text
                .clone()
        };
        let order = json!({"prompt_order": [{"id": "m", "slot": "main", "text": "Of the order."}]});
        let text = json!({"main_prompt": "Of the settings."});

        assert_eq!(main(&[order.clone(), text.clone()]), "Of the settings.");
        assert_eq!(main(&[text, order]), "Of the order.");
    }

    #[test]
    fn a_system_prompt_template_sets_the_texts_of_its_entries() {
        let template = json!({"sysprompt": {"content": "Write.", "post_history": " "}});
        let texts = |layers: &[Value]| {
            let preset = preset_of(layers);
            let text = |slot| preset.entry(slot).unwrap().text.clone();
            (text(PromptSlot::Main), text(PromptSlot::PostHistory))
        };
        let usual = texts(&[]);

        assert_eq!(
            texts(std::slice::from_ref(&template)),
            ("Write.".to_owned(), usual.1)
        );
        let own = json!({"main_prompt": "Own.", "sysprompt": {"content": "Write.", "post_history": "Now."}});
        assert_eq!(
            texts(&[template, own]),
            ("Own.".to_owned(), "Now.".to_owned())
        );
    }

    #[test]
    fn a_template_is_replaced_as_a_whole_and_a_missing_one_falls_through() {
        let preset = preset_of(&[
            json!({"reasoning": "low", "temperature": 0.1}),
            json!({"instruct": {"name": "A", "input_sequence": "U"}, "reasoning": {"prefix": "<a>"}}),
            json!({"instruct": {"name": "B"}, "context": {"name": "C"}, "reasoning": "high"}),
        ]);

        assert_eq!(preset.temperature, Some(0.1));
        let instruct = preset.instruct.unwrap();
        assert_eq!(
            (instruct.name.as_str(), instruct.input_sequence.as_str()),
            ("B", "")
        );
        assert_eq!(preset.context.unwrap().name, "C");
        assert_eq!(preset.reasoning_tags.unwrap().prefix, "<a>");
    }

    #[test]
    fn an_invalid_value_does_not_affect_others() {
        let preset = preset_of(&[json!({"temperature": "hot", "top_p": 0.5, "prompt_order": [5]})]);

        assert_eq!(preset.temperature, None);
        assert_eq!(preset.top_p, Some(0.5));
        assert_eq!(preset.order, Preset::default().order);
    }

    #[test]
    fn unsupported_samplers_are_removed() {
        let preset = preset_of(&[
            json!({"leave_out": ["temperature", "stop", "unheard_of", 5]}),
            json!({"temperature": 0.4, "top_p": 0.5, "stop": ["x"]}),
        ]);

        assert_eq!(preset.temperature, None);
        assert_eq!(preset.top_p, Some(0.5));
        assert!(preset.stop.is_empty() && preset.extra.is_empty());
    }
}
