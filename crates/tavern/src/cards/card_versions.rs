//! Detects the format of a card (V3, V2, V1, or that of an older tool) and converts it to the form
//! of V2 and V3: a document with a `data` object.

use serde_json::{Map, Value, json};

use crate::cards::card_error::CardError;
use crate::cards::importers::{character_document, flat_fields};
use crate::chats::importers::chat_document;
use crate::documents::document;
use crate::import_warning::ImportWarning;

/// The fields of V1, which other tools repeat at the root of later formats.
pub const V1_FIELDS: [&str; 6] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
];

/// Fields that may be at the root of a flat card but belong in `data`.
const DATA_FIELDS: [&str; 19] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
    "group_only_greetings",
    "character_book",
    "tags",
    "creator",
    "character_version",
    "nickname",
    "extensions",
    "assets",
    "source",
];

/// The names of older tools for the fields of V1. A value here replaces a blank V1 field.
const LEGACY_FIELDS: [(&str, &str); 5] = [
    ("char_name", "name"),
    ("char_persona", "description"),
    ("world_scenario", "scenario"),
    ("char_greeting", "first_mes"),
    ("example_dialogue", "mes_example"),
];

/// The format in which a card was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardSpec {
    /// Flat fields, including those that older tools wrote under other names.
    V1,
    /// `chara_card_v2`.
    V2,
    /// `chara_card_v3`.
    V3,
}

/// Detects the format of a document and ensures that it has `data`.
pub fn normalize(
    document: Value,
    warnings: &mut Vec<ImportWarning>,
) -> Result<(CardSpec, Map<String, Value>), CardError> {
    let Value::Object(root) = document else {
        let found = describe_kind(&document);
        let reason = format!("A card is a JSON or YAML object, but this is {found}.");
        return Err(CardError::reason(reason));
    };
    let root = character_document::to_flat_fields(root, warnings);
    let stated = root
        .get("spec")
        .and_then(Value::as_str)
        .map(str::to_lowercase);
    match stated.as_deref() {
        Some("chara_card_v2") => Ok((CardSpec::V2, require_data(root, warnings)?)),
        Some("chara_card_v3") => Ok((CardSpec::V3, require_data(root, warnings)?)),
        Some(spec) if spec.starts_with("lorebook") => Err(CardError::reason(
            "This is a lorebook, not a character card.",
        )),
        Some(spec) if root.get("data").is_some_and(Value::is_object) => {
            let form = truncate(spec);
            let sentence = format!("The card format \"{form}\" is unknown; it was read as V3.");
            warnings.push(ImportWarning::new("form_unknown", sentence).with("form", form));
            Ok((CardSpec::V3, require_data(root, warnings)?))
        }
        Some(spec) if !is_flat(&root) => {
            let form = truncate(spec);
            let keys = document::describe_keys(&Value::Object(root));
            let reason = format!("\"{form}\" is not a form of character card. {keys}");
            Err(CardError::reason(reason))
        }
        _ => read_without_spec(root, warnings),
    }
}

/// Returns a V2 document with these fields as its `data`.
pub fn wrap_data(data: Map<String, Value>) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("spec".into(), json!("chara_card_v2"));
    document.insert("spec_version".into(), json!("2.0"));
    document.insert("data".into(), Value::Object(data));
    document
}

fn read_without_spec(
    mut root: Map<String, Value>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<(CardSpec, Map<String, Value>), CardError> {
    if root.get("data").is_some_and(|it| it.get("name").is_some()) {
        let sentence = "The card does not state its format; it was read as V2.";
        warnings.push(ImportWarning::new("form_missing", sentence));
        return Ok((CardSpec::V2, require_data(root, warnings)?));
    }
    for (old, new) in LEGACY_FIELDS {
        flat_fields::move_field(&mut root, old, new);
    }
    if is_flat(&root) {
        return Ok((CardSpec::V1, move_into_data(root)));
    }
    if root.get("entries").is_some() {
        return Err(CardError::reason(
            "This is a lorebook, not a character card.",
        ));
    }
    let document = Value::Object(root);
    if let Some(kind) = chat_document::kind_of(&document) {
        let program = kind.program();
        return Err(CardError::reason(format!(
            "This is a chat of {program}, not a character card. Import it into a space."
        )));
    }
    let keys = document::describe_keys(&document);
    Err(CardError::reason(format!(
        "This is not a character card: it has neither `data` nor a name with a description or a \
         greeting. {keys}"
    )))
}

/// Completes `data` from the root, where some tools repeat the fields; if both have a field, `data`
/// wins.
fn require_data(
    mut root: Map<String, Value>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<Map<String, Value>, CardError> {
    match root.get("data") {
        Some(Value::Object(_)) => {}
        None | Some(Value::Null) if is_flat(&root) => {
            let sentence = "The card has no `data`; its fields were read from the top level.";
            warnings.push(ImportWarning::new("data_missing", sentence));
            let (spec, version) = (root.remove("spec"), root.remove("spec_version"));
            let mut document = move_into_data(root);
            document.extend(spec.map(|it| ("spec".into(), it)));
            document.extend(version.map(|it| ("spec_version".into(), it)));
            return Ok(document);
        }
        None => return Err(CardError::reason("The card has no `data`.")),
        Some(other) => {
            let reason = format!(
                "`data` of a card is an object, but here it is {}.",
                describe_kind(other)
            );
            return Err(CardError::reason(reason));
        }
    }
    let repeated = V1_FIELDS.map(|field| (field, root.get(field).cloned()));
    let talkativeness = root.get("talkativeness").cloned();
    let data = root.get_mut("data").and_then(Value::as_object_mut);
    let data = data.expect("checked above to be an object");
    for (field, value) in repeated {
        if let (true, Some(value)) = (is_absent(data, field), value) {
            data.insert(field.into(), value);
        }
    }
    fill_talkativeness(data, talkativeness);
    Ok(root)
}

/// Moves the known fields of a flat card into `data`; the rest stays at the root.
fn move_into_data(mut root: Map<String, Value>) -> Map<String, Value> {
    let mut data = Map::new();
    for field in DATA_FIELDS {
        data.extend(root.shift_remove(field).map(|it| (field.to_owned(), it)));
    }
    if is_absent(&data, "creator_notes") {
        let notes = root.shift_remove("creatorcomment");
        data.extend(notes.map(|it| ("creator_notes".to_owned(), it)));
    }
    fill_talkativeness(&mut data, root.shift_remove("talkativeness"));
    let mut document = wrap_data(data);
    for (field, value) in root {
        document.entry(field).or_insert(value);
    }
    document
}

fn fill_talkativeness(data: &mut Map<String, Value>, talkativeness: Option<Value>) {
    let Some(talkativeness) = talkativeness else {
        return;
    };
    let extensions = data.entry("extensions").or_insert_with(|| json!({}));
    if extensions.is_null() {
        *extensions = json!({});
    }
    if let Value::Object(extensions) = extensions {
        extensions.entry("talkativeness").or_insert(talkativeness);
    }
}

/// Returns whether it has a name and a field that only characters have.
fn is_flat(root: &Map<String, Value>) -> bool {
    !is_absent(root, "name") && V1_FIELDS[1..].iter().any(|it| !is_absent(root, it))
}

fn is_absent(fields: &Map<String, Value>, field: &str) -> bool {
    fields.get(field).is_none_or(Value::is_null)
}

/// Returns the type of a value as one word, for programs.
pub fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Returns the type of a value in words.
pub fn describe_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn truncate(text: &str) -> String {
    text.chars().take(40).collect()
}
