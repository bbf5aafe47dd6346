//! Tests of the order of lore in a prompt, as the lorebook tester shows it.

use serde_json::{Value, json};
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookSource};
use tavern::lorebook_files::entry;
use tavern::presets::complete_preset::PromptSlot;

use super::tests::{count, line, solo};
use crate::conversations::message::MessageRole;
use crate::prompt::context::{LoreInput, PromptContext};
use crate::prompt::lore_tester::lore_test;
use crate::prompt::lore_tester::lore_test::TestedLore;

/// Returns a lorebook whose entries are always active; each is named after its position.
fn lorebook(entries: &[(&str, Value)]) -> Lorebook {
    let entries = entries.iter().enumerate().map(|(n, (name, extensions))| {
        let (decorator, extensions) = match extensions {
            Value::String(decorator) => (format!("@@position {decorator}\n"), json!({})),
            other => (String::new(), other.clone()),
        };
        let content = format!("{decorator}Lore: {name}.");
        let entry =
            json!({"name": name, "constant": true, "content": content, "extensions": extensions});
        entry::read(&entry, n.to_string(), None)
    });
    Lorebook {
        key: "1".to_owned(),
        id: None,
        name: "Everywhere".to_owned(),
        source: LorebookSource::Space,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries: entries.collect(),
    }
}

fn lorebook_with_all_positions() -> Lorebook {
    lorebook(&[
        ("outlet", json!({"position": 7, "outlet_name": "x"})),
        ("after examples", json!({"position": 6})),
        ("before examples", json!({"position": 5})),
        ("depth 0", json!({"position": 4, "depth": 0})),
        ("depth 4", json!({"position": 4, "depth": 4})),
        (
            "depth 4, assistant",
            json!({"position": 4, "depth": 4, "role": 2}),
        ),
        (
            "depth 4, user",
            json!({"position": 4, "depth": 4, "role": 1}),
        ),
        ("depth 9", json!({"position": 4, "depth": 9})),
        ("note bottom", json!({"position": 3})),
        ("note top", json!({"position": 2})),
        ("after", json!({"position": 1})),
        ("scenario", json!("scenario")),
        ("personality", json!("personality")),
        ("before", json!({"position": 0})),
    ])
}

const DEFAULT_LORE_ORDER: [&str; 14] = [
    "before",
    "personality",
    "scenario",
    "after",
    "before examples",
    "after examples",
    "depth 9",
    "depth 4, assistant",
    "depth 4, user",
    "depth 4",
    "note top",
    "note bottom",
    "depth 0",
    "outlet",
];

/// Bob and Ada with a long history and this lorebook.
fn context(book: Lorebook) -> PromptContext {
    let history = (1..=12).map(|seq| line(seq, "Bob", MessageRole::User, "Rain."));
    PromptContext {
        history: history.collect(),
        lore: LoreInput {
            lorebooks: vec![book],
            ..LoreInput::default()
        },
        ..solo()
    }
}

fn names(tested: &TestedLore) -> Vec<&str> {
    let activated = tested.activated.iter();
    activated.map(|it| it.entry.name.as_str()).collect()
}

#[test]
fn without_a_conversation_the_order_is_that_of_the_default_preset() {
    let alone = lore_test::test_alone(lorebook_with_all_positions(), "Rain.");
    let in_prompt =
        lore_test::test_in_prompt(&context(lorebook_with_all_positions()), &count).unwrap();

    assert_eq!(names(&alone), DEFAULT_LORE_ORDER);
    assert_eq!(names(&in_prompt), DEFAULT_LORE_ORDER);
}

#[test]
fn in_a_conversation_the_order_is_that_of_its_preset() {
    let entries = [
        ("before", json!({"position": 0})),
        ("after", json!({"position": 1})),
    ];
    let mut context = context(lorebook(&entries));
    let order = &mut context.preset.order;
    let lore_before = order
        .iter()
        .position(|it| it.slot == Some(PromptSlot::LoreBefore));
    let moved = order.remove(lore_before.unwrap());
    order.push(moved);

    let tested = lore_test::test_in_prompt(&context, &count).unwrap();

    assert_eq!(names(&tested), ["after", "before"]);
}

#[test]
fn an_entry_without_text_is_listed_last() {
    let mut book = lorebook(&[
        ("blank", json!({"position": 0})),
        ("after", json!({"position": 1})),
    ]);
    book.entries[0].content.clear();

    let tested = lore_test::test_in_prompt(&context(book), &count).unwrap();

    assert_eq!(names(&tested), ["after", "blank"]);
}
