//! Copies loosely typed fields of other tools' preset files into our document, such as numbers
//! written as text, with a warning for each invalid value. Also removes secrets.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;

/// Parts of field names that may contain secrets or private addresses.
const PRIVATE: [&str; 7] = [
    "password",
    "secret",
    "api_key",
    "proxy",
    "include_headers",
    "include_body",
    "url",
];

/// An import in progress: the remaining fields, the document so far, and the warnings.
pub struct FieldReader {
    pub fields: Map<String, Value>,
    pub document: Map<String, Value>,
    pub warnings: Vec<ImportWarning>,
}

impl FieldReader {
    /// Starts the import of a file.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self {
            fields,
            document: Map::new(),
            warnings: Vec::new(),
        }
    }

    /// Moves a number to `key`; a value out of range is dropped with a warning.
    pub fn copy_number(&mut self, field: &str, key: &str, min: f64, max: f64) {
        let Some(found) = self.fields.shift_remove(field) else {
            return;
        };
        match number(&found) {
            Some(value) if (min..=max).contains(&value) => {
                // JSON numbers are copied unchanged, because 1 and 1.0 differ for some tools.
                let stated = if found.is_number() {
                    found
                } else {
                    json!(value)
                };
                self.document.insert(key.to_owned(), stated);
            }
            _ => self.warn_left_out(field, &found),
        }
    }

    /// Like `copy_number` for an integer. A value below 0 means "not set".
    pub fn copy_integer(&mut self, field: &str, key: &str, min: i64, max: i64) {
        let Some(found) = self.fields.shift_remove(field) else {
            return;
        };
        match integer(&found) {
            Some(value) if (min..=max).contains(&value) => {
                self.document.insert(key.to_owned(), json!(value));
            }
            Some(value) if value < 0 => {}
            _ => self.warn_left_out(field, &found),
        }
    }

    /// Moves a text to `key`.
    pub fn copy_text(&mut self, field: &str, key: &str) {
        match self.fields.shift_remove(field) {
            Some(Value::String(text)) => {
                self.document.insert(key.to_owned(), json!(text));
            }
            Some(Value::Null) | None => {}
            Some(found) => self.warn_left_out(field, &found),
        }
    }

    /// Removes addresses, passwords and other secrets.
    pub fn remove_secrets(&mut self) {
        let is_private = |name: &str| {
            let name = name.to_ascii_lowercase();
            PRIVATE.iter().any(|it| name.contains(it))
        };
        let mut has_secrets = false;
        self.fields.retain(|name, value| {
            let goes = is_private(name);
            has_secrets |= goes && !is_blank(value);
            !goes
        });
        if has_secrets {
            let sentence = "Addresses and passwords in the file were not imported.";
            self.warn(ImportWarning::new("secrets_left_out", sentence));
        }
    }

    /// Adds a warning for the user.
    pub fn warn(&mut self, warning: ImportWarning) {
        self.warnings.push(warning);
    }

    fn warn_left_out(&mut self, field: &str, found: &Value) {
        if !found.is_null() {
            let found: String = found.to_string().chars().take(40).collect();
            let sentence = format!("`{field}` has the invalid value {found}; it was skipped.");
            let warning = ImportWarning::new("value_left_out", sentence).with("field", field);
            self.warn(warning.with("value", found));
        }
    }
}

/// Parses a number, also from text.
pub fn number(value: &Value) -> Option<f64> {
    let found = match value {
        Value::Number(it) => it.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    found.filter(|it: &f64| it.is_finite())
}

/// Parses an integer, also from text or with a fraction of zero.
#[allow(clippy::cast_possible_truncation)] // a number too large for i64 is out of every range
pub fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        number(value)
            .filter(|it| it.fract() == 0.0)
            .map(|it| it as i64)
    })
}

/// Parses a boolean, also from a number or text.
pub fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(it) => Some(*it),
        Value::Number(it) => Some(it.as_f64() != Some(0.0)),
        Value::String(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a value is null or blank.
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
