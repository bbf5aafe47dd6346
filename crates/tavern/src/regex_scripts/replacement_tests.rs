//! Tests of how a replacement is parsed.

use super::Replacement;
use super::ReplacementPart::{Match, Name, Number, Text};

#[test]
fn groups_are_found_in_a_replacement() {
    let cases = [
        (
            "a$1b",
            vec![Text("a".into()), Number(1, None), Text("b".into())],
        ),
        ("$12", vec![Number(1, Some(2))]),
        ("$0{{MATCH}}", vec![Number(0, None), Match]),
        ("$<who>!", vec![Name("who".into()), Text("!".into())]),
        ("$ $$ $x $<> $<a", vec![Text("$ $$ $x $<> $<a".into())]),
        ("", vec![]),
    ];

    for (source, expected) in cases {
        assert_eq!(Replacement::parse(source).parts, expected, "{source}");
    }
}

#[test]
fn a_replacement_without_groups_needs_no_captures() {
    for (source, expected) in [
        ("$0", false),
        ("x", false),
        ("{{match}}", false),
        ("$1", true),
        ("$<a>", true),
    ] {
        assert_eq!(
            Replacement::parse(source).needs_captures(),
            expected,
            "{source}"
        );
    }
}
