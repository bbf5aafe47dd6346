//! Macros: they end, within their limits, and come to the same each time.

use std::cell::RefCell;

use troupe::clock::Timestamp;
use troupe::prompt::macros::expansion::MAX_OUTPUT;
use troupe::prompt::macros::expansion::expand_counted;
use troupe::prompt::macros::meanings::Meanings;
use troupe::prompt::macros::world::World;

/// The first line is what a text stands for, the rest is the text.
pub fn is_held(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (description, text) = text.split_once('\n').unwrap_or(("", &text));
    let meanings = Meanings {
        character: "Ada".to_owned(),
        user: "Bob".to_owned(),
        persona: "A friend of {{char}}.".into(),
        description: description.into(),
        original: Some(description.to_owned()),
        ..Meanings::default()
    };
    let world = World {
        now: Some(Timestamp(1_795_278_245_000)),
        variables: RefCell::default(),
        ..World::default()
    };

    let first = world.forgetting(|| expand_counted(text, &meanings, &world));
    let again = expand_counted(text, &meanings, &world);

    assert!(
        first.0.len() <= MAX_OUTPUT.max(text.len()),
        "{} bytes",
        first.0.len()
    );
    assert_eq!(first, again, "the same text comes to the same");
    assert_eq!(expand_counted("plain", &meanings, &world).0, "plain");
}
