//! Tests of complete prompts: their blocks, order and fitting into the context window.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{CharacterId, ConversationId, MembershipId, MessageId};
use llm::compatibility::token_factors::TokenFactors;
use serde_json::{Value, json};
use tavern::cards::card::Card;
use tavern::macros::variables::Variables;
use tavern::presets::complete_preset::{GenerationTrigger, Preset};

use super::{PromptContext, build};
use crate::conversations::message::MessageRole;
use crate::prompt::author_note::AuthorNote;
use crate::prompt::budget::ContextOverflow;
use crate::prompt::context::{HistoryLine, LoreInput, PromptMember, PromptUser, RecalledMemories};
use crate::prompt::prompt_error::PromptError;
use crate::prompt::scripts::prompt_scripts::PromptScripts;
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::CardHandlingMode;

/// Counts a word as a token.
pub fn count(text: &str) -> i64 {
    i64::try_from(text.split_whitespace().count()).expect("few words")
}

pub fn member(id: i64, name: &str, card: Option<Value>) -> PromptMember {
    PromptMember {
        id: MembershipId(id),
        name: name.into(),
        aliases: Vec::new(),
        kind: if card.is_some() {
            MembershipKind::Character
        } else {
            MembershipKind::Human
        },
        participation: Participation::Active,
        status: MembershipStatus::Active,
        character: card.as_ref().map(|_| CharacterId(id)),
        owner: None,
        card: card.map(|it| Arc::new(Card::from_document(it).expect("a card"))),
        persona: None,
    }
}

fn ada() -> PromptMember {
    member(
        2,
        "Ada",
        Some(json!({
            "name": "Ada",
            "description": "{{char}} is a mathematician.\nShe knows {{user}}.",
            "personality": "calm, exact",
            "scenario": "A library in London.",
            "mes_example": "<START>\n{{user}}: Why?\n{{char}}: Because.\n<start>\n{{char}}: Hm.",
        })),
    )
}

fn cid() -> PromptMember {
    let card = json!({
        "name": "Cid", "description": "{{char}} builds engines.",
        "system_prompt": "{{original}} Speak in short sentences.",
        "post_history_instructions": "Stay {{char}}.",
    });
    member(3, "Cid", Some(card))
}

pub fn line(seq: i64, name: &str, role: MessageRole, text: &str) -> HistoryLine {
    HistoryLine {
        seq,
        message_id: MessageId(seq),
        swipe: 0,
        author: MembershipId(if name == "Bob" { 1 } else { 2 }),
        name: name.into(),
        role,
        text: text.into(),
        translated_to: None,
        whisper: None,
        quote: None,
        pictures: Vec::new(),
        tokens: count(text),
        created_at: Timestamp(seq),
        payload: Default::default(),
        is_required: false,
    }
}

/// Bob alone with Ada.
pub fn solo() -> PromptContext {
    PromptContext {
        templates: None,
        warnings: Vec::new(),
        conversation: ConversationId(1),
        space_name: "Library".into(),
        speaker: MembershipId(2),
        members: vec![member(1, "Bob", None), ada()],
        personas: Vec::new(),
        user: PromptUser {
            name: "Bob".into(),
            persona: "A clerk whom {{char}} trusts.".into(),
            placement: Default::default(),
        },
        card_handling: CardHandlingMode::Swap,
        field_affixes: Default::default(),
        scenario_override: None,
        preset: Preset::default(),
        trigger: GenerationTrigger::Normal,
        note: AuthorNote::default(),
        lore: LoreInput::default(),
        memories: RecalledMemories::default(),
        n_user_turns: 1,
        allows_other_speakers: false,
        continuation: None,
        continue_request: None,
        impersonation_request: None,
        n_swipes: None,
        is_openai: false,
        token_factors: TokenFactors::default(),
        budget_percent: 100,
        accepts_prefill: false,
        picture_cost: None,
        instructions: None,
        history_starts: None,
        summaries: None,
        scripts: PromptScripts::None,
        history: vec![
            line(1, "Ada", MessageRole::Assistant, "Good day."),
            line(2, "Bob", MessageRole::User, "Who is {{char}}? <BOT>"),
        ],
        variables: Variables::default(),
        model: "demo".into(),
        now: Timestamp(0),
    }
}

