//! Tests of parsing YAML: its values, what is refused, and the limits.

use serde_json::{Value, json};

use super::parse;
use crate::documents::document_error::DocumentError;

fn refusal(text: &str) -> String {
    match parse(text) {
        Err(DocumentError::Invalid(reason)) => reason,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn a_document_becomes_a_json_value() {
    let text = "---\n# A character.\nname: Ada\ncontext: |\n  First line.\n  Second: \"line\".\n\
                greeting: >-\n  folded\n  text\ntags: [math, 'engines', 3]\nempty:\n\
                deep: {a: [{b: ~}], c: true}\n1: one\n...\n";

    assert_eq!(
        parse(text).expect("a document"),
        json!({
            "name": "Ada",
            "context": "First line.\nSecond: \"line\".\n",
            "greeting": "folded text",
            "tags": ["math", "engines", 3],
            "empty": null,
            "deep": {"a": [{"b": null}], "c": true},
            "1": "one",
        })
    );
    assert_eq!(parse("").expect("nothing"), Value::Null);
}

#[test]
fn anchors_aliases_tags_and_repeated_keys_are_refused_with_their_line() {
    for (text, what) in [
        ("a: 1\nb: &x 2", "an anchor in line 2"),
        ("a: &x [1]", "an anchor in line 1"),
        ("a: &x {b: 1}", "an anchor in line 1"),
        ("a: !!str 2", "a tag in line 1"),
        ("a: !custom {b: 1}", "a tag in line 1"),
        ("? [1, 2]\n: x", "not a text in line 1"),
        ("a: 1\na: 2", "occurs twice in line 2"),
    ] {
        assert!(refusal(text).contains(what), "{text:?}: {}", refusal(text));
    }
    assert!(refusal("a: 1\n---\nb: 2").contains("more than one"));
    assert!(refusal("a: [1").contains("line"));
    // An alias without its anchor is a syntax error.
    assert!(matches!(parse("a: *x"), Err(DocumentError::Invalid(_))));
}

#[test]
fn depth_and_number_of_values_are_limited() {
    let nested = |n: usize| format!("{}1", "- ".repeat(n));
    assert!(parse(&nested(100)).is_ok());
    for text in [
        nested(1_000),
        nested(1_000_000),
        format!("{}{}", "[".repeat(200), "]".repeat(200)),
        "- 1\n".repeat(300_000),
        "- {}\n".repeat(50_000),
    ] {
        let refused = parse(&text);
        assert!(
            matches!(refused, Err(DocumentError::TooLarge(_))),
            "{:.20}",
            text
        );
    }
}
