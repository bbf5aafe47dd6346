//! Tests which values are deserialized, and that every error names its kind and its field.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::web::extract::deserialize::{FieldErrorKind, from_value};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Color {
    Red,
    DarkBlue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    size: u8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    name: String,
    color: Option<Color>,
    #[serde(default)]
    parts: Vec<Inner>,
    whatever: Option<Value>,
    #[serde(default)]
    settings: Map<String, Value>,
}

#[test]
fn a_valid_value_is_deserialized_completely() {
    let whatever = json!({"a": [1, -2, 0.5, null, true, "x"]});

    let outer: Outer = from_value(json!({
        "name": "n", "color": "dark_blue", "parts": [{"size": 3}], "whatever": whatever,
    }))
    .unwrap();

    assert_eq!(outer.name, "n");
    assert_eq!(outer.color, Some(Color::DarkBlue));
    assert_eq!(outer.parts[0].size, 3);
    assert_eq!(outer.whatever, Some(whatever));
    assert!(outer.settings.is_empty());
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let outer: Outer =
        from_value(json!({"name": "n", "parts": [{"size": 3.0}], "whatever": 3.0})).unwrap();

    assert_eq!(outer.parts[0].size, 3);
    assert_eq!(
        outer.whatever,
        Some(json!(3.0)),
        "untyped values are kept as received"
    );
    let negative = from_value::<Outer>(json!({"name": "n", "parts": [{"size": -3.0}]}));
    assert_eq!(negative.unwrap_err().kind, FieldErrorKind::Value);
}

#[test]
fn null_is_absent() {
    let outer: Outer = from_value(json!({"name": "n", "color": null})).unwrap();

    assert_eq!(outer.color, None);
}

#[test]
fn every_error_names_its_kind_and_its_field() {
    let cases = [
        (json!({}), FieldErrorKind::MissingField, Some("name")),
        (
            json!({"name": "n", "nmae": 1}),
            FieldErrorKind::UnknownField,
            Some("nmae"),
        ),
        (json!({"name": 5}), FieldErrorKind::Type, Some("name")),
        (json!({"name": null}), FieldErrorKind::Type, Some("name")),
        (
            json!({"name": "n", "color": "green"}),
            FieldErrorKind::Value,
            Some("color"),
        ),
        (
            json!({"name": "n", "color": 3}),
            FieldErrorKind::Type,
            Some("color"),
        ),
        (
            json!({"name": "n", "parts": [{"size": 1}, {"size": 300}]}),
            FieldErrorKind::Value,
            Some("parts.1.size"),
        ),
        (
            json!({"name": "n", "parts": [{"size": 1.5}]}),
            FieldErrorKind::Type,
            Some("parts.0.size"),
        ),
        (
            json!({"name": "n", "parts": [{}]}),
            FieldErrorKind::MissingField,
            Some("parts.0.size"),
        ),
        (
            json!({"name": "n", "settings": null}),
            FieldErrorKind::Type,
            Some("settings"),
        ),
        (
            json!({"name": "n", "settings": []}),
            FieldErrorKind::Type,
            Some("settings"),
        ),
        (json!([]), FieldErrorKind::Type, None),
        (json!(["n"]), FieldErrorKind::Type, None),
        (json!("text"), FieldErrorKind::Type, None),
    ];

    for (body, kind, param) in cases {
        let error = from_value::<Outer>(body.clone()).unwrap_err();
        assert_eq!(error.kind, kind, "{body}");
        assert_eq!(error.param().as_deref(), param, "{body}");
    }
}

#[test]
fn error_messages_name_no_rust_types() {
    let cases = [
        (json!({"name": 5}), "Must be a string, not an integer."),
        (
            json!({"name": "n", "parts": [{"size": "x"}]}),
            "Must be an integer, not a string.",
        ),
        (
            json!({"name": "n", "parts": 1}),
            "Must be a list, not an integer.",
        ),
        (
            json!({"name": "n", "settings": []}),
            "Must be an object, not a list.",
        ),
    ];

    for (body, message) in cases {
        let error = from_value::<Outer>(body).unwrap_err();
        assert_eq!(error.message, message);
    }
}
