//! Converts a preset to the JSON of a chat-completion preset of SillyTavern. Our values replace
//! those of the file from which it was imported; other fields of that file are kept.

use serde_json::{Map, Value, json};

use crate::presets::complete_preset::{Preset, PresetEntry};
use crate::presets::formats::chat_completion::{FORM, NAMES, TEXTS};
use crate::presets::formats::prompt_order;
use crate::presets::formats::prompt_order::ALL_CHARACTERS;
use crate::presets::message_formats::ContinuePostfix;

/// Samplers: our name, their name.
const SAMPLERS: [(&str, &str); 11] = [
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("min_p", "min_p"),
    ("top_a", "top_a"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("repetition_penalty", "repetition_penalty"),
    ("seed", "seed"),
    ("context_tokens", "openai_max_context"),
    ("max_tokens", "openai_max_tokens"),
];

/// Returns the preset as a chat-completion file.
pub fn write(document: &Value, origin: Option<&Value>) -> Value {
    let origin = origin.filter(|it| it["form"] == FORM);
    let fields = origin.and_then(|it| it["fields"].as_object());
    let mut file = fields.cloned().unwrap_or_default();
    let texts = TEXTS.iter().map(|(theirs, ours)| (*ours, *theirs));
    for (ours, theirs) in SAMPLERS.into_iter().chain(texts) {
        if let Some(value) = document.get(ours).filter(|it| !it.is_null()) {
            file.insert(theirs.to_owned(), value.clone());
        }
    }
    if let Ok(postfix) =
        serde_json::from_value::<ContinuePostfix>(document["continue_postfix"].clone())
    {
        file.insert("continue_postfix".to_owned(), json!(postfix.text()));
    }
    let names = document["names"].as_str();
    if let Some((number, _)) = NAMES.iter().find(|(_, word)| names == Some(*word)) {
        file.insert("names_behavior".to_owned(), json!(number));
    }
    if has_prompt_order(document) {
        insert_prompts(&mut file, &effective_order(document), origin);
    }
    Value::Object(file)
}

/// Returns whether the preset sets the order or a text of it. If not, the file contains no order, and the
/// order in use is kept.
fn has_prompt_order(document: &Value) -> bool {
    let keys = ["prompt_order", "main_prompt", "post_history_instructions"];
    keys.into_iter().any(|it| !document[it].is_null())
}

/// Returns the stated order, or the default one, with the texts that override its entries.
fn effective_order(document: &Value) -> Vec<PresetEntry> {
    let stated = document.get("prompt_order").filter(|it| !it.is_null());
    let stated = stated.and_then(|it| serde_json::from_value(it.clone()).ok());
    let mut order: Vec<PresetEntry> = stated.unwrap_or_else(|| Preset::default().order);
    for (key, id) in [
        ("main_prompt", "main"),
        ("post_history_instructions", "jailbreak"),
    ] {
        let entry = order.iter_mut().find(|it| it.id == id);
        if let (Some(entry), Some(text)) = (entry, document[key].as_str()) {
            entry.text = text.to_owned();
        }
    }
    order
}

fn insert_prompts(file: &mut Map<String, Value>, order: &[PresetEntry], origin: Option<&Value>) {
    let (prompts, lines): (Vec<Value>, Vec<Value>) =
        order.iter().map(prompt_order::write_entry).unzip();
    let of_origin = |key: &str| origin.map(|it| &it[key]).filter(|it| !it.is_null());
    let character = of_origin("character_id").cloned();
    let mut lists = of_origin("other_orders")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    lists.push(json!({
        "character_id": character.unwrap_or(json!(ALL_CHARACTERS)),
        "order": lines,
    }));
    file.insert("prompts".to_owned(), Value::Array(prompts));
    file.insert("prompt_order".to_owned(), Value::Array(lists));
}
