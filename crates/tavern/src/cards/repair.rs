//! Repairs common errors in cards of other tools: adds required fields, converts values of a wrong
//! type, shortens names and removes NUL characters, mostly with a warning. Returns an error for a
//! card without `data` or name.

use base::display_name;
use serde_json::{Map, Value, json};

use crate::cards::card_error::CardError;
use crate::cards::card_versions::{CardSpec, describe_kind, kind_name};
use crate::documents::line_ends;
use crate::import_warning::ImportWarning;

/// The same limit as for all display names.
const MAX_NAME_CHARS: usize = 100;
/// Text fields that every V2 card has, even if empty.
const TEXT_FIELDS: [&str; 11] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "creator",
    "character_version",
];
/// Lists of texts that every V2 card has.
const LIST_FIELDS: [&str; 2] = ["alternate_greetings", "tags"];
/// Lists of texts that a card may have.
const OPTIONAL_LIST_FIELDS: [&str; 2] = ["group_only_greetings", "source"];

/// Corrects the type of each known field of `data`. Unknown fields are not changed.
pub fn repair(
    document: &mut Map<String, Value>,
    spec: CardSpec,
    warnings: &mut Vec<ImportWarning>,
) -> Result<(), CardError> {
    if remove_nul_from(document) {
        let sentence = "NUL characters were removed, because they cannot be stored.";
        warnings.push(ImportWarning::new("nul_removed", sentence));
    }
    repair_version(document);
    let data = document.get_mut("data").and_then(Value::as_object_mut);
    let data = data.ok_or_else(|| CardError::reason("The card has no `data`."))?;
    for field in TEXT_FIELDS {
        repair_text(data, field, warnings);
    }
    for field in LIST_FIELDS {
        repair_list(data, field, warnings);
    }
    for field in OPTIONAL_LIST_FIELDS {
        if data.contains_key(field) || (spec == CardSpec::V3 && field == "group_only_greetings") {
            repair_list(data, field, warnings);
        }
    }
    if data.contains_key("nickname") {
        repair_text(data, "nickname", warnings);
    }
    repair_extensions(data, warnings);
    normalize_line_ends(data);
    match repair_name(data, "name", warnings) {
        true => {
            repair_nickname(data, warnings);
            Ok(())
        }
        false => Err(CardError::reason("The card has no name.")),
    }
}

/// Shortens a name to one line, because it is shown with every message and inserted in prompts.
/// Returns `false` if it has no visible character.
fn repair_name(
    data: &mut Map<String, Value>,
    field: &str,
    warnings: &mut Vec<ImportWarning>,
) -> bool {
    let stated = data.get(field).and_then(Value::as_str).unwrap_or_default();
    let Some(name) = display_name::truncate(stated, MAX_NAME_CHARS) else {
        return false;
    };
    if name != stated.trim() {
        let sentence =
            format!("`{field}` was shortened to one line of at most {MAX_NAME_CHARS} characters.");
        let warning = ImportWarning::new("name_shortened", sentence).with("field", field);
        warnings.push(warning.with("n", MAX_NAME_CHARS));
        data.insert(field.to_owned(), json!(name));
    }
    true
}

/// A nickname without a visible character becomes empty.
fn repair_nickname(data: &mut Map<String, Value>, warnings: &mut Vec<ImportWarning>) {
    let is_blank = |it: &Value| it.as_str().is_some_and(|it| it.trim().is_empty());
    let is_stated = data.get("nickname").is_some_and(|it| !is_blank(it));
    if is_stated && !repair_name(data, "nickname", warnings) {
        data.insert("nickname".to_owned(), json!(""));
    }
}

/// Converts a value to text: numbers are formatted, lists become lines.
fn repair_text(data: &mut Map<String, Value>, field: &str, warnings: &mut Vec<ImportWarning>) {
    let value = data.entry(field).or_insert(Value::Null);
    let kept = kept_as_text_warning(field, value);
    let text = match &*value {
        Value::String(_) => return,
        Value::Null => {
            *value = json!("");
            return;
        }
        Value::Array(items) => {
            let lines: Vec<String> = items.iter().filter_map(plain_text).collect();
            lines.join("\n")
        }
        other => plain_text(other).unwrap_or_default(),
    };
    warnings.push(kept);
    *value = json!(text);
}

/// Converts a value to a list of texts: text becomes one item, tags are split at commas.
fn repair_list(data: &mut Map<String, Value>, field: &str, warnings: &mut Vec<ImportWarning>) {
    let value = data.entry(field).or_insert(Value::Null);
    let kept = kept_as_list_warning(field, value);
    let texts: Vec<String> = match &*value {
        Value::Array(items) if items.iter().all(Value::is_string) => return,
        Value::Null => {
            *value = json!([]);
            return;
        }
        Value::Array(items) => {
            let sentence = format!(
                "`{field}` contained items that are not text; they were converted or removed."
            );
            warnings.push(ImportWarning::new("list_cleaned", sentence).with("field", field));
            items.iter().filter_map(plain_text).collect()
        }
        Value::String(text) => {
            warnings.push(kept);
            split_text(field, text)
        }
        other => {
            warnings.push(kept);
            plain_text(other).into_iter().collect()
        }
    };
    *value = json!(texts);
}

