//! Tests which bodies of chat completions are accepted, and which items their messages become.

use serde_json::{Value, json};

use crate::request::chat::chat_completion::{CreateChatCompletion, KNOWN_FIELDS};
use crate::request::text_config::TextFormat;
use crate::request::tools::tool_choice::RequestedChoice;
use crate::schemas::chat_body::ChatCompletionBody;
use crate::schemas::request_values;

fn parse(fields: Value) -> Result<CreateChatCompletion, (&'static str, String)> {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi." }] });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let parsed = CreateChatCompletion::parse(body.as_object().unwrap());
    parsed.map_err(|it| (it.code, it.param))
}

fn items(messages: Value) -> Vec<Value> {
    let mut items = parse(json!({ "messages": messages })).unwrap().input;
    for item in &mut items {
        let item = item.as_object_mut().unwrap();
        item.shift_remove("id");
        item.shift_remove("status");
    }
    items
}

#[test]
fn an_assistant_message_with_calls_becomes_a_message_and_its_calls() {
    let messages = json!([
        { "role": "system", "content": [{ "type": "text", "text": "Be kind." }] },
        { "role": "assistant", "content": "One moment.", "reasoning_content": "Hm.", "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            { "id": "b", "type": "custom", "custom": { "name": "g", "input": "x" } },
        ] },
        { "role": "tool", "tool_call_id": "b", "content": "2" },
        { "role": "tool", "tool_call_id": "a", "content": [{ "type": "text", "text": "1" }] },
    ]);

    let request = parse(json!({ "messages": messages.clone() })).unwrap();

    assert_eq!(request.message_positions, [0, 1, 1, 1, 1, 2, 3]);
    assert_eq!(
        json!(items(messages)),
        json!([
            { "type": "message", "role": "system", "content": [{ "type": "input_text", "text": "Be kind." }] },
            { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Hm." }] },
            { "type": "message", "role": "assistant", "content": [
                { "type": "output_text", "text": "One moment.", "annotations": [], "logprobs": [] },
            ] },
            { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" },
            { "type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x" },
            { "type": "function_call_output", "call_id": "b", "output": "2" },
            { "type": "function_call_output", "call_id": "a", "output": [{ "type": "input_text", "text": "1" }] },
        ])
    );
}

#[test]
fn a_deprecated_function_call_and_its_output_get_the_same_id() {
    let items = items(json!([
        { "role": "assistant", "content": null, "function_call": { "name": "f", "arguments": "{}" } },
        { "role": "function", "name": "f", "content": "1" },
    ]));

    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["call_id"], items[1]["call_id"]);
}

#[test]
fn names_and_speakers_are_kept() {
    let items = items(json!([
        { "role": "user", "name": "Eve", "content": "Hi." },
        { "role": "assistant", "name": "Ada", "content": "Hi." },
        { "role": "assistant", "content": "Hi.", "troupe": { "speaker": "Bob", "membership_id": 2 } },
    ]));

    let of: Vec<&Value> = items.iter().map(|it| &it["metadata"]).collect();
    assert_eq!(
        json!(of),
        json!([{ "speaker": "Eve" }, { "speaker": "Ada" }, { "speaker": "Bob", "membership_id": 2 }])
    );
}

#[test]
fn fields_without_effect_are_named() {
    let request = parse(json!({
        "wobble": 1, "user": "u", "store": true, "web_search_options": {}, "top_k": null,
        "service_tier": "flex", "modalities": ["text"], "n": 1, "verbosity": "low",
    }));

    assert_eq!(
        request.unwrap().ignored,
        [
            "wobble",
            "user",
            "web_search_options",
            "verbosity",
            "store",
            "service_tier"
        ]
    );
    let default = parse(json!({ "store": false, "service_tier": "auto", "stream": true }));
    assert!(default.unwrap().ignored.is_empty());
}

#[test]
fn tools_and_deprecated_functions_are_read_alike() {
    let function = json!({ "name": "f", "parameters": { "type": "object" } });
    let tools = parse(json!({
        "tools": [{ "type": "function", "function": function }],
        "tool_choice": { "type": "function", "function": { "name": "f" } },
    }));
    let functions = parse(json!({ "functions": [function], "function_call": { "name": "f" } }));

    let (tools, functions) = (tools.unwrap(), functions.unwrap());
    assert_eq!(tools.tools, functions.tools);
    assert_eq!(tools.tool_choice, functions.tool_choice);
    let allowed = parse(json!({
        "tools": [{ "type": "function", "function": function }],
        "tool_choice": { "type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{ "type": "function", "function": { "name": "f" } }],
        } },
    }));
    let choice = allowed.unwrap().tool_choice;
    assert!(matches!(choice, RequestedChoice::Allowed { .. }));
}

