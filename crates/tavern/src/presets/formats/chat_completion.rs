//! Detects and imports SillyTavern's chat-completion presets: prompts, their order, templates and
//! other texts, and samplers.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::presets::complete_preset::{Preset, PresetEntry};
use crate::presets::formats::field_reader::{FieldReader, boolean, integer};
use crate::presets::formats::prompt_order;
use crate::presets::formats::prompt_order::ALL_CHARACTERS;
use crate::presets::message_formats::{ContinuePostfix, ExampleFormat};

/// The name of this format in `origin`.
pub const FORM: &str = "chat_completion";

/// Text fields: their name, our name. Imported and exported.
pub const TEXTS: [(&str, &str); 12] = [
    ("impersonation_prompt", "impersonation_prompt"),
    ("new_chat_prompt", "new_chat_prompt"),
    ("new_group_chat_prompt", "new_group_chat_prompt"),
    ("new_example_chat_prompt", "new_example_chat_prompt"),
    ("group_nudge_prompt", "group_nudge_prompt"),
    ("continue_nudge_prompt", "continue_nudge_prompt"),
    ("assistant_prefill", "assistant_prefill"),
    ("assistant_impersonation", "assistant_impersonation"),
    ("send_if_empty", "replace_empty_message"),
    ("wi_format", "lore_format"),
    ("scenario_format", "scenario_format"),
    ("personality_format", "personality_format"),
];

/// Samplers: their name, their older name, our name, minimum, maximum.
const FRACTIONS: [(&str, &str, &str, f64, f64); 7] = [
    ("temperature", "temp_openai", "temperature", 0.0, 5.0),
    ("top_p", "top_p_openai", "top_p", 0.0, 1.0),
    ("min_p", "min_p_openai", "min_p", 0.0, 1.0),
    ("top_a", "top_a_openai", "top_a", 0.0, 1.0),
    (
        "frequency_penalty",
        "freq_pen_openai",
        "frequency_penalty",
        -2.0,
        2.0,
    ),
    (
        "presence_penalty",
        "pres_pen_openai",
        "presence_penalty",
        -2.0,
        2.0,
    ),
    (
        "repetition_penalty",
        "repetition_penalty_openai",
        "repetition_penalty",
        0.1,
        5.0,
    ),
];
/// The same for integers.
const INTEGERS: [(&str, &str, &str, i64, i64); 4] = [
    ("top_k", "top_k_openai", "top_k", 0, 100_000),
    ("seed", "seed_openai", "seed", 0, 4_294_967_295),
    (
        "openai_max_context",
        "max_context",
        "context_tokens",
        64,
        10_000_000,
    ),
    (
        "openai_max_tokens",
        "max_tokens",
        "max_tokens",
        1,
        1_000_000,
    ),
];
/// Older text fields, and the prompt that each has become.
const LEGACY_PROMPTS: [(&str, &str); 3] = [
    ("main_prompt", "main"),
    ("nsfw_prompt", "nsfw"),
    ("jailbreak_prompt", "jailbreak"),
];

/// Returns whether this is a chat-completion preset.
pub fn is_chat_completion(fields: &Map<String, Value>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    let is_list = |name: &str| fields.get(name).is_some_and(Value::is_array);
    is_list("prompts")
        || is_list("prompt_order")
        || has("openai_max_context")
        || has("openai_max_tokens")
        || LEGACY_PROMPTS.iter().any(|(field, _)| has(field))
        || has("chat_completion_source")
}

/// Reads the preset; returns its `origin`.
pub fn read(reading: &mut FieldReader) -> Value {
    reading.remove_secrets();
    read_samplers(reading);
    for (theirs, ours) in TEXTS {
        reading.copy_text(theirs, ours);
    }
    let names = reading.fields.shift_remove("names_behavior");
    if let Some(names) = names.as_ref().and_then(integer).and_then(names_behavior) {
        reading.document.insert("names".to_owned(), json!(names));
    }
    read_continue_postfix(reading);
    let orders = read_prompts(reading);
    warn_unused_fields(reading);
    // Their persona has no template; our default adds the user's name.
    reading
        .document
        .insert("persona_format".to_owned(), json!("{{persona}}"));
    reading
        .document
        .insert("example_format".to_owned(), json!(ExampleFormat::Messages));
    let mut origin = json!({"form": FORM});
    if let Some(orders) = orders {
        if integer(&orders.character_id) != Some(ALL_CHARACTERS) {
            origin["character_id"] = orders.character_id;
        }
        if !orders.others.is_empty() {
            origin["other_orders"] = Value::Array(orders.others);
        }
    }
    origin["fields"] = Value::Object(std::mem::take(&mut reading.fields));
    origin
}

