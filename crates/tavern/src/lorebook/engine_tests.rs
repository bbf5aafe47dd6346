//! Tests of the engine: keys, secondary keys, scanned texts, filters and insertion positions.

use base::prompt_role::PromptRole;
use serde_json::{Value, json};

use super::engine_fixture::{fixture, lorebook};
use crate::lorebook::engine_lorebook::{InsertionPosition, LorebookSource};
use crate::lorebook::scan_request::{LoreInsertionStrategy, ScanTrigger};

#[test]
fn a_key_is_found_whatever_its_case_and_inside_words_unless_it_says_otherwise() {
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
fn names_are_looked_at_unless_the_settings_say_otherwise() {
    let mut stage = fixture(&["hello"], json!([{"keys": ["ben"]}]));
    assert_eq!(stage.reason(), "key: ben");

    stage.settings.include_names = false;

    assert_eq!(stage.reason(), "not: no_key");
}

#[test]
fn whole_words_end_where_the_script_ends_them_or_where_silly_tavern_does() {
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
        let mut stage = fixture(&[line], json!([{"keys": [key], "constant": false}]));
        stage.settings.whole_words = true;
        assert_eq!(
            stage.run().activated.len() == 1,
            unicode,
            "{key} in {line}, Unicode"
        );
        stage.settings.ascii_words = true;
        assert_eq!(
            stage.run().activated.len() == 1,
            ascii,
            "{key} in {line}, ASCII"
        );
    }
}

#[test]
fn secondary_keys_count_in_four_ways() {
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
        let fires = lines.map(|it| fixture(&[it], entry(json!(true))).run().activated.len() == 1);
        let ignored =
            lines.map(|it| fixture(&[it], entry(json!(false))).run().activated.len() == 1);
        assert_eq!(fires, expected, "logic {logic}");
        assert_eq!(ignored, [true; 3], "not selective");
    }
    let none = json!([{"keys": ["dragon"], "secondary_keys": ["fire"]}]);
    assert_eq!(fixture(&["dragon"], none).reason(), "not: secondary_keys");
}

#[test]
fn scan_depth_comes_from_the_entry_then_the_lorebook_then_the_settings() {
    let lines = ["one", "two", "three dragon", "four wolf"];
    let sees = |entry: Value, of_book: Option<usize>, of_space: usize| {
        let mut stage = fixture(&lines, json!([entry]));
        stage.lorebooks[0].scan_depth = of_book;
        stage.settings.scan_depth = of_space;
        stage.run().activated.len() == 1
    };

    assert!(!sees(json!({"keys": ["dragon"]}), None, 2));
    assert!(sees(json!({"keys": ["dragon"]}), None, 3));
    assert!(sees(json!({"keys": ["dragon"]}), Some(3), 1));
    assert!(sees(
        json!({"keys": ["wolf"], "extensions": {"scan_depth": 4}}),
        Some(1),
        1
    ));
    assert!(!sees(
        json!({"keys": ["one"], "extensions": {"scan_depth": 0}}),
        None,
        4
    ));
    assert!(sees(
        json!({"keys": ["wolf"], "content": "@@scan_depth 4\nText"}),
        None,
        1
    ));
}

#[test]
fn an_entry_sees_the_texts_it_asks_for_and_what_all_see() {
    let mut by_description = fixture(
        &["hello"],
        json!([{"keys": ["sorcerer"], "extensions": {"match_character_description": true}}]),
    );
    by_description.texts.description = "A Sorcerer.";
    let mut unasked = fixture(&["hello"], json!([{"keys": ["sorcerer"]}]));
    unasked.texts.description = "A Sorcerer.";
    let mut extra = fixture(&["hello"], json!([{"keys": ["storm"]}]));
    extra.extras = vec!["A storm comes."];

    assert_eq!(by_description.reason(), "key: sorcerer");
    assert_eq!(unasked.reason(), "not: no_key");
    assert_eq!(extra.reason(), "key: storm");
}

#[test]
fn an_entry_is_for_the_speakers_and_triggers_it_names() {
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
        let stage = fixture(&[], json!([{"constant": true, "extensions": extensions}]));
        stage.run().activated[0].position.clone()
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
    let mut stage = fixture(
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
    stage.n_replies = 2;
    let outcome = stage.run();

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
fn a_higher_order_is_nearer_to_the_end_and_macros_run_in_what_enters() {
    let stage = fixture(
        &["dragon"],
        json!([
            {"keys": ["dragon"], "content": "last", "insertion_order": 200},
            {"keys": ["dragon"], "content": "first {{char}}", "insertion_order": 5},
            {"keys": ["dragon"], "content": "middle"},
        ]),
    );

    assert_eq!(stage.texts(), ["first Ada", "middle", "last"]);
}

#[test]
fn orders_at_the_ends_of_their_range_are_orders_too() {
    let stage = fixture(
        &["dragon"],
        json!([
            {"keys": ["dragon"], "content": "last", "insertion_order": i64::MAX, "extensions": {"group": "g", "group_override": true}},
            {"keys": ["dragon"], "content": "first", "insertion_order": i64::MIN},
            {"keys": ["dragon"], "content": "out", "insertion_order": i64::MIN, "extensions": {"group": "g", "group_override": true}},
        ]),
    );

    assert_eq!(stage.texts(), ["first", "last"]);
}

#[test]
fn lorebooks_are_scanned_by_precedence_and_only_once() {
    let one = |name: &str| json!([{"constant": true, "content": name}]);
    let mut stage = fixture(&[], json!([]));
    stage.lorebooks = vec![
        lorebook("c", LorebookSource::Conversation, one("conversation")),
        lorebook("p", LorebookSource::Persona, one("persona")),
        lorebook("s", LorebookSource::Space, one("space")),
        lorebook("k", LorebookSource::Character, one("character")),
        lorebook("s", LorebookSource::Character, one("again")),
    ];

    // Of equal orders, the entry of the first lorebook is nearest to the end.
    assert_eq!(
        stage.texts(),
        ["space", "character", "persona", "conversation"]
    );
    stage.settings.insertion_strategy = LoreInsertionStrategy::GlobalLoreFirst;
    assert_eq!(
        stage.texts(),
        ["character", "space", "persona", "conversation"]
    );
}
