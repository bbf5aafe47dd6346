//! Tests of what keeps the beginning of a prompt equal for a prompt cache: the layout of the preset, the
//! main prompt of groups, and the warnings about entries that change with every turn.

use base::ids::MembershipId;
use serde_json::{Value, json};
use tavern::instruct::embedded;
use tavern::instruct::text_templates::TextTemplates;
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookSource};
use tavern::lorebook_files::entry;
use tavern::presets::cache_layout::CacheLayout;
use tavern::presets::complete_preset::{
    DEFAULT_DEPTH, DEFAULT_ORDER, PresetEntry, PromptPosition, PromptSlot,
};

use super::tests::{count, line, member, solo, written};
use super::{BuiltPrompt, build};
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::BlockKind;
use crate::prompt::context::{LoreInput, PromptContext};
use crate::prompt::text_completion::templates;
use crate::spaces::space::CardHandlingMode;

fn built(context: &PromptContext) -> BuiltPrompt {
    build(context, &count).expect("the prompt fits")
}

/// Bob and Ada after six messages. At each of the four positions around the cards there is a World Info entry
/// that a key activates, and there is one that is Constant.
fn chat_with_lore(layout: CacheLayout) -> PromptContext {
    let mut context = solo();
    context.preset.cache_layout = layout;
    context.history = (1..=6)
        .map(|seq| match seq % 2 {
            1 => line(
                seq,
                "Ada",
                MessageRole::Assistant,
                &format!("Message {seq}."),
            ),
            _ => line(seq, "Bob", MessageRole::User, &format!("Message {seq}.")),
        })
        .collect();
    let found = |text: &str, position: i64, order: i64| {
        json!({"keys": ["message"], "content": text, "insertion_order": order,
            "extensions": {"position": position}})
    };
    let constant = json!({"keys": [], "constant": true, "content": "A constant.",
        "extensions": {"position": 0}});
    let entries = [
        found("After the examples.", 6, 4),
        found("Before the character.", 0, 1),
        found("Before the examples.", 5, 3),
        found("After the character.", 1, 2),
        constant,
    ];
    context.lore = LoreInput {
        lorebooks: vec![lorebook(&entries)],
        ..LoreInput::default()
    };
    context
}

fn lorebook(entries: &[Value]) -> Lorebook {
    let entries = entries.iter().enumerate();
    Lorebook {
        key: "book".into(),
        id: None,
        name: "Places".into(),
        source: LorebookSource::Space,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries: entries
            .map(|(n, it)| entry::read(it, n.to_string(), None))
            .collect(),
    }
}

/// Returns the texts of the lore, and how many messages follow each.
fn lore_depths(prompt: &BuiltPrompt) -> Vec<(&str, usize)> {
    let blocks = prompt.blocks.iter().enumerate();
    let lore = blocks.filter(|(_, it)| it.kind == BlockKind::Lore);
    let depth = |at: usize| {
        let after = prompt.blocks[at..].iter();
        after.filter(|it| it.kind == BlockKind::History).count()
    };
    lore.map(|(at, it)| (it.text.as_str(), depth(at))).collect()
}

#[test]
fn lore_stays_at_its_positions_as_listed() {
    let prompt = built(&chat_with_lore(CacheLayout::AsListed));

    assert_eq!(
        lore_depths(&prompt),
        [
            ("Before the character.", 6),
            ("A constant.", 6),
            ("After the character.", 6),
            ("Before the examples.", 6),
            ("After the examples.", 6),
        ]
    );
}

#[test]
fn lore_that_is_not_constant_is_inserted_before_the_last_four_messages_with_stable_first() {
    let prompt = built(&chat_with_lore(CacheLayout::StableFirst));

    assert_eq!(
        lore_depths(&prompt),
        [
            ("A constant.", 6),
            ("Before the character.", 4),
            ("After the character.", 4),
            ("Before the examples.", 4),
            ("After the examples.", 4),
        ]
    );
    let message = prompt
        .messages
        .iter()
        .find(|it| it.content.contains("Before the character."));
    assert_eq!(
        message.expect("a system message").content,
        "Before the character.\nAfter the character.\nBefore the examples.\nAfter the examples."
    );
}

#[test]
fn other_positions_of_lore_are_kept_with_stable_first() {
    let mut context = chat_with_lore(CacheLayout::StableFirst);
    let at = |position: i64| {
        json!({"keys": ["message"], "content": format!("At {position}."),
            "extensions": {"position": position, "depth": 1, "role": 0}})
    };
    context.lore.lorebooks = vec![lorebook(&[at(2), at(3), at(4)])];

    let late = built(&context);
    context.preset.cache_layout = CacheLayout::AsListed;

    assert_eq!(lore_depths(&late), lore_depths(&built(&context)));
    assert_eq!(
        lore_depths(&late),
        [("At 2.", 4), ("At 3.", 4), ("At 4.", 1)]
    );
}

