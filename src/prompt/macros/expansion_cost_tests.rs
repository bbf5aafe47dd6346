//! What a text may cost at most, whatever macros stand in it: it is held to the memory that one
//! expansion may take.

use super::MAX_MARKS;
use super::MAX_WORK;
use super::Meanings;
use super::expand;
use super::tests::world;
use allocation_counter::measure;

/// The most bytes that are held at one time: so much may any hostile file take.
const MAX_HELD: u64 = 64 * 1024 * 1024;

fn full_of(text: &str) -> String {
    text.repeat(MAX_WORK / text.len())
}

/// Expands a text within what it may cost.
fn within(name: &str, text: &str, meanings: &Meanings) -> String {
    let mut expanded = None;
    let cost = measure(|| expanded = Some(expand(text, meanings, &world())));
    eprintln!("{name}: {} bytes, {cost:?}", text.len());
    assert!(cost.bytes_max <= MAX_HELD, "{name}: {cost:?}");
    expanded.expect("it was expanded")
}

#[test]
fn as_many_macros_as_a_text_can_hold_are_within_what_one_may_cost() {
    let texts = [
        "{{a}}",
        "{{random::a::b}}",
        "{{a::a::a::a::a::a::a::a}}",
        "<user>",
        "{{if a}}b{{else}}c{{/if}}",
        "{{if a}}",
        "{{a",
        "a}}",
        "{{",
        "{{a::",
        "{{{{{{{{{{{{{{{{a}}}}}}}}}}}}}}}}",
        "{{//a}}",
    ];
    for text in texts {
        within(text, &full_of(text), &Meanings::default());
        let one = format!("{{{{random::{}}}}}", full_of(text));
        within(&format!("{text} in another"), &one, &Meanings::default());
    }
}

#[test]
fn texts_that_stand_in_each_other_share_what_one_may_cost() {
    let text = format!("{{{{description}}}}{}", "{{a}}".repeat(60_000));
    let meanings = Meanings {
        description: text.clone().into(),
        ..Meanings::default()
    };

    within("in itself", &text, &meanings);
}

#[test]
fn behind_the_last_mark_that_is_read_a_text_stays_as_it_is() {
    let meanings = Meanings {
        character: "Ada".into(),
        ..Meanings::default()
    };
    // A comment costs its beginning and writes nothing.
    let comments = |n: usize| "{{//}}".repeat(n);
    let read = format!("{}{{{{char}}}}", comments(MAX_MARKS - 2));
    let late = format!("{}{{{{char}}}}", comments(MAX_MARKS));

    assert_eq!(expand(&read, &meanings, &world()), "Ada");
    assert_eq!(expand(&late, &meanings, &world()), "{{char}}");
}
