//! Tests of tool calls in prompts: grouping, order of outputs, and calls without outputs.

use llm::request::Message;
use serde_json::{Value, json};

use crate::responses::input::prompt::{assemble, fit};

fn message(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}

fn output(id: &str, output: Value) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": output })
}

/// Returns each message as a line with its text, its calls and the call it answers.
fn lines(messages: impl IntoIterator<Item = Message>) -> Vec<String> {
    let line = |it: Message| {
        let calls: Vec<&str> = it.calls.iter().map(|it| it.id.as_str()).collect();
        let answers = it.answers.map_or_else(String::new, |it| it.id);
        format!("{}|{}|{answers}", it.content, calls.join(","))
    };
    messages.into_iter().map(line).collect()
}

fn prompt_lines(prior: &[Value], input: &[Value]) -> Vec<String> {
    let all = assemble(None, prior, input).into_iter();
    lines(all.map(|it| it.message))
}

#[test]
fn calls_of_an_iteration_are_one_message_and_outputs_follow_in_their_order() {
    let prior = [
        message("user", "hi"),
        message("assistant", "let me see"),
        call("a"),
        call("b"),
    ];
    let parts =
        json!([{ "type": "input_text", "text": "B" }, { "type": "input_text", "text": "2" }]);
    let input = [
        output("b", parts),
        output("a", json!("A")),
        message("user", "so?"),
    ];

    assert_eq!(
        prompt_lines(&prior, &input),
        ["hi||", "let me see|a,b|", "A||a", "B\n2||b", "so?||"]
    );
}

#[test]
fn a_call_group_ends_at_an_output_and_at_reasoning() {
    let items = [
        call("a"),
        output("a", json!("A")),
        call("b"),
        json!({ "type": "reasoning", "summary": [] }),
        call("c"),
        output("c", json!("C")),
        output("b", json!("B")),
    ];

    assert_eq!(
        prompt_lines(&[], &items),
        ["|a|", "A||a", "|b|", "B||b", "|c|", "C||c"]
    );
}

#[test]
fn incomplete_calls_are_not_in_the_prompt() {
    let mut broken = call("a");
    broken["status"] = json!("incomplete");
    let items = [broken, call("b"), output("c", json!("C"))];

    assert_eq!(prompt_lines(&[], &items), Vec::<String>::new());
}

#[test]
fn every_kind_of_call_is_a_function_to_the_model() {
    let items = [
        json!({ "type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT" }),
        json!({ "type": "local_shell_call", "call_id": "b", "action": { "type": "exec", "command": ["ls"] } }),
        json!({ "type": "troupe:time", "call_id": "c", "arguments": "{}", "output": "noon", "error": null }),
        json!({ "type": "troupe:dice", "call_id": "d", "arguments": "{}", "output": null, "error": "no" }),
        json!({ "type": "custom_tool_call_output", "call_id": "a", "output": "1" }),
        json!({ "type": "local_shell_call_output", "call_id": "b", "output": "x" }),
    ];

    let all: Vec<Message> = assemble(None, &[], &items)
        .into_iter()
        .map(|it| it.message)
        .collect();

    let calls: Vec<(&str, &str)> = all[0]
        .calls
        .iter()
        .map(|it| (it.name.as_str(), it.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("sql", r#"{"input":"SELECT"}"#),
            ("local_shell", r#"{"command":["ls"]}"#),
            ("troupe_time", "{}"),
            ("troupe_dice", "{}"),
        ]
    );
    let outputs: Vec<&str> = all[1..].iter().map(|it| it.content.as_str()).collect();
    assert_eq!(outputs, ["1", "x", "noon", "Error: no"]);
}

#[test]
fn a_call_and_its_outputs_are_dropped_together() {
    let prior = [
        message("user", "one"),
        call("a"),
        output("a", json!("A")),
        message("assistant", "first"),
        message("user", "two"),
        call("b"),
    ];
    let input = [output("b", json!("B"))];
    let all = assemble(None, &prior, &input);

    let fitted = fit(all, Some(30), 0, true, &|_| 1).unwrap();

    assert_eq!(lines(fitted), ["two||", "|b|", "B||b"]);
}

#[test]
fn a_long_server_tool_output_is_truncated() {
    let long = "é".repeat(40_000);
    let items = [json!({ "type": "troupe:x", "call_id": "a", "arguments": "{}", "output": long })];

    let all = assemble(None, &[], &items);

    let content = &all[1].message.content;
    assert!(
        content.len() < 66_000 && content.ends_with("it is 80000 bytes long.]"),
        "{}",
        content.len()
    );
}
