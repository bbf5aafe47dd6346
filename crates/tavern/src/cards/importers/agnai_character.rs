//! Converts a character that Agnai exported as JSON (`kind: "character"`, a persona with attributes,
//! `greeting`, `sampleChat`, …) to the flat fields of a card. Unknown fields are preserved.

use serde_json::{Map, Value, json};

use crate::cards::importers::attribute_notation;
use crate::cards::importers::flat_fields::{is_blank, move_field, with_start};
use crate::import_warning::ImportWarning;
use crate::lorebook_files::file;

/// Agnai's fields that a card has under another name.
const RENAMED_FIELDS: [(&str, &str); 6] = [
    // Agnai shows its description to the user and does not send it.
    ("description", "creator_notes"),
    ("greeting", "first_mes"),
    ("alternateGreetings", "alternate_greetings"),
    ("systemPrompt", "system_prompt"),
    ("postHistoryInstructions", "post_history_instructions"),
    ("characterVersion", "character_version"),
];

/// Returns whether Agnai wrote this document.
pub fn is_character(root: &Map<String, Value>) -> bool {
    let persona = root.get("persona");
    let has_persona = persona.is_some_and(|it| it.get("attributes").is_some());
    let is_stated = root.get("kind").is_some_and(|it| it == "character");
    root.get("name").is_some_and(Value::is_string) && (has_persona || is_stated)
}

/// Returns the flat fields of a card.
pub fn to_flat_fields(
    mut root: Map<String, Value>,
    warnings: &mut Vec<ImportWarning>,
) -> Map<String, Value> {
    for (theirs, ours) in RENAMED_FIELDS {
        move_field(&mut root, theirs, ours);
    }
    convert_persona(&mut root, warnings);
    if let Some(examples) = root.get("sampleChat").and_then(Value::as_str) {
        let examples = with_start(examples);
        root.shift_remove("sampleChat");
        root.insert("mes_example".to_owned(), json!(examples));
    }
    convert_note(&mut root);
    convert_picture(&mut root);
    convert_lorebook(&mut root, warnings);
    root
}

fn convert_persona(root: &mut Map<String, Value>, warnings: &mut Vec<ImportWarning>) {
    let name = root.get("name").and_then(Value::as_str).unwrap_or_default();
    let Some(persona) = root.get("persona") else {
        return;
    };
    // An older export has the text itself.
    let text = persona.as_str().map(str::to_owned);
    match text.or_else(|| attribute_notation::describe(name, persona)) {
        Some(description) => {
            root.shift_remove("persona");
            root.insert("description".to_owned(), json!(description));
        }
        None if persona.get("attributes").is_some_and(is_filled) => {
            let sentence = "The persona of the character has an unknown kind; it was kept, but it \
                            is not part of the description.";
            warnings.push(ImportWarning::new("persona_kind_unknown", sentence));
        }
        None => {}
    }
}

fn is_filled(attributes: &Value) -> bool {
    attributes.as_object().is_some_and(|it| !it.is_empty())
}

/// Converts the text that Agnai inserts among the newest messages to the depth prompt of the card.
fn convert_note(root: &mut Map<String, Value>) {
    let prompt = root.get("insert").and_then(|it| it.get("prompt"));
    if is_blank(prompt) {
        return;
    }
    let Some(Value::Object(insert)) = root.shift_remove("insert") else {
        return;
    };
    let depth = insert.get("depth").cloned().unwrap_or(json!(4));
    let note = json!({"prompt": insert["prompt"], "depth": depth, "role": "system"});
    let extensions = root.entry("extensions").or_insert_with(|| json!({}));
    if extensions.is_null() {
        *extensions = json!({});
    }
    if let Value::Object(extensions) = extensions {
        extensions.entry("depth_prompt").or_insert(note);
    }
}

/// Converts a picture in the document to the main icon of the card.
fn convert_picture(root: &mut Map<String, Value>) {
    let avatar = root.get("avatar").and_then(Value::as_str);
    let Some(uri) = avatar.filter(|it| it.starts_with("data:image/")) else {
        return;
    };
    let ending = uri["data:image/".len()..].split([';', ',']).next();
    let icon = json!({"type": "icon", "uri": uri, "name": "main", "ext": ending});
    root.shift_remove("avatar");
    root.entry("assets").or_insert_with(|| json!([icon]));
}

