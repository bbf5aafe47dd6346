//! Tests of how the author of a message is named in the prompt, and of where personas are in it.

use base::ids::MembershipId;
use base::prompt_role::PromptRole;
use serde_json::json;
use tavern::personas::persona_placement::{PersonaPlacement, PersonaPosition};
use tavern::presets::complete_preset::NamesBehavior;

use super::build;
use super::tests::{group, line, member, solo};
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::BlockKind;
use crate::prompt::context::{PromptContext, PromptPersona};

/// Returns the name and the text of each message.
fn lines(mut context: PromptContext, names: NamesBehavior) -> Vec<(Option<String>, String)> {
    context.preset.names = names;
    let built = build(&context, &|_| 1).unwrap();
    let history = built.blocks.into_iter();
    let history = history.filter(|it| it.kind == BlockKind::History);
    history.map(|it| (it.name, it.text)).collect()
}

fn named(context: PromptContext, names: NamesBehavior) -> Vec<bool> {
    let lines = lines(context, names).into_iter();
    lines.map(|(name, _)| name.is_some()).collect()
}

#[test]
fn the_preset_decides_whether_names_are_included() {
    assert_eq!(named(solo(), NamesBehavior::Usual), [true, true]);
    assert_eq!(named(solo(), NamesBehavior::Never), [false, false]);
    assert_eq!(named(group(), NamesBehavior::Never), [false, false, false]);

    let in_text = lines(solo(), NamesBehavior::InText);
    assert_eq!(in_text[0], (None, "Ada: Good day.".to_owned()));
}

#[test]
fn with_speaker_only_all_others_are_messages_of_the_user_with_their_name() {
    let mut context = group(); // Cid speaks after Ada and Bob
    context
        .history
        .push(line(4, "Cid", MessageRole::Assistant, "Cid: Yes."));
    context.history[3].author = context.speaker;
    context.preset.names = NamesBehavior::SpeakerOnly;
    let built = build(&context, &|_| 1).unwrap();
    let history = built.blocks.iter();
    let history = history.filter(|it| it.kind == BlockKind::History);
    let lines: Vec<_> = history
        .map(|it| (it.role, it.name.as_deref(), it.text.as_str()))
        .collect();

    assert_eq!(
        lines,
        [
            (PromptRole::User, None, "Ada: Good day."),
            (PromptRole::User, None, "Bob: Who is {{char}}? <BOT>"),
            (PromptRole::User, None, "Ada: I am. Cid?"),
            (PromptRole::Assistant, None, "Cid: Yes."),
        ]
    );
}

#[test]
fn names_are_included_where_several_authors_are_possible() {
    let mut two_people = solo();
    let mut other = two_people.history[1].clone();
    (other.author, other.name) = (MembershipId(9), "Eve".to_owned());
    two_people.history.push(other);

    assert_eq!(named(solo(), NamesBehavior::InGroups), [false, false]);
    assert_eq!(named(group(), NamesBehavior::InGroups), [true, true, true]);
    assert_eq!(
        named(two_people, NamesBehavior::InGroups),
        [true, true, true]
    );
}

#[test]
fn the_char_macro_gives_the_nickname_of_a_character() {
    let mut context = solo();
    let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Augusta Ada King", "nickname": "Ada", "description": "{{char}} counts.",
    }});
    context.members[1] = member(2, "Augusta Ada King", Some(card));

    let built = build(&context, &|_| 1).unwrap();

    assert!(built.messages[0].content.contains("Ada counts."));
    assert_eq!(built.speaker, "Augusta Ada King");
}

fn persona(name: &str, text: &str, is_user: bool) -> PromptPersona {
    PromptPersona {
        name: name.to_owned(),
        text: text.to_owned(),
        placement: Default::default(),
        is_user,
        last_seq: 1,
    }
}

/// Returns what is sent before the history of a prompt with these personas.
fn first_message(mut context: PromptContext, personas: Vec<PromptPersona>) -> String {
    context.personas = personas;
    build(&context, &|_| 1).unwrap().messages[0].content.clone()
}

#[test]
fn each_persona_has_a_section_under_its_name() {
    let personas = vec![
        persona("Bob", "{{user}} trusts {{char}}.", true),
        persona("Eve", "{{user}} is tall.", false),
    ];

    let alone = first_message(solo(), personas[..1].to_vec());
    let both = first_message(solo(), personas.clone());
    let mut own_format = solo();
    own_format.preset.texts.persona_format = "{{user}} is played. {{persona}}".to_owned();
    let formatted = first_message(own_format, personas);

    assert!(!alone.contains("[Persona of"), "{alone}");
    let sections = "[Persona of Bob]\nBob trusts Ada.\n[End of Bob]\n[Persona of Eve]\nEve is tall.\n[End of Eve]";
    assert!(both.contains(sections), "{both}");
    let sections = "Bob is played. Bob trusts Ada.\nEve is played. Eve is tall.";
    assert!(formatted.contains(sections), "{formatted}");
}

