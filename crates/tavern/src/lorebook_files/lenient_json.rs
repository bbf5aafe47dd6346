//! Reads loosely typed JSON values of lorebook files: accepts a string for a number, list or
//! boolean, and a number for a boolean or string.

use serde_json::Value;

/// Reads an integer.
pub fn int(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|it| it as i64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Reads a number.
pub fn float(value: Option<&Value>) -> Option<f64> {
    let number = match value? {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    };
    number.filter(|it| it.is_finite())
}

/// Reads a boolean.
pub fn boolean(value: Option<&Value>) -> Option<bool> {
    match value? {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => number.as_f64().map(|it| it != 0.0),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Reads a string; a number is converted.
pub fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Reads a list of strings; a single string is split at commas.
pub fn texts(value: Option<&Value>) -> Vec<String> {
    let texts: Vec<String> = match value {
        Some(Value::Array(items)) => items.iter().map(|it| text(Some(it))).collect(),
        Some(Value::String(list)) => split_list(list),
        _ => Vec::new(),
    };
    let trimmed = texts.iter().map(|it| it.trim().to_owned());
    trimmed.filter(|it| !it.is_empty()).collect()
}

/// Splits a list at commas. A pattern between slashes is one item, even if it contains commas.
pub fn split_list(list: &str) -> Vec<String> {
    let list = list.trim();
    if list.starts_with('/') && list.rfind('/') > Some(0) {
        let flags = &list[list.rfind('/').unwrap_or(0) + 1..];
        if flags.chars().all(|it| it.is_ascii_alphabetic()) {
            return vec![list.to_owned()];
        }
    }
    list.split(',').map(|it| it.trim().to_owned()).collect()
}