fn convert_lorebook(root: &mut Map<String, Value>, warnings: &mut Vec<ImportWarning>) {
    let Some(book) = root.get("characterBook").filter(|it| !it.is_null()) else {
        return;
    };
    match file::from_value(book.clone(), "") {
        Ok(parsed) if parsed.entries.is_empty() => {
            root.shift_remove("characterBook");
        }
        Ok(parsed) => {
            let mut document = parsed.document;
            document.insert("name".to_owned(), json!(parsed.name));
            document.entry("extensions").or_insert_with(|| json!({}));
            document.insert("entries".to_owned(), json!(parsed.entries));
            warnings.extend(parsed.warnings);
            root.shift_remove("characterBook");
            root.insert("character_book".to_owned(), Value::Object(document));
        }
        Err(error) => {
            let sentence = format!("The lorebook of the character was not read: {error}");
            warnings.push(ImportWarning::new("embedded_book_unreadable", sentence));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{is_character, to_flat_fields};

    fn convert(document: Value) -> (Value, usize) {
        let root = document.as_object().expect("an object").clone();
        assert!(is_character(&root));
        let mut warnings = Vec::new();
        let fields = to_flat_fields(root, &mut warnings);
        (Value::Object(fields), warnings.len())
    }

    #[test]
    fn every_field_with_a_place_is_moved_there() {
        let (fields, n_warnings) = convert(json!({
            "kind": "character", "name": "Ada", "description": "For testers.",
            "persona": {"kind": "sbf", "attributes": {"mind": ["calm"]}},
            "greeting": "Hello.", "alternateGreetings": ["Hi."], "scenario": "London",
            "sampleChat": "{{user}}: Hm?\n{{char}}: Hm.", "systemPrompt": "Be brief.",
            "postHistoryInstructions": "Stay brief.", "characterVersion": "2",
            "insert": {"prompt": "It rains.", "depth": 3}, "visualType": "sprite",
            "avatar": "data:image/png;base64,AAAA",
            "characterBook": {"kind": "memory", "name": "Mill", "entries": [
                {"name": "Engine", "entry": "Brass.", "keywords": ["engine"], "priority": 5,
                 "weight": 7, "enabled": true},
            ]},
        }));

        assert_eq!(n_warnings, 0);
        assert_eq!(
            fields["description"],
            "[character: \"Ada\"; mind: \"calm\"]"
        );
        assert_eq!(fields["creator_notes"], "For testers.");
        assert_eq!(fields["first_mes"], "Hello.");
        assert_eq!(fields["alternate_greetings"], json!(["Hi."]));
        assert_eq!(
            fields["mes_example"],
            "<START>\n{{user}}: Hm?\n{{char}}: Hm."
        );
        assert_eq!(fields["system_prompt"], "Be brief.");
        assert_eq!(fields["post_history_instructions"], "Stay brief.");
        assert_eq!(fields["extensions"]["depth_prompt"]["depth"], 3);
        assert_eq!(fields["assets"][0]["ext"], "png");
        assert_eq!(fields["visualType"], "sprite");
        let entry = &fields["character_book"]["entries"][0];
        assert_eq!(
            (entry["content"].as_str(), entry["insertion_order"].as_i64()),
            (Some("Brass."), Some(7))
        );
    }

    #[test]
    fn an_unknown_persona_and_an_unreadable_lorebook_are_kept_and_named() {
        let (fields, n_warnings) = convert(json!({
            "kind": "character", "name": "Ada", "greeting": "Hello.",
            "persona": {"kind": "new", "attributes": {"a": ["b"]}}, "characterBook": {"x": 1},
        }));

        assert_eq!(n_warnings, 2);
        assert_eq!(fields["persona"]["kind"], "new");
        assert_eq!(fields["characterBook"]["x"], 1);
    }
}
