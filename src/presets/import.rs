//! From the bytes of a stranger's file to a preset, and back to a file.

use crate::import_warning::ImportWarning;
use crate::presets::formats::chat_completion;
use crate::presets::formats::chat_completion_out;
use crate::presets::formats::reading::Reading;
use crate::presets::formats::text_completion;
use crate::presets::stated::Stated;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// The longest file.
pub const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;
/// The longest document: what each turn that goes by it has to read.
pub const MAX_DOCUMENT_BYTES: usize = 512 * 1024;
/// What our own files say that they are.
const SPEC: &str = "troupe_preset";

/// What came out of a file.
#[derive(Debug, PartialEq)]
pub struct Imported {
    /// What the file calls it, if it does.
    pub name: Option<String>,
    /// What it states.
    pub document: Value,
    /// What it says beside that, to be given back.
    pub origin: Option<Value>,
    /// What was left out, put right, or will do nothing.
    pub warnings: Vec<ImportWarning>,
}

/// Why a file is no preset: a sentence for whoever brought it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImportError(String);

/// Reads a file: our own form, or one of SillyTavern's. Unbounded only by [`MAX_FILE_BYTES`], so not
/// on the thread of a door.
///
/// # Errors
/// When it is no preset; with the reason.
pub fn read(bytes: &[u8]) -> Result<Imported, ImportError> {
    if bytes.len() > MAX_FILE_BYTES {
        return because("The file is larger than 5 MiB.");
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // The parser itself goes no deeper than 128 levels.
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(text) else {
        return because("The file is no JSON object of at most 128 levels.");
    };
    if fields
        .iter()
        .any(|(key, value)| key.contains('\0') || has_nul(value))
    {
        return because("A text in the file holds the character U+0000.");
    }
    if fields.get("spec").and_then(Value::as_str) == Some(SPEC) {
        return own(fields);
    }
    // A file with all settings in it has the preset inside.
    let whole = ["instruct", "context", "sysprompt"];
    let mut warnings = Vec::new();
    if whole.iter().any(|it| fields.contains_key(*it))
        && let Some(Value::Object(inner)) = fields.shift_remove("preset")
    {
        fields = inner;
        let sentence = "Of the file only the samplers were taken, not the templates.";
        warnings.push(ImportWarning::new("samplers_alone", sentence));
    }
    let mut reading = Reading::of(fields);
    reading.warnings = warnings;
    let name = match reading.fields.get("name") {
        Some(Value::String(name)) => Some(name.clone()),
        _ => None,
    };
    let origin = if chat_completion::is_one(&reading.fields) {
        chat_completion::read(&mut reading)
    } else if text_completion::is_one(&reading.fields) {
        text_completion::read(&mut reading)
    } else {
        return because(what_else(&reading.fields));
    };
    judged(Imported {
        name,
        document: Value::Object(reading.stated),
        origin: Some(origin),
        warnings: reading.warnings,
    })
}

/// The form in which a preset is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With all that we know of it.
    Own,
    /// As SillyTavern reads it; of the kind that it came as.
    SillyTavern,
}

/// The preset as a file.
pub fn written(form: Form, name: &str, document: &Value, origin: Option<&Value>) -> Value {
    let is_text = origin.is_some_and(|it| it["form"] == text_completion::FORM)
        && document.get("prompt_order").is_none();
    match form {
        Form::Own => json!({
            "spec": SPEC, "spec_version": "1.0", "name": name, "document": document, "origin": origin,
        }),
        Form::SillyTavern if is_text => text_completion::written(document, origin),
        Form::SillyTavern => chat_completion_out::written(document, origin),
    }
}

fn own(mut fields: Map<String, Value>) -> Result<Imported, ImportError> {
    let Some(Value::Object(document)) = fields.shift_remove("document") else {
        return because("The file says that it is a preset, but has no `document`.");
    };
    judged(Imported {
        name: fields
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned),
        document: Value::Object(document),
        origin: fields.shift_remove("origin").filter(Value::is_object),
        warnings: Vec::new(),
    })
}

/// Holds what came out to the rules for what people write by hand.
fn judged(imported: Imported) -> Result<Imported, ImportError> {
    if imported.document.to_string().len() > MAX_DOCUMENT_BYTES {
        return because("The prompts of the file are longer than 512 KiB together.");
    }
    let stated: Stated = match serde_json::from_value(imported.document.clone()) {
        Ok(stated) => stated,
        Err(error) => return because(format!("The preset cannot be read: {error}.")),
    };
    if stated.preset_id.is_some() {
        return because("A preset does not lie on another one.");
    }
    match stated.judge() {
        Ok(()) => Ok(imported),
        Err(it) => because(format!("`{}` cannot be taken: {}", it.field, it.message)),
    }
}

/// What a file that is no preset looks like.
fn what_else(fields: &Map<String, Value>) -> &'static str {
    let has = |name: &str| fields.contains_key(name);
    if has("story_string") || has("input_sequence") || has("output_sequence") {
        return "This is a template for text completion. Models are asked in chat form here, \
                so nothing would go by it.";
    }
    if has("entries") {
        return "This looks like a lorebook. Lorebooks have an import of their own.";
    }
    if has("data") || has("first_mes") {
        return "This looks like a character card. Cards have an import of their own.";
    }
    "The file is no preset: it has neither prompts nor samplers."
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, it)| key.contains('\0') || has_nul(it)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn because<T>(reason: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError(reason.into()))
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
