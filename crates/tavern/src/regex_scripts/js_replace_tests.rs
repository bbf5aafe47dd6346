//! Compares replacements with the answers of a JavaScript engine, which
//! `tests/fixtures/patterns/js_replacements.mjs` has written.

use serde::Deserialize;

use super::ScriptRunner;
use crate::regex_scripts::script::RegexScript;

const ANSWERS: &str = include_str!("../../../../tests/fixtures/patterns/js_replacements.json");

/// A replacement with the answers of JavaScript.
#[derive(Deserialize)]
struct Replaced {
    pattern: String,
    flags: String,
    replacement: String,
    texts: Vec<String>,
    results: Vec<String>,
}

#[test]
fn texts_are_replaced_as_in_javascript() {
    let answers: Vec<Replaced> = serde_json::from_str(ANSWERS).expect("the fixture is valid");
    assert!(answers.len() >= 60, "{} replacements", answers.len());

    for it in answers {
        let script = RegexScript {
            find_regex: format!("/{}/{}", it.pattern, it.flags),
            replace_string: it.replacement.clone(),
            ..RegexScript::default()
        };
        for (text, expected) in it.texts.iter().zip(&it.results) {
            let found = ScriptRunner::default().apply(&script, text, &|it| Ok(it.to_owned()));
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", script.find_regex));
            assert_eq!(
                found.as_ref().unwrap_or(text),
                expected,
                "{} → {} in {text:?}",
                script.find_regex,
                it.replacement
            );
        }
    }
}