/// Bob with Ada and Cid; Cid is the speaker.
pub fn group() -> PromptContext {
    let mut context = solo();
    context.members.push(cid());
    context.speaker = MembershipId(3);
    context
        .history
        .push(line(3, "Ada", MessageRole::Assistant, "I am. Cid?"));
    context
}

/// Returns the messages as readable text.
pub fn written(context: &PromptContext) -> String {
    let built = build(context, &count).expect("the prompt fits");
    let message = |it: &llm::request::Message| {
        let name = it.name.as_deref().map(|it| format!(" ({it})"));
        let name = name.unwrap_or_default();
        format!("--- {}{name}\n{}\n", it.role.as_str(), it.content)
    };
    built.messages.iter().map(message).collect()
}

#[test]
fn a_prompt_for_a_user_and_one_character() {
    insta::assert_snapshot!(written(&solo()), @r#"
    --- system
    You are Ada, in a conversation with Bob. Write the next message of Ada, and only of Ada.

    About Bob: A clerk whom Ada trusts.

    Ada is a mathematician.
    She knows Bob.

    Personality of Ada: calm, exact

    Scenario: A library in London.

    [Example messages]
    Bob: Why?
    Ada: Because.

    [Example messages]
    Ada: Hm.

    [Start a new chat]
    --- assistant (Ada)
    Good day.
    --- user (Bob)
    Who is {{char}}? <BOT>
    "#);
}

#[test]
fn a_prompt_for_a_group() {
    insta::assert_snapshot!(written(&group()), @r#"
    --- system
    You are Cid, in a conversation with Bob, Ada. Write the next message of Cid, and only of Cid. Speak in short sentences.

    About Bob: A clerk whom Cid trusts.

    Cid builds engines.

    [Start a new group chat. Group members: Ada, Cid]
    --- assistant (Ada)
    Good day.
    --- user (Bob)
    Who is {{char}}? <BOT>
    --- assistant (Ada)
    I am. Cid?
    --- system
    [Write the next reply only as Cid.]

    Stay Cid.
    "#);
}

#[test]
fn every_block_is_listed_with_its_length() {
    let built = build(&solo(), &count).expect("the prompt fits");

    let listed: Vec<String> = built
        .blocks
        .iter()
        .map(|it| {
            format!(
                "{} {:?} {}",
                serde_json::to_string(&it.kind).expect("a word"),
                it.label,
                it.tokens
            )
        })
        .collect();
    insta::assert_snapshot!(listed.join("\n"), @r#"
    "main" "Main prompt" 18
    "persona" "Persona" 7
    "description" "Description" 7
    "personality" "Personality" 5
    "scenario" "Scenario" 5
    "example" "Example messages" 6
    "example" "Example messages" 4
    "new_chat" "New chat" 4
    "history" "Ada" 3
    "history" "Bob" 5
    "#);
    assert_eq!(built.limit_tokens, 8192 - 512);
    let tokens: i64 = built.blocks.iter().map(|it| it.tokens + 4).sum();
    assert_eq!(built.total_tokens, tokens);
    assert_eq!(built.dropped_messages, 0);
}

#[test]
fn examples_are_dropped_before_the_oldest_messages() {
    let mut context = solo();
    for seq in 3..40 {
        context
            .history
            .push(line(seq, "Bob", MessageRole::User, &"word ".repeat(20)));
    }
    context.preset.context_tokens = Some(300);
    context.preset.max_tokens = Some(100);

    let built = build(&context, &count).expect("the prompt fits");

    assert!(built.total_tokens <= 200);
    let dropped: Vec<&str> = built
        .blocks
        .iter()
        .filter(|it| it.dropped)
        .map(|it| it.label.as_str())
        .collect();
    assert_eq!(
        &dropped[..4],
        ["Example messages", "Example messages", "Ada", "Bob"]
    );
    assert_eq!(built.dropped_messages, dropped.len() - 2);
    let sent = built.messages.iter().filter(|it| it.name.is_some()).count();
    assert_eq!(sent + built.dropped_messages, 39);
    assert!(sent >= 3, "one more message would have fit: {sent}");
}

#[test]
fn a_prompt_that_cannot_fit_reports_the_excess() {
    let mut context = solo();
    context.members[1] = member(
        2,
        "Ada",
        Some(json!({"name": "Ada", "description": "w ".repeat(500)})),
    );
    context.preset.context_tokens = Some(300);
    context.preset.max_tokens = Some(100);
    let whole = {
        let mut unlimited = context.clone();
        unlimited.preset.context_tokens = None;
        unlimited.history.drain(..1);
        build(&unlimited, &count)
            .expect("the prompt fits")
            .total_tokens
    };

    let result = build(&context, &count).expect_err("too long");

    assert_eq!(
        result,
        PromptError::ContextOverflow(ContextOverflow {
            over_by: whole - 200
        })
    );
}

#[test]
fn chat_text_is_sent_unchanged() {
    let built = build(&solo(), &count).expect("the prompt fits");

    let newest = built.messages.last().expect("a message");
    assert_eq!(newest.content, "Who is {{char}}? <BOT>");
}

#[test]
fn blank_messages_are_not_sent_and_unknown_lengths_are_counted() {
    let mut context = solo();
    context
        .history
        .push(line(3, "Bob", MessageRole::User, " \n"));
    context.history.push(HistoryLine {
        tokens: 0,
        ..line(4, "Bob", MessageRole::User, "one two three")
    });

    let built = build(&context, &count).expect("the prompt fits");

    let newest = built.blocks.last().expect("a message");
    assert_eq!((newest.tokens, newest.text.as_str()), (4, "one two three"));
    assert!(
        built
            .messages
            .iter()
            .all(|it| !it.content.trim().is_empty())
    );
}

#[test]
fn the_scenario_of_the_space_replaces_those_of_the_cards() {
    let mut context = solo();
    context.scenario_override = Some("The moon, where {{user}} lives.".into());

    let prompt = written(&context);

    assert!(
        prompt.contains("Scenario: The moon, where Bob lives."),
        "{prompt}"
    );
    assert!(!prompt.contains("London"));
    context.scenario_override = Some("  ".into());
    assert!(written(&context).contains("London"));
}

#[test]
fn a_muted_character_counts_for_a_group_and_a_removed_one_does_not() {
    let mut context = group();
    context.members[1].participation = Participation::Muted;
    assert!(written(&context).contains("[Write the next reply only as Cid.]"));
    assert!(written(&context).contains("Group members: Ada, Cid"));

    context.members[1].status = MembershipStatus::Removed;
    let prompt = written(&context);

    assert!(!prompt.contains("[Write the next reply"), "{prompt}");
    assert!(prompt.contains("[Start a new chat]"));
    assert!(prompt.contains("conversation with Bob."));
}

#[test]
fn a_blank_nudge_is_not_sent() {
    let mut context = group();
    context.preset.texts.group_nudge_prompt = " ".into();

    assert!(!written(&context).contains("only as Cid"));
}

#[test]
fn the_request_carries_the_settings_and_the_speaker() {
    let mut context = solo();
    context.preset = Preset {
        temperature: Some(0.7),
        top_p: Some(0.9),
        max_tokens: Some(300),
        stop: vec!["\n{{user}}:".into(), "{{noop}}".into()],
        ..Preset::default()
    };

    let request = build(&context, &count)
        .expect("the prompt fits")
        .into_request("demo", 7);

    assert_eq!(request.stop, ["\nBob:"]);
    assert_eq!(
        (request.temperature, request.top_p, request.max_tokens),
        (Some(0.7), Some(0.9), Some(300))
    );
    let named = (request.model.as_str(), request.speaker.as_str());
    assert_eq!((named, request.seed), (("demo", "Ada"), 7));
    assert_eq!(request.messages.len(), 3);
}
