//! Detects, from its content, which program wrote the document of a character without `spec`, and
//! converts it to the flat fields of a card.

use serde_json::{Map, Value};

use crate::cards::importers::{agnai_character, webui_character};
use crate::import_warning::ImportWarning;

/// Converts the document of another program; returns any other document unchanged.
pub fn to_flat_fields(
    root: Map<String, Value>,
    warnings: &mut Vec<ImportWarning>,
) -> Map<String, Value> {
    if root.get("spec").is_some_and(Value::is_string) {
        return root;
    }
    if agnai_character::is_character(&root) {
        return agnai_character::to_flat_fields(root, warnings);
    }
    match webui_character::is_character(&root) {
        true => webui_character::to_flat_fields(root),
        false => root,
    }
}
