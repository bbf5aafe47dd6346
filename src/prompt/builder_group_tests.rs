//! Tests of complete group prompts: three characters with lorebooks, an author's note and a preset,
//! in all card handling modes, normal and impersonating. A regeneration needs a timeline: it is
//! tested in `tests/it/api/prompts.rs`.

use base::ids::MembershipId;
use base::prompt_role::PromptRole;
use serde_json::{Value, json};
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookSource};
use tavern::lorebook_files::entry;
use tavern::presets::complete_preset::{GenerationTrigger, PresetEntry, PromptPosition};

use super::build;
use super::tests::{count, line, member, solo, written};
use crate::conversations::message::MessageRole;
use crate::prompt::author_note::AuthorNote;
use crate::prompt::context::{LoreInput, PromptContext};
use crate::spaces::membership::Participation;
use crate::spaces::space::CardHandlingMode;

const MODES: [(&str, CardHandlingMode); 3] = [
    ("swap", CardHandlingMode::Swap),
    ("append", CardHandlingMode::Append),
    ("append_disabled", CardHandlingMode::AppendDisabled),
];

fn cards() -> [Value; 3] {
    let depth_prompt =
        |text, depth, role| json!({"depth_prompt": {"prompt": text, "depth": depth, "role": role}});
    [
        json!({
            "name": "Ada",
            "description": "{{char}} is a mathematician. She knows {{user}}.",
            "personality": "calm, exact",
            "scenario": "A library in London.",
            "mes_example": "<START>\n{{user}}: Why?\n{{char}}: Because {{noop}}it is so.",
            "system_prompt": "{{original}} {{char}} speaks in full sentences.",
            "post_history_instructions": "Stay {{char}}.",
            "extensions": depth_prompt("{{char}} holds a pen.", 1, "system"),
        }),
        json!({
            "name": "Cid",
            "description": "{{char}} builds engines.",
            "personality": "loud",
            "scenario": "A workshop.",
            "mes_example": "{{char}}: Steam!",
            "extensions": depth_prompt("{{char}} smells of oil.", 2, "user"),
        }),
        json!({"name": "Dot", "description": "{{char}} is a cat.", "personality": "asleep"}),
    ]
}

/// Returns the lorebook in the card of Ada or Cid; other cards have none.
fn card_lorebook(owner: &str) -> Option<Lorebook> {
    let entries = match owner {
        "Ada" => json!([
            {"keys": ["engine"], "content": "The engine weighs fifteen tons.", "insertion_order": 10,
             "position": "before_char", "name": "Engine"},
            {"keys": ["never said"], "content": "Nobody reads this.", "name": "Silence"},
            {"keys": ["london"], "content": "It rains on {{char}}.", "insertion_order": 20,
             "position": "after_char", "name": "Rain"},
            {"keys": [], "constant": true, "content": "A clock strikes.", "name": "Clock",
             "extensions": {"position": 4, "depth": 2, "role": 0}},
            {"keys": ["engine"], "content": "Below the note.", "name": "Bottom",
             "extensions": {"position": 3}},
        ]),
        "Cid" => json!([{"keys": ["engine"], "content": "{{char}} made it.", "name": "Maker"}]),
        _ => return None,
    };
    let entries = entries.as_array().expect("a list").iter().enumerate();
    Some(Lorebook {
        key: format!("card:{owner}"),
        id: None,
        name: format!("{owner}'s book"),
        source: LorebookSource::Character,
        scan_depth: None,
        token_budget: None,
        recursive: None,
        entries: entries
            .map(|(n, it)| entry::read(it, n.to_string(), None))
            .collect(),
    })
}

