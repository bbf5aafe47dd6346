//! Converts lorebook entries between the `character_book` format, in which they are stored, and the
//! format of SillyTavern's world info files. Detects the format, and completes missing fields.
//!
//! **Invariant:** unknown fields are preserved, and an entry that was exported and imported again
//! equals the original.

use serde_json::{Map, Value, json};

use crate::lorebook::pattern_key;
use crate::lorebook_files::lenient_json;

/// Fields of a world info file, with their names in `extensions`.
const EXTENSION_FIELDS: [(&str, &str); 33] = [
    ("vectorized", "vectorized"),
    ("selectiveLogic", "selectiveLogic"),
    ("addMemo", "add_memo"),
    ("position", "position"),
    ("ignoreBudget", "ignore_budget"),
    ("excludeRecursion", "exclude_recursion"),
    ("preventRecursion", "prevent_recursion"),
    ("matchPersonaDescription", "match_persona_description"),
    ("matchCharacterDescription", "match_character_description"),
    ("matchCharacterPersonality", "match_character_personality"),
    ("matchCharacterDepthPrompt", "match_character_depth_prompt"),
    ("matchScenario", "match_scenario"),
    ("matchCreatorNotes", "match_creator_notes"),
    ("delayUntilRecursion", "delay_until_recursion"),
    ("probability", "probability"),
    ("useProbability", "useProbability"),
    ("depth", "depth"),
    ("outletName", "outlet_name"),
    ("group", "group"),
    ("groupOverride", "group_override"),
    ("groupWeight", "group_weight"),
    ("scanDepth", "scan_depth"),
    ("caseSensitive", "case_sensitive"),
    ("matchWholeWords", "match_whole_words"),
    ("useGroupScoring", "use_group_scoring"),
    ("automationId", "automation_id"),
    ("role", "role"),
    ("sticky", "sticky"),
    ("cooldown", "cooldown"),
    ("delay", "delay"),
    ("triggers", "triggers"),
    ("characterFilter", "character_filter"),
    ("displayIndex", "display_index"),
];

/// Fields of a world info file that a `character_book` has under another name.
const RENAMED_FIELDS: [(&str, &str); 4] = [
    ("key", "keys"),
    ("keysecondary", "secondary_keys"),
    ("order", "insertion_order"),
    ("uid", "id"),
];

/// Holds, in a world info file, the fields of an entry whose names mean something else there.
const CONFLICTING_FIELDS: &str = "troupe_beside";

/// Returns the default `extensions` of an entry.
fn default_extensions() -> Value {
    json!({
        "vectorized": false, "selectiveLogic": 0, "add_memo": true, "position": 1,
        "ignore_budget": false, "exclude_recursion": false, "prevent_recursion": false,
        "match_persona_description": false, "match_character_description": false,
        "match_character_personality": false, "match_character_depth_prompt": false,
        "match_scenario": false, "match_creator_notes": false, "delay_until_recursion": 0,
        "probability": 100, "useProbability": true, "depth": 4, "outlet_name": "", "group": "",
        "group_override": false, "group_weight": 100, "scan_depth": null, "case_sensitive": null,
        "match_whole_words": null, "use_group_scoring": null, "automation_id": "", "role": 0,
        "sticky": null, "cooldown": null, "delay": null, "triggers": [],
        "character_filter": {"isExclude": false, "names": [], "tags": []},
    })
}

/// Returns whether these are entries of a world info file. The first entry with keys decides; if
/// none has keys, the first with another field that only one of the two formats has.
pub fn is_world_info<'a>(entries: impl Iterator<Item = &'a Value> + Clone) -> bool {
    let by_word = |entry: &Map<String, Value>| {
        let has = |words: &[&str]| words.iter().any(|it| entry.contains_key(*it));
        let is_of_card = has(&["insertion_order", "enabled"]);
        (is_of_card || has(&["order", "disable", "uid"])).then_some(!is_of_card)
    };
    let entries = entries.filter_map(Value::as_object);
    let format = entries.clone().find_map(format_by_keys);
    format
        .or_else(|| entries.into_iter().find_map(by_word))
        .unwrap_or(false)
}

