//! The prompts of a chat-completion preset and the order they stand in, as our entries.

use crate::import_warning::ImportWarning;
use crate::llm::request::PromptRole;
use crate::presets::document::Entry;
use crate::presets::document::Place;
use crate::presets::document::Preset;
use crate::presets::document::Slot;
use crate::presets::document::Trigger;
use crate::presets::document::USUAL_DEPTH;
use crate::presets::document::USUAL_ORDER;
use crate::presets::formats::chat_completion::ALL_CHARACTERS;
use crate::presets::formats::reading::Reading;
use crate::presets::formats::reading::integer;
use crate::presets::formats::reading::is_blank;
use crate::presets::formats::reading::truth;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// Where an entry keeps what its prompt says beside what we know.
pub const OF_PROMPT: &str = "sillytavern";
/// The same of its line in the order.
pub const OF_LINE: &str = "sillytavern_order";
/// The lists of orders that are taken, the first that is there.
const LISTS: [i64; 2] = [ALL_CHARACTERS, 100_000];
const MAX_LABEL_CHARS: usize = 200;

/// One list of an order, and the others.
pub struct Orders {
    pub character_id: Value,
    lines: Vec<Map<String, Value>>,
    pub others: Vec<Value>,
}

/// The order that counts: that of all characters, else the old one, else any.
pub fn orders(found: Option<Value>) -> Option<Orders> {
    let Some(Value::Array(mut lists)) = found else {
        return None;
    };
    let of = |id: i64| {
        lists
            .iter()
            .position(|it| integer(&it["character_id"]) == Some(id))
    };
    let any = lists.iter().position(|it| it["order"].is_array());
    let chosen = LISTS.into_iter().find_map(of).or(any)?;
    let mut chosen = lists.remove(chosen);
    let lines = match chosen["order"].take() {
        Value::Array(lines) => lines,
        _ => Vec::new(),
    };
    let lines = lines.into_iter().filter_map(|it| match it {
        Value::Object(line) => Some(line),
        _ => None,
    });
    Some(Orders {
        character_id: chosen["character_id"].take(),
        lines: lines.collect(),
        others: lists,
    })
}

/// Our entries: first what stands in the order, then what is only kept, turned off.
pub fn entries(prompts: Vec<Value>, orders: Option<&Orders>, reading: &mut Reading) -> Vec<Entry> {
    let mut prompts: Vec<Map<String, Value>> = prompts
        .into_iter()
        .filter_map(|it| match it {
            Value::Object(prompt) if !identifier(&prompt).is_empty() => Some(prompt),
            _ => None,
        })
        .collect();
    let mut entries: Vec<Entry> = Vec::new();
    for line in orders.map_or(&[][..], |it| &it.lines) {
        let id = identifier(line);
        if entries.iter().any(|it| it.id == id) {
            let name = cut(&id);
            let sentence = format!("“{name}” stands in the order twice: once is kept.");
            reading.warn(ImportWarning::new("entry_twice", sentence).with("name", name));
            continue;
        }
        let at = prompts.iter().position(|it| identifier(it) == id);
        let found = at.map(|at| entry(prompts.remove(at), reading));
        let Some(mut entry) = found.or_else(|| usual(&id)) else {
            let name = cut(&id);
            let sentence = format!("“{name}” stands in the order, but there is no such prompt.");
            reading.warn(ImportWarning::new("entry_missing", sentence).with("name", name));
            continue;
        };
        entry.enabled = line.get("enabled").and_then(truth).unwrap_or(true);
        let rest = line
            .iter()
            .filter(|(key, _)| !["identifier", "enabled"].contains(&key.as_str()));
        let rest: Map<String, Value> = rest.map(|(key, it)| (key.clone(), it.clone())).collect();
        if !rest.is_empty() {
            entry.extra.insert(OF_LINE.to_owned(), Value::Object(rest));
        }
        entries.push(entry);
    }
    for prompt in prompts {
        let kept = entry(prompt, reading);
        if entries.iter().all(|it| it.id != kept.id) {
            let enabled = orders.is_none() && kept.slot.is_some();
            entries.push(Entry { enabled, ..kept });
        }
    }
    complete(&mut entries, orders, reading);
    entries
}

/// What no prompt can do without, and what the old lists could not know of.
fn complete(entries: &mut Vec<Entry>, orders: Option<&Orders>, reading: &mut Reading) {
    let has = |entries: &[Entry], slot| entries.iter().any(|it: &Entry| it.slot == Some(slot));
    let is_old = orders.is_some_and(|it| integer(&it.character_id) == Some(LISTS[1]));
    if is_old && !has(entries, Slot::Persona) {
        let after = entries
            .iter()
            .position(|it| it.slot == Some(Slot::LoreBefore));
        let at = after.map_or(1, |it| it + 1).min(entries.len());
        entries.splice(at..at, usual("personaDescription"));
        let sentence = "The order is from before personas: theirs stands before the character.";
        reading.warn(ImportWarning::new("order_without_persona", sentence));
    }
    if !has(entries, Slot::History) {
        let before = entries
            .iter()
            .position(|it| it.slot == Some(Slot::PostHistory));
        let at = before.unwrap_or(entries.len());
        entries.splice(at..at, usual("chatHistory"));
        let sentence = "The order had no place for the conversation: it was given one.";
        reading.warn(ImportWarning::new("order_without_history", sentence));
    }
}

