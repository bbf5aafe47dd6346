//! Tests of the OpenAPI document of `/v1`: it is public, complete and consistent, and no handler is mounted
//! without being in it.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use troupe::server::endpoints;

use super::fixture::V1Fixture;
use crate::support::api_contract;
use crate::support::backends::on_sqlite;
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;

/// The error statuses that the document describes, as the design of the API lists them.
const ERRORS: [&str; 12] = [
    "400", "401", "403", "404", "405", "409", "413", "415", "429", "500", "502", "503",
];

/// The calls that the design of the API lists, except those of assistants and threads.
const CALLS: [&str; 23] = [
    "DELETE /v1/conversations/{id}",
    "DELETE /v1/conversations/{id}/items/{item_id}",
    "DELETE /v1/responses/{id}",
    "GET /v1/conversations",
    "GET /v1/conversations/{id}",
    "GET /v1/conversations/{id}/items",
    "GET /v1/conversations/{id}/items/{item_id}",
    "GET /v1/models",
    "GET /v1/models/{id}",
    "GET /v1/openapi.json",
    "GET /v1/responses",
    "GET /v1/responses/{id}",
    "GET /v1/responses/{id}/input_items",
    "POST /v1/chat/completions",
    "POST /v1/conversations",
    "POST /v1/conversations/{id}",
    "POST /v1/conversations/{id}/items",
    "POST /v1/embeddings",
    "POST /v1/memory/query",
    "POST /v1/responses",
    "POST /v1/responses/compact",
    "POST /v1/responses/input_tokens",
    "POST /v1/responses/{id}/cancel",
];

/// Returns every operation of a document: method with path, and its description.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().expect("there are paths");
    let each = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods");
        methods
            .iter()
            .map(move |(method, it)| (format!("{} {path}", method.to_uppercase()), it))
    });
    each.collect()
}

#[test]
fn the_document_of_v1_has_every_call_of_the_api() {
    let document = api_contract::v1_document();
    let documented: BTreeSet<String> = operations(document).into_iter().map(|it| it.0).collect();

    for call in CALLS {
        assert!(documented.contains(call), "{call}");
    }
    assert_eq!(document["openapi"], "3.1.0");
    assert!(documented.iter().all(|it| it.contains(" /v1/")));
}

#[test]
fn the_whole_document_contains_that_of_v1_unchanged() {
    let (all, v1) = (endpoints::all().document(), api_contract::v1_document());

    for (path, methods) in v1["paths"].as_object().unwrap() {
        assert_eq!(all["paths"][path], *methods, "{path}");
    }
    for (name, schema) in v1["components"]["schemas"].as_object().unwrap() {
        let other = &all["components"]["schemas"][name];
        assert_eq!(other, schema, "another schema has the name {name}");
    }
}

#[test]
fn every_operation_of_v1_describes_its_input_its_answers_and_its_errors() {
    let (mut ids, mut statuses) = (BTreeSet::new(), BTreeSet::new());
    for (call, operation) in operations(api_contract::v1_document()) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} is not unique");
        assert_eq!(operation["tags"], json!(["v1"]), "{call}");
        assert!(
            operation["summary"].as_str().unwrap().ends_with('.'),
            "{call}"
        );
        let is_open = operation["security"] == json!([]);
        assert_eq!(is_open, call == "GET /v1/openapi.json", "{call}");
        let answers = operation["responses"].as_object().unwrap();
        let mut needed = vec!["405"];
        if !is_open {
            needed.extend(["401", "500", "503"]);
        }
        if operation.get("requestBody").is_some() {
            needed.extend(["400", "413", "415", "429"]);
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            assert!(schema["$ref"].is_string(), "{call}: {schema}");
        }
        if call.contains('{') {
            needed.push("404");
        }
        for status in needed {
            assert!(answers.contains_key(status), "{call}: {status}");
        }
        statuses.extend(answers.keys().map(String::as_str));
        let success = answers.keys().any(|it| it.as_str() < "300");
        assert!(success, "{call}");
    }
    for status in ERRORS {
        assert!(statuses.contains(status), "{status}");
    }
}

#[test]
fn every_event_of_a_stream_is_a_documented_schema() {
    let document = api_contract::v1_document();
    let schemas = &document["components"]["schemas"];
    let events = schemas["StreamEvent"]["anyOf"].as_array().unwrap();
    let kind = |event: &Value| {
        let name = event["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let kinds = schemas[name]["properties"]["type"]["enum"].clone();
        kinds[0].as_str().unwrap().to_owned()
    };
    let kinds: BTreeSet<String> = events.iter().map(kind).collect();

    assert_eq!(kinds.len(), events.len());
    for kind in [
        "response.created",
        "response.output_text.delta",
        "response.mcp_call.failed",
        "troupe:tool.progress",
    ] {
        assert!(kinds.contains(kind), "{kind}");
    }
    for (path, schema) in [
        ("/v1/responses", "StreamEvent"),
        ("/v1/chat/completions", "ChatChunk"),
    ] {
        let content = &document["paths"][path]["post"]["responses"]["200"]["content"];
        let reference = format!("#/components/schemas/{schema}");
        assert_eq!(content["text/event-stream"]["schema"]["$ref"], reference);
    }
}

#[test]
fn every_reference_in_the_document_of_v1_resolves() {
    let document = api_contract::v1_document();
    let text = document.to_string();
    for part in text.split("\"$ref\":\"#").skip(1) {
        let pointer = part.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

on_sqlite! {
    async fn the_document_of_v1_needs_no_key_and_everything_else_does(backend) {
        let fixture = V1Fixture::open(backend).await;
        let base = &fixture.app.base;
        let url = format!("{base}/v1/openapi.json");

        let answer = Answer::to(http_client().get(&url).header("origin", "https://a.example")).await;

        assert_eq!((answer.status, answer.json()), (200, api_contract::v1_document().clone()));
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let again = http_client().get(&url).header("if-none-match", answer.header("etag"));
        assert_eq!(Answer::to(again).await.status, 304);
        for (call, _) in operations(api_contract::v1_document()) {
            let (method, path) = call.split_once(' ').unwrap();
            if path == "/v1/openapi.json" {
                continue;
            }
            let path = path.replace("{id}", "x_1").replace("{item_id}", "msg_1");
            let method: Method = method.parse().unwrap();
            let refused = Answer::to(http_client().request(method, format!("{base}{path}"))).await;
            assert_eq!((refused.status, refused.json()["error"]["code"].clone()), (401, json!("invalid_api_key")), "{call}");
        }
        fixture.close().await;
    }
}
