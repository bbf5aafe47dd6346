//! Tests of request parsing: accepted fields, and the error for each invalid one.

use responses_api::request::create_response::CreateResponse;
use responses_api::request::error::RequestError;
use serde_json::{Value, json};

use super::ResponseRequest;
use crate::responses::tool_declarations::SERVER_RULES;

fn parse(body: &Value) -> Result<ResponseRequest, RequestError> {
    CreateResponse::parse(body.as_object().unwrap(), &SERVER_RULES).map(Into::into)
}

/// Returns the code and the param of the error for a minimal request plus these fields.
fn rejection(extra: Value) -> (String, String) {
    let mut body = json!({ "model": "m", "input": "Hi." });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    let error = parse(&body).expect_err(&extra.to_string());
    (error.code.to_owned(), error.param)
}

fn assert_rejected(extra: Value, code: &str, param: &str) {
    assert_eq!(rejection(extra), (code.to_owned(), param.to_owned()));
}

#[test]
fn an_invalid_parameter_is_named() {
    assert_rejected(
        json!({ "model": null }),
        "missing_required_parameter",
        "model",
    );
    assert_rejected(
        json!({ "input": null }),
        "missing_required_parameter",
        "input",
    );
    assert_rejected(json!({ "input": 42 }), "invalid_type", "input");
    assert_rejected(json!({ "input": [] }), "invalid_value", "input");
    assert_rejected(json!({ "temperature": 5 }), "invalid_value", "temperature");
    assert_rejected(json!({ "stream": "yes" }), "invalid_type", "stream");
    assert_rejected(json!({ "colour": 1 }), "unknown_parameter", "colour");
    assert_rejected(json!({ "prompt": {} }), "unsupported_parameter", "prompt");
    assert_rejected(
        json!({ "max_output_tokens": 0 }),
        "invalid_value",
        "max_output_tokens",
    );
    assert_rejected(
        json!({ "top_logprobs": 21 }),
        "invalid_value",
        "top_logprobs",
    );
    assert_rejected(
        json!({ "truncation": "some" }),
        "invalid_value",
        "truncation",
    );
    assert_rejected(json!({ "include": ["all"] }), "invalid_value", "include[0]");
    assert_rejected(
        json!({ "reasoning": { "effort": 1 } }),
        "invalid_type",
        "reasoning.effort",
    );
    assert_rejected(
        json!({ "tools": [{ "type": "search" }] }),
        "unsupported_tool",
        "tools[0].type",
    );
    assert_rejected(
        json!({ "tool_choice": "required" }),
        "invalid_value",
        "tool_choice",
    );
    let schema = json!({ "text": { "format": { "type": "json_schema" } } });
    assert_rejected(schema, "invalid_value", "text.format.name");
}

#[test]
fn an_invalid_item_is_rejected_with_its_path() {
    let item = |item: Value| json!({ "input": [{ "role": "user", "content": "Hi." }, item] });

    assert_rejected(
        item(json!({ "type": "dream" })),
        "invalid_value",
        "input[1].type",
    );
    assert_rejected(
        item(json!({ "role": "critic", "content": "x" })),
        "invalid_value",
        "input[1].role",
    );
    assert_rejected(
        item(json!({ "role": "user" })),
        "missing_required_parameter",
        "input[1].content",
    );
    assert_rejected(
        item(json!({ "role": "user", "content": [{ "type": "input_image" }] })),
        "invalid_type",
        "input[1].content[0].image_url",
    );
    assert_rejected(item(json!(7)), "invalid_type", "input[1]");
}

