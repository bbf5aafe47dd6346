//! Tests of the engine: keys, secondary keys, scanned texts, filters and insertion positions.

use base::prompt_role::PromptRole;
use serde_json::{Value, json};

use super::engine_fixture::{fixture, lorebook};
use crate::lorebook::engine_lorebook::{InsertionPosition, LorebookSource};
use crate::lorebook::scan_request::{LoreInsertionStrategy, ScanTrigger};

#[test]
fn keys_match_in_any_case_and_inside_words_unless_configured_otherwise() {
    let cases = [
        (json!({"keys": ["dragon"]}), "Two DRAGONS!", "key: dragon"),
        (
            json!({"keys": ["wolf", "dragon"]}),
            "a dragon",
            "key: dragon",
        ),
        (
            json!({"keys": ["Dragon"], "case_sensitive": true}),
            "a dragon",
            "not: no_key",
        ),
        (
            json!({"keys": ["dragon"], "extensions": {"match_whole_words": true}}),
            "dragons",
            "not: no_key",
        ),
        (
            json!({"keys": ["dragon"], "extensions": {"match_whole_words": true}}),
            "the dragon.",
            "key: dragon",
        ),
        (json!({"keys": "wolf, dragon"}), "a wolf", "key: wolf"),
        (json!({"keys": [" ", ""]}), "anything", "not: no_keys"),
        (json!({"keys": ["{{char}}"]}), "I asked ada.", "key: Ada"),
        (json!({"keys": ["Ben:"]}), "hello", "key: Ben:"),
        (
            json!({"keys": ["dragon"], "enabled": false}),
            "a dragon",
            "not: disabled",
        ),
        (json!({"keys": [], "constant": true}), "", "constant"),
    ];

    for (entry, line, expected) in cases {
        assert_eq!(
            fixture(&[line], json!([entry])).reason(),
            expected,
            "{entry} in {line:?}"
        );
    }
}

#[test]
fn speaker_names_are_scanned_unless_the_settings_disable_it() {
    let mut scan = fixture(&["hello"], json!([{"keys": ["ben"]}]));
    assert_eq!(scan.reason(), "key: ben");

    scan.settings.include_names = false;

    assert_eq!(scan.reason(), "not: no_key");
}

#[test]
fn whole_words_have_unicode_boundaries_or_those_of_silly_tavern() {
    // Key, message, found with Unicode boundaries, found with ASCII boundaries.
    let cases = [
        ("猫", "猫がいる", true, true),
        ("lan", "un élan", false, true),
        ("case", "snake_case", false, false),
        ("c++", "c++ rules", true, true),
        ("magical forest", "a magical forestry", false, true),
        ("кот", "который", false, true),
        ("кот", "это кот.", true, true),
        ("リン", "リンゴ", false, true),
    ];

    for (key, line, unicode, ascii) in cases {
        let mut scan = fixture(&[line], json!([{"keys": [key], "constant": false}]));
        scan.settings.whole_words = true;
        assert_eq!(
            scan.run().activated.len() == 1,
            unicode,
            "{key} in {line}, Unicode"
        );
        scan.settings.ascii_words = true;
        assert_eq!(
            scan.run().activated.len() == 1,
            ascii,
            "{key} in {line}, ASCII"
        );
    }
}

#[test]
fn secondary_keys_support_all_four_logics() {
    let lines = ["dragon", "dragon fire", "dragon fire gold"];
    let cases = [
        (0, [false, true, true]),
        (1, [true, true, false]),
        (2, [true, false, false]),
        (3, [false, false, true]),
    ];

    for (logic, expected) in cases {
        let entry = |selective: Value| {
            json!([{"keys": ["dragon"], "secondary_keys": ["fire", "gold"], "selective": selective,
                "extensions": {"selectiveLogic": logic}}])
        };
        let is_activated =
            lines.map(|it| fixture(&[it], entry(json!(true))).run().activated.len() == 1);
        let ignored =
            lines.map(|it| fixture(&[it], entry(json!(false))).run().activated.len() == 1);
        assert_eq!(is_activated, expected, "logic {logic}");
        assert_eq!(ignored, [true; 3], "not selective");
    }
    let none = json!([{"keys": ["dragon"], "secondary_keys": ["fire"]}]);
    assert_eq!(fixture(&["dragon"], none).reason(), "not: secondary_keys");
}

