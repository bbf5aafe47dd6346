//! Every valid request of a list, and each of them with one field removed, added or replaced by a
//! value of another type: what it is parsed to, or its error, compared with a file.
//!
//! To write the file again after an intended change, delete it and run the test.

use std::fs;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::responses::request::ResponseRequest;
use crate::web::v1::compact;
use crate::web::v1::error::V1Result;
use crate::web::v1::parsing::request;

const FILE: &str = "tests/fixtures/v1/requests.txt";

const PNG: &str = "data:image/png;base64,iVBORw0KGgou";
const PDF: &str = "data:application/pdf;base64,JVBERi0xLjc=";

#[test]
fn requests_are_parsed_as_recorded() {
    let mut lines = Vec::new();
    for (name, body) in valid_requests() {
        lines.push(format!("{name}: {}", outcome(&name, &body)));
        for (place, changed) in changes(&body) {
            let mut values_by_outcome: Vec<(String, Vec<String>)> = Vec::new();
            for (value, body) in changed {
                let outcome = shortened(outcome(&name, &body));
                match values_by_outcome.iter_mut().find(|it| it.0 == outcome) {
                    Some((_, values)) => values.push(value),
                    None => values_by_outcome.push((outcome, vec![value])),
                }
            }
            for (outcome, values) in values_by_outcome {
                lines.push(format!("  {place} = {}: {outcome}", values.join(" ")));
            }
        }
    }
    for (name, body) in other_requests() {
        lines.push(format!("{name}: {}", outcome(&name, &body)));
    }
    let found = lines.join("\n") + "\n";

    let Ok(recorded) = fs::read_to_string(FILE) else {
        fs::create_dir_all("tests/fixtures/v1").unwrap();
        fs::write(FILE, found).unwrap();
        panic!("{FILE} was missing and is written now");
    };
    for (found, recorded) in found.lines().zip(recorded.lines()) {
        assert_eq!(found, recorded);
    }
    assert_eq!(found.lines().count(), recorded.lines().count());
}

/// Parses a body with the parser that the name of the case selects.
fn outcome(name: &str, body: &Value) -> String {
    let body = body.as_object().unwrap();
    let parsed: V1Result<ResponseRequest> = match name.starts_with("compact") {
        true => compact::parse(body),
        false => request::parse(body),
    };
    match parsed {
        Ok(request) => normalized(request).to_string(),
        Err(error) => {
            let body = error.body();
            assert_eq!(body["type"], "invalid_request_error");
            let (code, param) = (error.code, error.param.unwrap_or_default());
            format!("{} {code} {param}: {}", error.status, error.message)
        }
    }
}

/// A success is recorded by its digest, an error in full.
fn shortened(outcome: String) -> String {
    match outcome.starts_with("400") {
        true => outcome,
        false => hex::encode(&Sha256::digest(outcome.as_bytes())[..4]),
    }
}

fn normalized(request: ResponseRequest) -> Value {
    let mut all = json!({
        "model": request.model, "input": request.input, "store": request.store,
        "previous_response_id": request.previous_response_id, "stream": request.stream,
        "conversation_id": request.conversation_id, "background": request.background,
        "credentials": request.stored.tools.credentials, "stored": request.stored,
    });
    hide_generated_ids(&mut all);
    all
}

fn hide_generated_ids(value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_generated = text.split_once('_').is_some_and(|(prefix, id)| {
                prefix.bytes().all(|it| it.is_ascii_lowercase())
                    && id.len() == 32
                    && id.bytes().all(|it| it.is_ascii_hexdigit())
            });
            if is_generated {
                text.truncate(text.len() - 32);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_generated_ids),
        Value::Object(fields) => fields.values_mut().for_each(hide_generated_ids),
        _ => {}
    }
}

