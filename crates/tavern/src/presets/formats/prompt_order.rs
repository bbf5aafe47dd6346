//! Converts the prompts of a chat-completion preset and their order to preset entries, and back.

use base::prompt_role::PromptRole;
use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::presets::complete_preset::{
    DEFAULT_DEPTH, DEFAULT_ORDER, GenerationTrigger, Preset, PresetEntry, PromptPosition,
    PromptSlot,
};
use crate::presets::formats::field_reader::{FieldReader, boolean, integer, is_blank};

/// The key in an entry's `extra` for unknown fields of its prompt.
pub const PROMPT_EXTRA: &str = "sillytavern";
/// The key in an entry's `extra` for unknown fields of its item in the order.
pub const ORDER_EXTRA: &str = "sillytavern_order";
/// The `character_id` of the order that applies to all characters.
pub const ALL_CHARACTERS: i64 = 100_001;
/// The preferred orders by `character_id`; the first that exists is used.
const ORDER_CHARACTER_IDS: [i64; 2] = [ALL_CHARACTERS, 100_000];
const MAX_LABEL_CHARS: usize = 200;

/// The prompt order that is used, and the orders for other characters.
pub struct PromptOrders {
    pub character_id: Value,
    lines: Vec<Map<String, Value>>,
    pub others: Vec<Value>,
}

/// Selects the order: for all characters, else the older default, else any.
pub fn read_orders(found: Option<Value>) -> Option<PromptOrders> {
    let Some(Value::Array(mut lists)) = found else {
        return None;
    };
    let of = |id: i64| {
        lists
            .iter()
            .position(|it| integer(&it["character_id"]) == Some(id))
    };
    let any = lists.iter().position(|it| it["order"].is_array());
    let chosen = ORDER_CHARACTER_IDS.into_iter().find_map(of).or(any)?;
    let mut chosen = lists.remove(chosen);
    let lines = match chosen["order"].take() {
        Value::Array(lines) => lines,
        _ => Vec::new(),
    };
    let lines = lines.into_iter().filter_map(|it| match it {
        Value::Object(line) => Some(line),
        _ => None,
    });
    Some(PromptOrders {
        character_id: chosen["character_id"].take(),
        lines: lines.collect(),
        others: lists,
    })
}

/// The slots that are sent although the order does not name them, in this order.
const UNNAMED_SLOTS: [&str; 7] = [
    "worldInfoBefore",
    "charDescription",
    "charPersonality",
    "scenario",
    "worldInfoAfter",
    "personaDescription",
    "dialogueExamples",
];

/// Returns the entries: first the ordered prompts, then the slots that the order lacks, then the unused
/// prompts, disabled. Without an order, the default one applies.
pub fn read_entries(
    prompts: Vec<Value>,
    orders: Option<&PromptOrders>,
    reading: &mut FieldReader,
) -> Vec<PresetEntry> {
    let mut prompts: Vec<Map<String, Value>> = prompts
        .into_iter()
        .filter_map(|it| match it {
            Value::Object(prompt) if !identifier(&prompt).is_empty() => Some(prompt),
            _ => None,
        })
        .collect();
    let lines = match orders {
        Some(orders) => orders.lines.clone(),
        None => default_lines(),
    };
    let mut entries: Vec<PresetEntry> = Vec::new();
    for line in &lines {
        let id = identifier(line);
        if entries.iter().any(|it| it.id == id) {
            let name = short_name(&id);
            let sentence = format!("“{name}” is in the order twice; only one was kept.");
            reading.warn(ImportWarning::new("entry_twice", sentence).with("name", name));
            continue;
        }
        let Some(mut entry) = take_entry(&mut prompts, &id, reading) else {
            let name = short_name(&id);
            let sentence = format!("“{name}” is in the order, but there is no such prompt.");
            reading.warn(ImportWarning::new("entry_missing", sentence).with("name", name));
            continue;
        };
        entry.enabled = line.get("enabled").and_then(boolean).unwrap_or(true);
        let rest = line
            .iter()
            .filter(|(key, _)| !["identifier", "enabled"].contains(&key.as_str()));
        let rest: Map<String, Value> = rest.map(|(key, it)| (key.clone(), it.clone())).collect();
        if !rest.is_empty() {
            entry
                .extra
                .insert(ORDER_EXTRA.to_owned(), Value::Object(rest));
        }
        if entry.system_prompt && entry.enabled {
            let name = short_name(&entry.label);
            let sentence = format!(
                "“{name}” is not sent, as in SillyTavern. To send it, clear “Not sent” in the preset editor."
            );
            reading.warn(ImportWarning::new("entry_not_sent", sentence).with("name", name));
        }
        entries.push(entry);
    }
    add_unnamed_slots(&mut entries, &mut prompts, reading);
    for prompt in prompts {
        let kept = read_entry(prompt, reading);
        if entries.iter().all(|it| it.id != kept.id) {
            let enabled = false;
            entries.push(PresetEntry { enabled, ..kept });
        }
    }
    entries
}

