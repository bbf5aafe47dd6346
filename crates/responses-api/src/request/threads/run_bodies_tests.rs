//! Tests how requests about runs are parsed.

use serde_json::{Map, Value, json};

use super::{CreateThreadRun, SubmitToolOutputs, ThreadRunSettings, parse_run_change};
use crate::request::error::RequestError;
use crate::request::server_rules::ServerRules;
use crate::request::text_config::TextFormat;

const RULES: ServerRules = ServerRules {
    is_builtin_tool: |name| name == "dice",
    is_allowed_header: |_, _| true,
    has_web_search: false,
};

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn assistant() -> Map<String, Value> {
    fields(json!({
        "model": "m", "instructions": "Be kind.", "tools": [{ "type": "troupe:dice" }],
        "temperature": 0.5, "top_p": null, "response_format": { "type": "json_object" },
    }))
}

fn settings(body: Value) -> Result<ThreadRunSettings, RequestError> {
    ThreadRunSettings::parse(&fields(body), &assistant(), &RULES)
}

fn location<T: std::fmt::Debug>(parsed: Result<T, RequestError>) -> (&'static str, String) {
    let error = parsed.unwrap_err();
    (error.code, error.param)
}

#[test]
fn a_run_has_the_settings_of_its_assistant() {
    let run = settings(json!({ "assistant_id": "a" })).unwrap();

    assert_eq!(run.model, "m");
    assert_eq!(run.instructions.as_deref(), Some("Be kind."));
    assert_eq!(run.sampling.temperature, Some(0.5));
    assert_eq!(run.format, TextFormat::JsonObject);
    assert_eq!(run.tools.len(), 1);
    assert_eq!(run.echo["tools"], json!([{ "type": "troupe:dice" }]));
    let strategy = json!({ "type": "auto", "last_messages": null });
    assert_eq!(run.echo["truncation_strategy"], strategy);
    assert_eq!(run.echo["tool_choice"], "auto");
}

#[test]
fn a_request_replaces_settings_of_the_assistant() {
    let function = json!({ "type": "function", "function": { "name": "look" } });
    let run = settings(json!({
        "model": "n", "instructions": "Be brief.", "additional_instructions": "Rhyme.",
        "tools": [function], "tool_choice": { "type": "function", "function": { "name": "look" } },
        "temperature": 1, "response_format": "auto", "max_completion_tokens": 9,
        "truncation_strategy": { "type": "last_messages", "last_messages": 3 },
    }));

    let run = run.unwrap();
    assert_eq!(run.model, "n");
    assert_eq!(run.instructions.as_deref(), Some("Be brief.\n\nRhyme."));
    assert_eq!(
        (run.format, run.n_last_messages),
        (TextFormat::Text, Some(3))
    );
    assert_eq!(run.sampling.max_output_tokens, Some(9));
    assert_eq!(run.echo["response_format"], "auto");
    assert_eq!(run.echo["tools"], json!([function]));
    assert_eq!(run.echo["max_completion_tokens"], 9);
}

#[test]
fn invalid_settings_are_rejected_with_their_path() {
    let strategy = |strategy: Value| json!({ "truncation_strategy": strategy });
    for (body, code, param) in [
        (json!({ "model": 1 }), "invalid_type", "model"),
        (json!({ "temperature": 3 }), "invalid_value", "temperature"),
        (
            json!({ "reasoning_effort": "x" }),
            "invalid_value",
            "reasoning_effort",
        ),
        (
            json!({ "response_format": "json" }),
            "invalid_value",
            "response_format",
        ),
        (
            json!({ "max_prompt_tokens": 0 }),
            "invalid_value",
            "max_prompt_tokens",
        ),
        (
            json!({ "tools": [{ "type": "file_search" }] }),
            "unsupported_tool",
            "tools[0].type",
        ),
        (
            json!({ "tool_choice": "some" }),
            "invalid_value",
            "tool_choice",
        ),
        (
            json!({ "tool_choice": { "type": "function", "function": { "name": "look" } } }),
            "invalid_value",
            "tool_choice.name",
        ),
        (
            strategy(json!({ "type": "oldest" })),
            "invalid_value",
            "truncation_strategy.type",
        ),
        (
            strategy(json!({ "type": "last_messages" })),
            "missing_required_parameter",
            "truncation_strategy.last_messages",
        ),
    ] {
        let found = location(settings(body.clone()));

        assert_eq!(found, (code, param.to_owned()), "{body}");
    }
}

#[test]
fn a_run_requires_an_assistant_and_may_contain_messages_or_a_thread() {
    let message = json!({ "role": "user", "content": "Hi." });
    let hidden = json!({ "role": "user", "content": "Psst.", "hidden": true });
    let body = json!({ "assistant_id": "a", "additional_messages": [message, hidden] });

    let run = CreateThreadRun::parse(&fields(body)).unwrap();
    let with_thread = json!({ "assistant_id": "a", "thread": { "messages": [message] } });
    let created = CreateThreadRun::parse_with_thread(&fields(with_thread.clone())).unwrap();

    let hidden: Vec<bool> = run
        .additional_messages
        .iter()
        .map(|it| it.is_hidden)
        .collect();
    assert_eq!(hidden, [false, true]);
    assert_eq!(created.thread.unwrap().messages.len(), 1);
    for (body, code, param) in [
        (json!({}), "missing_required_parameter", "assistant_id"),
        (with_thread, "unknown_parameter", "thread"),
        (
            json!({ "assistant_id": "a", "stream": 1 }),
            "invalid_type",
            "stream",
        ),
    ] {
        let found = location(CreateThreadRun::parse(&fields(body)));

        assert_eq!(found, (code, param.to_owned()));
    }
}

#[test]
fn outputs_name_their_calls() {
    let output = json!({ "tool_call_id": "call_1", "output": "rain" });

    let parsed = SubmitToolOutputs::parse(&fields(json!({ "tool_outputs": [output] }))).unwrap();

    assert_eq!(parsed.outputs[0].call_id, "call_1");
    assert_eq!(parsed.outputs[0].output, "rain");
    assert!(!parsed.stream);
    for (body, code, param) in [
        (json!({}), "missing_required_parameter", "tool_outputs"),
        (
            json!({ "tool_outputs": {} }),
            "invalid_type",
            "tool_outputs",
        ),
        (
            json!({ "tool_outputs": [{ "output": "x" }] }),
            "missing_required_parameter",
            "tool_outputs[0].tool_call_id",
        ),
        (
            json!({ "tool_outputs": [{ "tool_call_id": "a", "output": 1 }] }),
            "invalid_type",
            "tool_outputs[0].output",
        ),
    ] {
        let found = location(SubmitToolOutputs::parse(&fields(body)));

        assert_eq!(found, (code, param.to_owned()));
    }
}

#[test]
fn only_the_metadata_of_a_run_can_be_changed() {
    let change = |body: Value| parse_run_change(&fields(body));

    assert_eq!(change(json!({})).unwrap(), None);
    assert_eq!(change(json!({ "metadata": {} })).unwrap(), Some(Map::new()));
    assert_eq!(
        change(json!({ "model": "n" })).unwrap_err().code,
        "unknown_parameter"
    );
}