/// Returns each place of a body, with the bodies that differ from it there alone and a name for
/// each difference.
fn changes(body: &Value) -> Vec<(String, Vec<(String, Value)>)> {
    let mut pointers = Vec::new();
    collect_pointers(body, String::new(), &mut pointers);
    let mut all = Vec::new();
    for pointer in pointers {
        let mut changed = Vec::new();
        let values = [
            json!(null),
            json!(true),
            json!(-7),
            json!("x"),
            json!([]),
            json!([1]),
            json!({}),
        ];
        for value in values {
            let mut body = body.clone();
            *body.pointer_mut(&pointer).unwrap() = value.clone();
            changed.push((value.to_string(), body));
        }
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut without = body.clone();
        if let Some(Value::Object(fields)) = without.pointer_mut(parent) {
            fields.shift_remove(name);
            changed.push(("absent".to_owned(), without));
        }
        let mut with_more = body.clone();
        if let Some(Value::Object(fields)) = with_more.pointer_mut(&pointer) {
            fields.insert("colour".to_owned(), json!("red"));
            changed.push(("more".to_owned(), with_more));
        }
        all.push((pointer, changed));
    }
    all
}

/// Collects the paths of all values below this one.
fn collect_pointers(value: &Value, at: String, found: &mut Vec<String>) {
    for (name, value) in children(value) {
        let at = format!("{at}/{name}");
        // The constant fields of each request vary in the first one only.
        if !["/model", "/input"].contains(&at.as_str()) || value.is_array() {
            found.push(at.clone());
        }
        collect_pointers(value, at, found);
    }
}

fn children(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.map(|(at, it)| (at.to_string(), it)).collect()
        }
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        _ => Vec::new(),
    }
}

fn merged(base: Value, more: Value) -> Value {
    let mut all = base;
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

fn with_item(item: Value) -> Value {
    json!({ "model": "m", "input": [item] })
}

fn with(more: Value) -> Value {
    merged(json!({ "model": "m", "input": "Hi." }), more)
}

fn valid_requests() -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    let mut add = |name: &str, body: Value| all.push((name.to_owned(), body));
    add("model and input", json!({ "model": "m", "input": "Hi." }));
    add(
        "scalars",
        with(json!({
            "temperature": 1, "top_p": 0.5, "presence_penalty": -1.5, "frequency_penalty": 2,
            "max_output_tokens": 16.0, "top_logprobs": 3, "truncation": "auto", "instructions": "Be kind.",
            "store": true, "background": true, "stream": true, "metadata": { "a": "b" }, "user": "u",
            "service_tier": "flex", "safety_identifier": "s", "prompt_cache_key": "k",
            "prompt_cache_retention": "24h", "prompt_cache_options": {}, "max_tool_calls": 3,
            "parallel_tool_calls": false, "stream_options": { "include_obfuscation": true },
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "previous_response_id": "resp_1", "reasoning": { "effort": "low", "summary": "auto", "generate_summary": "concise" },
        })),
    );
    add("conversation", with(json!({ "conversation": "conv_1" })));
    add(
        "conversation object",
        json!({ "model": "m", "conversation": { "id": "conv_1", "x": 1 } }),
    );
    add(
        "previous alone",
        json!({ "model": "m", "previous_response_id": "resp_1" }),
    );
    add(
        "text",
        with(json!({ "text": { "format": { "type": "text" }, "verbosity": "low" } })),
    );
    add(
        "json object",
        with(json!({ "text": { "format": { "type": "json_object" } } })),
    );
    add(
        "json schema",
        with(json!({ "text": { "format": {
        "type": "json_schema", "name": "n", "description": "d", "schema": { "type": "object" }, "strict": true,
    } } })),
    );
    add_items(&mut add);
    add_tools(&mut add);
    add(
        "compact",
        json!({
            "model": "m", "input": [{ "role": "user", "content": "Hi." }], "instructions": "i",
            "previous_response_id": "resp_1", "prompt_cache_key": "k",
        }),
    );
    all
}

