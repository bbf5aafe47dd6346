//! What a request may say, and how it is told what it may not.

use super::parse;
use serde_json::Value;
use serde_json::json;

/// The code and the param with which a request is refused that has these fields beside the needed.
fn refusal(extra: Value) -> (String, String) {
    let mut body = json!({ "model": "m", "input": "Hi." });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    let problem = parse(body.as_object().unwrap()).expect_err(&extra.to_string());
    assert_eq!(problem.status, 400);
    (problem.code.to_owned(), problem.param.unwrap_or_default())
}

fn refused(extra: Value, code: &str, param: &str) {
    assert_eq!(refusal(extra), (code.to_owned(), param.to_owned()));
}

#[test]
fn what_does_not_fit_is_named() {
    refused(
        json!({ "model": null }),
        "missing_required_parameter",
        "model",
    );
    refused(
        json!({ "input": null }),
        "missing_required_parameter",
        "input",
    );
    refused(json!({ "input": 42 }), "invalid_type", "input");
    refused(json!({ "input": [] }), "invalid_value", "input");
    refused(json!({ "temperature": 5 }), "invalid_value", "temperature");
    refused(json!({ "stream": "yes" }), "invalid_type", "stream");
    refused(json!({ "colour": 1 }), "unknown_parameter", "colour");
    refused(json!({ "prompt": {} }), "unsupported_parameter", "prompt");
    refused(
        json!({ "max_output_tokens": 15 }),
        "invalid_value",
        "max_output_tokens",
    );
    refused(
        json!({ "top_logprobs": 21 }),
        "invalid_value",
        "top_logprobs",
    );
    refused(
        json!({ "truncation": "some" }),
        "invalid_value",
        "truncation",
    );
    refused(json!({ "include": ["all"] }), "invalid_value", "include[0]");
    refused(
        json!({ "reasoning": { "effort": 1 } }),
        "invalid_type",
        "reasoning.effort",
    );
    refused(
        json!({ "tools": [{ "type": "web_search" }] }),
        "unsupported_tool",
        "tools[0].type",
    );
    refused(
        json!({ "tool_choice": "required" }),
        "invalid_value",
        "tool_choice",
    );
    let schema = json!({ "text": { "format": { "type": "json_schema" } } });
    refused(schema, "invalid_value", "text.format.name");
}

#[test]
fn items_are_judged_with_the_path_to_what_is_wrong() {
    let item = |item: Value| json!({ "input": [{ "role": "user", "content": "Hi." }, item] });

    refused(
        item(json!({ "type": "dream" })),
        "invalid_value",
        "input[1].type",
    );
    refused(
        item(json!({ "type": "computer_call" })),
        "unsupported_tool",
        "input[1].type",
    );
    refused(
        item(json!({ "role": "critic", "content": "x" })),
        "invalid_value",
        "input[1].role",
    );
    refused(
        item(json!({ "role": "user" })),
        "missing_required_parameter",
        "input[1].content",
    );
    refused(
        item(json!({ "role": "user", "content": [{ "type": "input_image" }] })),
        "invalid_type",
        "input[1].content[0].image_url",
    );
    refused(item(json!(7)), "invalid_type", "input[1]");
}

#[test]
fn a_wrong_type_is_named_however_deep_it_is() {
    let said = |part: Value| json!({ "role": "assistant", "content": [part] });
    let called = |action: Value| {
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
        said(all)
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
        (called(json!({ "env": { "A": 1 } })), "action.env.A"),
        (called(json!({ "timeout_ms": "1" })), "action.timeout_ms"),
        (called(json!({ "user": 1 })), "action.user"),
        (
            called(json!({ "working_directory": [] })),
            "action.working_directory",
        ),
    ] {
        let param = format!("input[0].{path}");
        refused(json!({ "input": [item] }), "invalid_type", &param);
    }
    let other = json!([{ "type": "reasoning", "summary": [{ "type": "text", "text": "so" }] }]);
    refused(
        json!({ "input": other }),
        "invalid_value",
        "input[0].summary[0].type",
    );
}

#[test]
fn what_no_field_is_called_is_named_inside_another_too() {
    for (given, param) in [
        (json!({ "reasoning": { "budget": 1 } }), "reasoning.budget"),
        (json!({ "text": { "colour": 1 } }), "text.colour"),
        (
            json!({ "stream_options": { "include_usage": true } }),
            "stream_options.include_usage",
        ),
    ] {
        refused(given, "unknown_parameter", param);
    }
    refused(
        json!({ "stream_options": { "include_obfuscation": "yes" } }),
        "invalid_type",
        "stream_options.include_obfuscation",
    );
}

#[test]
fn how_likely_tokens_are_is_told_to_whoever_asks_in_either_way() {
    let asked = |extra: Value| {
        let mut body = json!({ "model": "m", "input": "Hi." });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let kept = parse(body.as_object().unwrap()).unwrap().kept;
        (
            kept.sampling.top_logprobs,
            kept.echo["top_logprobs"].clone(),
        )
    };
    let include = json!(["message.output_text.logprobs"]);

    assert_eq!(asked(json!({})), (None, json!(0)));
    assert_eq!(asked(json!({ "top_logprobs": 0 })), (None, json!(0)));
    assert_eq!(asked(json!({ "top_logprobs": 3 })), (Some(3), json!(3)));
    assert_eq!(asked(json!({ "include": include })), (Some(0), json!(0)));
}

#[test]
fn metadata_is_bounded() {
    let pairs = |n: usize| {
        (0..n)
            .map(|it| (it.to_string(), json!("x")))
            .collect::<Value>()
    };

    refused(
        json!({ "metadata": pairs(17) }),
        "invalid_value",
        "metadata",
    );
    refused(
        json!({ "metadata": { "a": "x".repeat(513) } }),
        "invalid_value",
        "metadata.a",
    );
    refused(
        json!({ "metadata": { "a": 1 } }),
        "invalid_type",
        "metadata.a",
    );
}

#[test]
fn what_promises_a_later_look_is_stored() {
    refused(
        json!({ "store": false, "background": true }),
        "background_requires_store",
        "background",
    );
    refused(
        json!({ "store": false, "conversation": "conv_1" }),
        "conversation_requires_store",
        "conversation",
    );
    refused(
        json!({ "previous_response_id": "resp_1", "conversation": { "id": "conv_1" } }),
        "mutually_exclusive_parameters",
        "previous_response_id",
    );
}

#[test]
fn what_was_asked_for_is_echoed_with_what_holds_beside_it() {
    let body = json!({
        "model": "m", "input": "Hi.", "metadata": { "store": "false" }, "top_p": 0.5,
        "temperature": null,
    });

    let spec = parse(body.as_object().unwrap()).unwrap();

    assert!(spec.store && !spec.stream && !spec.background);
    assert_eq!(spec.kept.echo["metadata"]["store"], "false");
    assert_eq!(spec.kept.echo["temperature"], 1.0);
    assert_eq!(
        spec.kept.sampling.temperature, None,
        "only what was given goes on"
    );
    assert_eq!(spec.kept.sampling.top_p, Some(0.5));
    assert_eq!(spec.input[0]["content"][0]["text"], "Hi.");
}
