//! Every misfit tells its kind and its field.

use crate::http::typed::Wrong;
use crate::http::typed::from_value;
use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

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
fn what_fits_comes_through_whole() {
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
fn a_whole_number_with_a_point_is_one_where_one_is_asked_for() {
    let whatever = json!({"a": 3.0});

    let outer: Outer = from_value(json!({
        "name": "n", "parts": [{"size": 3.0}], "whatever": whatever,
    }))
    .unwrap();

    assert_eq!(outer.parts[0].size, 3);
    assert_eq!(outer.whatever.unwrap().to_string(), whatever.to_string());
    assert_eq!(
        from_value::<i64>(json!(-9e18)).unwrap(),
        -9 * 10_i64.pow(18)
    );
    for no in [json!(3.5), json!(1e19), json!(-1e300)] {
        assert_eq!(from_value::<i64>(no).unwrap_err().wrong, Wrong::Type);
    }
}

#[test]
fn null_is_absent() {
    let outer: Outer = from_value(json!({"name": "n", "color": null})).unwrap();

    assert_eq!(outer.color, None);
}

#[test]
fn every_misfit_tells_its_kind_and_its_field() {
    let cases = [
        (json!({}), Wrong::MissingField, Some("name")),
        (
            json!({"name": "n", "nmae": 1}),
            Wrong::UnknownField,
            Some("nmae"),
        ),
        (json!({"name": 5}), Wrong::Type, Some("name")),
        (json!({"name": null}), Wrong::Type, Some("name")),
        (
            json!({"name": "n", "color": "green"}),
            Wrong::Value,
            Some("color"),
        ),
        (json!({"name": "n", "color": 3}), Wrong::Type, Some("color")),
        (
            json!({"name": "n", "parts": [{"size": 1}, {"size": 300}]}),
            Wrong::Value,
            Some("parts.1.size"),
        ),
        (
            json!({"name": "n", "parts": [{"size": 1.5}]}),
            Wrong::Type,
            Some("parts.0.size"),
        ),
        (
            json!({"name": "n", "parts": [{}]}),
            Wrong::MissingField,
            Some("parts.0.size"),
        ),
        (
            json!({"name": "n", "settings": null}),
            Wrong::Type,
            Some("settings"),
        ),
        (
            json!({"name": "n", "settings": []}),
            Wrong::Type,
            Some("settings"),
        ),
        (json!([]), Wrong::Type, None),
        (json!(["n"]), Wrong::Type, None),
        (json!("text"), Wrong::Type, None),
    ];

    for (body, wrong, param) in cases {
        let misfit = from_value::<Outer>(body.clone()).unwrap_err();
        assert_eq!(misfit.wrong, wrong, "{body}");
        assert_eq!(misfit.param().as_deref(), param, "{body}");
    }
}

#[test]
fn a_misfit_is_told_without_words_of_the_program() {
    let cases = [
        (
            json!({"name": 5}),
            "This is a whole number, but takes a text.",
        ),
        (
            json!({"name": "n", "parts": [{"size": "x"}]}),
            "This is a text, but takes a whole number.",
        ),
        (
            json!({"name": "n", "parts": 1}),
            "This is a whole number, but takes a list.",
        ),
        (
            json!({"name": "n", "settings": []}),
            "This is a list, but takes an object.",
        ),
    ];

    for (body, message) in cases {
        let misfit = from_value::<Outer>(body).unwrap_err();
        assert_eq!(misfit.message, message);
    }
}