/// Returns the lines of the default order, for a file without an order.
fn default_lines() -> Vec<Map<String, Value>> {
    let line = |entry: PresetEntry| {
        Map::from_iter([
            ("identifier".to_owned(), json!(entry.id)),
            ("enabled".to_owned(), json!(entry.enabled)),
        ])
    };
    let order = Preset::default().order;
    order.into_iter().map(line).collect()
}

/// Removes and reads the prompt with this id; if there is none, returns the default entry.
fn take_entry(
    prompts: &mut Vec<Map<String, Value>>,
    id: &str,
    reading: &mut FieldReader,
) -> Option<PresetEntry> {
    match prompts.iter().position(|it| identifier(it) == id) {
        Some(at) => Some(read_entry(prompts.remove(at), reading)),
        None => default_entry(id),
    }
}

/// Adds the slots that the order does not name at its end, as SillyTavern sends them, and the history
/// before the post-history instructions.
fn add_unnamed_slots(
    entries: &mut Vec<PresetEntry>,
    prompts: &mut Vec<Map<String, Value>>,
    reading: &mut FieldReader,
) {
    let mut labels = Vec::new();
    for id in UNNAMED_SLOTS {
        if entries.iter().all(|it| it.id != id)
            && let Some(entry) = take_entry(prompts, id, reading)
        {
            labels.push(entry.label.clone());
            entries.push(entry);
        }
    }
    if !labels.is_empty() {
        let names = labels.join(", ");
        let sentence = format!(
            "These entries are not in the prompt order; they are sent after all others: {names}."
        );
        reading.warn(ImportWarning::new("slots_added", sentence).with("names", names));
    }
    let is_history = |it: &PresetEntry| it.slot == Some(PromptSlot::History);
    if !entries.iter().any(is_history) {
        let before = entries
            .iter()
            .position(|it| it.slot == Some(PromptSlot::PostHistory));
        let at = before.unwrap_or(entries.len());
        entries.splice(at..at, take_entry(prompts, "chatHistory", reading));
        let sentence = "The order has no chat history; it was added.";
        reading.warn(ImportWarning::new("order_without_history", sentence));
    }
}

/// Returns the default entry with this id.
pub fn default_entry(id: &str) -> Option<PresetEntry> {
    Preset::default().order.into_iter().find(|it| it.id == id)
}

/// Returns whether the prompt of this slot is a marker without a text.
pub fn is_marker(slot: Option<PromptSlot>) -> bool {
    slot.is_some_and(|it| !matches!(it, PromptSlot::Main | PromptSlot::PostHistory))
}

