//! Reads the bytes of an untrusted preset file (our own format or SillyTavern's) into a validated
//! `ImportedPreset`, and converts a stored preset to the JSON of a file in either format.

use serde_json::{Map, Value, json};

use crate::documents::{decoding, line_ends};
use crate::import_warning::ImportWarning;
use crate::instruct::template_files;
use crate::macros::syntax::unknown_macros;
use crate::presets::formats::field_reader::FieldReader;
use crate::presets::formats::{
    chat_completion, chat_completion_export, settings_file, text_completion,
};
use crate::presets::partial_preset::PartialPreset;
use crate::presets::preset_file_kind;
use crate::presets::preset_file_kind::{OWN_SPEC, PresetFileKind};

/// The maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;
/// The maximum size of a document, in bytes: every prompt with this preset has to read it.
pub const MAX_DOCUMENT_BYTES: usize = 512 * 1024;

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
    let Ok(mut file) = serde_json::from_str::<Value>(&decoded.text) else {
        return reject("The file is not valid JSON, or it has more than 128 levels.");
    };
    if has_nul(&file) {
        return reject("A string in the file contains the character U+0000.");
    }
    let kind = preset_file_kind::detect(&file).map_err(PresetImportError)?;
    let Value::Object(fields) = &mut file else {
        return reject("The file is not a JSON object.");
    };
    line_ends::normalize_fields(fields);
    let fields = std::mem::take(fields);
    let warnings = Vec::from_iter(decoded.warning);
    if kind == PresetFileKind::Own {
        return read_own(fields, warnings);
    }
    let mut reading = FieldReader::new(fields);
    reading.warnings = warnings;
    let name = name_of(&reading.fields);
    let origin = read_kind(&mut reading, kind);
    validated(ImportedPreset {
        name,
        document: Value::Object(reading.document),
        origin: Some(origin),
        warnings: reading.warnings,
    })
}

/// Returns the name of a preset; in a master file, that of its samplers.
fn name_of(fields: &Map<String, Value>) -> Option<String> {
    let own = fields.get("name").and_then(Value::as_str);
    let of_samplers = fields.get("preset").and_then(|it| it["name"].as_str());
    own.or(of_samplers).map(str::to_owned)
}

/// Reads the fields of a file of another application; returns its `origin`.
fn read_kind(reading: &mut FieldReader, kind: PresetFileKind) -> Value {
    match kind {
        PresetFileKind::Own => Value::Null,
        PresetFileKind::ChatCompletion => chat_completion::read(reading),
        PresetFileKind::Samplers => text_completion::read(reading),
        PresetFileKind::Template(kind) => template_files::read(reading, kind),
        PresetFileKind::Settings => settings_file::read(reading),
        PresetFileKind::Master => {
            template_files::read_master(reading);
            // A master file contains the samplers in one of its fields.
            match reading.fields.shift_remove("preset") {
                Some(Value::Object(samplers)) => {
                    reading.fields = samplers;
                    text_completion::read(reading)
                }
                _ => json!({ "form": template_files::MASTER_FORM }),
            }
        }
    }
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
            "spec": OWN_SPEC, "spec_version": "1.0", "name": name, "document": document, "origin": origin,
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