fn add_items(add: &mut impl FnMut(&str, Value)) {
    add(
        "short message",
        with_item(json!({ "role": "user", "content": "Hi." })),
    );
    add(
        "message of parts",
        with_item(json!({
            "type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "metadata": { "speaker": "Ann" },
            "content": [
                { "type": "output_text", "text": "a", "annotations": [{}], "logprobs": [{}] },
                { "type": "refusal", "refusal": "no" },
            ],
        })),
    );
    add(
        "assistant text",
        with_item(json!({ "role": "assistant", "content": "Hello." })),
    );
    add(
        "attachments",
        with_item(json!({ "role": "user", "content": [
        { "type": "input_text", "text": "a" }, { "type": "text", "text": "b" },
        { "type": "input_image", "image_url": PNG, "detail": "high", "file_id": null },
        { "type": "input_image", "image_url": "https://example.org/a.png" },
        { "type": "input_file", "filename": "a.pdf", "file_data": PDF },
        { "type": "input_file", "file_url": "https://example.org/a.pdf" },
    ] })),
    );
    add(
        "reasoning",
        with_item(json!({
            "type": "reasoning", "id": "rs_1", "encrypted_content": "x", "status": "incomplete",
            "summary": [{ "type": "summary_text", "text": "a" }],
            "content": [{ "type": "reasoning_text", "text": "b" }],
        })),
    );
    add("bare reasoning", with_item(json!({ "type": "reasoning" })));
    add(
        "reference",
        with_item(json!({ "type": "item_reference", "id": "msg_1", "x": 1 })),
    );
    add("short reference", with_item(json!({ "id": "msg_1" })));
    add(
        "compaction",
        with_item(json!({ "type": "compaction", "encrypted_content": "x" })),
    );
    add(
        "function call",
        with_item(json!({
            "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed",
        })),
    );
    add(
        "function output",
        with_item(json!({ "type": "function_call_output", "call_id": "c", "output": "x" })),
    );
    add(
        "function output parts",
        with_item(
            json!({ "type": "function_call_output", "call_id": "c", "output": [
        { "type": "input_text", "text": "a" }, { "type": "output_text", "text": "b" },
    ] }),
        ),
    );
    add(
        "custom call",
        with_item(json!({ "type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x" })),
    );
    add(
        "custom output",
        with_item(json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "x" })),
    );
    add(
        "shell call",
        with_item(
            json!({ "type": "local_shell_call", "call_id": "c", "action": {
        "type": "exec", "command": ["ls"], "user": "u", "working_directory": "/", "timeout_ms": 5, "env": { "A": "b" },
    } }),
        ),
    );
    add(
        "shell output",
        with_item(json!({ "type": "local_shell_call_output", "call_id": "c", "output": "x" })),
    );
    add(
        "old shell output",
        with_item(json!({ "type": "local_shell_call_output", "id": "c", "output": "x" })),
    );
    add(
        "mcp list",
        with_item(
            json!({ "type": "mcp_list_tools", "server_label": "w", "tools": [{}], "error": null }),
        ),
    );
    add(
        "mcp call",
        with_item(json!({
            "type": "mcp_call", "server_label": "w", "name": "n", "arguments": "{}", "approval_request_id": "a",
            "output": "o", "error": "e",
        })),
    );
    add(
        "approval request",
        with_item(json!({
            "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "w", "name": "n", "arguments": "{}",
        })),
    );
    add(
        "approval response",
        with_item(json!({
            "type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true, "reason": "r",
        })),
    );
    add(
        "server tool",
        with_item(json!({
            "type": "troupe:time", "call_id": "c", "arguments": "{}", "output": "o", "error": "e",
        })),
    );
}

