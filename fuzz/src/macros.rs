//! Macros: expansion terminates within its limits and is deterministic.

use base::clock::Timestamp;
use tavern::macros::bindings::Bindings;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;
use tavern::macros::limits::{MAX_EXPANSIONS, MAX_OUTPUT};
use tavern::macros::syntax::unknown_macros;

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
    let environment = || MacroEnvironment {
        now: Some(Timestamp(1_795_278_245_000)),
        ..MacroEnvironment::default()
    };
    let (one, other) = (environment(), environment());

    let first = expand(text, &bindings, &one);
    let again = expand(text, &bindings, &other);

    let used = one.macro_use.get();
    if one.failure.borrow().is_none() {
        assert!(used.n_expansions <= MAX_EXPANSIONS);
        assert!(
            first.len() <= text.len() + MAX_OUTPUT,
            "{} bytes",
            first.len()
        );
    }
    assert_eq!(first, again, "the same text has two expansions");
    assert_eq!(one.variables, other.variables);
    assert_eq!(expand("plain", &bindings, &environment()), "plain");
    unknown_macros::find(text);
}