fn kept_as_text_warning(field: &str, value: &Value) -> ImportWarning {
    let sentence = format!(
        "`{field}` was {}; it is kept as text.",
        describe_kind(value)
    );
    let warning = ImportWarning::new("kept_as_text", sentence).with("field", field);
    warning.with("found", kind_name(value))
}

fn kept_as_list_warning(field: &str, value: &Value) -> ImportWarning {
    let sentence = format!(
        "`{field}` was {}; it is kept as a list.",
        describe_kind(value)
    );
    let warning = ImportWarning::new("kept_as_list", sentence).with("field", field);
    warning.with("found", kind_name(value))
}

fn split_text(field: &str, text: &str) -> Vec<String> {
    let pieces: Vec<&str> = match field {
        "tags" => text.split(',').collect(),
        _ => vec![text],
    };
    let pieces = pieces.into_iter().map(str::trim);
    pieces
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Ensures that `extensions` is an object and its talkativeness a number.
fn repair_extensions(data: &mut Map<String, Value>, warnings: &mut Vec<ImportWarning>) {
    let value = data.entry("extensions").or_insert_with(|| json!({}));
    if !value.is_object() {
        if !value.is_null() {
            let found = describe_kind(value);
            let sentence = format!("`extensions` was {found}; it was replaced by an empty object.");
            let warning = ImportWarning::new("extensions_replaced", sentence);
            warnings.push(warning.with("found", kind_name(value)));
        }
        *value = json!({});
    }
    let Some(Value::String(text)) = value.get("talkativeness") else {
        return;
    };
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => {
            let sentence = "`talkativeness` was text; it is kept as a number.";
            warnings.push(ImportWarning::new("talkativeness_read", sentence));
            value["talkativeness"] = json!(number);
        }
        _ => {
            let sentence = "`talkativeness` is not a number; it is not used.";
            warnings.push(ImportWarning::new("talkativeness_unusable", sentence));
        }
    }
}

/// Converts the version of the format to text; some tools write a number.
fn repair_version(document: &mut Map<String, Value>) {
    if let Some(Value::Number(number)) = document.get("spec_version") {
        let number = number.as_f64().unwrap_or_default();
        document.insert("spec_version".into(), json!(format!("{number:.1}")));
    }
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Removes U+0000, which PostgreSQL cannot store in JSON. Returns whether there was any.
fn remove_nul_from(fields: &mut Map<String, Value>) -> bool {
    let mut found = false;
    if fields.keys().any(|it| it.contains('\0')) {
        found = true;
        let renamed = std::mem::take(fields).into_iter();
        *fields = renamed
            .map(|(key, value)| (key.replace('\0', ""), value))
            .collect();
    }
    for value in fields.values_mut() {
        found |= remove_nul(value);
    }
    found
}

fn remove_nul(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.contains('\0') => {
            *text = text.replace('\0', "");
            true
        }
        Value::Array(items) => {
            let mut found = false;
            for item in items {
                found |= remove_nul(item);
            }
            found
        }
        Value::Object(fields) => remove_nul_from(fields),
        _ => false,
    }
}

/// Replaces the carriage returns in the text fields of `data`, its lorebook and its depth prompt.
/// Values of `extensions` that belong to other programs are not changed.
fn normalize_line_ends(data: &mut Map<String, Value>) {
    let texts = TEXT_FIELDS.iter().chain(&LIST_FIELDS);
    let others = OPTIONAL_LIST_FIELDS.iter().filter(|it| **it != "source");
    let structured = ["nickname", "creator_notes_multilingual", "character_book"];
    for field in texts.chain(others).chain(&structured) {
        if let Some(value) = data.get_mut(*field) {
            line_ends::normalize_all(value);
        }
    }
    let extensions = data.get_mut("extensions");
    let note = extensions.and_then(|it| it.get_mut("depth_prompt")?.get_mut("prompt"));
    if let Some(prompt) = note {
        line_ends::normalize_all(prompt);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::normalize_line_ends;

    #[test]
    fn text_fields_are_normalized_and_unknown_values_are_not() {
        let text = "a\r\nb\rc";
        let data = json!({
            "description": text, "alternate_greetings": [text],
            "character_book": {"entries": [{"content": text, "extensions": {"x": text}}]},
            "extensions": {"depth_prompt": {"prompt": text}, "other": {"x": text}},
            "unknown": text,
        });
        let mut data = data.as_object().expect("an object").clone();

        normalize_line_ends(&mut data);

        assert_eq!(
            json!(data),
            json!({
                "description": "a\nb\nc", "alternate_greetings": ["a\nb\nc"],
                "character_book": {"entries": [
                    {"content": "a\nb\nc", "extensions": {"x": text}},
                ]},
                "extensions": {"depth_prompt": {"prompt": "a\nb\nc"}, "other": {"x": text}},
                "unknown": text,
            })
        );
    }
}
