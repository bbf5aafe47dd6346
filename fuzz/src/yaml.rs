//! YAML: a value that is parsed is within the limits and survives as JSON, and a card in it is
//! unchanged by export and import.

use serde_json::Value;
use tavern::cards::card::Card;
use tavern::documents::limits::MAX_DEPTH;
use tavern::documents::{document, yaml};

/// Reads the bytes as YAML, and as a card if they are a document.
pub fn check(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data)
        && let Ok(value) = yaml::parse(text)
    {
        assert!(depth(&value) < MAX_DEPTH, "the value is nested too deep");
        let json = serde_json::to_vec(&value).expect("a value serializes to JSON");
        let back: Value = serde_json::from_slice(&json).expect("the JSON can be parsed");
        assert_eq!(back, value);
    }
    if let Ok(found) = document::read(data)
        && let Ok(card) = Card::from_document(found.value)
    {
        crate::card::check_round_trip(&card);
    }
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}
