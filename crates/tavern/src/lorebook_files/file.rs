//! Reads a lorebook file of any supported tool (SillyTavern world info, lorebooks of cards,
//! `lorebook_v3`, Agnai, Risu, NovelAI) into a validated `ParsedLorebook`, and converts a stored
//! lorebook to the JSON of a world info file.
//!
//! **Invariant:** files are untrusted: their size, depth, and number of values and entries are
//! limited.

use std::collections::HashSet;

use base::display_name;
use serde_json::{Map, Value, json};

use crate::documents::{decoding, document, limits, line_ends};
use crate::import_warning::ImportWarning;
use crate::lorebook_files::{importers, world_info};

type JsonObject = Map<String, Value>;

/// The maximum size of a file, in bytes.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// The maximum number of JSON values in a file: parsed, a small number needs thirty times its size.
const MAX_VALUES: usize = 400_000;
/// The maximum number of entries in a lorebook.
pub const MAX_ENTRIES: usize = 5_000;
/// The maximum size of an entry, in bytes of JSON.
pub const MAX_ENTRY_BYTES: usize = 256 * 1024;
/// The maximum number of primary or of secondary keys of an entry.
pub const MAX_KEYS: usize = 1_000;
/// The maximum length of a lorebook's name, the same as for all display names.
pub const MAX_NAME_CHARS: usize = 100;

/// Why a file is not accepted as a lorebook. The messages are shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LorebookError {
    #[error("{0}")]
    NotALorebook(String),
    #[error("{0}")]
    TooLarge(String),
}

impl LorebookError {
    fn reason(reason: impl Into<String>) -> Self {
        Self::NotALorebook(reason.into())
    }
}

/// A validated lorebook in the format in which it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedLorebook {
    pub name: String,
    /// All fields except its name and entries; unknown fields are preserved.
    pub document: Map<String, Value>,
    /// Complete entries in the `character_book` format, each with a unique `id`.
    pub entries: Vec<Map<String, Value>>,
    /// What was repaired or skipped, for the user.
    pub warnings: Vec<ImportWarning>,
}

/// Reads the bytes of a file; `file_name` becomes the name of a lorebook without one.
///
/// # Errors
/// Returns `NotALorebook` for another kind of file, and `TooLarge` when a limit is exceeded.
pub fn read(bytes: &[u8], file_name: &str) -> Result<ParsedLorebook, LorebookError> {
    if bytes.len() > MAX_BYTES {
        return Err(LorebookError::TooLarge(
            "The file is larger than 5 MiB.".into(),
        ));
    }
    let decoded = decoding::decode(bytes);
    if limits::count_depth_and_values(decoded.text.as_bytes()).1 > MAX_VALUES {
        return Err(too_many_values());
    }
    let value: Value = serde_json::from_str(&decoded.text)
        .map_err(|error| LorebookError::reason(format!("The file is not valid JSON: {error}.")))?;
    let mut read = from_value(value, file_name)?;
    read.warnings.extend(decoded.warning);
    Ok(read)
}

/// Reads a JSON document.
///
/// # Errors
/// Returns `NotALorebook` for another kind of document, and `TooLarge` when a limit is exceeded.
pub fn from_value(mut value: Value, file_name: &str) -> Result<ParsedLorebook, LorebookError> {
    if count_values(&value) > MAX_VALUES {
        return Err(too_many_values());
    }
    remove_nul(&mut value);
    line_ends::normalize_all(&mut value);
    let Value::Object(root) = value else {
        return Err(LorebookError::reason("A lorebook must be a JSON object."));
    };
    let mut warnings = Vec::new();
    let book = unwrap_container(root)?;
    let (mut document, entries) = match importers::read(book, &mut warnings) {
        Ok(read) => read,
        Err(book) => read_entries(book, &mut warnings)?,
    };
    let entries = validate_all(entries, &mut warnings)?;
    let stated = document.shift_remove("name");
    let stated = stated.as_ref().and_then(Value::as_str).unwrap_or_default();
    let stem = file_name
        .rsplit_once('.')
        .map_or(file_name, |(stem, _)| stem);
    let name = display_name::truncate(stated, MAX_NAME_CHARS)
        .or_else(|| display_name::truncate(stem, MAX_NAME_CHARS))
        .unwrap_or_else(|| "Lorebook".to_owned());
    Ok(ParsedLorebook {
        name,
        document,
        entries,
        warnings,
    })
}

/// Extracts the lorebook from a `lorebook_v3` file or a card.
fn unwrap_container(mut root: Map<String, Value>) -> Result<Map<String, Value>, LorebookError> {
    let own = |mut book: Map<String, Value>| {
        importers::keep_unknown_fields(&mut book, &["spec"]);
        Ok(book)
    };
    let spec = root.get("spec").and_then(Value::as_str).unwrap_or_default();
    if spec.starts_with("lorebook") {
        return match root.shift_remove("data") {
            Some(Value::Object(book)) => own(book),
            _ => Err(LorebookError::reason("The lorebook has no `data`.")),
        };
    }
    if spec.starts_with("chara_card") {
        let book = root
            .get_mut("data")
            .and_then(|it| it.get_mut("character_book"));
        return match book.map(Value::take) {
            Some(Value::Object(book)) => own(book),
            _ => Err(LorebookError::reason("This card contains no lorebook.")),
        };
    }
    Ok(root)
}

