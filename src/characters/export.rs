//! Cards on their way out, in the two forms that other tools read.
//!
//! **Invariant:** nothing is lost on the way: fields we do not know leave as they came in.

use serde_json::{Map, Value, json};

use crate::characters::card::Card;
use crate::characters::card_versions::V1_FIELDS;

/// The card as a V2 document. What only V3 knows stays in it for those who look.
pub fn export_v2(card: &Card) -> Value {
    with_spec(card.document.clone(), "chara_card_v2", "2.0", |_| {})
}

/// The card as a V3 document, with the fields that V3 demands.
pub fn export_v3(card: &Card) -> Value {
    into_v3(card.clone())
}

/// The same, of a card that is not needed any more: a document may take dozens of megabytes.
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

/// The document under the name of a form, after `finish` has seen its `data`.
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

/// Some tools repeat the fields of V1 at the root; after an edit those must not contradict `data`.
fn update_root_fields(document: &mut Value) {
    for field in V1_FIELDS {
        let right = document["data"][field].clone();
        if let Some(repeated) = document.get_mut(field) {
            *repeated = right;
        }
    }
}

/// In V3 each entry of a lorebook says whether its keys are patterns.
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
#[path = "export_tests.rs"]
mod tests;
