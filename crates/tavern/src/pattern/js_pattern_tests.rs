//! Compares patterns with the answers of a JavaScript engine, which
//! `tests/fixtures/patterns/js_patterns.mjs` has written.

use serde::Deserialize;

use super::JsPattern;
use crate::pattern::matcher::Matcher;
use crate::pattern::pattern_text::PatternText;

const ANSWERS: &str = include_str!("../../../../tests/fixtures/patterns/js_patterns.json");

/// A pattern with the answers of JavaScript.
#[derive(Deserialize)]
struct Answer {
    pattern: String,
    flags: String,
    #[serde(default)]
    invalid: bool,
    #[serde(default)]
    texts: Vec<String>,
    /// The index and the length of each first match, in UTF-16 code units.
    #[serde(default)]
    matches: Vec<Option<[usize; 2]>>,
}

fn answers() -> Vec<Answer> {
    serde_json::from_str(ANSWERS).expect("the fixture is valid")
}

/// Returns the index and the length of the first match, in UTF-16 code units.
fn find(pattern: &JsPattern, text: &str) -> Option<[usize; 2]> {
    let text = PatternText::new(text);
    let found = Matcher::default()
        .find(pattern, &text, &mut 2_000_000)
        .expect("the steps suffice")?;
    let units = |n_chars: usize| match pattern.flags.unicode {
        true => {
            let chars = text.code_points()[..n_chars].iter();
            chars.map(|it| if *it > 0xffff { 2 } else { 1 }).sum()
        }
        false => n_chars,
    };
    let (start, end) = (units(found.start), units(found.end));
    Some([start, end - start])
}

#[test]
fn patterns_match_where_they_match_in_javascript() {
    let valid: Vec<Answer> = answers().into_iter().filter(|it| !it.invalid).collect();
    assert!(valid.len() > 200, "{} patterns", valid.len());

    for answer in valid {
        let (body, flags) = (&answer.pattern, &answer.flags);
        let pattern = JsPattern::compile(body, flags)
            .unwrap_or_else(|error| panic!("/{body}/{flags} is refused: {error}"));
        for (text, expected) in answer.texts.iter().zip(&answer.matches) {
            assert_eq!(
                find(&pattern, text),
                *expected,
                "/{body}/{flags} in {text:?}"
            );
        }
    }
}

#[test]
fn patterns_that_javascript_refuses_are_invalid() {
    let invalid: Vec<Answer> = answers().into_iter().filter(|it| it.invalid).collect();
    assert!(invalid.len() > 40, "{} patterns", invalid.len());

    for Answer { pattern, flags, .. } in invalid {
        assert!(
            JsPattern::compile(&pattern, &flags).is_err(),
            "/{pattern}/{flags}"
        );
    }
}

#[test]
fn a_text_without_a_required_literal_has_no_match() {
    for answer in answers().iter().filter(|it| !it.invalid) {
        let pattern = JsPattern::compile(&answer.pattern, &answer.flags).expect("valid");
        for (text, expected) in answer.texts.iter().zip(&answer.matches) {
            let lower = text.to_lowercase();
            let has_one = |list: &Vec<String>| list.iter().any(|it| lower.contains(it.as_str()));
            let has_all = pattern.required_literals.iter().all(has_one);
            assert!(
                has_all || expected.is_none(),
                "{} in {text:?}",
                answer.pattern
            );
        }
    }
}

#[test]
fn an_error_states_its_reason_and_position() {
    let cases = [
        ("dra(gon", "", "unterminated group at 7"),
        ("🐉)", "", "unmatched ')' at 1"),
        ("a**", "", "nothing to repeat at 2"),
        ("[z-a]", "", "range out of order in character class at 4"),
        ("[a", "", "unterminated character class at 2"),
        ("a\\", "", "\\ at end of pattern at 1"),
        (r"\p{Foo}", "u", "invalid property name at 2"),
        ("a", "gg", "invalid flags at 1"),
    ];

    for (body, flags, expected) in cases {
        let error = JsPattern::compile(body, flags).expect_err(body);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn patterns_that_are_too_long_or_nested_too_deeply_are_invalid() {
    let long = "a".repeat(4097);
    let deep = format!("{}{}", "(".repeat(500), ")".repeat(500));
    let deep_class = format!("{}{}", "[".repeat(500), "]".repeat(500));

    for (body, flags, reason) in [
        (long, "", "longer than 4096 bytes"),
        (deep, "", "nested too deeply"),
        (deep_class, "v", "nested too deeply"),
    ] {
        let error = JsPattern::compile(&body, flags).expect_err(reason);
        assert_eq!(error.reason, reason);
    }
    assert!(JsPattern::compile(&"a".repeat(4096), "").is_ok());
}

#[test]
fn a_program_is_not_larger_than_the_pattern() {
    let body = r"((?:\W+\w+){0,200}.{0,5000}x{1,9999}?){0,5000}";

    let pattern = JsPattern::compile(body, "i").expect("valid");

    assert!(pattern.program.instructions.len() < body.len());
}