#[test]
fn lore_leaves_the_story_string_of_a_text_with_stable_first() {
    let mut context = chat_with_lore(CacheLayout::StableFirst);
    let chat_ml = TextTemplates {
        instruct: embedded::instruct("ChatML").expect("an embedded template"),
        context: embedded::context("ChatML").expect("an embedded template"),
    };
    templates::set(&mut context, chat_ml);

    let text = built(&context).text.expect("a text").text;

    let at = |part: &str| text.find(part).expect("it is sent");
    assert!(at("A constant.") < at("Ada is a mathematician."));
    for lore in ["Before the character.", "After the examples."] {
        assert!(
            (at("Message 2.")..at("Message 3.")).contains(&at(lore)),
            "{text}"
        );
    }
}

/// Bob with Ada, Cid and Dot, whose preset is that of a group.
fn group_of_three(mode: CardHandlingMode) -> PromptContext {
    let mut context = solo();
    let card = |name: &str| json!({"name": name, "description": "{{char}} knows {{user}}."});
    context.members.push(member(3, "Cid", Some(card("Cid"))));
    context.members.push(member(4, "Dot", Some(card("Dot"))));
    context.user.persona = "A clerk.".into();
    context.card_handling = mode;
    context.preset = context.preset.for_group();
    context
}

/// Returns the prompts of all three characters.
fn prompts_of_each(mut context: PromptContext) -> Vec<String> {
    let speakers = [2, 3, 4].into_iter();
    let prompts = speakers.map(|id| {
        context.speaker = MembershipId(id);
        written(&context)
    });
    prompts.collect()
}

/// Returns the text with which all texts begin.
fn common_beginning(texts: &[String]) -> &str {
    let first = &texts[0];
    let is_common = |end: &usize| {
        let beginning = first.get(..*end);
        beginning.is_some_and(|it| texts.iter().all(|text| text.starts_with(it)))
    };
    let end = (0..=first.len()).rev().find(is_common);
    &first[..end.unwrap_or_default()]
}

#[test]
fn with_joined_cards_the_prompts_of_all_speakers_are_equal_up_to_the_nudge() {
    for mode in [CardHandlingMode::Append, CardHandlingMode::AppendDisabled] {
        let prompts = prompts_of_each(group_of_three(mode));

        let common = common_beginning(&prompts);
        assert!(
            common.ends_with("[Write the next reply only as "),
            "{common}"
        );
        let after = prompts[1].strip_prefix(common);
        assert_eq!(after, Some("Cid.]\n"));
    }
}

#[test]
fn with_swapped_cards_the_card_follows_what_all_speakers_share() {
    let prompts = prompts_of_each(group_of_three(CardHandlingMode::Swap));

    let common = common_beginning(&prompts);
    assert!(common.starts_with("--- system\nThis is a conversation of Ada, Cid, Dot with Bob."));
    assert!(common.ends_with("About Bob: A clerk.\n\n"), "{common}");
}

fn text_entry(text: &str, place: PromptPosition) -> PresetEntry {
    PresetEntry {
        place,
        ..PresetEntry::from_text(text, text, text)
    }
}

/// Returns the names of the volatile entries that the warnings of a prompt report.
fn volatile_entries(context: &PromptContext) -> Vec<String> {
    let warnings = built(context).lore.warnings_coded.into_iter();
    let volatile = warnings.filter(|it| it.code == "entry_changes_every_turn");
    let named = volatile.map(|it| it.params["name"].as_str().map(str::to_owned));
    named.map(|it| it.expect("a name")).collect()
}

#[test]
fn a_volatile_entry_before_the_history_is_reported() {
    let mut context = solo();
    let in_chat = PromptPosition::InChat {
        depth: DEFAULT_DEPTH,
        order: DEFAULT_ORDER,
    };
    let relative = PromptPosition::Relative;
    let order = &mut context.preset.order;
    order.insert(1, text_entry("It is {{time}}.", relative));
    order.insert(2, text_entry("Today is {{date}}.", relative));
    order.insert(3, text_entry("Rolled {{roll 6}}.", in_chat));
    let disabled = PresetEntry {
        enabled: false,
        ..text_entry("Idle for {{idleDuration}}.", relative)
    };
    order.insert(4, disabled);
    order.push(text_entry("Last: {{lastMessage}}", relative));

    let prompt = built(&context);

    assert_eq!(volatile_entries(&context), ["It is {{time}}."]);
    assert_eq!(
        prompt.lore.warnings,
        [
            "“It is {{time}}.” changes with every turn, because it contains {{time}}. \
            A prompt cache cannot keep what follows it."
        ]
    );
}

#[test]
fn a_main_prompt_is_not_reported_if_the_card_replaces_it() {
    let with_card = |system_prompt: &str| {
        let mut context = solo();
        let card = json!({"name": "Ada", "description": "", "system_prompt": system_prompt});
        context.members[1] = member(2, "Ada", Some(card));
        let order = context.preset.order.iter_mut();
        for main in order.filter(|it| it.slot == Some(PromptSlot::Main)) {
            main.text = "It is {{time}}.".to_owned();
        }
        volatile_entries(&context)
    };

    assert_eq!(with_card(""), ["Main prompt"]);
    assert_eq!(with_card("{{Original}} Be kind."), ["Main prompt"]);
    assert!(with_card("Be kind.").is_empty());
}