#[test]
fn limits_formats_and_samplers_are_read() {
    let request = parse(json!({
        "max_tokens": 9, "max_completion_tokens": 7, "stop": "END", "seed": 3,
        "logit_bias": { "50256": -100 }, "logprobs": true, "top_logprobs": 2,
        "response_format": { "type": "json_schema", "json_schema": { "name": "r", "schema": {} } },
        "stream_options": { "include_usage": true },
    }));

    let request = request.unwrap();
    assert_eq!(request.sampling.max_output_tokens, Some(7));
    assert_eq!(
        (request.stop, request.seed),
        (vec!["END".to_owned()], Some(3))
    );
    assert_eq!(request.logit_bias["50256"], -100.0);
    assert_eq!(request.sampling.top_logprobs, Some(2));
    assert!(matches!(request.format, TextFormat::JsonSchema(_)));
    assert!(request.include_usage);
}

#[test]
fn an_invalid_field_is_rejected_with_its_path() {
    let message = |message: Value| json!({ "messages": [message] });
    for (fields, code, param) in [
        (json!({ "n": 5 }), "invalid_value", "n"),
        (json!({ "n": 0 }), "invalid_value", "n"),
        (json!({ "audio": {} }), "unsupported_parameter", "audio"),
        (
            json!({ "modalities": ["audio"] }),
            "unsupported_parameter",
            "modalities",
        ),
        (json!({ "messages": [] }), "invalid_value", "messages"),
        (
            json!({ "messages": null }),
            "missing_required_parameter",
            "messages",
        ),
        (
            json!({ "model": "" }),
            "missing_required_parameter",
            "model",
        ),
        (
            json!({ "stop": ["1", "2", "3", "4", "5"] }),
            "invalid_value",
            "stop",
        ),
        (json!({ "top_logprobs": 2 }), "invalid_value", "logprobs"),
        (json!({ "max_tokens": 0 }), "invalid_value", "max_tokens"),
        (
            json!({ "logit_bias": { "1": 101 } }),
            "invalid_value",
            "logit_bias.1",
        ),
        (
            json!({ "tools": [{ "type": "mcp" }] }),
            "unsupported_tool",
            "tools[0].type",
        ),
        (
            json!({ "tools": [{ "type": "function" }] }),
            "missing_required_parameter",
            "tools[0].function",
        ),
        (
            json!({ "tool_choice": "required" }),
            "invalid_value",
            "tool_choice",
        ),
        (
            json!({ "response_format": { "type": "xml" } }),
            "invalid_value",
            "response_format.type",
        ),
        (
            message(json!({ "role": "bot", "content": "x" })),
            "invalid_value",
            "messages[0].role",
        ),
        (
            message(json!({ "role": "user" })),
            "missing_required_parameter",
            "messages[0].content",
        ),
        (
            message(json!({ "role": "assistant" })),
            "missing_required_parameter",
            "messages[0].content",
        ),
        (
            message(json!({ "role": "tool", "content": "x" })),
            "missing_required_parameter",
            "messages[0].tool_call_id",
        ),
        (
            message(json!({ "role": "function", "name": "f", "content": "x" })),
            "unknown_tool_call",
            "messages[0].role",
        ),
        (
            message(json!({ "role": "user", "content": [{ "type": "input_audio" }] })),
            "unsupported_parameter",
            "messages[0].content[0].type",
        ),
        (
            message(
                json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "x" } }] }),
            ),
            "invalid_image",
            "messages[0].content[0].image_url.url",
        ),
    ] {
        assert_eq!(
            parse(fields.clone()),
            Err((code, param.to_owned())),
            "{fields}"
        );
    }
}

#[test]
fn the_api_document_has_every_supported_field() {
    let documented = request_values::field_names::<ChatCompletionBody>();

    for name in KNOWN_FIELDS.iter().filter(|it| **it != "audio") {
        assert!(documented.iter().any(|it| it == name), "{name}");
    }
}