fn add_tools(add: &mut impl FnMut(&str, Value)) {
    let function = json!({ "type": "function", "name": "f" });
    let server = json!({ "type": "mcp", "server_label": "w", "server_url": "https://w.test/mcp" });
    add(
        "tools",
        with(json!({ "tools": [
        { "type": "function", "name": "f", "description": "d", "parameters": { "type": "object" }, "strict": true },
        { "type": "custom", "name": "c", "description": "d", "format": { "type": "grammar", "syntax": "lark", "definition": "x" } },
        { "type": "custom", "name": "e", "format": { "type": "text" } },
        { "type": "local_shell" }, { "type": "troupe:time" },
    ] })),
    );
    add(
        "mcp",
        with(json!({ "tools": [{
        "type": "mcp", "server_label": "w", "server_url": "https://w.test/mcp?key=k", "server_description": "d",
        "authorization": "Bearer t", "headers": { "x-a": "b" }, "allowed_tools": ["n"], "require_approval": "never",
    }, {
        "type": "mcp", "server_label": "v", "server_url": "https://v.test", "allowed_tools": { "tool_names": ["n"], "read_only": true },
        "require_approval": { "always": { "tool_names": ["n"] }, "never": { "read_only": false } },
    }] })),
    );
    for (name, choice) in [
        ("mode", json!("required")),
        ("function choice", function.clone()),
        ("shell choice", json!({ "type": "local_shell" })),
        ("builtin choice", json!({ "type": "troupe:time" })),
        ("custom choice", json!({ "type": "custom", "name": "c" })),
        (
            "server choice",
            json!({ "type": "mcp", "server_label": "w" }),
        ),
        (
            "server tool choice",
            json!({ "type": "mcp", "server_label": "w", "name": "n" }),
        ),
        (
            "allowed tools",
            json!({ "type": "allowed_tools", "mode": "required", "tools": [
            function, { "type": "mcp", "server_label": "w" }, { "type": "mcp", "server_label": "w", "name": "n" }, { "type": "local_shell" },
        ] }),
        ),
    ] {
        let tools = json!([function, server, { "type": "custom", "name": "c" }, { "type": "local_shell" }, { "type": "troupe:time" }]);
        let mut body = with(json!({ "tools": [], "tool_choice": choice }));
        body["tools"] = tools;
        add(name, body);
    }
}

