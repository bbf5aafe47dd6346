//! Tests of entries that the caller activates.

use serde_json::{Value, json};

use super::engine_fixture::fixture;

#[test]
fn an_entry_that_the_caller_activates_needs_no_key() {
    let entries = json!([{"keys": ["whale"], "content": "Whales sing."}, {"keys": ["gull"], "content": "Gulls."}]);
    let mut scan = fixture(&["rain"], entries);
    assert!(scan.texts().is_empty());

    scan.external_activations.insert("1.0".to_owned());

    assert_eq!(scan.texts(), ["Whales sing."]);
    assert_eq!(scan.reason(), "vectorized");
}

#[test]
fn other_rules_exclude_an_entry_that_the_caller_activates() {
    let reason = |fields: Value| {
        let mut entry = json!({"keys": ["whale"], "content": "Whales sing."});
        entry
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let mut scan = fixture(&["rain"], json!([entry]));
        scan.external_activations.insert("1.0".to_owned());
        scan.reason()
    };

    assert_eq!(reason(json!({"enabled": false})), "not: disabled");
    assert_eq!(reason(json!({"extensions": {"delay": 9}})), "not: delay: 9");
    let filter = json!({"names": ["Cid"], "isExclude": false, "tags": []});
    assert_eq!(
        reason(json!({"extensions": {"character_filter": filter}})),
        "not: character_filter"
    );
    assert_eq!(
        reason(json!({"content": "@@dont_activate\nWhales."})),
        "not: decorator: @@dont_activate"
    );
    assert_eq!(reason(json!({"constant": true})), "constant");
}