#[test]
fn scan_depth_comes_from_the_entry_then_the_lorebook_then_the_settings() {
    let lines = ["one", "two", "three dragon", "four wolf"];
    let is_activated_at = |entry: Value, of_book: Option<usize>, of_space: usize| {
        let mut scan = fixture(&lines, json!([entry]));
        scan.lorebooks[0].scan_depth = of_book;
        scan.settings.scan_depth = of_space;
        scan.run().activated.len() == 1
    };

    assert!(!is_activated_at(json!({"keys": ["dragon"]}), None, 2));
    assert!(is_activated_at(json!({"keys": ["dragon"]}), None, 3));
    assert!(is_activated_at(json!({"keys": ["dragon"]}), Some(3), 1));
    assert!(is_activated_at(
        json!({"keys": ["wolf"], "extensions": {"scan_depth": 4}}),
        Some(1),
        1
    ));
    assert!(!is_activated_at(
        json!({"keys": ["one"], "extensions": {"scan_depth": 0}}),
        None,
        4
    ));
    assert!(is_activated_at(
        json!({"keys": ["wolf"], "content": "@@scan_depth 4\nText"}),
        None,
        1
    ));
}

#[test]
fn an_entry_matches_the_texts_it_requests_and_the_extra_texts() {
    let mut by_description = fixture(
        &["hello"],
        json!([{"keys": ["sorcerer"], "extensions": {"match_character_description": true}}]),
    );
    by_description.texts.description = "A Sorcerer.";
    let mut not_requested = fixture(&["hello"], json!([{"keys": ["sorcerer"]}]));
    not_requested.texts.description = "A Sorcerer.";
    let mut extra = fixture(&["hello"], json!([{"keys": ["storm"]}]));
    extra.extras = vec!["A storm comes."];

    assert_eq!(by_description.reason(), "key: sorcerer");
    assert_eq!(not_requested.reason(), "not: no_key");
    assert_eq!(extra.reason(), "key: storm");
}

#[test]
fn an_entry_applies_only_to_its_speakers_and_triggers() {
    let filtered =
        |filter: Value| json!([{"constant": true, "extensions": {"character_filter": filter}}]);
    let only = filtered(json!({"isExclude": false, "names": ["ada"], "tags": []}));
    let not = filtered(json!({"isExclude": true, "names": ["Ada"], "tags": []}));
    let tagged = filtered(json!({"isExclude": false, "names": [], "tags": ["Math"]}));

    assert_eq!(fixture(&[], only.clone()).reason(), "constant");
    assert_eq!(fixture(&[], not).reason(), "not: character_filter");
    assert_eq!(
        fixture(&[], tagged.clone()).reason(),
        "not: character_filter"
    );
    let mut other = fixture(&[], only);
    other.names = vec!["Bo"];
    assert_eq!(other.reason(), "not: character_filter");
    let mut with_tag = fixture(&[], tagged);
    with_tag.tags = vec!["math"];
    assert_eq!(with_tag.reason(), "constant");

    let mut turn = fixture(
        &[],
        json!([{"constant": true, "extensions": {"triggers": ["swipe", "quiet"]}}]),
    );
    assert_eq!(turn.reason(), "not: trigger");
    turn.trigger = ScanTrigger::Swipe;
    assert_eq!(turn.reason(), "constant");
}

#[test]
fn every_position_of_silly_tavern_is_supported() {
    let place = |extensions: Value| {
        let scan = fixture(&[], json!([{"constant": true, "extensions": extensions}]));
        scan.run().activated[0].position.clone()
    };

    let numbered: Vec<InsertionPosition> = (0..4)
        .chain(5..7)
        .map(|n| place(json!({"position": n})))
        .collect();
    assert_eq!(
        numbered,
        [
            InsertionPosition::BeforeCharacter,
            InsertionPosition::AfterCharacter,
            InsertionPosition::NoteTop,
            InsertionPosition::NoteBottom,
            InsertionPosition::BeforeExamples,
            InsertionPosition::AfterExamples,
        ]
    );
    assert_eq!(
        place(json!({"position": 4, "depth": 2, "role": 1})),
        InsertionPosition::AtDepth {
            depth: 2,
            role: PromptRole::User
        }
    );
    assert_eq!(
        place(json!({"position": 4})),
        InsertionPosition::AtDepth {
            depth: 4,
            role: PromptRole::System
        }
    );
    assert_eq!(
        place(json!({"position": 7, "outlet_name": "sky"})),
        InsertionPosition::Outlet("sky".into())
    );
    let words = json!([{"constant": true, "position": "before_char"}]);
    assert_eq!(
        fixture(&[], words).run().activated[0].position,
        InsertionPosition::BeforeCharacter
    );
}

