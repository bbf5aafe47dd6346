//! Converts a card to a V2 or V3 document for export.
//!
//! **Invariant:** nothing is lost: unknown fields are exported unchanged.

use serde_json::{Map, Value, json};

use crate::cards::card::Card;
use crate::cards::card_versions::V1_FIELDS;

/// Returns the card as a V2 document. Fields that only V3 defines are kept in it.
pub fn export_v2(card: &Card) -> Value {
    with_spec(card.document.clone(), "chara_card_v2", "2.0", |_| {})
}

/// Returns the card as a V3 document with all required fields.
pub fn export_v3(card: &Card) -> Value {
    into_v3(card.clone())
}

/// Like `export_v3`, but consumes the card, because a document may need many megabytes.
pub fn into_v3(card: Card) -> Value {
    let version = card.spec_version();
    let newer = version.parse::<f64>().is_ok_and(|it| it > 3.0);
    let version = if newer { version.as_str() } else { "3.0" };
    with_spec(card.document, "chara_card_v3", version, |data| {
        let greetings = data.entry("group_only_greetings");
        greetings.or_insert_with(|| json!([]));
        add_use_regex(data);
    })
}

/// Sets the format of the document after `finish` has changed its `data`.
fn with_spec(
    mut document: Value,
    spec: &str,
    version: &str,
    finish: impl FnOnce(&mut Map<String, Value>),
) -> Value {
    document["spec"] = json!(spec);
    document["spec_version"] = json!(version);
    if let Some(data) = document.get_mut("data").and_then(Value::as_object_mut) {
        finish(data);
    }
    update_root_fields(&mut document);
    document
}

/// Some tools repeat the fields of V1 at the root; after an edit they must agree with `data`.
fn update_root_fields(document: &mut Value) {
    for field in V1_FIELDS {
        let right = document["data"][field].clone();
        if let Some(repeated) = document.get_mut(field) {
            *repeated = right;
        }
    }
}

/// V3 requires `use_regex` in each entry of a lorebook.
fn add_use_regex(data: &mut Map<String, Value>) {
    let book = data.get_mut("character_book");
    let entries = book.and_then(|it| it.get_mut("entries"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(entry) = entry {
            entry.entry("use_regex").or_insert_with(|| json!(false));
        }
    }
}

#[cfg(test)]
#[path = "export_document_tests.rs"]
mod tests;
