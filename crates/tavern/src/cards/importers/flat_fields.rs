//! Helpers of the importers for the flat fields of a card.

use serde_json::{Map, Value};

/// Moves a field to another name, unless it is blank or the other has a value.
pub fn move_field(root: &mut Map<String, Value>, from: &str, to: &str) {
    if is_blank(root.get(to))
        && let Some(value) = root.shift_remove(from).filter(|it| !it.is_null())
    {
        root.insert(to.to_owned(), value);
    }
}

/// Returns whether a field is absent or has no visible text.
pub fn is_blank(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(_) => false,
    }
}

/// Returns examples of dialogue that begin with `<START>`.
pub fn with_start(examples: &str) -> String {
    match examples.trim().is_empty() || examples.to_uppercase().contains("<START>") {
        true => examples.to_owned(),
        false => format!("<START>\n{examples}"),
    }
}
