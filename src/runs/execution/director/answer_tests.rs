//! Tests of reading the director's answer.

use base::ids::MembershipId;

use super::read;
use crate::speakers::selection::Candidate;

fn candidates() -> Vec<Candidate> {
    let candidate = |id, names: &[&str]| Candidate {
        id: MembershipId(id),
        is_person: false,
        position: id,
        names: names.iter().map(|it| (*it).to_owned()).collect(),
        talkativeness: 0.5,
        is_schedulable: true,
    };
    vec![
        candidate(2, &["Ada", "Countess"]),
        candidate(3, &["Bob"]),
        candidate(4, &["Countess", "Élodie"]),
    ]
}

/// Returns the ids and the reason of an answer.
fn found(text: &str) -> Option<(Vec<i64>, String)> {
    let answer = read(text, &candidates())?;
    let ids = answer.speakers.into_iter().map(|it| it.0).collect();
    Some((ids, answer.reason))
}

#[test]
fn the_named_characters_speak_in_their_order() {
    let answer = r#"{"speakers": ["Bob", "Ada"], "reason": "Bob was asked."}"#;

    assert_eq!(
        found(answer),
        Some((vec![3, 2], "Bob was asked.".to_owned()))
    );
}

#[test]
fn unknown_and_repeated_names_are_dropped() {
    let answer = r#"{"speakers": ["Zoe", "Bob", "bob", 7, null, "Ada"], "reason": ""}"#;

    assert_eq!(found(answer), Some((vec![3, 2], String::new())));
}

#[test]
fn names_are_compared_folded_and_a_name_comes_before_an_alias() {
    let ids = |text: &str| found(text).map(|it| it.0);

    assert_eq!(ids(r#"{"speakers": [" ADA "]}"#), Some(vec![2]));
    assert_eq!(ids(r#"{"speakers": ["Countess"]}"#), Some(vec![4]));
    assert_eq!(ids("{\"speakers\": [\"E\u{301}lodie\"]}"), Some(vec![4]));
}

#[test]
fn one_name_may_be_a_text_and_the_object_may_be_fenced() {
    let answer = "```json\n{\"speakers\": \"Ada\", \"reason\": \"Why not.\"}\n```";

    assert_eq!(found(answer), Some((vec![2], "Why not.".to_owned())));
}

#[test]
fn an_answer_without_an_object_names_whom_its_text_mentions() {
    let answer = "I think Bob should speak, then Ada.";

    assert_eq!(found(answer), Some((vec![3, 2], answer.to_owned())));
}

#[test]
fn an_answer_without_a_usable_name_is_none() {
    for text in [
        "",
        "Nobody.",
        r#"{"speakers": [], "reason": "Bob is silent."}"#,
        r#"{"speakers": ["Zoe"]}"#,
        r#"{"reason": "Bob"}"#,
        r#"{"speakers": [""]}"#,
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}
