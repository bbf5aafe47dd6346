//! Tests of prompts that continue a message.

use base::ids::MessageId;
use base::prompt_role::PromptRole;
use llm::request::Message;

use super::tests::{count, group};
use super::{BuiltPrompt, build};
use crate::prompt::blocks::BlockKind;
use crate::prompt::context::{Continuation, PromptContext};

/// A group whose newest message, "I am. Cid?" by Ada, is continued by her.
fn continued(is_prefill: bool) -> PromptContext {
    let mut context = group();
    let newest = context.history.last_mut().expect("a message");
    newest.text.push_str(" \n");
    context.speaker = newest.author;
    context.continuation = Some(Continuation {
        message: newest.message_id,
        is_prefill,
    });
    context
}

fn built(context: &PromptContext) -> BuiltPrompt {
    build(context, &count).expect("the prompt fits")
}

#[test]
fn a_prefilled_prompt_ends_with_the_text_of_the_message() {
    let prompt = built(&continued(true));

    let last = Message::new(PromptRole::Assistant, "I am. Cid?");
    assert_eq!(prompt.messages.last(), Some(&last));
    let n = prompt
        .messages
        .iter()
        .filter(|it| it.content.contains("I am."));
    assert_eq!(n.count(), 1);
    assert!(prompt.into_request("m", 1).is_prefilled);
}

#[test]
fn another_prompt_ends_with_the_continue_nudge() {
    let mut context = continued(false);
    context.preset.texts.continue_nudge_prompt = "Go on, {{char}}: {{lastMessage}}".to_owned();

    let prompt = built(&context);

    let last = prompt.blocks.last().expect("a block");
    assert_eq!(last.kind, BlockKind::ContinueNudge);
    assert_eq!(last.text, "Go on, Ada: I am. Cid?");
    let before = prompt
        .messages
        .iter()
        .rfind(|it| it.role == PromptRole::Assistant);
    assert!(before.is_some_and(|it| it.content.starts_with("I am. Cid?")));
    assert!(!prompt.into_request("m", 1).is_prefilled);
}

#[test]
fn a_prompt_without_the_message_is_not_prefilled() {
    let mut context = continued(true);
    let continuation = context.continuation.as_mut().expect("a continuation");
    continuation.message = MessageId(77);

    assert!(!built(&context).is_prefilled);
}

#[test]
fn a_prompt_for_a_new_message_has_no_continue_nudge() {
    let prompt = built(&group());

    let kinds: Vec<BlockKind> = prompt.blocks.iter().map(|it| it.kind).collect();
    assert!(!kinds.contains(&BlockKind::ContinueNudge));
}