/// Reads the Continue Postfix: the field contains the characters themselves.
fn read_continue_postfix(reading: &mut FieldReader) {
    let found = reading.fields.get("continue_postfix");
    let text = found.and_then(Value::as_str);
    let known = text.and_then(|text| {
        ContinuePostfix::ALL
            .into_iter()
            .find(|it| it.text() == text)
    });
    if let Some(postfix) = known {
        reading.fields.shift_remove("continue_postfix");
        reading
            .document
            .insert("continue_postfix".to_owned(), json!(postfix));
    }
}

fn read_samplers(reading: &mut FieldReader) {
    for (field, old, ours, least, most) in FRACTIONS {
        reading.copy_number(old, ours, least, most);
        reading.copy_number(field, ours, least, most);
    }
    for (field, old, ours, least, most) in INTEGERS {
        reading.copy_integer(old, ours, least, most);
        reading.copy_integer(field, ours, least, most);
    }
}

/// Returns our value for their number.
fn names_behavior(number: i64) -> Option<&'static str> {
    NAMES
        .into_iter()
        .find(|(it, _)| *it == number)
        .map(|(_, word)| word)
}

/// How authors are named: their number, our value.
pub const NAMES: [(i64, &str); 4] = [
    (-1, "never"),
    (0, "in_groups"),
    (1, "usual"),
    (2, "in_text"),
];

fn read_prompts(reading: &mut FieldReader) -> Option<prompt_order::PromptOrders> {
    let prompts = match reading.fields.shift_remove("prompts") {
        Some(Value::Array(prompts)) => prompts,
        _ => Vec::new(),
    };
    let orders = prompt_order::read_orders(reading.fields.shift_remove("prompt_order"));
    if !prompts.is_empty() || orders.is_some() {
        let entries = prompt_order::read_entries(prompts, orders.as_ref(), reading);
        reading
            .document
            .insert("prompt_order".to_owned(), json!(entries));
    } else if let Some(entries) = legacy_entries(reading) {
        reading
            .document
            .insert("prompt_order".to_owned(), json!(entries));
    }
    orders
}

/// Returns the entries of a file without an order, from before orders existed.
fn legacy_entries(reading: &mut FieldReader) -> Option<Vec<PresetEntry>> {
    let mut entries = Preset::default().order;
    let mut found = false;
    for (field, id) in LEGACY_PROMPTS {
        let text = reading.fields.shift_remove(field);
        let entry = entries.iter_mut().find(|it| it.id == id);
        if let (Some(Value::String(text)), Some(entry)) = (text, entry) {
            entry.text = text;
            found = true;
        }
    }
    for (field, id) in [
        ("nsfw_toggle", "nsfw"),
        ("enhance_definitions", "enhanceDefinitions"),
    ] {
        let is_on = reading
            .fields
            .shift_remove(field)
            .as_ref()
            .and_then(boolean);
        let entry = entries.iter_mut().find(|it| it.id == id);
        if let (Some(is_on), Some(entry)) = (is_on, entry) {
            entry.enabled = is_on;
        }
    }
    found.then_some(entries)
}

/// Warns about settings of the file that have no effect here.
fn warn_unused_fields(reading: &mut FieldReader) {
    let is_on =
        |fields: &Map<String, Value>, name: &str| fields.get(name).and_then(boolean) == Some(true);
    for (field, what) in [
        ("wrap_in_quotes", "quotes around user messages"),
        ("function_calling", "tools"),
        ("enable_web_search", "web search"),
    ] {
        if is_on(&reading.fields, field) {
            reading.warn(unused_warning(field, what));
        }
    }
    let scripts = reading
        .fields
        .get("extensions")
        .map(|it| &it["regex_scripts"]);
    let n_scripts = scripts.and_then(Value::as_array).map_or(0, Vec::len);
    if n_scripts > 0 {
        let sentence = format!("{n_scripts} regex scripts are off until you allow them.");
        reading.warn(ImportWarning::new("scripts_off", sentence).with("n", n_scripts));
    }
}

fn unused_warning(field: &str, what: &str) -> ImportWarning {
    let sentence = format!("`{field}` ({what}) is kept, but not used.");
    ImportWarning::new("field_unused", sentence).with("field", field)
}

#[cfg(test)]
#[path = "chat_completion_tests.rs"]
mod tests;
