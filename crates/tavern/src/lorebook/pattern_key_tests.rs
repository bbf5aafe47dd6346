//! Tests of pattern syntax and of the limits for untrusted patterns.

use std::time::{Duration, Instant};

use super::{Pattern, compile, parse_literal};

fn is_found(body: &str, flags: &str, text: &str) -> Option<bool> {
    compile(body, flags)?.is_match(text).ok()
}

#[test]
fn a_pattern_is_written_between_slashes_with_known_flags() {
    assert_eq!(parse_literal("/a+/gi"), Some(("a+", "gi")));
    assert_eq!(parse_literal(r"/a\/b/"), Some((r"a\/b", "")));
    for plain in ["a", "/a", "//", "/a/b/", "/a/x", "/usr/bin", "/"] {
        assert_eq!(parse_literal(plain), None, "{plain}");
    }
}

#[test]
fn letters_and_word_borders_are_those_of_ascii() {
    assert_eq!(is_found(r"\bn\b", "", "én"), Some(true));
    assert_eq!(is_found(r"^\w+$", "", "élan"), Some(false));
    assert_eq!(is_found(r"^[\w-]+$", "", "snake_case-1"), Some(true));
    assert_eq!(is_found(r"^\d$", "", "٣"), Some(false));
}

#[test]
fn escapes_that_are_literal_in_javascript_are_literal() {
    assert_eq!(is_found("{{char}}", "", "{{char}}"), Some(true));
    assert_eq!(is_found("a{2}", "", "aa"), Some(true));
    assert_eq!(is_found("a{,2}", "", "a{,2}"), Some(true));
    assert_eq!(is_found("[[]", "", "["), Some(true));
    assert_eq!(is_found("[a&&b]", "", "&"), Some(true));
    assert_eq!(is_found("[]", "", "anything"), Some(false));
    assert_eq!(is_found("[^]", "", "\n"), Some(true));
    assert_eq!(is_found(r"\-\#\ ", "", "-# "), Some(true));
}

#[test]
fn flags_have_the_meaning_of_javascript() {
    assert_eq!(is_found("A", "i", "a"), Some(true));
    assert_eq!(is_found("^b", "m", "a\nb"), Some(true));
    assert_eq!(is_found("a.b", "s", "a\nb"), Some(true));
    assert_eq!(is_found("b", "y", "ab"), Some(false));
}

#[test]
fn patterns_with_lookaround_run_in_the_engine_that_counts_steps() {
    let looks = compile("(?<=a)b", "").unwrap();

    assert!(matches!(&*looks, Pattern::Backtracking(_)));
    assert_eq!(looks.is_match("ab"), Ok(true));
    assert!(matches!(&*compile("a|b", "").unwrap(), Pattern::Linear(_)));
}

#[test]
fn a_malicious_pattern_does_not_block() {
    let bodies = [
        "(a+)+$",
        "(a|aa)+$",
        "(a*)*b",
        "a{0,5000}",
        "(?=a)(a+)+$",
        r"(a+)+\1b",
        "((a{0,99}){0,99}){0,99}",
        r"(?:(?=a)a*)*b",
        "(.*)(.*)(.*)(.*)x",
        r"(?!b)(a|a)*$",
        "(?:a?){50}a{50}",
        r"(\w+\s?)+\1$",
    ];
    let texts = [
        "a".repeat(32 * 1024),
        "a b ".repeat(8 * 1024),
        "x".repeat(32 * 1024),
    ];

    for body in bodies {
        for text in &texts {
            let began = Instant::now();
            if let Some(pattern) = compile(body, "") {
                let _ = pattern.is_match(text);
            }
            // The limit allows for debug builds on a busy machine; catastrophic backtracking takes
            // hours.
            assert!(began.elapsed() < Duration::from_secs(5), "{body}");
        }
    }
}
