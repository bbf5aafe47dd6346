//! Reads the active preset and templates of SillyTavern's `settings.json`: those of the API in use.

use serde_json::{Map, Value};

use crate::import_warning::ImportWarning;
use crate::instruct::template_files;
use crate::presets::formats::field_reader::FieldReader;
use crate::presets::formats::{chat_completion, text_completion};

/// The settings of an API: its name in `main_api`, and the field with its samplers.
const SAMPLERS: [(&str, &str); 3] = [
    ("textgenerationwebui", "textgenerationwebui_settings"),
    ("kobold", "kai_settings"),
    ("novel", "nai_settings"),
];
const CHAT: &str = "oai_settings";

/// Reads the active preset and templates; returns their `origin`. Everything else in the file is left out.
pub fn read(reading: &mut FieldReader) -> Value {
    let mut file = std::mem::take(&mut reading.fields);
    let api = file
        .get("main_api")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let samplers = SAMPLERS.into_iter().find(|(name, _)| *name == api);
    let sentence = "Only the active preset and templates were imported. Personas, World Info settings and all \
        other settings were left out.";
    reading.warn(ImportWarning::new("settings_partly_read", sentence));
    let Some((_, field)) = samplers else {
        reading.fields = take_object(&mut file, CHAT);
        return chat_completion::read(reading);
    };
    reading.fields = take_object(&mut file, "power_user");
    template_files::read_master(reading);
    reading.fields = take_object(&mut file, field);
    text_completion::read(reading)
}

fn take_object(file: &mut Map<String, Value>, field: &str) -> Map<String, Value> {
    match file.shift_remove(field) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