/// Returns whether this is an entry of a world info file; `in_world` applies if it has no keys.
pub fn is_world_info_entry(entry: &Map<String, Value>, in_world: bool) -> bool {
    format_by_keys(entry).unwrap_or(in_world)
}

fn format_by_keys(entry: &Map<String, Value>) -> Option<bool> {
    let has = |words: &[&str]| words.iter().any(|it| entry.contains_key(*it));
    if has(&["keys"]) {
        return Some(false);
    }
    let is_of_world = has(&["key", "keysecondary"]);
    (is_of_world || has(&["secondary_keys"])).then_some(is_of_world)
}

/// Returns whether a field has a meaning in a world info file that a `character_book` does not
/// share.
fn is_world_info_field(field: &str) -> bool {
    let mut words = EXTENSION_FIELDS
        .iter()
        .chain(&RENAMED_FIELDS)
        .map(|(theirs, _)| *theirs);
    field == "disable" || field == CONFLICTING_FIELDS || words.any(|it| it == field)
}

/// Converts an entry of a world info file to the `character_book` format.
pub fn from_world_info(mut world: Map<String, Value>) -> Map<String, Value> {
    let mut entry = Map::new();
    for (theirs, ours) in RENAMED_FIELDS {
        if let Some(value) = world.shift_remove(theirs) {
            entry.insert(ours.to_owned(), value);
        }
    }
    if let Some(disabled) = world.shift_remove("disable") {
        let disabled = lenient_json::boolean(Some(&disabled)).unwrap_or(false);
        entry.insert("enabled".to_owned(), json!(!disabled));
    }
    let mut extensions = match world.shift_remove("extensions") {
        Some(Value::Object(extensions)) => extensions,
        _ => Map::new(),
    };
    for (theirs, ours) in EXTENSION_FIELDS {
        if let Some(value) = world.shift_remove(theirs) {
            extensions.insert(ours.to_owned(), value);
        }
    }
    // World info files mark patterns only by slashes.
    extensions.entry("selectiveLogic").or_insert(json!(0));
    entry.insert("extensions".to_owned(), Value::Object(extensions));
    let beside = match world.shift_remove(CONFLICTING_FIELDS) {
        Some(Value::Object(beside)) => beside,
        Some(other) => Map::from_iter([(CONFLICTING_FIELDS.to_owned(), other)]),
        None => Map::new(),
    };
    for (field, value) in world.into_iter().chain(beside) {
        entry.entry(field).or_insert(value);
    }
    complete_entry(entry)
}

/// Converts an entry to the world info format, with every field that SillyTavern expects.
pub fn to_world_info(entry: &Map<String, Value>, uid: &Value) -> Map<String, Value> {
    let mut rest = complete_entry(entry.clone());
    rest.shift_remove("id");
    rest.shift_remove("position");
    let mut world = Map::new();
    world.insert("uid".to_owned(), uid.clone());
    for (theirs, ours) in RENAMED_FIELDS {
        if let Some(value) = rest.shift_remove(ours) {
            world.insert(theirs.to_owned(), value);
        }
    }
    let enabled = rest.shift_remove("enabled");
    let enabled = lenient_json::boolean(enabled.as_ref()).unwrap_or(true);
    world.insert("disable".to_owned(), json!(!enabled));
    let extensions = rest.shift_remove("extensions");
    let mut unknown = Map::new();
    for (name, value) in extensions
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        match EXTENSION_FIELDS.iter().find(|(_, ours)| ours == name) {
            Some((theirs, _)) => world.insert((*theirs).to_owned(), value.clone()),
            None => unknown.insert(name.clone(), value.clone()),
        };
    }
    let mut beside = Map::new();
    for (field, value) in rest {
        match is_world_info_field(&field) {
            true => beside.insert(field, value),
            false => world.insert(field, value),
        };
    }
    if !beside.is_empty() {
        world.insert(CONFLICTING_FIELDS.to_owned(), Value::Object(beside));
    }
    if !unknown.is_empty() {
        world.insert("extensions".to_owned(), Value::Object(unknown));
    }
    world
}

