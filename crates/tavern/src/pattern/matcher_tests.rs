//! Tests of the limits of a search, and of what it remembers to need fewer steps.

use super::Matcher;
use crate::pattern::js_pattern::JsPattern;
use crate::pattern::pattern_text::PatternText;
use crate::pattern::search::StepLimitExceeded;

const MAX_STEPS: u64 = 2_000_000;

/// Returns whether the pattern matches, and the number of steps.
fn search(body: &str, text: &str) -> (Result<bool, StepLimitExceeded>, u64) {
    let pattern = JsPattern::compile(body, "").expect("valid");
    let mut steps_left = MAX_STEPS;
    let found = Matcher::default().find(&pattern, &PatternText::new(text), &mut steps_left);
    (found.map(|it| it.is_some()), MAX_STEPS - steps_left)
}

#[test]
fn catastrophic_patterns_end_at_the_step_limit() {
    let bodies = [
        "(a|aa)+$",
        "(?:(?:a|b|ab)*c?)*d",
        r"(a+)+\1b",
        "((a{0,99}){0,99}){0,99}b",
        "(?:a?){50}a{50}b",
        "(?=(?=(a|a)+b))",
    ];
    let text = "a".repeat(32 * 1024) + "x";

    for body in bodies {
        let (found, n_steps) = search(body, &text);
        assert_eq!(found, Err(StepLimitExceeded), "{body}");
        assert_eq!(n_steps, MAX_STEPS, "{body}");
    }
}

#[test]
fn a_search_in_a_long_text_needs_steps_in_proportion_to_it() {
    let line = "word ".repeat(6_000);
    let bodies = [
        "(?=.*sword)(?=.*shield)",
        "(?=.*word)(?=.*shield)",
        r"\bword\b.{0,200}\bqueen\b",
        r"\w.{0,200}x",
        r".*foo.*bar",
        r"[\s\S]*?foo",
        r"\bword\b[\s\S]{0,300}?\bqueen\b",
        r"\bword.{5,90}.{0,200}?\d",
        r"(?<=\bword.{0,200})\b.{0,200}queen",
        r"(?=a)(a+)+$",
        r"(w+)+[x]",
        r"(?<=\bword.{0,40})queen",
        r"\bword\b(?:\W+\w+){0,3}?\W+queen\b",
    ];

    for body in bodies {
        let (found, n_steps) = search(body, &line);
        assert_eq!(found, Ok(false), "{body}");
        assert!(n_steps < 60 * line.len() as u64, "{body}: {n_steps} steps");
    }
}

#[test]
fn the_same_search_needs_the_same_steps() {
    let text = "a king and the queen ".repeat(50);
    let mut matcher = Matcher::default();
    let pattern = JsPattern::compile(r"(\w+)\s(?!and)\1", "i").expect("valid");
    let text = PatternText::new(&text);

    let steps: Vec<u64> = (0..3)
        .map(|_| {
            let mut left = MAX_STEPS;
            let found = matcher.find(&pattern, &text, &mut left);
            assert_eq!(found, Ok(None));
            MAX_STEPS - left
        })
        .collect();

    assert!(steps.iter().all(|it| *it == steps[0]), "{steps:?}");
}

#[test]
fn a_search_with_a_step_too_few_is_aborted() {
    let (body, text) = (r"(?<!no )\bdragons?\b", "no dragon, one dragon");
    let (found, n_steps) = search(body, text);
    let pattern = JsPattern::compile(body, "").expect("valid");
    let find =
        |mut left: u64| Matcher::default().find(&pattern, &PatternText::new(text), &mut left);

    assert_eq!(found, Ok(true));
    assert_eq!(find(n_steps).map(|it| it.is_some()), Ok(true));
    assert_eq!(find(n_steps - 1), Err(StepLimitExceeded));
}