#[test]
fn decorators_position_an_entry_and_decide_when_it_activates() {
    let mut scan = fixture(
        &["a dragon", "b", "c"],
        json!([
            {"keys": ["dragon"], "content": "@@depth 2\n@@role user\nAt depth"},
            {"keys": ["dragon"], "content": "@@reverse_depth 1\nFrom above"},
            {"keys": ["dragon"], "content": "@@position personality\nBeside"},
            {"keys": ["nothing"], "content": "@@activate\nAlways"},
            {"constant": true, "content": "@@dont_activate\nNever"},
            {"keys": ["dragon"], "content": "@@additional_keys gold\nWith gold"},
            {"keys": ["dragon"], "content": "@@exclude_keys b\nWithout b"},
            {"keys": ["dragon"], "content": "@@activate_only_after 3\nLate"},
            {"keys": ["dragon"], "content": "@@activate_only_every 2\nEven"},
        ]),
    );
    scan.n_replies = 2;
    let outcome = scan.run();

    let place = |text: &str| {
        outcome
            .activated
            .iter()
            .find(|it| it.text == text)
            .map(|it| it.position.clone())
    };
    assert_eq!(
        place("At depth"),
        Some(InsertionPosition::AtDepth {
            depth: 2,
            role: PromptRole::User
        })
    );
    assert_eq!(
        place("From above"),
        Some(InsertionPosition::AtDepth {
            depth: 2,
            role: PromptRole::System
        })
    );
    assert_eq!(place("Beside"), Some(InsertionPosition::Personality));
    assert!(place("Always").is_some() && place("Even").is_some());
    let why: Vec<String> = outcome
        .skipped
        .iter()
        .map(|it| it.reason.to_string())
        .collect();
    assert_eq!(
        why,
        [
            "decorator: @@dont_activate",
            "secondary_keys",
            "excluded: b",
            "replies"
        ]
    );
}

#[test]
fn entries_are_sorted_by_order_and_their_macros_are_expanded() {
    let scan = fixture(
        &["dragon"],
        json!([
            {"keys": ["dragon"], "content": "last", "insertion_order": 200},
            {"keys": ["dragon"], "content": "first {{char}}", "insertion_order": 5},
            {"keys": ["dragon"], "content": "middle"},
        ]),
    );

    assert_eq!(scan.texts(), ["first Ada", "middle", "last"]);
}

#[test]
fn the_smallest_and_the_largest_order_are_sorted_correctly() {
    let scan = fixture(
        &["dragon"],
        json!([
            {"keys": ["dragon"], "content": "last", "insertion_order": i64::MAX, "extensions": {"group": "g", "group_override": true}},
            {"keys": ["dragon"], "content": "first", "insertion_order": i64::MIN},
            {"keys": ["dragon"], "content": "out", "insertion_order": i64::MIN, "extensions": {"group": "g", "group_override": true}},
        ]),
    );

    assert_eq!(scan.texts(), ["first", "last"]);
}

#[test]
fn lorebooks_are_scanned_by_precedence_and_only_once() {
    let one = |name: &str| json!([{"constant": true, "content": name}]);
    let mut scan = fixture(&[], json!([]));
    scan.lorebooks = vec![
        lorebook("c", LorebookSource::Conversation, one("conversation")),
        lorebook("p", LorebookSource::Persona, one("persona")),
        lorebook("s", LorebookSource::Space, one("space")),
        lorebook("k", LorebookSource::Character, one("character")),
        lorebook("s", LorebookSource::Character, one("again")),
    ];

    // Of equal orders, the entry of the first lorebook is nearest to the end.
    assert_eq!(
        scan.texts(),
        ["space", "character", "persona", "conversation"]
    );
    scan.settings.insertion_strategy = LoreInsertionStrategy::GlobalLoreFirst;
    assert_eq!(
        scan.texts(),
        ["character", "space", "persona", "conversation"]
    );
}