/// Adds the missing fields of an entry and corrects the types of the others.
pub fn complete_entry(mut entry: Map<String, Value>) -> Map<String, Value> {
    let mut extensions = match entry.shift_remove("extensions") {
        Some(Value::Object(extensions)) => extensions,
        _ => Map::new(),
    };
    let truth = |entry: &Map<String, Value>, field: &str| lenient_json::boolean(entry.get(field));
    let is_from_silly_tavern = extensions.contains_key("selectiveLogic");
    if truth(&entry, "use_regex") == Some(true) && !is_from_silly_tavern {
        write_pattern_keys(&mut entry);
    }
    for field in ["keys", "secondary_keys"] {
        let texts = lenient_json::texts(entry.get(field));
        entry.insert(field.to_owned(), json!(texts));
    }
    for field in ["content", "name", "comment"] {
        let text = lenient_json::text(entry.get(field));
        entry.insert(field.to_owned(), json!(text));
    }
    fill_if_blank(&mut entry, "name", "comment");
    fill_if_blank(&mut entry, "comment", "name");
    for (field, usual) in [("enabled", true), ("constant", false), ("selective", true)] {
        let stated = truth(&entry, field).unwrap_or(usual);
        entry.insert(field.to_owned(), json!(stated));
    }
    let order = lenient_json::int(entry.get("insertion_order"));
    let order = order.unwrap_or(crate::lorebook_files::entry::DEFAULT_ORDER);
    entry.insert("insertion_order".to_owned(), json!(order));
    for (field, usual) in default_extensions().as_object().into_iter().flatten() {
        if !extensions.contains_key(field) {
            let of_entry = match field.as_str() {
                "position" if entry.get("position") == Some(&json!("before_char")) => json!(0),
                "case_sensitive" => entry.get(field).cloned().unwrap_or_default(),
                _ => usual.clone(),
            };
            extensions.insert(field.clone(), of_entry);
        }
    }
    let is_before = lenient_json::int(extensions.get("position")) == Some(0);
    let word = if is_before {
        "before_char"
    } else {
        "after_char"
    };
    entry.insert("position".to_owned(), json!(word));
    entry.insert("extensions".to_owned(), Value::Object(extensions));
    entry
}

/// Sets `field` to the value of `other` if it is blank.
fn fill_if_blank(entry: &mut Map<String, Value>, field: &str, other: &str) {
    let is_blank = |it: &Value| it.as_str().is_none_or(|it| it.trim().is_empty());
    if entry.get(field).is_none_or(is_blank)
        && let Some(value) = entry.get(other).cloned()
    {
        entry.insert(field.to_owned(), value);
    }
}

/// Writes pattern keys as `/…/` literals, which mark themselves as patterns.
fn write_pattern_keys(entry: &mut Map<String, Value>) {
    let is_exact = lenient_json::boolean(entry.get("case_sensitive")) == Some(true);
    let flags = if is_exact { "" } else { "i" };
    for field in ["keys", "secondary_keys"] {
        let keys = lenient_json::texts(entry.get(field)).into_iter();
        let keys = keys.map(|key| match pattern_key::parse_literal(&key) {
            Some(_) => key,
            None => format!("/{}/{flags}", pattern_key::escape_slashes(&key)),
        });
        let keys: Vec<String> = keys.collect();
        entry.insert(field.to_owned(), json!(keys));
    }
    // An entry with `use_regex` is never constant.
    entry.insert("constant".to_owned(), json!(false));
}