/// Requests that differ in more than one place, or in one that the list above does not reach.
fn other_requests() -> Vec<(String, Value)> {
    let tool = |more: Value| with(json!({ "tools": [{ "type": "function", "name": "g" }, more] }));
    let server = |more: Value| {
        let base = json!({ "type": "mcp", "server_label": "w", "server_url": "https://w.test" });
        with(json!({ "tools": [merged(base, more)] }))
    };
    let function = |n: usize| json!({ "type": "function", "name": format!("f{n}") });
    let mcp = |n: usize| json!({ "type": "mcp", "server_label": format!("f{n}"), "server_url": "https://w.test" });
    let message = |content: Value| with_item(json!({ "role": "user", "content": content }));
    let pairs = |n: usize| {
        (0..n)
            .map(|it| (it.to_string(), json!("x")))
            .collect::<Map<_, _>>()
    };
    let headers = |n: usize| {
        (0..n)
            .map(|it| (format!("x-{it}"), json!("x")))
            .collect::<Map<_, _>>()
    };
    let long = "x".repeat(10 * 1024 * 1024 + 1);
    let all = [
        ("no model", json!({ "input": "x" })),
        ("no input", json!({ "model": "m" })),
        ("empty model", json!({ "model": "", "input": "x" })),
        ("number model", json!({ "model": 7, "input": "x" })),
        ("boolean input", json!({ "model": "m", "input": true })),
        (
            "unsupported and unknown",
            with(json!({ "colour": 1, "moderation": {}, "prompt": {} })),
        ),
        (
            "context management",
            with(json!({ "context_management": [] })),
        ),
        (
            "null unsupported",
            with(json!({ "prompt": null, "context_management": null, "moderation": null })),
        ),
        ("null unknown", with(json!({ "colour": null }))),
        (
            "not stored background",
            with(json!({ "store": false, "background": true })),
        ),
        (
            "not stored conversation",
            with(json!({ "store": false, "conversation": "c" })),
        ),
        (
            "two histories",
            with(json!({ "previous_response_id": "r", "conversation": "c" })),
        ),
        ("metadata pairs", with(json!({ "metadata": pairs(17) }))),
        (
            "metadata value",
            with(json!({ "metadata": { "a": "x".repeat(513) } })),
        ),
        (
            "metadata name",
            with(json!({ "metadata": { "x".repeat(65): "x" } })),
        ),
        (
            "metadata limits",
            with(json!({ "metadata": { "ä".repeat(64): "ä".repeat(512) } })),
        ),
        ("high temperature", with(json!({ "temperature": 2.5 }))),
        ("high top_p", with(json!({ "top_p": 1.5 }))),
        (
            "high penalty",
            with(json!({ "presence_penalty": 2.5, "frequency_penalty": -3 })),
        ),
        ("few tokens", with(json!({ "max_output_tokens": 15 }))),
        (
            "part of a token",
            with(json!({ "max_output_tokens": 16.5 })),
        ),
        (
            "many tokens",
            with(json!({ "max_output_tokens": 5_000_000_000i64 })),
        ),
        ("many logprobs", with(json!({ "top_logprobs": 21 }))),
        ("no logprobs", with(json!({ "top_logprobs": 0 }))),
        ("no tool calls", with(json!({ "max_tool_calls": 0 }))),
        (
            "many tool calls",
            with(json!({ "max_tool_calls": 5_000_000_000i64 })),
        ),
        (
            "several errors",
            with(
                json!({ "tools": 1, "tool_choice": 1, "text": 1, "metadata": 1, "stream": 1, "temperature": "x" }),
            ),
        ),
        (
            "errors in tools",
            with(
                json!({ "tools": [{ "type": "troupe:none" }, 1], "tool_choice": 1, "max_tool_calls": "x" }),
            ),
        ),
        (
            "errors in items",
            with(json!({ "input": [{ "type": "x" }, 1], "store": 1 })),
        ),
        ("no items", with(json!({ "input": [] }))),
        ("many items", with(json!({ "input": vec![0; 2001] }))),
        ("long text", with(json!({ "input": long }))),
        ("long content", message(json!(long))),
        (
            "long part",
            message(json!([{ "type": "input_text", "text": long }])),
        ),
        (
            "long arguments",
            with_item(
                json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": long }),
            ),
        ),
        (
            "empty id",
            with_item(json!({ "role": "user", "content": "x", "id": "" })),
        ),
        (
            "long id",
            with_item(json!({ "role": "user", "content": "x", "id": "x".repeat(65) })),
        ),
        (
            "long call id",
            with_item(
                json!({ "type": "function_call_output", "output": "x", "call_id": "x".repeat(129) }),
            ),
        ),
        (
            "empty call id",
            with_item(json!({ "type": "function_call_output", "output": "x", "call_id": "" })),
        ),
        (
            "empty name",
            with_item(
                json!({ "type": "function_call", "call_id": "c", "name": "", "arguments": "" }),
            ),
        ),
        (
            "computer call",
            with_item(json!({ "type": "computer_call" })),
        ),
        (
            "computer output",
            with_item(json!({ "type": "computer_call_output" })),
        ),
        (
            "unnamed server tool",
            with_item(json!({ "type": "troupe:" })),
        ),
        (
            "oddly named server tool",
            with_item(json!({ "type": "troupe:a b", "call_id": "c", "arguments": "" })),
        ),
        ("empty item", with_item(json!({}))),
        (
            "null type",
            with_item(json!({ "type": null, "role": "system", "content": [] })),
        ),
        ("video", message(json!([{ "type": "input_video" }]))),
        ("audio", message(json!([{ "type": "input_audio" }]))),
        (
            "file output",
            with_item(
                json!({ "type": "function_call_output", "call_id": "c", "output": [{ "type": "input_image" }] }),
            ),
        ),
        (
            "file id",
            message(json!([{ "type": "input_image", "file_id": "file_1" }])),
        ),
        (
            "document id",
            message(json!([{ "type": "input_file", "file_id": "file_1" }])),
        ),
        (
            "both files",
            message(json!([{ "type": "input_file", "file_data": PDF, "file_url": "https://x" }])),
        ),
        ("no file", message(json!([{ "type": "input_file" }]))),
        (
            "text as a file",
            message(
                json!([{ "type": "input_file", "file_data": "data:application/pdf;base64,SGk=" }]),
            ),
        ),
        (
            "long file name",
            message(
                json!([{ "type": "input_file", "file_data": PDF, "filename": "x".repeat(256) }]),
            ),
        ),
        (
            "pdf as a picture",
            message(json!([{ "type": "input_image", "image_url": PDF }])),
        ),
        (
            "jpg",
            message(json!([{ "type": "input_image", "image_url": "data:image/jpg;base64,/9j/" }])),
        ),
        (
            "many tools",
            with(json!({ "tools": (0..129).map(function).collect::<Vec<_>>() })),
        ),
        (
            "many servers",
            with(json!({ "tools": (0..17).map(mcp).collect::<Vec<_>>() })),
        ),
        ("two equal tools", tool(function(0))),
        (
            "the same name",
            tool(json!({ "type": "custom", "name": "g" })),
        ),
        (
            "two shells",
            with(json!({ "tools": [{ "type": "local_shell" }, { "type": "local_shell" }] })),
        ),
        (
            "a function named as a built-in tool",
            with(
                json!({ "tools": [{ "type": "troupe:time" }, { "type": "function", "name": "troupe_time" }] }),
            ),
        ),
        (
            "two equal servers",
            with(json!({ "tools": [mcp(1), mcp(1)] })),
        ),
        ("unknown tool", tool(json!({ "type": "web_search" }))),
        (
            "unknown built-in tool",
            tool(json!({ "type": "troupe:memory" })),
        ),
        (
            "built-in tool with a name",
            tool(json!({ "type": "troupe:time", "name": "x" })),
        ),
        (
            "long tool name",
            tool(json!({ "type": "custom", "name": "x".repeat(65) })),
        ),
        ("umlaut", tool(json!({ "type": "custom", "name": "ä" }))),
        (
            "null field of a tool",
            tool(json!({ "type": "local_shell", "name": null })),
        ),
        (
            "grammar without syntax",
            tool(json!({ "type": "custom", "name": "x", "format": { "type": "grammar" } })),
        ),
        (
            "grammar without description",
            tool(
                json!({ "type": "custom", "name": "x", "format": { "type": "grammar", "syntax": "regex", "definition": "a" } }),
            ),
        ),
        (
            "required without tools",
            with(json!({ "tool_choice": "required" })),
        ),
        (
            "undeclared choice",
            with(json!({ "tool_choice": { "type": "function", "name": "f" } })),
        ),
        (
            "no allowed tools",
            with(json!({ "tool_choice": { "type": "allowed_tools", "tools": [] } })),
        ),
        (
            "many allowed tools",
            with(json!({ "tool_choice": { "type": "allowed_tools", "tools": vec![0; 129] } })),
        ),
        (
            "tool outside the allowed",
            with(
                json!({ "tools": [{ "type": "mcp", "server_label": "w", "server_url": "https://w.test", "allowed_tools": ["a"] }], "tool_choice": { "type": "mcp", "server_label": "w", "name": "b" } }),
            ),
        ),
        ("null server field", server(json!({ "connector_id": null }))),
        ("connector", server(json!({ "connector_id": "x" }))),
        ("no address", server(json!({ "server_url": "nowhere" }))),
        ("label", server(json!({ "server_label": "a b" }))),
        ("odd token", server(json!({ "authorization": "a\nb" }))),
        (
            "empty token",
            server(json!({ "authorization": "Bearer  " })),
        ),
        (
            "long token",
            server(json!({ "authorization": "x".repeat(8 * 1024 + 1) })),
        ),
        ("host header", server(json!({ "headers": { "host": "x" } }))),
        (
            "authorization header",
            server(json!({ "headers": { "Authorization": "x" } })),
        ),
        ("many headers", server(json!({ "headers": headers(33) }))),
        (
            "long header",
            server(json!({ "headers": { "x-a": "x".repeat(8 * 1024 + 1) } })),
        ),
        (
            "word of approval",
            server(json!({ "require_approval": "sometimes" })),
        ),
        ("always", server(json!({ "require_approval": "always" }))),
        ("long unknown name", with(json!({ "x".repeat(300): 1 }))),
        (
            "form of text",
            with(json!({ "text": { "format": { "type": "text", "schema": {} } } })),
        ),
        (
            "name of a schema",
            with(
                json!({ "text": { "format": { "type": "json_schema", "name": "two words", "schema": {} } } }),
            ),
        ),
        ("effort", with(json!({ "reasoning": { "effort": "max" } }))),
        (
            "former summary",
            with(json!({ "reasoning": { "generate_summary": "auto" } })),
        ),
        ("compact without input", json!({ "model": "m" })),
        (
            "compact previous",
            json!({ "model": "m", "previous_response_id": "r" }),
        ),
        (
            "compact with tools",
            json!({ "model": "m", "input": "x", "tools": [] }),
        ),
    ];
    all.map(|(name, body)| (name.to_owned(), body)).into()
}
