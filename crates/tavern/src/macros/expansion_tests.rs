//! Tests of the limits of an expansion, and of what it records.

use super::{Bindings, MacroEnvironment, MacroLimit, expand};
use crate::macros::card_use::CardUse;
use crate::macros::evaluation::case_fixture::{bindings, environment};
use crate::macros::limits::{MAX_DELIMITERS, MAX_EXPANSIONS, MAX_LEVELS, MAX_OUTPUT};

/// Expands a text, and returns the limit that it exceeds.
fn limit_of(text: &str, bindings: &Bindings) -> Option<MacroLimit> {
    let environment = environment();
    environment.set_field("Main prompt");

    let out = expand(text, bindings, &environment);

    let failure = environment.failure.take()?;
    assert_eq!(out, text, "it is not expanded in part");
    assert_eq!(failure.field, "Main prompt");
    Some(failure.limit)
}

fn nested(n: usize) -> String {
    "{{reverse::".repeat(n) + "ab" + &"}}".repeat(n)
}

#[test]
fn macros_are_nested_up_to_the_limit() {
    let blocks = |n| "{{if 1}}".repeat(n) + "a" + &"{{/if}}".repeat(n);
    let plain = bindings();

    assert_eq!(expand(&nested(MAX_LEVELS), &plain, &environment()), "ab");
    assert_eq!(expand(&blocks(MAX_LEVELS), &plain, &environment()), "a");
    assert_eq!(
        limit_of(&nested(MAX_LEVELS + 1), &plain),
        Some(MacroLimit::Levels)
    );
    assert_eq!(
        limit_of(&blocks(MAX_LEVELS + 1), &plain),
        Some(MacroLimit::Levels)
    );
}

#[test]
fn a_card_that_references_itself_exceeds_the_limit() {
    let recursive = Bindings {
        description: "a {{personality}}".into(),
        personality: "b {{description}}".into(),
        ..bindings()
    };
    let doubling = Bindings {
        description: "{{description}}{{description}}x".into(),
        ..bindings()
    };

    assert_eq!(
        limit_of("{{description}}", &recursive),
        Some(MacroLimit::Levels)
    );
    assert_eq!(
        limit_of("{{description}}", &doubling),
        Some(MacroLimit::Levels)
    );
}

#[test]
fn the_number_and_the_size_of_values_are_limited() {
    let long = Bindings {
        description: "y".repeat(MAX_OUTPUT / 10).into(),
        ..bindings()
    };
    let fits = "{{noop}}".repeat(MAX_EXPANSIONS);

    assert_eq!(limit_of(&fits, &long), None);
    assert_eq!(
        limit_of(&(fits + "{{noop}}"), &long),
        Some(MacroLimit::Expansions)
    );
    assert_eq!(limit_of(&"{{description}}".repeat(10), &long), None);
    assert_eq!(
        limit_of(&"{{description}}".repeat(11), &long),
        Some(MacroLimit::Output)
    );
    let separators = format!("{{{{a{}}}}}", "::".repeat(MAX_DELIMITERS));
    assert_eq!(limit_of(&separators, &long), Some(MacroLimit::Delimiters));
}

#[test]
fn all_texts_of_a_prompt_share_the_limits_and_the_first_beyond_them_is_named() {
    let environment = environment();
    let half = "{{noop}}".repeat(MAX_EXPANSIONS / 2 + 1);

    for field in ["Description", "Scenario", "Personality"] {
        environment.set_field(field);
        expand(&half, &bindings(), &environment);
    }

    let failure = environment.failure.take().expect("it exceeds a limit");
    assert_eq!(
        failure.to_string(),
        "The macros of “Scenario” cannot be expanded. \
         The macros of the prompt are expanded more than 100000 times."
    );
}

#[test]
fn text_without_macros_is_not_limited() {
    let text = "漢 {} :: ".repeat(MAX_OUTPUT / 4);

    assert_eq!(expand(&text, &bindings(), &environment()), text);
}

#[test]
fn the_use_of_cards_and_of_the_summary_is_recorded() {
    let used = |text: &str| {
        let environment: MacroEnvironment = environment();
        expand(text, &bindings(), &environment);
        (environment.take_card_use(), environment.take_summary_use())
    };

    assert_eq!(
        used("{{char}}{{user}}{{lastMessage}}"),
        (CardUse::None, false)
    );
    assert_eq!(used("{{description}}"), (CardUse::Entered, false));
    assert_eq!(
        used("{{if description}}a{{/if}}"),
        (CardUse::Entered, false)
    );
    assert_eq!(used("{{greeting::1}}"), (CardUse::Entered, false));
    assert_eq!(used("{{getvar::hat}}"), (CardUse::Unknown, false));
    assert_eq!(used("{{.hat}}"), (CardUse::Unknown, false));
    assert_eq!(used("{{if .hat}}a{{/if}}"), (CardUse::Unknown, false));
    assert_eq!(used("{{outlet::weather}}"), (CardUse::Unknown, false));
    assert_eq!(used("{{summary}}"), (CardUse::None, true));
}
