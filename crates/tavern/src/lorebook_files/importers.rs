//! Converts lorebooks of Agnai, Risu and NovelAI to the `character_book` format. Unknown fields are
//! preserved.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::lorebook_files::{lenient_json, world_info};

/// Translates an entry of another tool; returns `None` if it is not an entry.
type EntryTranslator = fn(Map<String, Value>) -> Option<Map<String, Value>>;

/// A lorebook and its entries.
type ImportedLorebook = (Map<String, Value>, Vec<Map<String, Value>>);

/// Reads a lorebook of one of these tools; returns it as `Err` if it has another format.
pub fn read(
    mut book: Map<String, Value>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<ImportedLorebook, Map<String, Value>> {
    let word = |field: &str| book.get(field).and_then(Value::as_str).unwrap_or_default();
    let (field, translate): (&str, EntryTranslator) = if word("kind") == "memory" {
        ("entries", from_agnai)
    } else if word("type") == "risu" {
        // Risu allows recursion by default.
        book.entry("recursive_scanning").or_insert(json!(true));
        ("data", from_risu)
    } else if book.contains_key("lorebookVersion") {
        ("entries", from_novel_ai)
    } else {
        return Err(book);
    };
    let entries = book.shift_remove(field);
    let format_fields = ["kind", "type", "ver", "lorebookVersion", "entries"];
    keep_unknown_fields(&mut book, &format_fields);
    let Some(Value::Array(entries)) = entries else {
        warnings.push(ImportWarning::new("book_empty", "The file has no entries."));
        return Ok((book, Vec::new()));
    };
    let n_stated = entries.len();
    let read = entries.into_iter().filter_map(|it| match it {
        Value::Object(entry) => translate(entry).map(world_info::complete_entry),
        _ => None,
    });
    let read: Vec<_> = read.collect();
    let n_left_out = n_stated - read.len();
    if n_left_out > 0 {
        let sentence = format!("{n_left_out} folders or invalid entries were skipped.");
        warnings.push(ImportWarning::new("entries_left_out", sentence).with("n", n_left_out));
    }
    Ok((book, read))
}

/// Moves fields that would make an exported lorebook look like another format into `origin`.
pub fn keep_unknown_fields(book: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        if let Some(value) = book.shift_remove(*field) {
            let origin = book.entry("origin").or_insert_with(|| json!({}));
            if !origin.is_object() {
                *origin = json!({"origin": origin.take()});
            }
            origin[*field] = value;
        }
    }
}

/// Renames fields to their `character_book` names.
fn rename_fields(entry: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (theirs, ours) in names {
        if let Some(value) = entry.shift_remove(*theirs) {
            entry.insert((*ours).to_owned(), value);
        }
    }
}

fn set_extensions(entry: &mut Map<String, Value>, extensions: Value) {
    entry.insert("extensions".to_owned(), extensions);
}

/// Agnai drops entries by priority and orders them by weight; `*` and `?` are wildcards.
fn from_agnai(mut entry: Map<String, Value>) -> Option<Map<String, Value>> {
    rename_fields(
        &mut entry,
        &[("entry", "content"), ("weight", "insertion_order")],
    );
    let keys = entry.shift_remove("keywords");
    let keys: Vec<String> = lenient_json::texts(keys.as_ref())
        .iter()
        .map(|it| wildcard_pattern(it))
        .collect();
    entry.insert("keys".to_owned(), json!(keys));
    set_extensions(
        &mut entry,
        json!({"selectiveLogic": 0, "match_whole_words": true}),
    );
    Some(entry)
}

fn wildcard_pattern(key: &str) -> String {
    if !key.contains(['*', '?']) {
        return key.to_owned();
    }
    let mut pattern = String::from(r"/\b");
    for sign in key.chars() {
        match sign {
            '*' => pattern.push_str(r"\w*"),
            '?' => pattern.push_str(r"\w"),
            sign => {
                if r"^$\.+()[]{}|/".contains(sign) {
                    pattern.push('\\');
                }
                pattern.push(sign);
            }
        }
    }
    pattern + r"\b/i"
}

fn from_risu(mut entry: Map<String, Value>) -> Option<Map<String, Value>> {
    if entry.get("mode").and_then(Value::as_str) == Some("folder") {
        return None;
    }
    rename_fields(
        &mut entry,
        &[
            ("key", "keys"),
            ("secondkey", "secondary_keys"),
            ("insertorder", "insertion_order"),
            ("alwaysActive", "constant"),
        ],
    );
    let is_pattern = lenient_json::boolean(entry.get("useRegex")).unwrap_or(false);
    if is_pattern {
        // A pattern is one key, even if it contains commas.
        let pattern = lenient_json::text(entry.get("keys"));
        entry.insert("keys".to_owned(), json!([pattern]));
    }
    let mode = entry.shift_remove("mode");
    if mode.as_ref().and_then(Value::as_str) == Some("constant") {
        entry.insert("constant".to_owned(), json!(true));
    }
    let mut extensions = json!({"selectiveLogic": 0});
    if let Some(percent) = lenient_json::float(entry.get("activationPercent")) {
        extensions["probability"] = json!(percent);
    }
    set_extensions(&mut entry, extensions);
    Some(entry)
}

fn from_novel_ai(mut entry: Map<String, Value>) -> Option<Map<String, Value>> {
    rename_fields(
        &mut entry,
        &[
            ("text", "content"),
            ("displayName", "name"),
            ("forceActivation", "constant"),
        ],
    );
    let config = entry.get("contextConfig");
    let order = lenient_json::int(config.and_then(|it| it.get("budgetPriority")));
    if let Some(order) = order {
        entry.insert("insertion_order".to_owned(), json!(order));
        entry.insert("priority".to_owned(), json!(order));
    }
    set_extensions(
        &mut entry,
        json!({"selectiveLogic": 0, "match_whole_words": true}),
    );
    Some(entry)
}
