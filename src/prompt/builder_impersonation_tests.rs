//! Tests of impersonation prompts, in which the model writes for a user.

use base::ids::MembershipId;
use tavern::presets::complete_preset::GenerationTrigger;

use super::build;
use super::tests::{count, group, solo, written};
use crate::prompt::context::PromptContext;

/// Makes Bob, a user, the speaker.
fn for_bob(mut context: PromptContext) -> PromptContext {
    context.speaker = MembershipId(1);
    context.preset = context.preset.for_impersonation();
    context.trigger = GenerationTrigger::Impersonate;
    context
}

fn labels(context: &PromptContext) -> Vec<String> {
    let built = build(context, &count).expect("the prompt fits");
    built.blocks.into_iter().map(|it| it.label).collect()
}

#[test]
fn impersonation_instructions_come_last() {
    let prompt = written(&for_bob(solo()));

    assert!(prompt.starts_with("--- system\nYou write for Bob, who is a person"));
    let last = "[Write the next message of Bob, in the voice in which Bob has written so far. \
        Write for nobody else.]\n";
    assert!(prompt.ends_with(last), "{prompt}");
    assert!(prompt.contains("Ada is a mathematician.\nShe knows Bob."));
}

#[test]
fn an_impersonation_request_comes_last_and_unchanged() {
    let mut context = for_bob(solo());
    context.impersonation_request = Some("Say no to {{char}}.".into());

    let prompt = written(&context);

    assert!(
        prompt.ends_with("\n[Bob asks for this: Say no to {{char}}.]\n"),
        "{prompt}"
    );
}

#[test]
fn a_character_gets_no_impersonation_instructions() {
    let mut context = solo();
    context.impersonation_request = Some("Say no.".into());

    assert!(!written(&context).contains("asks for this"));
    assert!(!labels(&context).contains(&"Impersonation".to_owned()));
}

#[test]
fn the_character_of_an_impersonation_prompt_is_the_last_speaker() {
    let mut context = for_bob(group());
    context.history.last_mut().expect("a message").author = MembershipId(3);

    assert!(written(&context).contains("Cid builds engines."));

    context.history.clear();
    assert!(written(&context).contains("Ada is a mathematician."));
}

#[test]
fn an_impersonation_prompt_contains_no_instructions_of_cards() {
    let mut context = for_bob(group());
    context.history.last_mut().expect("a message").author = MembershipId(3);

    let prompt = written(&context);

    assert!(!prompt.contains("Speak in short sentences."));
    assert!(!prompt.contains("Stay "));
    assert!(!prompt.contains("[Write the next reply"));
}

#[test]
fn a_user_is_impersonated_in_a_space_without_characters() {
    let mut context = for_bob(solo());
    context.members.truncate(1);

    assert!(written(&context).contains("You write for Bob"));
}
