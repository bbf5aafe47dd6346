//! Tests of the limits of a card's size, depth and number of values.

use serde_json::json;

use super::tests::{read, v2};
use super::{Card, CardError, MAX_BYTES, MAX_DEPTH, Map, Value};

#[test]
fn limits_are_checked_before_memory_is_allocated() {
    let large = vec![b' '; MAX_BYTES + 1];
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let many = format!("[{}0]", "0,".repeat(2_000_000));

    for bytes in [large.as_slice(), deep.as_bytes(), many.as_bytes()] {
        let refused = Card::parse(bytes);
        assert!(
            matches!(refused, Err(CardError::TooLarge(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn depth_up_to_the_limit_is_read() {
    let nested = |levels: usize| {
        let list = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        Card::parse(format!(r#"{{"name":"A","first_mes":"[[[","x":{list}}}"#).as_bytes())
    };

    assert!(nested(MAX_DEPTH - 2).is_ok());
    assert!(matches!(nested(MAX_DEPTH - 1), Err(CardError::TooLarge(_))));
}

#[test]
fn no_edit_makes_a_card_too_large_or_too_deep() {
    let card = read(v2(json!({"name": "Ada"})));
    let edited = |value: Value| card.with_changes(Map::from_iter([("x".to_owned(), value)]));
    let deep = (0..MAX_DEPTH - 2).fold(json!(1), |inner, _| json!([inner]));

    assert!(edited(json!("x".repeat(MAX_BYTES / 2))).is_ok());
    for refused in [json!("x".repeat(MAX_BYTES)), deep] {
        assert!(matches!(edited(refused), Err(CardError::TooLarge(_))));
    }
}