/// Returns the entries of a world info file or `character_book`: a list, or an object by number.
fn read_entries(
    mut book: Map<String, Value>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<(JsonObject, Vec<JsonObject>), LorebookError> {
    let entries: Vec<(Option<String>, Value)> = match book.shift_remove("entries") {
        Some(Value::Array(entries)) => entries.into_iter().map(|it| (None, it)).collect(),
        Some(Value::Object(entries)) => entries
            .into_iter()
            .map(|(uid, it)| (Some(uid), it))
            .collect(),
        other => {
            book.extend(other.map(|it| ("entries".to_owned(), it)));
            let keys = document::describe_keys(&Value::Object(book));
            let reason = format!("The file contains no lorebook entries. {keys}");
            return Err(LorebookError::reason(reason));
        }
    };
    let in_world = world_info::is_world_info(entries.iter().map(|(_, it)| it));
    let mut read = Vec::new();
    for (uid, entry) in entries {
        let Value::Object(mut entry) = entry else {
            let sentence = "An item in the list of entries is not an entry; it was skipped.";
            warnings.push(ImportWarning::new("entry_unknown", sentence));
            continue;
        };
        let has_words = ["key", "keys", "content"]
            .iter()
            .any(|it| entry.contains_key(*it));
        if !has_words {
            let sentence = "An entry has neither keywords nor content; it was skipped.";
            warnings.push(ImportWarning::new("entry_empty", sentence));
            continue;
        }
        let is_of_world = world_info::is_world_info_entry(&entry, in_world);
        let own = if is_of_world { "uid" } else { "id" };
        if let (Some(uid), false) = (uid, entry.contains_key(own)) {
            let number = uid.parse::<i64>().map(Value::from);
            entry.insert(own.to_owned(), number.unwrap_or_else(|_| json!(uid)));
        }
        read.push(match is_of_world {
            true => world_info::from_world_info(entry),
            false => world_info::complete_entry(entry),
        });
    }
    Ok((book, read))
}

/// Checks the entries against their limits and gives each a unique `id`.
fn validate_all(
    mut entries: Vec<Map<String, Value>>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<Vec<Map<String, Value>>, LorebookError> {
    if entries.len() > MAX_ENTRIES {
        let message = format!("The lorebook has more than {MAX_ENTRIES} entries.");
        return Err(LorebookError::TooLarge(message));
    }
    for entry in &entries {
        validate(entry)?;
    }
    let n_renamed = assign_ids(&mut entries);
    if n_renamed > 0 {
        let sentence =
            format!("{n_renamed} entries had the numbers of other entries and were renumbered.");
        warnings.push(ImportWarning::new("entries_renumbered", sentence).with("n", n_renamed));
    }
    Ok(entries)
}

/// Checks an entry against the limits.
///
/// # Errors
/// Returns `TooLarge` when the entry has too many keys or is too large.
pub fn validate(entry: &Map<String, Value>) -> Result<(), LorebookError> {
    let name = entry
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let name: String = name.chars().take(60).collect();
    let n_keys = |field: &str| {
        entry
            .get(field)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    if n_keys("keys").max(n_keys("secondary_keys")) > MAX_KEYS {
        let message = format!("The entry \"{name}\" has more than {MAX_KEYS} keys.");
        return Err(LorebookError::TooLarge(message));
    }
    if json!(entry).to_string().len() > MAX_ENTRY_BYTES {
        let max_kib = MAX_ENTRY_BYTES / 1024;
        let message = format!("The entry \"{name}\" is larger than {max_kib} KiB.");
        return Err(LorebookError::TooLarge(message));
    }
    Ok(())
}

/// Assigns a new number to each entry without one or with a duplicate. Returns the number of
/// duplicates.
fn assign_ids(entries: &mut [Map<String, Value>]) -> usize {
    let known = |entry: &Map<String, Value>| match entry.get("id") {
        Some(id @ (Value::Number(_) | Value::String(_))) => Some(id.to_string().replace('"', "")),
        _ => None,
    };
    let mut taken: HashSet<String> = entries.iter().filter_map(known).collect();
    let mut seen = HashSet::new();
    let (mut next, mut n_renamed) = (0_i64, 0);
    for entry in entries {
        let stated = known(entry);
        if stated.clone().is_some_and(|it| seen.insert(it)) {
            continue;
        }
        n_renamed += usize::from(stated.is_some());
        while !taken.insert(next.to_string()) {
            next += 1;
        }
        seen.insert(next.to_string());
        entry.insert("id".to_owned(), json!(next));
    }
    n_renamed
}

fn too_many_values() -> LorebookError {
    LorebookError::TooLarge(format!("The file contains more than {MAX_VALUES} values."))
}

fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

/// Removes NUL characters, because PostgreSQL cannot store them.
fn remove_nul(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', ""),
        Value::Array(items) => items.iter_mut().for_each(remove_nul),
        Value::Object(fields) => {
            if fields.keys().any(|it| it.contains('\0')) {
                let all = std::mem::take(fields).into_iter();
                *fields = all.map(|(key, it)| (key.replace('\0', ""), it)).collect();
            }
            fields.values_mut().for_each(remove_nul);
        }
        _ => {}
    }
}

/// Converts a lorebook to a world info file for SillyTavern.
pub fn to_world_info(
    name: &str,
    document: &Map<String, Value>,
    entries: &[Map<String, Value>],
) -> Value {
    let mut entries = entries.to_vec();
    assign_ids(&mut entries);
    let mut world = Map::new();
    let of_world = entries.iter().map(|entry| {
        let uid = entry.get("id").cloned().unwrap_or_default();
        let key = uid_key(&uid);
        (key, Value::Object(world_info::to_world_info(entry, &uid)))
    });
    world.insert("entries".to_owned(), Value::Object(of_world.collect()));
    world.insert("name".to_owned(), json!(name));
    for (field, value) in document {
        world.entry(field.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(world)
}

fn uid_key(uid: &Value) -> String {
    uid.as_str().map_or_else(|| uid.to_string(), str::to_owned)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
