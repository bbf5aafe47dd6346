//! Tests that no text exceeds the memory limit of one expansion, whatever macros it contains.

use allocation_counter::measure;

use super::tests::{bindings, environment};
use super::{Bindings, MAX_DELIMITERS, MAX_OUTPUT, MAX_WORK, expand};

/// The maximum heap size during an expansion, in bytes; the same limit as for any untrusted file.
const MAX_HEAP: u64 = 64 * 1024 * 1024;

fn full_of(text: &str) -> String {
    text.repeat(MAX_WORK / text.len())
}

/// Expands a text and checks its cost.
fn expand_within_limits(name: &str, text: &str, bindings: &Bindings) -> String {
    let mut expanded = None;
    let cost = measure(|| expanded = Some(expand(text, bindings, &environment())));
    eprintln!("{name}: {} bytes, {cost:?}", text.len());
    assert!(cost.bytes_max <= MAX_HEAP, "{name}: {cost:?}");
    expanded.expect("it was expanded")
}

#[test]
fn a_text_full_of_open_braces_is_cheap() {
    for beginning in ["{{", "{{//", "<", "{{char", "<user"] {
        let text = beginning.repeat(400_000);

        let out = expand(&text, &bindings(), &environment());

        assert_eq!(out, text[..MAX_OUTPUT]);
    }
}

#[test]
fn a_text_full_of_macros_stays_within_the_limits() {
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
        expand_within_limits(text, &full_of(text), &Bindings::default());
        let one = format!("{{{{random::{}}}}}", full_of(text));
        expand_within_limits(&format!("{text} in another"), &one, &Bindings::default());
    }
}

#[test]
fn nested_texts_share_one_limit() {
    let text = format!("{{{{description}}}}{}", "{{a}}".repeat(60_000));
    let bindings = Bindings {
        description: text.clone().into(),
        ..Bindings::default()
    };

    expand_within_limits("in itself", &text, &bindings);
}

#[test]
fn text_after_the_last_delimiter_is_unchanged() {
    let bindings = Bindings {
        character: "Ada".into(),
        ..Bindings::default()
    };
    // A comment costs one delimiter and writes nothing.
    let comments = |n: usize| "{{//}}".repeat(n);
    let read = format!("{}{{{{char}}}}", comments(MAX_DELIMITERS - 2));
    let late = format!("{}{{{{char}}}}", comments(MAX_DELIMITERS));

    assert_eq!(expand(&read, &bindings, &environment()), "Ada");
    assert_eq!(expand(&late, &bindings, &environment()), "{{char}}");
}