fn at(position: PersonaPosition) -> PersonaPlacement {
    PersonaPlacement {
        position,
        depth: 1,
        role: PromptRole::User,
    }
}

/// Returns the messages of a prompt of Bob alone, whose persona has this position.
fn messages_with(position: PersonaPosition, note: &str) -> Vec<String> {
    let mut context = solo();
    context.user.placement = at(position);
    context.note.text = note.to_owned();
    let messages = build(&context, &|_| 1).unwrap().messages;
    let text = |it: llm::request::Message| format!("{}: {}", it.role.as_str(), it.content);
    messages.into_iter().map(text).collect()
}

const BOB: &str = "About Bob: A clerk whom Ada trusts.";

#[test]
fn a_persona_is_where_its_position_says() {
    let sent = |position| messages_with(position, "It rains.");
    let n_with = |messages: &[String]| messages.iter().filter(|it| it.contains(BOB)).count();

    let in_prompt = sent(PersonaPosition::InPrompt);
    assert!(
        in_prompt[0].contains(BOB) && n_with(&in_prompt) == 1,
        "{in_prompt:?}"
    );
    let top = sent(PersonaPosition::NoteTop);
    assert!(top[0].ends_with(&format!("{BOB}\nIt rains.")), "{top:?}");
    let bottom = sent(PersonaPosition::NoteBottom);
    assert!(
        bottom[0].ends_with(&format!("It rains.\n{BOB}")),
        "{bottom:?}"
    );
    let deep = sent(PersonaPosition::AtDepth);
    assert_eq!(deep[2], format!("user: {BOB}"), "{deep:?}");
    assert_eq!(n_with(&sent(PersonaPosition::None)), 0);
    for moved in [top, bottom, deep] {
        assert_eq!(n_with(&moved), 1, "{moved:?}");
    }
}

#[test]
fn a_persona_at_the_note_is_sent_without_a_note_but_only_when_it_is_due() {
    let mut context = solo();
    context.user.placement = at(PersonaPosition::NoteBottom);
    (context.note.interval, context.n_user_turns) = (2, 2);
    let is_sent = |context: &PromptContext| {
        let blocks = build(context, &|_| 1).unwrap().blocks;
        blocks.iter().any(|it| it.kind == BlockKind::Persona)
    };

    assert!(is_sent(&context));
    context.n_user_turns = 3;
    assert!(!is_sent(&context));
}

#[test]
fn the_macro_of_a_persona_has_its_text_at_every_position() {
    let mut context = solo();
    context.user.placement = at(PersonaPosition::None);
    context.preset.order[0].text = "{{persona}}|{{persona_list}}|".to_owned();

    let sent = first_message(context, Vec::new());

    assert!(sent.starts_with("A clerk whom Ada trusts.||"), "{sent}");
}

#[test]
fn each_of_several_personas_is_in_its_own_section_at_its_position() {
    let mut personas = vec![
        persona("Bob", "Trusts {{char}}.", true),
        persona("Dan", "Is old.", false),
        persona("Eve", "Is tall.", false),
        persona("Fay", "Is silent.", false),
    ];
    for (persona, position) in personas.iter_mut().zip([
        PersonaPosition::InPrompt,
        PersonaPosition::NoteTop,
        PersonaPosition::AtDepth,
        PersonaPosition::None,
    ]) {
        persona.placement = at(position);
    }
    let mut context = solo();
    context.personas = personas;
    context.note.text = "It rains.".to_owned();
    context.note.depth = 0;

    let messages = build(&context, &|_| 1).unwrap().messages;

    let texts: Vec<&str> = messages.iter().map(|it| it.content.as_str()).collect();
    assert!(
        texts[0].contains("[Persona of Bob]\nTrusts Ada.\n[End of Bob]"),
        "{texts:?}"
    );
    assert!(
        !texts[0].contains("Eve") && !texts[0].contains("Dan"),
        "{texts:?}"
    );
    assert_eq!(texts[2], "[Persona of Eve]\nIs tall.\n[End of Eve]");
    assert_eq!(messages[2].role, PromptRole::User);
    assert_eq!(
        texts[4],
        "[Persona of Dan]\nIs old.\n[End of Dan]\nIt rains."
    );
    assert!(!texts.concat().contains("silent"), "{texts:?}");
}

#[test]
fn a_reply_is_cut_where_a_persona_of_the_history_begins_to_speak() {
    let mut context = solo();
    context.history[1].name = "Captain".to_owned();

    let (own, others) = context.reply_names();

    assert_eq!(own, ["Ada"]);
    assert_eq!(others, ["Bob", "Captain"]);
}
