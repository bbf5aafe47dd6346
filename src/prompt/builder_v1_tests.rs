//! Tests of prompts for `/v1` requests: instructions, tool calls and required messages.

use llm::request::Message;
use llm::tool::{AnsweredCall, ToolCall};

use super::build;
use super::tests::{count, line, solo, written};
use crate::conversations::message::MessageRole;
use crate::prompt::blocks::BlockPayload;
use crate::prompt::budget::ContextOverflow;
use crate::prompt::context::{HistoryLine, PromptContext};
use crate::prompt::prompt_error::PromptError;

fn call(id: &str) -> BlockPayload {
    let call = ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    BlockPayload {
        calls: vec![call],
        ..BlockPayload::default()
    }
}

fn answer(id: &str) -> BlockPayload {
    let answers = AnsweredCall {
        id: id.to_owned(),
        name: "look".to_owned(),
    };
    BlockPayload {
        answers: Some(answers),
        ..BlockPayload::default()
    }
}

/// Ada calls a tool.
fn with_a_call() -> PromptContext {
    let mut context = solo();
    let tail = [
        (MessageRole::Assistant, "", call("a")),
        (MessageRole::User, "It rains.", answer("a")),
        (MessageRole::User, "So?", BlockPayload::default()),
    ];
    for (seq, (role, text, carried)) in (3..).zip(tail) {
        context.history.push(HistoryLine {
            payload: carried,
            ..line(seq, "", role, text)
        });
    }
    context
}

#[test]
fn instructions_follow_the_cards_unchanged() {
    let mut context = solo();
    context.instructions = Some(" Rhyme, {{char}}. ".into());

    let prompt = written(&context);

    let at = |text: &str| prompt.find(text).unwrap_or_else(|| panic!("{prompt}"));
    assert!(at("Scenario:") < at("Rhyme, {{char}}."));
    assert!(at("Rhyme, {{char}}.") < at("[Example messages]"));
}

#[test]
fn a_call_without_text_is_sent_with_its_result() {
    let built = build(&with_a_call(), &count).unwrap();

    let [.., call, answer, newest] = &built.messages[..] else {
        panic!("{:?}", built.messages);
    };
    assert_eq!((call.calls.len(), call.name.as_deref()), (1, None));
    assert_eq!(answer.answers.as_ref().map(|it| it.id.as_str()), Some("a"));
    assert_eq!(newest.content, "So?");
}

#[test]
fn no_block_is_inserted_between_a_call_and_its_result() {
    for (depth, n_following) in [(0, 0), (1, 1), (2, 3), (3, 3)] {
        let mut context = with_a_call();
        context.note.text = "It is noon.".into();
        context.note.depth = depth;

        let built = build(&context, &count).unwrap();

        let at = |it: &Message| it.content.contains("It is noon.");
        let note = built.messages.iter().position(at).expect("a note");
        assert_eq!(built.messages.len() - 1 - note, n_following, "{depth}");
    }
}

#[test]
fn a_tool_result_is_dropped_with_its_call() {
    let mut context = with_a_call();
    context.preset.max_tokens = Some(1);
    let whole = build(&context, &count).unwrap().total_tokens;
    // The examples, and the messages before the call.
    let first = [10, 8, 7, 9];
    let limit = whole - first.iter().sum::<i64>();
    context.preset.context_tokens = Some(limit);

    let built = build(&context, &count).unwrap();

    assert!(built.messages.iter().all(|it| it.answers.is_none()));
    assert_eq!(built.messages.last().unwrap().content, "So?");
}

#[test]
fn a_required_message_is_kept_or_the_prompt_is_rejected() {
    let mut context = solo();
    for line in &mut context.history {
        line.is_required = true;
    }
    context.preset.max_tokens = Some(1);
    let whole = build(&context, &count).unwrap().total_tokens;
    let examples = 10 + 8;
    let mut build_with = |limit| {
        context.preset.context_tokens = Some(limit + 1);
        build(&context, &count).map(|it| it.dropped_messages)
    };

    assert_eq!(build_with(whole - examples), Ok(0));
    let refused = build_with(whole - examples - 1).unwrap_err();
    let too_long = ContextOverflow { over_by: 1 };
    assert_eq!(refused, PromptError::ContextOverflow(too_long));
}