/// The entry of this id as we know it.
pub fn usual(id: &str) -> Option<Entry> {
    Preset::default().order.into_iter().find(|it| it.id == id)
}

/// Is the prompt of this entry a mark, without a text of its own?
pub fn is_mark(slot: Option<Slot>) -> bool {
    slot.is_some_and(|it| !matches!(it, Slot::Main | Slot::PostHistory))
}

fn identifier(fields: &Map<String, Value>) -> String {
    match fields.get("identifier") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn entry(mut prompt: Map<String, Value>, reading: &mut Reading) -> Entry {
    let id = identifier(&prompt);
    prompt.shift_remove("identifier");
    let usual = usual(&id);
    let slot = usual.as_ref().and_then(|it| it.slot);
    let label = match prompt.shift_remove("name") {
        Some(Value::String(name)) if !name.trim().is_empty() => name,
        _ => usual.as_ref().map_or(&id, |it| &it.label).clone(),
    };
    let text = match prompt.shift_remove("content") {
        Some(Value::String(text)) if !is_mark(slot) => text,
        _ => String::new(),
    };
    forget_if(&mut prompt, "marker", is_mark(slot));
    forget_if(&mut prompt, "system_prompt", usual.is_some());
    if prompt.get("marker").and_then(truth) == Some(true) {
        let name = cut(&label);
        let sentence = format!("“{name}” stands for something that is not there yet.");
        reading.warn(ImportWarning::new("entry_marker_unknown", sentence).with("name", name));
    }
    let mut entry = Entry {
        slot,
        role: role(prompt.shift_remove("role")),
        place: place(&mut prompt),
        triggers: triggers(&mut prompt, &label, reading),
        forbid_overrides: prompt
            .shift_remove("forbid_overrides")
            .as_ref()
            .and_then(truth)
            == Some(true),
        ..Entry::of_text(
            &id,
            &label.chars().take(MAX_LABEL_CHARS).collect::<String>(),
            &text,
        )
    };
    if !prompt.is_empty() {
        entry
            .extra
            .insert(OF_PROMPT.to_owned(), Value::Object(prompt));
    }
    entry
}

/// Takes a field away that says no more than is known without it.
fn forget_if(prompt: &mut Map<String, Value>, field: &str, known: bool) {
    let found = prompt.get(field);
    if found.is_some_and(|it| is_blank(it) || truth(it) == Some(known)) {
        prompt.shift_remove(field);
    }
}

fn role(found: Option<Value>) -> PromptRole {
    match found.as_ref().and_then(Value::as_str) {
        Some("user") => PromptRole::User,
        Some("assistant") => PromptRole::Assistant,
        _ => PromptRole::System,
    }
}

fn place(prompt: &mut Map<String, Value>) -> Place {
    let position = prompt.shift_remove("injection_position");
    if position.as_ref().and_then(integer) != Some(1) {
        // Depth and order are kept for whoever moves it into the chat again.
        return Place::Relative;
    }
    let mut whole = |field: &str, usual: i64| {
        let found = prompt.shift_remove(field).as_ref().and_then(integer);
        found.unwrap_or(usual)
    };
    Place::InChat {
        depth: whole("injection_depth", USUAL_DEPTH).clamp(0, 10_000),
        order: whole("injection_order", USUAL_ORDER).clamp(-10_000, 10_000),
    }
}

fn triggers(prompt: &mut Map<String, Value>, label: &str, reading: &mut Reading) -> Vec<Trigger> {
    let Some(Value::Array(found)) = prompt.shift_remove("injection_trigger") else {
        return Vec::new();
    };
    let mut triggers = Vec::new();
    for word in found {
        match serde_json::from_value(word) {
            Ok(trigger) if triggers.contains(&trigger) => {}
            Ok(trigger) => triggers.push(trigger),
            Err(_) => {
                let name = cut(label);
                let sentence = format!("“{name}” names a kind of turn that is not known.");
                reading.warn(ImportWarning::new("turn_unknown", sentence).with("name", name));
            }
        }
    }
    triggers
}

/// Enough of a name to know it by.
fn cut(name: &str) -> String {
    name.chars().take(60).collect()
}

/// A prompt and its line in the order, as they are written.
pub fn written(entry: &Entry) -> (Value, Value) {
    let mut prompt = json!({
        "identifier": entry.id,
        "name": entry.label,
        "system_prompt": usual(&entry.id).is_some(),
        "marker": is_mark(entry.slot),
        "role": entry.role.as_str(),
    });
    if !is_mark(entry.slot) {
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
    for (key, value) in of(OF_PROMPT) {
        prompt[key] = value.clone();
    }
    prompt["injection_position"] = json!(0);
    if let Place::InChat { depth, order } = entry.place {
        prompt["injection_position"] = json!(1);
        prompt["injection_depth"] = json!(depth);
        prompt["injection_order"] = json!(order);
    }
    if !entry.triggers.is_empty() {
        prompt["injection_trigger"] = json!(entry.triggers);
    }
    let mut line = json!({"identifier": entry.id, "enabled": entry.enabled});
    for (key, value) in of(OF_LINE) {
        line[key] = value.clone();
    }
    (prompt, line)
}
