//! Tests of whispers in a prompt: their marker, and what of a prompt comes from them.

use base::ids::{MembershipId, MessageId};
use serde_json::json;
use tavern::presets::complete_preset::NamesBehavior;

use super::tests::{line, member, solo};
use super::{BuiltPrompt, build};
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::BlockKind;
use crate::prompt::context::{PromptContext, Whisper};
use crate::prompt::record::sent_prompt::SentPrompt;
use crate::prompt::record::whispered_blocks;

/// Bob whispers to Ada; a macro in her card repeats the newest message.
fn whispered() -> PromptContext {
    let mut context = solo();
    let card = json!({"name": "Ada", "description": "Ada counts.",
        "personality": "She heard: {{lastMessage}}"});
    context.members[1] = member(2, "Ada", Some(card));
    let mut whisper = line(9, "Bob", MessageRole::User, "The canary sings.");
    whisper.whisper = Some(Whisper {
        audience: Audience::new([1, 2].map(MembershipId)).unwrap(),
        to: vec!["Ada".to_owned()],
    });
    context.history.push(whisper);
    context
}

fn without_whisper(mut context: PromptContext) -> PromptContext {
    context.history.pop();
    context
}

fn built(context: &PromptContext) -> BuiltPrompt {
    build(context, &|text| text.len() as i64).expect("the prompt fits")
}

fn texts(prompt: &BuiltPrompt) -> String {
    let texts = prompt.blocks.iter().map(|it| it.text.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_whisper_is_marked_after_the_name_of_its_author() {
    let last = |names| {
        let mut context = whispered();
        context.preset.names = names;
        let mut blocks = built(&context).blocks.into_iter();
        let last = blocks.rfind(|it| it.kind == BlockKind::History).unwrap();
        (last.name, last.text)
    };

    let marked = "(whispered to Ada) The canary sings.".to_owned();
    assert_eq!(last(NamesBehavior::Never), (None, marked.clone()));
    assert_eq!(
        last(NamesBehavior::Usual),
        (Some("Bob".to_owned()), marked.clone())
    );
    assert_eq!(
        last(NamesBehavior::InText),
        (None, format!("Bob: {marked}"))
    );
}

#[test]
fn a_reader_who_did_not_hear_a_whisper_sees_neither_it_nor_what_repeats_it() {
    let (whole, heard) = (whispered(), without_whisper(whispered()));
    let total = built(&whole).total_tokens;

    let shown = whispered_blocks::shown(built(&whole), &built(&heard));

    assert!(texts(&built(&whole)).matches("canary").count() == 2);
    let shown_texts = texts(&shown);
    assert!(!shown_texts.contains("canary"), "{shown_texts}");
    assert!(!shown_texts.contains("whispered"), "{shown_texts}");
    assert!(shown_texts.contains("Ada counts."), "{shown_texts}");
    assert_eq!(shown.total_tokens, total);
    let is_personality =
        |it: &crate::prompt::blocks::PromptBlock| it.kind == BlockKind::Personality;
    assert!(!shown.blocks.iter().any(is_personality), "without label");
}

#[test]
fn what_repeats_a_whisper_is_marked_in_the_record() {
    let mut prompt = built(&whispered());
    whispered_blocks::mark(&mut prompt, Some(&built(&without_whisper(whispered()))));

    let marked: Vec<BlockKind> = prompt
        .blocks
        .iter()
        .filter(|it| it.is_from_whispers)
        .map(|it| it.kind)
        .collect();
    assert_eq!(marked, [BlockKind::Personality]);
    let record = SentPrompt::from_built("model", &prompt, usize::MAX);
    assert_eq!(record.whispers, [MessageId(9)]);

    let all = record.clone().remap_messages(Some);
    assert!(serde_json::to_string(&all).unwrap().contains("canary"));
    let without = record.remap_messages(|it| (it != MessageId(9)).then_some(it));
    let json = serde_json::to_string(&without).unwrap();
    assert!(
        !json.contains("canary") && !json.contains("whispered"),
        "{json}"
    );
}

#[test]
fn a_prompt_with_whispers_stores_only_the_effects_that_it_has_without_them() {
    let remembers = |mut context: PromptContext| {
        let card =
            json!({"name": "Ada", "description": "{{setvar::heard::{{lastMessage}}}}Ada counts."});
        context.members[1] = member(2, "Ada", Some(card));
        context
    };
    let mut prompt = built(&remembers(whispered()));
    let public = built(&remembers(without_whisper(whispered())));
    assert_ne!(prompt.effects.variables, public.effects.variables);

    whispered_blocks::mark(&mut prompt, Some(&public));

    assert_eq!(prompt.effects.variables, public.effects.variables);
}
