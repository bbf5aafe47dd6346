//! Tests that no text exceeds the memory limit of one expansion, whatever macros it contains.

use std::time::Instant;

use allocation_counter::measure;

use super::{Bindings, expand};
use crate::macros::evaluation::case_fixture::{bindings, environment};

/// The maximum heap size during an expansion, in bytes; the same limit as for any untrusted file.
const MAX_HEAP: u64 = 64 * 1024 * 1024;
/// The size of the largest field of a card, in bytes.
const LARGE: usize = 4 * 1024 * 1024;

fn full_of(text: &str) -> String {
    text.repeat(LARGE / text.len())
}

/// Expands a text and checks its cost.
fn expand_within_limits(name: &str, text: &str, bindings: &Bindings) -> String {
    let mut expanded = None;
    let started = Instant::now();
    let cost = measure(|| expanded = Some(expand(text, bindings, &environment())));
    let ms = started.elapsed().as_millis();
    eprintln!("{name}: {} bytes, {ms} ms, {cost:?}", text.len());
    assert!(cost.bytes_max <= MAX_HEAP, "{name}: {cost:?}");
    expanded.expect("it was expanded")
}

#[test]
fn a_text_full_of_open_braces_is_unchanged() {
    for beginning in ["{{", "{{//", "<", "{{char", "<user", "{{/", "\\", "{{#if"] {
        let text = beginning.repeat(100_000);

        let out = expand_within_limits(beginning, &text, &bindings());

        assert_eq!(out, text);
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
        "{{/if}}",
        "{{reverse}}",
        "{{setvar::x}}{{/reverse}}",
        "{{else}}",
        "{{a",
        "a}}",
        "{{",
        "{{a::",
        "{{{{{{{{{{{{{{{{a}}}}}}}}}}}}}}}}",
        "{{//a}}",
        "{{.x++}}",
        "\\{",
    ];
    for text in texts {
        expand_within_limits(text, &full_of(text), &Bindings::default());
        let few = text.repeat(250_000 / 4 / text.len());
        expand_within_limits(&format!("few {text}"), &few, &Bindings::default());
        let one = format!("{{{{random::{few}}}}}");
        expand_within_limits(&format!("{text} in another"), &one, &Bindings::default());
    }
}

#[test]
fn nested_texts_share_one_limit() {
    let text = format!("{{{{description}}}}{}", "{{a}}".repeat(60_000));
    let silent = format!("{{{{// {} }}}}", "a ".repeat(400_000));
    let with = |text: &str| Bindings {
        description: text.into(),
        ..Bindings::default()
    };

    expand_within_limits("in itself", &text, &with(&text));
    let many = "{{description}}".repeat(50_000);
    expand_within_limits("long comments", &many, &with(&silent));
}
