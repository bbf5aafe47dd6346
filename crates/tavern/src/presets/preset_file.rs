//! Reads the bytes of an untrusted preset file (our own format or SillyTavern's) into a validated
//! `ImportedPreset`, and converts a stored preset to the JSON of a file in either format.

use serde_json::{Map, Value, json};

use crate::documents::{decoding, line_ends};
use crate::import_warning::ImportWarning;
use crate::instruct::template_files;
use crate::macros::syntax::unknown_macros;
use crate::presets::formats::field_reader::FieldReader;
use crate::presets::formats::{chat_completion, chat_completion_export, text_completion};
use crate::presets::partial_preset::PartialPreset;

/// The maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;
/// The maximum size of a document, in bytes: every prompt with this preset has to read it.
pub const MAX_DOCUMENT_BYTES: usize = 512 * 1024;
/// The `spec` of our own files.
const SPEC: &str = "troupe_preset";

/// The result of an import.
#[derive(Debug, PartialEq)]
pub struct ImportedPreset {
    /// The name that the file states.
    pub name: Option<String>,
    /// The validated document.
    pub document: Value,
    /// The unused fields, to be exported again.
    pub origin: Option<Value>,
    /// What was skipped, repaired, or has no effect.
    pub warnings: Vec<ImportWarning>,
}

/// Why a file is not accepted as a preset. The message is shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PresetImportError(String);

/// Reads a file of our own format or one of SillyTavern's. May block for long (limited only by
/// [`MAX_FILE_BYTES`]), so it must not run in a handler's thread.
///
/// # Errors
/// Returns the reason when the file is not a valid preset.
pub fn read(bytes: &[u8]) -> Result<ImportedPreset, PresetImportError> {
    if bytes.len() > MAX_FILE_BYTES {
        return reject("The file is larger than 5 MiB.");
    }
    let decoded = decoding::decode(bytes);
    // The parser refuses more than 128 levels.
    let Ok(Value::Object(mut fields)) = serde_json::from_str(&decoded.text) else {
        return reject("The file is not a JSON object with at most 128 levels.");
    };
    if fields
        .iter()
        .any(|(key, value)| key.contains('\0') || has_nul(value))
    {
        return reject("A string in the file contains the character U+0000.");
    }
    line_ends::normalize_fields(&mut fields);
    if fields.get("spec").and_then(Value::as_str) == Some(SPEC) {
        return read_own(fields, Vec::from_iter(decoded.warning));
    }
    let mut reading = FieldReader::new(fields);
    reading.warnings.extend(decoded.warning);
    // A master file contains the samplers in one of its fields.
    let is_master = template_files::is_master(&reading.fields);
    if is_master {
        template_files::read_master(&mut reading);
        if let Some(Value::Object(samplers)) = reading.fields.shift_remove("preset") {
            reading.fields = samplers;
        }
    }
    let name = match reading.fields.get("name") {
        Some(Value::String(name)) => Some(name.clone()),
        _ => None,
    };
    let origin = if chat_completion::is_chat_completion(&reading.fields) {
        chat_completion::read(&mut reading)
    } else if text_completion::is_text_completion(&reading.fields) {
        text_completion::read(&mut reading)
    } else if is_master {
        json!({ "form": template_files::MASTER_FORM })
    } else if let Some(kind) = template_files::detect(&reading.fields) {
        template_files::read(&mut reading, kind)
    } else {
        return reject(describe_unknown(&reading.fields));
    };
    validated(ImportedPreset {
        name,
        document: Value::Object(reading.document),
        origin: Some(origin),
        warnings: reading.warnings,
    })
}

/// The format of an exported preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresetFormat {
    /// Troupe's own, with all fields.
    Own,
    /// SillyTavern's, of the kind that was imported.
    SillyTavern,
}

/// Returns the preset as a file.
pub fn write(form: PresetFormat, name: &str, document: &Value, origin: Option<&Value>) -> Value {
    let is_text = origin.is_some_and(|it| it["form"] == text_completion::FORM)
        && document.get("prompt_order").is_none();
    let template = template_files::only_template(document);
    let is_master =
        template_files::has_templates(document) && document.get("prompt_order").is_none();
    if form == PresetFormat::SillyTavern
        && let Some(kind) = template
    {
        return template_files::write(kind, name, document);
    }
    match form {
        PresetFormat::Own => json!({
            "spec": SPEC, "spec_version": "1.0", "name": name, "document": document, "origin": origin,
        }),
        PresetFormat::SillyTavern if is_master => {
            let samplers = text_completion::write(document, origin);
            template_files::write_master(name, document, samplers)
        }
        PresetFormat::SillyTavern if is_text => text_completion::write(document, origin),
        PresetFormat::SillyTavern => chat_completion_export::write(document, origin),
    }
}

fn read_own(
    mut fields: Map<String, Value>,
    warnings: Vec<ImportWarning>,
) -> Result<ImportedPreset, PresetImportError> {
    let Some(Value::Object(document)) = fields.shift_remove("document") else {
        return reject("The preset in the file has no `document`.");
    };
    validated(ImportedPreset {
        name: fields
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned),
        document: Value::Object(document),
        origin: fields.shift_remove("origin").filter(Value::is_object),
        warnings,
    })
}

/// Validates an import by the rules for presets that users write, and lists its unknown macros.
fn validated(mut imported: ImportedPreset) -> Result<ImportedPreset, PresetImportError> {
    if imported.document.to_string().len() > MAX_DOCUMENT_BYTES {
        return reject("The preset is larger than 512 KiB.");
    }
    let stated: PartialPreset = match serde_json::from_value(imported.document.clone()) {
        Ok(stated) => stated,
        Err(error) => return reject(format!("The preset cannot be read: {error}.")),
    };
    if stated.preset_id.is_some() {
        return reject("A preset cannot be based on another preset.");
    }
    if let Err(it) = stated.validate() {
        return reject(format!("`{}` is invalid: {}", it.field, it.message));
    }
    let unknown = stated
        .texts()
        .filter_map(|(name, text)| unknown_macros::warning(name, text));
    imported.warnings.extend(unknown);
    Ok(imported)
}

/// Returns a message that names what the file looks like instead.
fn describe_unknown(fields: &Map<String, Value>) -> &'static str {
    let has = |name: &str| fields.contains_key(name);
    if has("entries") {
        return "This looks like a lorebook. Import it as a lorebook.";
    }
    if has("data") || has("first_mes") {
        return "This looks like a character card. Import it as a character.";
    }
    "The file is not a preset: it has neither prompts nor samplers."
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

fn reject<T>(reason: impl Into<String>) -> Result<T, PresetImportError> {
    Err(PresetImportError(reason.into()))
}

#[cfg(test)]
#[path = "preset_file_tests.rs"]
mod tests;
