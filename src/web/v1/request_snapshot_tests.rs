//! Tests how the requests of a list, and valid ones with one field removed, added or replaced, are
//! parsed: compares each result or error with a recorded file.
//!
//! To write the recorded file again after an intended change, delete it and run the test.

use std::fs;

use responses_api::request::create_response::{CompactExchange, CreateResponse};
use responses_api::request::error::RequestError;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::responses::request::ResponseRequest;
use crate::responses::tool_declarations::SERVER_RULES;
use crate::web::v1::error::V1Error;

/// The requests, and the file with their outcomes.
const FOLDER: &str = "tests/fixtures/v1";

#[test]
fn requests_are_parsed_as_recorded() {
    let mut lines = Vec::new();
    for (name, body) in requests("valid_requests.jsonl") {
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
    let others = requests("other_requests.jsonl");
    for (name, body) in others.into_iter().chain(large_requests()) {
        lines.push(format!("{name}: {}", outcome(&name, &body)));
    }
    let found = lines.join("\n") + "\n";

    let file = format!("{FOLDER}/requests.txt");
    let Ok(recorded) = fs::read_to_string(&file) else {
        fs::write(&file, found).unwrap();
        panic!("{file} was missing and is written now");
    };
    let pairs = found.lines().zip(recorded.lines());
    let different: Vec<_> = pairs.filter(|it| it.0 != it.1).collect();
    assert!(different.is_empty(), "{different:#?}");
    assert_eq!(found.lines().count(), recorded.lines().count());
}

/// Parses a body with the parser that the name of the case selects.
fn outcome(name: &str, body: &Value) -> String {
    let body = body.as_object().unwrap();
    let parsed: Result<ResponseRequest, RequestError> = match name.starts_with("compact") {
        true => CompactExchange::parse(body).map(Into::into),
        false => CreateResponse::parse(body, &SERVER_RULES).map(Into::into),
    };
    match parsed {
        Ok(request) => normalized(request).to_string(),
        Err(error) => {
            let error = V1Error::from(error);
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

/// Reads requests, each a line with its name and body.
fn requests(file: &str) -> Vec<(String, Value)> {
    let text = fs::read_to_string(format!("{FOLDER}/{file}")).unwrap();
    let case = |line: &str| {
        let mut case: Value = serde_json::from_str(line).unwrap();
        (
            case["name"].as_str().unwrap().to_owned(),
            case["body"].take(),
        )
    };
    text.lines().map(case).collect()
}

/// Requests with long texts and lists.
fn large_requests() -> Vec<(String, Value)> {
    let long = "x".repeat(10 * 1024 * 1024 + 1);
    let header = "x".repeat(8 * 1024 + 1);
    let part = json!([{ "type": "input_text", "text": long }]);
    let item = |item: Value| json!({ "input": [item] });
    let tool = |at| json!({ "type": "function", "name": format!("f{at}") });
    let server = |field: &str, value: Value| {
        let server = json!({
            "type": "mcp", "server_label": "w", "server_url": "https://w.test", field: value,
        });
        json!({ "tools": [server] })
    };
    let call = json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": long });
    let all = [
        (
            "metadata limits",
            json!({ "metadata": { "ä".repeat(64): "ä".repeat(512) } }),
        ),
        ("many items", json!({ "input": vec![0; 2_001] })),
        ("long text", json!({ "input": long })),
        (
            "long content",
            item(json!({ "role": "user", "content": long })),
        ),
        (
            "long part",
            item(json!({ "role": "user", "content": part })),
        ),
        ("long arguments", item(call)),
        (
            "many tools",
            json!({ "tools": (0..129).map(tool).collect::<Vec<_>>() }),
        ),
        ("long token", server("authorization", json!(header))),
        ("long header", server("headers", json!({ "x-a": header }))),
    ];
    let complete = |(name, fields): (&str, Value)| {
        let mut body = json!({ "model": "m", "input": "Hi." });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        (name.to_owned(), body)
    };
    all.map(complete).into()
}
