//! Tests of parsing lines of chat files, and of what is repaired.

use serde_json::json;

use super::{ChatLine, ChatLineError, read};
use crate::chats::message::{ChatMessage, ChatRole};

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/fixtures/chats/", $name))
    };
}

fn messages(file: &[u8]) -> Vec<ChatMessage> {
    let lines = file.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    let read = lines.map(|it| read(it, true));
    read.filter_map(|it| match it.unwrap() {
        ChatLine::Message(message) => Some(*message),
        ChatLine::Header(_) => None,
    })
    .collect()
}

fn texts(message: &ChatMessage) -> (Vec<&str>, usize) {
    let texts = message.texts.iter().map(|it| it.content.as_str());
    (texts.collect(), message.active)
}

#[test]
fn a_message_has_all_its_swipes_and_their_metadata() {
    let all = messages(fixture!("solo.jsonl"));

    assert_eq!(all.len(), 3);
    let versions = ["Hello there.", "Good evening.", "Ah, a guest."];
    assert_eq!(texts(&all[0]), (versions.to_vec(), 1));
    assert_eq!(
        all[0].texts[0].metadata["imported"]["extra"]["model"],
        "first"
    );
    assert_eq!(all[0].texts[2].metadata, json!({}));
    assert_eq!(
        (all[1].role, all[1].name.as_deref()),
        (ChatRole::User, Some("Kai"))
    );
    assert_eq!(
        all[2].texts[0].metadata["imported"]["gen_started"],
        "2024-06-03T13:03:10.000Z"
    );
    assert!(all.iter().all(|it| it.repairs.is_empty()));
}

#[test]
fn a_header_has_names_note_and_scenario() {
    let first = fixture!("group.jsonl")
        .split(|it| *it == b'\n')
        .next()
        .unwrap();

    let Ok(ChatLine::Header(header)) = read(first, true) else {
        panic!("no header");
    };

    assert_eq!((header.user_name, header.character_name), (None, None));
    assert_eq!(header.settings["author_note"]["text"], "It rains.");
    assert_eq!(header.settings["scenario_override"], "A harbour at night.");
    assert_eq!(read(first, false).unwrap_err(), ChatLineError::NoMessage);
}

#[test]
fn the_displayed_text_wins_over_the_swipe_number() {
    let all = messages(fixture!("swipes_odd.jsonl"));

    assert_eq!(texts(&all[0]), (vec!["Other.", "Shown."], 1));
    let edited = ["Before the edit.", "Another.", "Edited since."];
    assert_eq!(texts(&all[1]), (edited.to_vec(), 2));
    assert_eq!(texts(&all[2]), (vec!["Alone."], 0));
    assert_eq!(texts(&all[3]), (vec!["Gaps."], 0));
    assert_eq!(texts(&all[4]), (vec!["Left.", "Chosen."], 1));
    assert_eq!(texts(&all[5]), (vec!["Minus.", "Plus."], 0));
    let repaired: Vec<bool> = all.iter().map(|it| !it.repairs.is_empty()).collect();
    assert_eq!(repaired, [true, true, false, false, true, true]);
}

#[test]
fn nested_texts_of_other_frontends_are_found() {
    let all = messages(fixture!("chub_nested.jsonl"));

    let both = ["The first one.", "The second one."];
    assert_eq!(texts(&all[0]), (both.to_vec(), 1));
    assert_eq!(texts(&all[1]), (vec!["Only one."], 0));
    assert_eq!(texts(&all[2]), (vec!["Wrapped.", "Also wrapped."], 0));
}

#[test]
fn narrators_are_imported_and_hidden_messages_stay_hidden() {
    let all = messages(fixture!("system.jsonl"));

    let read: Vec<_> = all.iter().map(|it| (it.role, it.is_excluded)).collect();
    assert_eq!(
        read,
        [
            (ChatRole::System, false),
            (ChatRole::Assistant, true),
            (ChatRole::User, true),
            (ChatRole::Assistant, false),
        ]
    );
}

#[test]
fn a_narrator_marker_is_not_kept_as_metadata() {
    let line = json!({
        "name": "Ada", "mes": "Rain.", "swipes": ["Sun.", "Rain."], "swipe_id": 1,
        "swipe_info": [{ "extra": { "type": "narrator", "model": "m" } }],
        "extra": { "type": "narrator" },
    });

    let all = messages(line.to_string().as_bytes());

    let notes: Vec<_> = all[0].texts.iter().map(|it| &it.metadata).collect();
    let of_the_first = json!({ "imported": { "extra": { "model": "m" } } });
    assert_eq!(notes, [&of_the_first, &json!({})]);
    assert_eq!(all[0].role, ChatRole::System);
}

#[test]
fn reasoning_is_kept_with_its_text() {
    let all = messages(fixture!("reasoning.jsonl"));

    let thoughts: Vec<_> = all[0]
        .texts
        .iter()
        .map(|it| &it.metadata["reasoning"])
        .collect();
    assert_eq!(thoughts, ["Should I? I should.", "Better not."]);
}

#[test]
fn half_an_emoji_is_replaced_by_one_character() {
    let all = messages(fixture!("halves.jsonl"));

    assert_eq!(
        all[0].texts[0].content,
        "Cut \u{fffd} here, whole 😀 there, \\ud83d as text."
    );
    assert_eq!(all[1].texts[0].content, "A nul inside.");
}

#[test]
fn an_invalid_line_is_reported_with_its_reason() {
    for (line, why) in [
        ("{\"mes\":\"cut in the mid", ChatLineError::Broken),
        ("[1,2]", ChatLineError::Broken),
        ("null", ChatLineError::Broken),
        ("{\"name\":\"Ada\"}", ChatLineError::NoMessage),
        ("{\"mes\":\" \\n\"}", ChatLineError::Blank),
        ("{\"mes\":null,\"swipes\":[]}", ChatLineError::Blank),
        ("{\"mes\":{\"a\":1},\"swipes\":\"x\"}", ChatLineError::Blank),
    ] {
        assert_eq!(read(line.as_bytes(), false).unwrap_err(), why, "{line}");
    }
    let deep = format!("{{\"mes\":{}", "[".repeat(100_000));
    assert_eq!(
        read(deep.as_bytes(), false).unwrap_err(),
        ChatLineError::Broken
    );
}

#[test]
fn a_long_text_is_cut_and_swipes_are_limited() {
    let swipes = vec!["again"; 1_000];
    let line = json!({"name": "A", "mes": "é".repeat(40_000), "swipes": swipes}).to_string();

    let Ok(ChatLine::Message(message)) = read(line.as_bytes(), false) else {
        panic!("no message");
    };

    assert_eq!(message.texts.len(), 201);
    assert_eq!(message.texts[message.active].content.len(), 64 * 1024);
    assert!(message.repairs.len() >= 2);
}

#[test]
fn a_name_is_cleaned_for_display() {
    for (name, shown) in [
        (json!("  Ada\u{202e}\n Lovelace "), Some("Ada Lovelace")),
        (json!(""), None),
        (json!(5), None),
    ] {
        let line = json!({"name": name, "mes": "Hi."}).to_string();
        let Ok(ChatLine::Message(message)) = read(line.as_bytes(), false) else {
            panic!("no message");
        };
        assert_eq!(message.name.as_deref(), shown);
    }
}
