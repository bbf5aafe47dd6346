//! Tests of sticky, cooldown and delay over timelines that grow, repeat and shrink.

use serde_json::{Value, json};

use super::engine_fixture::fixture;

/// Scans a conversation at each of these lengths; returns `length:state`. Each message has the key.
fn play(extensions: Value, lengths: &[i64]) -> String {
    let mut scan = fixture(
        &["the dragon"],
        json!([{"keys": ["dragon"], "content": "Fire.", "extensions": extensions}]),
    );
    let mut states = Vec::new();
    for n_messages in lengths {
        scan.n_messages = *n_messages;
        let state = match scan.reason().split(':').next().unwrap_or_default() {
            "key" => "hit",
            "sticky" => "sticky",
            "kept_after_match" => "kept",
            _ if scan.reason() == "not: cooldown" => "cool",
            _ if scan.reason().starts_with("not: delay") => "delay",
            _ => "other",
        };
        states.push(format!("{n_messages}:{state}"));
        // Effects are stored as JSON.
        let kept = serde_json::to_string(&scan.run().timed_effects).unwrap();
        scan.timed_effects = serde_json::from_str(&kept).unwrap();
    }
    states.join(" ")
}

#[test]
fn effects_last_for_the_configured_number_of_messages() {
    let all = json!({"sticky": 3, "cooldown": 2, "delay": 2});
    assert_eq!(
        play(all.clone(), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        "0:delay 1:delay 2:hit 3:sticky 4:sticky 5:cool 6:cool 7:hit 8:sticky 9:sticky 10:cool"
    );
    assert_eq!(
        play(json!({"sticky": 3}), &[1, 2, 3, 4]),
        "1:hit 2:sticky 3:sticky 4:hit"
    );
    assert_eq!(
        play(json!({"cooldown": 2}), &[1, 2, 3]),
        "1:hit 2:cool 3:hit"
    );
    assert_eq!(play(all, &[2, 4, 6, 8]), "2:hit 4:sticky 6:cool 8:hit");
}

#[test]
fn a_repeated_scan_starts_from_the_same_effects() {
    assert_eq!(
        play(
            json!({"sticky": 3, "cooldown": 2}),
            &[3, 3, 4, 5, 5, 6, 7, 8]
        ),
        "3:hit 3:hit 4:sticky 5:sticky 5:sticky 6:cool 7:cool 8:hit"
    );
}

#[test]
fn effects_of_a_deleted_message_are_removed() {
    assert_eq!(
        play(json!({"sticky": 2}), &[5, 6, 4, 5, 6]),
        "5:hit 6:sticky 4:hit 5:sticky 6:hit"
    );
}

#[test]
fn a_sticky_entry_needs_neither_key_nor_probability() {
    let entries = json!([{"keys": ["dragon"], "content": "Fire.",
        "extensions": {"sticky": 3, "probability": 100}}]);
    let mut first = fixture(&["the dragon"], entries.clone());
    first.n_messages = 1;
    let mut later = fixture(&["nothing of the kind"], entries);
    later.n_messages = 2;
    later.timed_effects = first.run().timed_effects;
    later.lorebooks[0].entries[0].probability = 0.0;

    assert_eq!(later.reason(), "sticky");
}

#[test]
fn an_edited_entry_loses_its_effects() {
    let mut scan = fixture(
        &["nothing"],
        json!([{"keys": ["dragon"], "content": "Fire.", "extensions": {"sticky": 9}}]),
    );
    scan.messages = vec!["dragon"];
    scan.timed_effects = scan.run().timed_effects;
    scan.messages = vec!["nothing"];
    scan.n_messages = 3;
    assert_eq!(scan.reason(), "sticky");

    scan.lorebooks[0].entries[0].content = "Ice.".into();

    assert_eq!(scan.reason(), "not: no_key");
}

#[test]
fn effects_of_an_inactive_lorebook_continue() {
    let mut scan = fixture(
        &["dragon"],
        json!([{"keys": ["dragon"], "content": "Fire.", "extensions": {"sticky": 5}}]),
    );
    let books = scan.lorebooks.clone();
    let kept = scan.run().timed_effects;
    scan.lorebooks.clear();
    scan.n_messages = 3;
    scan.timed_effects = kept;
    scan.timed_effects = scan.run().timed_effects;
    scan.lorebooks = books;
    scan.messages = vec!["nothing"];
    scan.n_messages = 4;

    assert_eq!(scan.reason(), "sticky");
}

#[test]
fn an_entry_may_stay_active_forever_or_activate_only_once() {
    let mut kept = fixture(
        &["dragon"],
        json!([{"keys": ["dragon"], "content": "@@keep_activate_after_match\nFire."}]),
    );
    let mut once = fixture(
        &["dragon"],
        json!([{"keys": ["dragon"], "content": "@@dont_activate_after_match\nFire."}]),
    );

    kept.timed_effects = kept.run().timed_effects;
    kept.messages = vec!["nothing"];
    kept.n_messages = 900;
    once.timed_effects = once.run().timed_effects;
    assert_eq!(once.reason(), "key: dragon", "the same scan again");
    once.n_messages = 2;

    assert_eq!(kept.reason(), "kept_after_match");
    assert_eq!(once.reason(), "not: done_after_match");
}