fn identifier(fields: &Map<String, Value>) -> String {
    match fields.get("identifier") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn read_entry(mut prompt: Map<String, Value>, reading: &mut FieldReader) -> PresetEntry {
    let id = identifier(&prompt);
    prompt.shift_remove("identifier");
    let usual = default_entry(&id);
    let slot = usual.as_ref().and_then(|it| it.slot);
    let label = match prompt.shift_remove("name") {
        Some(Value::String(name)) if !name.trim().is_empty() => name,
        _ => usual.as_ref().map_or(&id, |it| &it.label).clone(),
    };
    let text = match prompt.shift_remove("content") {
        Some(Value::String(text)) if !is_marker(slot) => text,
        _ => String::new(),
    };
    remove_redundant(&mut prompt, "marker", is_marker(slot));
    let system_prompt = prompt.get("system_prompt").and_then(boolean) == Some(true);
    remove_redundant(
        &mut prompt,
        "system_prompt",
        usual.is_some() || system_prompt,
    );
    if prompt.get("marker").and_then(boolean) == Some(true) {
        let name = short_name(&label);
        let sentence = format!("“{name}” refers to content that is not supported yet.");
        reading.warn(ImportWarning::new("entry_marker_unknown", sentence).with("name", name));
    }
    let mut entry = PresetEntry {
        slot,
        role: read_role(prompt.shift_remove("role")),
        place: read_position(&mut prompt),
        triggers: read_triggers(&mut prompt, &label, reading),
        forbid_overrides: prompt
            .shift_remove("forbid_overrides")
            .as_ref()
            .and_then(boolean)
            == Some(true),
        system_prompt: system_prompt && usual.is_none(),
        ..PresetEntry::from_text(
            &id,
            &label.chars().take(MAX_LABEL_CHARS).collect::<String>(),
            &text,
        )
    };
    if !prompt.is_empty() {
        entry
            .extra
            .insert(PROMPT_EXTRA.to_owned(), Value::Object(prompt));
    }
    entry
}

/// Removes a field whose value equals the one already known.
fn remove_redundant(prompt: &mut Map<String, Value>, field: &str, known: bool) {
    let found = prompt.get(field);
    if found.is_some_and(|it| is_blank(it) || boolean(it) == Some(known)) {
        prompt.shift_remove(field);
    }
}

fn read_role(found: Option<Value>) -> PromptRole {
    match found.as_ref().and_then(Value::as_str) {
        Some("user") => PromptRole::User,
        Some("assistant") => PromptRole::Assistant,
        _ => PromptRole::System,
    }
}

fn read_position(prompt: &mut Map<String, Value>) -> PromptPosition {
    let position = prompt.shift_remove("injection_position");
    if position.as_ref().and_then(integer) != Some(1) {
        // Depth and order are kept in case the entry is moved into the chat again.
        return PromptPosition::Relative;
    }
    let mut whole = |field: &str, usual: i64| {
        let found = prompt.shift_remove(field).as_ref().and_then(integer);
        found.unwrap_or(usual)
    };
    PromptPosition::InChat {
        depth: whole("injection_depth", DEFAULT_DEPTH).clamp(0, 10_000),
        order: whole("injection_order", DEFAULT_ORDER).clamp(-10_000, 10_000),
    }
}

fn read_triggers(
    prompt: &mut Map<String, Value>,
    label: &str,
    reading: &mut FieldReader,
) -> Vec<GenerationTrigger> {
    let Some(Value::Array(found)) = prompt.shift_remove("injection_trigger") else {
        return Vec::new();
    };
    let mut triggers = Vec::new();
    for word in found {
        match serde_json::from_value(word) {
            Ok(trigger) if triggers.contains(&trigger) => {}
            Ok(trigger) => triggers.push(trigger),
            Err(_) => {
                let name = short_name(label);
                let sentence = format!("“{name}” has an unknown trigger.");
                reading.warn(ImportWarning::new("turn_unknown", sentence).with("name", name));
            }
        }
    }
    triggers
}

/// Returns the start of a name, for warnings.
fn short_name(name: &str) -> String {
    name.chars().take(60).collect()
}

/// Returns a prompt and its item in the order, in their format.
pub fn write_entry(entry: &PresetEntry) -> (Value, Value) {
    let mut prompt = json!({
        "identifier": entry.id,
        "name": entry.label,
        "system_prompt": entry.system_prompt || default_entry(&entry.id).is_some(),
        "marker": is_marker(entry.slot),
        "role": entry.role.as_str(),
    });
    if !is_marker(entry.slot) {
        prompt["content"] = json!(entry.text);
        prompt["forbid_overrides"] = json!(entry.forbid_overrides);
    }
    let of = |key: &str| {
        entry
            .extra
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    for (key, value) in of(PROMPT_EXTRA) {
        prompt[key] = value.clone();
    }
    prompt["injection_position"] = json!(0);
    if let PromptPosition::InChat { depth, order } = entry.place {
        prompt["injection_position"] = json!(1);
        prompt["injection_depth"] = json!(depth);
        prompt["injection_order"] = json!(order);
    }
    if !entry.triggers.is_empty() {
        prompt["injection_trigger"] = json!(entry.triggers);
    }
    let mut line = json!({"identifier": entry.id, "enabled": entry.enabled});
    for (key, value) in of(ORDER_EXTRA) {
        line[key] = value.clone();
    }
    (prompt, line)
}
