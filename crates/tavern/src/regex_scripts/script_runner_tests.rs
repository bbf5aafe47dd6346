//! Tests of scripts in texts, and of their limits.

use super::{MAX_RESULT_BYTES, MAX_RUNNER_STEPS, MAX_SCRIPT_STEPS, ScriptRunner, check};
use crate::macros::bindings::Bindings;
use crate::macros::environment::MacroEnvironment;
use crate::macros::expansion::expand;
use crate::regex_scripts::script::RegexScript;
use crate::regex_scripts::script_error::ScriptError;

fn script(find_regex: &str, replace_string: &str) -> RegexScript {
    RegexScript {
        find_regex: find_regex.into(),
        replace_string: replace_string.into(),
        ..RegexScript::default()
    }
}

fn with_names(text: &str) -> Result<String, ScriptError> {
    let bindings = Bindings {
        character: "Ada (1)".into(),
        user: "Ben".into(),
        ..Bindings::default()
    };
    Ok(expand(text, &bindings, &MacroEnvironment::default()))
}

fn apply(script: &RegexScript, text: &str) -> Result<Option<String>, ScriptError> {
    ScriptRunner::default().apply(script, text, &with_names)
}

fn replaced(find_regex: &str, replace_string: &str, text: &str) -> Option<String> {
    apply(&script(find_regex, replace_string), text).expect("the script is valid")
}

#[test]
fn a_pattern_without_flags_replaces_the_first_match() {
    assert_eq!(replaced("a", "b", "aaa").as_deref(), Some("baa"));
    assert_eq!(replaced("/a/g", "b", "aaa").as_deref(), Some("bbb"));
    assert_eq!(replaced("/x/g", "b", "aaa"), None);
}

#[test]
fn groups_are_inserted() {
    let found = replaced(
        r"/(?<who>\w+) (\w+)/g",
        "$2 $<who> [{{match}}|$0] $9$<no>",
        "a b",
    );

    assert_eq!(found.as_deref(), Some("b a [a b|a b] "));
}

#[test]
fn trimmed_texts_are_removed_from_groups_only() {
    let trimming = RegexScript {
        trim_strings: vec!["*".into(), "{{user}}".into()],
        ..script(r"/\*(.+?)\*/g", "*$0|$1*")
    };

    let found = apply(&trimming, "*Ben and Eve*");

    assert_eq!(found, Ok(Some("* and Eve| and Eve*".into())));
}

#[test]
fn macros_are_expanded_in_the_replacement_but_not_in_what_was_found() {
    let found = replaced(
        "/<<(.*)>>/",
        "{{char}}: $1",
        "<<{{user}} <USER> {{setvar::a::1}}>>",
    );

    assert_eq!(
        found.as_deref(),
        Some("Ada (1): {{user}} <USER> {{setvar::a::1}}")
    );
}

#[test]
fn macros_in_the_pattern_depend_on_its_setting() {
    let of = |substitute_regex| RegexScript {
        substitute_regex,
        ..script("/{{char}}/g", "X")
    };
    let text = "Ada 1, Ada (1), {{char}}";

    // Without macros it is a pattern with literal braces.
    assert_eq!(apply(&of(0), text), Ok(Some("Ada 1, Ada (1), X".into())));
    assert_eq!(apply(&of(1), text), Ok(Some("X, Ada (1), {{char}}".into())));
    assert_eq!(apply(&of(2), text), Ok(Some("Ada 1, X, {{char}}".into())));
}

#[test]
fn halves_of_surrogate_pairs_are_joined_again() {
    assert_eq!(replaced("/(.)/g", "$1", "a🐉b").as_deref(), Some("a🐉b"));
    assert_eq!(
        replaced("/(.)/gu", "[$1]", "a🐉b").as_deref(),
        Some("[a][🐉][b]")
    );
}

#[test]
fn an_invalid_pattern_names_its_position() {
    let invalid = script("/dra(gon/g", "x");

    let error = apply(&invalid, "dragon").expect_err("it is invalid");

    assert_eq!(error.to_string(), "unterminated group at 7");
    assert_eq!(error.position(), Some(7));
    assert_eq!(check(&invalid, &with_names), Some(error));
    assert_eq!(check(&script("a", ""), &with_names), None);
}

#[test]
fn a_catastrophic_pattern_leaves_the_text() {
    let text = "a".repeat(30_000) + "b";
    for find_regex in ["/(a|aa)+$/", "/(?:(?:a|b|ab)*c?)*d/g"] {
        let mut runner = ScriptRunner::default();
        let found = runner.apply(&script(find_regex, "$1"), &text, &with_names);

        assert_eq!(found, Err(ScriptError::TooManySteps), "{find_regex}");
        let n_steps = MAX_RUNNER_STEPS - runner.steps_left();
        assert!(n_steps <= MAX_SCRIPT_STEPS + 1, "{n_steps}");
    }
}

#[test]
fn an_explosive_replacement_leaves_the_text() {
    let text = "a".repeat(MAX_RESULT_BYTES);

    assert_eq!(
        apply(&script("/a/g", "$0$0"), &text),
        Err(ScriptError::TooLong)
    );
    assert_eq!(
        apply(&script("/(a+)/", "$1$1{{char}}"), &text),
        Err(ScriptError::TooLong)
    );
    // Many matches with a long replacement of which nothing is left.
    let nothing = format!("{{{{// {}}}}}", "x".repeat(4_000));
    assert_eq!(
        apply(&script("/a/g", &nothing), &text),
        Err(ScriptError::TooManySteps)
    );
}

#[test]
fn a_text_that_is_longer_than_a_message_may_be_changed() {
    let text = "a".repeat(MAX_RESULT_BYTES + 10);

    let found = replaced("/a$/", "b", &text).expect("it is found");

    assert_eq!(found.len(), text.len());
}

#[test]
fn the_scripts_of_a_page_share_their_steps() {
    let text = "a".repeat(30_000) + "b";
    let slow = script("/(a|aa)+$/", "");
    let mut runner = ScriptRunner::default();
    let n_texts = MAX_RUNNER_STEPS / MAX_SCRIPT_STEPS;
    for _ in 0..n_texts {
        let found = runner.apply(&slow, &text, &with_names);
        assert_eq!(found, Err(ScriptError::TooManySteps));
    }

    let found = runner.apply(&script("a", "b"), "a", &with_names);

    assert_eq!(found, Err(ScriptError::AllTooManySteps));
    assert_eq!(runner.steps_left(), 0);
}