#[test]
fn a_wrong_type_is_reported_with_its_path_at_any_depth() {
    let assistant_message = |part: Value| json!({ "role": "assistant", "content": [part] });
    let shell_call = |action: Value| {
        let mut all = json!({ "type": "exec", "command": ["ls"] });
        for (name, value) in action.as_object().unwrap() {
            all[name] = value.clone();
        }
        json!({ "type": "local_shell_call", "call_id": "c", "action": all })
    };
    let text = |more: Value| {
        let mut all = json!({ "type": "output_text", "text": "x" });
        for (name, value) in more.as_object().unwrap() {
            all[name] = value.clone();
        }
        assistant_message(all)
    };
    for (item, path) in [
        (
            text(json!({ "annotations": "none" })),
            "content[0].annotations",
        ),
        (text(json!({ "logprobs": [7] })), "content[0].logprobs[0]"),
        (
            json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": 7 }] }),
            "summary[0].text",
        ),
        (
            json!({ "type": "reasoning", "summary": ["so"] }),
            "summary[0]",
        ),
        (
            json!({ "type": "reasoning", "summary": [], "content": "so" }),
            "content",
        ),
        (
            json!({ "type": "reasoning", "summary": [], "encrypted_content": 7 }),
            "encrypted_content",
        ),
        (shell_call(json!({ "env": { "A": 1 } })), "action.env.A"),
        (
            shell_call(json!({ "timeout_ms": "1" })),
            "action.timeout_ms",
        ),
        (shell_call(json!({ "user": 1 })), "action.user"),
        (
            shell_call(json!({ "working_directory": [] })),
            "action.working_directory",
        ),
    ] {
        let param = format!("input[0].{path}");
        assert_rejected(json!({ "input": [item] }), "invalid_type", &param);
    }
    let other = json!([{ "type": "reasoning", "summary": [{ "type": "text", "text": "so" }] }]);
    assert_rejected(
        json!({ "input": other }),
        "invalid_value",
        "input[0].summary[0].type",
    );
}

#[test]
fn an_unknown_nested_parameter_is_named() {
    for (given, param) in [
        (json!({ "reasoning": { "budget": 1 } }), "reasoning.budget"),
        (json!({ "text": { "colour": 1 } }), "text.colour"),
        (
            json!({ "stream_options": { "include_usage": true } }),
            "stream_options.include_usage",
        ),
    ] {
        assert_rejected(given, "unknown_parameter", param);
    }
    assert_rejected(
        json!({ "stream_options": { "include_obfuscation": "yes" } }),
        "invalid_type",
        "stream_options.include_obfuscation",
    );
}

#[test]
fn logprobs_can_be_requested_in_two_ways() {
    let logprobs_of = |extra: Value| {
        let mut body = json!({ "model": "m", "input": "Hi." });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let kept = parse(&body).unwrap().stored;
        (
            kept.sampling.top_logprobs,
            kept.echo["top_logprobs"].clone(),
        )
    };
    let include = json!(["message.output_text.logprobs"]);

    assert_eq!(logprobs_of(json!({})), (None, json!(0)));
    assert_eq!(logprobs_of(json!({ "top_logprobs": 0 })), (None, json!(0)));
    assert_eq!(
        logprobs_of(json!({ "top_logprobs": 3 })),
        (Some(3), json!(3))
    );
    assert_eq!(
        logprobs_of(json!({ "include": include })),
        (Some(0), json!(0))
    );
}

#[test]
fn metadata_is_bounded() {
    let pairs = |n: usize| {
        (0..n)
            .map(|it| (it.to_string(), json!("x")))
            .collect::<Value>()
    };

    assert_rejected(
        json!({ "metadata": pairs(17) }),
        "invalid_value",
        "metadata",
    );
    assert_rejected(
        json!({ "metadata": { "a": "x".repeat(513) } }),
        "invalid_value",
        "metadata.a",
    );
    assert_rejected(
        json!({ "metadata": { "a": 1 } }),
        "invalid_type",
        "metadata.a",
    );
}

#[test]
fn background_and_conversation_require_store() {
    assert_rejected(
        json!({ "store": false, "background": true }),
        "background_requires_store",
        "background",
    );
    assert_rejected(
        json!({ "store": false, "conversation": "conv_1" }),
        "conversation_requires_store",
        "conversation",
    );
    assert_rejected(
        json!({ "previous_response_id": "resp_1", "conversation": { "id": "conv_1" } }),
        "mutually_exclusive_parameters",
        "previous_response_id",
    );
}

#[test]
fn the_request_is_echoed_with_defaults() {
    let body = json!({
        "model": "m", "input": "Hi.", "metadata": { "store": "false" }, "top_p": 0.5,
        "temperature": null,
    });

    let spec = parse(&body).unwrap();

    assert!(spec.store && !spec.stream && !spec.background);
    assert_eq!(spec.stored.echo["metadata"]["store"], "false");
    assert_eq!(spec.stored.echo["temperature"], 1.0);
    assert_eq!(
        spec.stored.sampling.temperature, None,
        "only given values are sent to the model"
    );
    assert_eq!(spec.stored.sampling.top_p, Some(0.5));
    assert_eq!(spec.input[0]["content"][0]["text"], "Hi.");
}
