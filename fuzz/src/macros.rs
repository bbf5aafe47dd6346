//! Macros: expansion terminates within its limits and is deterministic.

use std::cell::RefCell;

use base::clock::Timestamp;
use tavern::macros::bindings::Bindings;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::{MAX_OUTPUT, expand_counted};

/// Expands the bytes: the first line is the character description, the rest is the text.
pub fn check(data: &[u8]) {
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
    assert_eq!(first, again, "the same text has two expansions");
    assert_eq!(expand_counted("plain", &bindings, &environment).0, "plain");
}
