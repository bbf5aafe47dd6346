//! Tests of the values that a prompt gives to macros.

use base::ids::MembershipId;
use serde_json::json;

use super::tests::{count, line, member, solo};
use super::{PromptContext, build};
use crate::conversations::message::MessageRole;
use crate::prompt::author_note::AuthorNote;
use crate::prompt::context::PromptPersona;
use crate::prompt::prompt_error::PromptError;

/// Returns what a main prompt with this text sends.
fn sent(mut context: PromptContext, text: &str) -> String {
    context.preset.order[0].text = text.to_owned();
    let built = build(&context, &count).expect("the prompt can be built");
    built.blocks[0].text.clone()
}

#[test]
fn fields_of_the_card_that_are_not_sent_can_be_inserted() {
    let card = json!({
        "name": "Ada", "creator_notes": "By {{user}}.", "first_mes": "Hi {{user}}.",
        "alternate_greetings": ["Hello.", "Hey."], "character_version": "1.2",
        "post_history_instructions": "Stay {{char}}.",
        "extensions": {"depth_prompt": {"prompt": "{{char}} is tired."}},
    });
    let mut context = solo();
    context.members[1] = member(2, "Ada", Some(json!({ "data": card })));

    let text = "{{creatorNotes}}|{{greeting}}|{{greeting::2}}|{{greeting::3}}|{{version}}|\
        {{charJailbreak}}|{{charDepthPrompt}}";

    assert_eq!(
        sent(context, text),
        "By Bob.|Hi Bob.|Hey.||1.2|Stay Ada.|Ada is tired."
    );
}

#[test]
fn the_main_prompts_of_preset_and_card_can_be_inserted() {
    let mut context = solo();
    let note = "{{systemPrompt}}|{{defaultSystemPrompt}}";
    context.note.text = note.to_owned();
    context.preset.order[0].text = "As {{char}}.".to_owned();
    let notes = |context: &PromptContext| {
        let built = build(context, &count).expect("the prompt can be built");
        let text = built.blocks.iter().find(|it| it.label == "Author's note");
        text.map(|it| it.text.clone()).unwrap_or_default()
    };
    let mut with_own = context.clone();
    let card = json!({"name": "Ada", "system_prompt": "{{original}} Be brief."});
    with_own.members[1] = member(2, "Ada", Some(json!({ "data": card })));

    assert_eq!(notes(&context), "As Ada.|As Ada.");
    assert_eq!(notes(&with_own), "As Ada. Be brief.|As Ada.");
}

#[test]
fn messages_are_numbered_from_0_and_swipes_from_1() {
    let mut context = solo();
    let text = "{{lastMessageId}} {{allChatRange}} {{firstIncludedMessageId}} \
        [{{lastSwipeId}}] [{{currentSwipeId}}] {{lastGenerationType}}";
    assert_eq!(sent(context.clone(), text), "1 0-1 0 [] [] normal");

    let mut swiped = line(3, "Ada", MessageRole::Assistant, "I.");
    swiped.swipe = 1;
    context.history.push(swiped);
    context.n_swipes = Some(4);

    assert_eq!(sent(context, text), "2 0-2 0 [4] [2] normal");
}

#[test]
fn sizes_of_the_prompt_can_be_inserted() {
    let mut context = solo();
    context.preset.context_tokens = Some(4_000);
    context.preset.max_tokens = Some(300);

    let text = "{{maxContext}} {{maxResponse}} {{maxPrompt}} {{model}}";

    assert_eq!(sent(context, text), "4000 300 3700 demo");
}

#[test]
fn the_notes_of_conversation_speaker_and_space_can_be_inserted_and_set_no_variables() {
    let mut context = solo();
    context.note = AuthorNote {
        text: "{{setvar::hat::red}}{{.hat}} for {{char}}".into(),
        speaker_text: "Snow.".into(),
        space_text: "Sun.".into(),
        interval: 0,
        ..AuthorNote::default()
    };

    let text = "{{authorsNote}}|{{charAuthorsNote}}|{{defaultAuthorsNote}}|{{.hat}}";

    assert_eq!(sent(context, text), "red for Ada|Snow.|Sun.|");
}

#[test]
fn a_persona_sets_no_variables_in_a_card_either() {
    let mut context = solo();
    context.user.persona = "{{setvar::hat::red}}A clerk.".into();
    let card = json!({"name": "Ada", "description": "{{persona}} [{{.hat}}]"});
    context.members[1] = member(2, "Ada", Some(card));

    let built = build(&context, &count).expect("the prompt can be built");

    assert!(built.messages[0].content.contains("A clerk. []"));
    assert!(built.effects.variables.is_empty());
}

#[test]
fn the_block_of_the_personas_can_be_inserted() {
    let persona = |name: &str, text: &str, is_user| PromptPersona {
        name: name.to_owned(),
        text: text.to_owned(),
        placement: Default::default(),
        is_user,
        last_seq: 1,
    };
    let mut several = solo();
    several.members.push(member(5, "Eve", None));
    several.personas = vec![
        persona("Bob", "{{user}} trusts {{char}}.", true),
        persona("Eve", "{{user}} is tall.", false),
    ];

    assert_eq!(
        sent(solo(), "{{persona_list}}"),
        "About Bob: A clerk whom Ada trusts."
    );
    assert_eq!(
        sent(several, "{{persona_list}}"),
        "[Persona of Bob]\nBob trusts Ada.\n[End of Bob]\n\
         [Persona of Eve]\nEve is tall.\n[End of Eve]"
    );
}

#[test]
fn deleted_variables_are_among_the_effects() {
    let mut context = solo();
    context.variables.space.insert("hat".into(), "red".into());
    context.preset.order[0].text = "{{flushglobalvar::hat}}{{setvar::a::1}}x".to_owned();

    let built = build(&context, &count).expect("the prompt can be built");

    let changes = &built.effects.variables;
    assert_eq!(changes.space.get("hat"), Some(&None));
    assert_eq!(changes.conversation.get("a"), Some(&Some("1".to_owned())));
}

#[test]
fn a_prompt_whose_macros_exceed_a_limit_is_refused_with_the_name_of_the_field() {
    let refused = |change: fn(&mut PromptContext)| {
        let mut context = solo();
        change(&mut context);
        let error = build(&context, &count).expect_err("it exceeds a limit");
        assert_eq!(error.code(), "invalid_macro");
        match error {
            PromptError::InvalidMacro(error) => error.field,
            PromptError::ContextOverflow(error) => panic!("{error}"),
        }
    };

    let of_card = refused(|context| {
        let card = json!({"name": "Ada", "description": "{{description}}"});
        context.members[1] = member(2, "Ada", Some(card));
    });
    let of_entry = refused(|context| {
        context.preset.order[0].label = "My main prompt".to_owned();
        context.preset.order[0].text = "{{noop}}".repeat(100_001);
    });
    let of_stop = refused(|context| {
        context.preset.stop = vec![["{{reverse::".repeat(65), "}}".repeat(65)].concat()];
    });

    assert_eq!(of_card, "Description of Ada");
    assert_eq!(of_entry, "My main prompt");
    assert_eq!(of_stop, "Stop strings");
}

#[test]
fn names_of_a_prompt_without_a_speaker_are_those_of_the_user() {
    let mut context = solo();
    context.speaker = MembershipId(1);
    context.members.truncate(1);

    assert_eq!(
        sent(context, "{{char}} {{group}} [{{charPrompt}}]"),
        "Bob Bob []"
    );
}
