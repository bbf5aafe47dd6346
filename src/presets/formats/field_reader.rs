//! Reads the fields of a file that other tools have written: numbers as text, `-1` for "off".

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;

/// Parts of the names of fields that are nobody else's business.
const PRIVATE: [&str; 7] = [
    "password",
    "secret",
    "api_key",
    "proxy",
    "include_headers",
    "include_body",
    "url",
];

/// A file on its way in: what is left of its fields, what is stated so far, and what is to be said.
pub struct FieldReader {
    pub fields: Map<String, Value>,
    pub document: Map<String, Value>,
    pub warnings: Vec<ImportWarning>,
}

impl FieldReader {
    /// A file of which nothing has been read.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self {
            fields,
            document: Map::new(),
            warnings: Vec::new(),
        }
    }

    /// Takes a fraction over, as `key`; one out of range is left out, and that is said.
    pub fn copy_number(&mut self, field: &str, key: &str, min: f64, max: f64) {
        let Some(found) = self.fields.shift_remove(field) else {
            return;
        };
        match number(&found) {
            Some(value) if (min..=max).contains(&value) => {
                // A number stays as it is written: 1 is not 1.0 to everybody.
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

    /// The same for a whole number. What is below 0 means that nobody decided.
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

    /// Takes a text over.
    pub fn copy_text(&mut self, field: &str, key: &str) {
        match self.fields.shift_remove(field) {
            Some(Value::String(text)) => {
                self.document.insert(key.to_owned(), json!(text));
            }
            Some(Value::Null) | None => {}
            Some(found) => self.warn_left_out(field, &found),
        }
    }

    /// Takes addresses, passwords and what else must not travel away.
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
            let sentence = "Addresses and passwords in the file were not taken over.";
            self.warn(ImportWarning::new("secrets_left_out", sentence));
        }
    }

    /// Something to tell whoever brought the file.
    pub fn warn(&mut self, warning: ImportWarning) {
        self.warnings.push(warning);
    }

    fn warn_left_out(&mut self, field: &str, found: &Value) {
        if !found.is_null() {
            let found: String = found.to_string().chars().take(40).collect();
            let sentence = format!("`{field}` is {found}, which makes no sense: left out.");
            let warning = ImportWarning::new("value_left_out", sentence).with("field", field);
            self.warn(warning.with("value", found));
        }
    }
}

/// A number, also one that is written as text.
pub fn number(value: &Value) -> Option<f64> {
    let found = match value {
        Value::Number(it) => it.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    found.filter(|it: &f64| it.is_finite())
}

/// A whole number, also one that is written as text or with a fraction of nothing.
#[allow(clippy::cast_possible_truncation)] // a number so large is out of every range
pub fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        number(value)
            .filter(|it| it.fract() == 0.0)
            .map(|it| it as i64)
    })
}

/// Yes or no, also as a number or a text.
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

/// Does it say nothing?
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
