//! Tests of the order of messages and calls in the context of a run.

use std::collections::HashMap;

use base::clock::Timestamp;
use responses_api::threads::run_state::{RunStep, StepCall, StepDetails, StepMessage};
use responses_api::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};
use serde_json::{Value, json};

use super::{RunContext, ToolRun, merge, select_last, split};
use crate::responses::threads::thread_message;

fn message(seq: i64, role: ThreadMessageRole) -> thread_message::Model {
    let text = json!({ "value": seq.to_string(), "annotations": [] });
    thread_message::Model {
        id: format!("msg_{seq}"),
        thread_id: "thread_1".to_owned(),
        seq,
        role,
        content: json!([{ "type": "text", "text": text }]),
        status: ThreadMessageStatus::Completed,
        assistant_id: None,
        run_id: None,
        hidden_for_run_id: None,
        metadata: json!({}),
        incomplete_details: None,
        created_at: Timestamp(0),
        completed_at: None,
        deleted_at: None,
    }
}

/// A thread of two turns: a question, a call with its output, an answer; another question.
fn messages() -> Vec<thread_message::Model> {
    vec![
        message(0, ThreadMessageRole::User),
        message(1, ThreadMessageRole::Assistant),
        message(2, ThreadMessageRole::User),
    ]
}

fn call(id: &str, name: &str, output: Option<&str>) -> StepCall {
    let mut call = StepCall::new(id.to_owned(), name.to_owned(), "{}".to_owned());
    call.function.output = output.map(str::to_owned);
    call
}

fn calls(calls: Vec<StepCall>) -> RunStep {
    let details = StepDetails::ToolCalls {
        tool_calls: calls,
        troupe: None,
    };
    RunStep::new(details, Timestamp(0))
}

fn creates(message_id: &str) -> RunStep {
    let message_creation = StepMessage {
        message_id: message_id.to_owned(),
        troupe: None,
    };
    RunStep::new(
        StepDetails::MessageCreation { message_creation },
        Timestamp(0),
    )
}

/// Each item as its text, its call, or the output of a call.
fn lines(items: &[Value]) -> Vec<String> {
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let line = |it: &Value| match it["type"].as_str() {
        Some("message") => word(&it["content"][0]["text"]),
        Some(kind) => format!("{kind} {} {}", word(&it["call_id"]), word(&it["output"])),
        None => String::new(),
    };
    items.iter().map(line).collect()
}

fn context(run: ToolRun, n_last: Option<usize>) -> RunContext {
    let entries = merge(&messages(), vec![run], &HashMap::new());
    split(select_last(entries, n_last))
}

fn first_turn() -> ToolRun {
    let outputs = vec![
        call("a", "look", Some("A")),
        call("b", "troupe:time", Some("noon")),
    ];
    ToolRun {
        first_seq: 1,
        steps: vec![calls(outputs), creates("msg_1")],
    }
}

#[test]
fn calls_of_an_earlier_run_precede_its_answer() {
    let context = context(first_turn(), None);

    assert_eq!(
        lines(&context.prior),
        [
            "0",
            "function_call a ",
            "troupe:time b noon",
            "function_call_output a A",
            "1",
        ]
    );
    assert_eq!(lines(&context.input), ["2"]);
}

#[test]
fn calls_of_a_run_without_a_message_follow_the_messages_in_its_context() {
    let run = ToolRun {
        first_seq: 3,
        steps: vec![calls(vec![call("a", "look", Some("A"))])],
    };

    let context = context(run, None);

    assert_eq!(lines(&context.prior), ["0", "1"]);
    let input = ["2", "function_call a ", "function_call_output a A"];
    assert_eq!(lines(&context.input), input);
}

#[test]
fn a_call_without_an_output_is_left_out() {
    let run = ToolRun {
        first_seq: 3,
        steps: vec![calls(vec![
            call("a", "look", None),
            call("b", "troupe:dice", None),
        ])],
    };

    let context = context(run, None);

    assert_eq!(context.input.len(), 1);
}

#[test]
fn the_last_messages_are_kept_with_the_calls_between_them() {
    assert_eq!(lines(&context(first_turn(), Some(1)).input), ["2"]);
    assert_eq!(lines(&context(first_turn(), Some(2)).prior), ["1"]);
    let all = context(first_turn(), Some(3));
    assert_eq!(all.prior.len(), 5);
    assert_eq!(context(first_turn(), Some(9)), all);
}
