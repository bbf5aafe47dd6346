//! Macros: they end, within their limits, and come to the same each time.

use std::cell::RefCell;

use base::clock::Timestamp;
use tavern::macros::bindings::Bindings;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::{MAX_OUTPUT, expand_counted};

/// The first line is what a text stands for, the rest is the text.
pub fn is_held(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (description, text) = text.split_once('\n').unwrap_or(("", &text));
    let bindings = Bindings {
        character: "Ada".to_owned(),
        user: "Bob".to_owned(),
        persona: "A friend of {{char}}.".into(),
        description: description.into(),
        original: Some(description.to_owned()),
        ..Bindings::default()
    };
    let environment = MacroEnvironment {
        now: Some(Timestamp(1_795_278_245_000)),
        variables: RefCell::default(),
        ..MacroEnvironment::default()
    };

    let first = environment.without_variables(|| expand_counted(text, &bindings, &environment));
    let again = expand_counted(text, &bindings, &environment);

    assert!(
        first.0.len() <= MAX_OUTPUT.max(text.len()),
        "{} bytes",
        first.0.len()
    );
    assert_eq!(first, again, "the same text comes to the same");
    assert_eq!(expand_counted("plain", &bindings, &environment).0, "plain");
}