/// Bob with Ada, Cid and the muted Dot. Ada is the speaker.
fn group_of_three(mode: CardHandlingMode) -> PromptContext {
    let [ada, cid, dot] = cards();
    let mut context = solo();
    context.members.truncate(1);
    let characters = [(2, "Ada", ada), (3, "Cid", cid), (4, "Dot", dot)];
    for (id, name, card) in characters {
        context.members.push(member(id, name, Some(card)));
    }
    context.members[3].participation = Participation::Muted;
    context.card_handling = mode;
    context.field_affixes = ("[<FIELDNAME> of {{char}}: ".into(), "]".into());
    context.history = vec![
        line(1, "Ada", MessageRole::Assistant, "Good day."),
        line(2, "Bob", MessageRole::User, "How is London?"),
        line(3, "Cid", MessageRole::Assistant, "Loud. {{char}} likes it."),
        line(4, "Bob", MessageRole::User, "And the engine?"),
    ];
    for it in &mut context.history {
        it.author = MembershipId(
            ["Bob", "Ada", "Cid"]
                .iter()
                .position(|n| *n == it.name)
                .map_or(1, |n| n as i64 + 1),
        );
    }
    context.note = AuthorNote {
        text: "It is {{weekday}}; keep it short.".into(),
        depth: 1,
        ..AuthorNote::default()
    };
    let in_chat = PresetEntry {
        role: PromptRole::User,
        place: PromptPosition::InChat { depth: 0, order: 5 },
        ..PresetEntry::from_text("ooc", "Out of character", "(One paragraph, please.)")
    };
    let anew = PresetEntry {
        triggers: vec![GenerationTrigger::Regenerate],
        ..PresetEntry::from_text("anew", "Written anew", "Say it in another way.")
    };
    context.preset.order.extend([in_chat, anew]);
    context.preset.temperature = Some(0.8);
    use_lorebook_of(&mut context, "Ada");
    context
}

fn use_lorebook_of(context: &mut PromptContext, owner: &str) {
    context.lore = LoreInput {
        lorebooks: card_lorebook(owner).into_iter().collect(),
        ..LoreInput::default()
    };
}

fn render_prompt(context: &PromptContext) -> String {
    let built = build(context, &count).expect("the prompt fits");
    let lore = built.lore.fired.iter();
    let lore: Vec<String> = lore
        .map(|it| format!("{} ({}): {}", it.name, it.book, it.because))
        .collect();
    let tokens = (built.total_tokens, built.limit_tokens);
    format!("{}=== {tokens:?}\n{}", written(context), lore.join("\n"))
}

#[test]
fn a_reply_in_a_group_of_three_characters() {
    for (mode, handling) in MODES {
        insta::assert_snapshot!(
            format!("normal_{mode}"),
            render_prompt(&group_of_three(handling))
        );
    }
}

#[test]
fn an_impersonation_in_a_group_of_three_characters() {
    for (mode, handling) in MODES {
        let mut context = group_of_three(handling);
        context.speaker = MembershipId(1);
        context.preset = context.preset.for_impersonation();
        context.trigger = GenerationTrigger::Impersonate;
        // Cid spoke last, so his card and lorebook apply.
        use_lorebook_of(&mut context, "Cid");

        insta::assert_snapshot!(format!("copilot_{mode}"), render_prompt(&context));
    }
}

#[test]
fn the_prompt_of_a_forced_muted_character_contains_its_own_card() {
    let mut context = group_of_three(CardHandlingMode::Append);
    context.speaker = MembershipId(4);
    use_lorebook_of(&mut context, "Dot");

    let prompt = written(&context);

    assert!(
        prompt.contains("[Description of Dot: Dot is a cat.]"),
        "{prompt}"
    );
    assert!(prompt.contains("[Description of Ada: Ada is a mathematician."));
}

#[test]
fn lore_around_a_note_needs_no_note_and_lore_over_budget_is_reported() {
    let mut context = group_of_three(CardHandlingMode::Swap);
    context.note.text = String::new();
    assert!(written(&context).contains("Below the note."));

    context.preset.context_tokens = Some(160);
    context.preset.max_tokens = Some(30);
    let built = build(&context, &count).expect("the prompt fits");

    let dropped: Vec<&str> = built
        .lore
        .dropped
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert!(!dropped.is_empty());
    assert!(
        built
            .lore
            .fired
            .iter()
            .all(|it| !dropped.contains(&it.name.as_str()))
    );
    let newest = built.messages.iter().rfind(|it| it.name.is_some());
    assert_eq!(newest.expect("a message").content, "And the engine?");
}
