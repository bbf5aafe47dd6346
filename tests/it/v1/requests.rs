//! Tests of rejected requests: each is rejected before anything is written.

use reqwest::Method;
use serde_json::json;

use super::fixture::{V1Fixture, prompt_texts};
use crate::support::backends::on_sqlite;
use crate::support::http_client::http_client;
use crate::support::v1_client::error_of;

on_sqlite! {
    async fn an_invalid_request_gets_a_uniform_error(backend) {
        let fixture = V1Fixture::open(backend).await;
        let raw = async |method: Method, path: &str, body: &str| {
            let request = http_client().request(method, format!("{}/v1{path}", fixture.app.base));
            let request =
                request.header("authorization", format!("Bearer {}", fixture.program.key));
            let request = request.header("content-type", "application/json").body(body.to_owned());
            let answer = request.send().await.unwrap();
            assert!(answer.headers().contains_key("x-request-id"));
            let (status, body) = (answer.status().as_u16(), answer.json().await.unwrap());
            let (status, code, _) = error_of(&(status, body));
            (status, code)
        };

        for broken in ["{", "[]", "", "\"x\""] {
            assert_eq!(raw(Method::POST, "/responses", broken).await, (400, "invalid_json".into()), "{broken}");
        }
        assert_eq!(raw(Method::POST, "/nothing", "{}").await, (404, "not_found".into()));
        assert_eq!(raw(Method::PUT, "/responses", "{}").await, (405, "method_not_allowed".into()));
        assert_eq!(raw(Method::GET, "/responses", "").await, (405, "method_not_allowed".into()));
        fixture.close().await;
    }

    async fn a_rejected_request_stores_nothing(backend) {
        let fixture = V1Fixture::open(backend).await;
        let refused = async |body| fixture.program.respond_with_error(body).await;

        assert_eq!(refused(json!({})).await, (400, "missing_required_parameter".into(), json!("input")));
        assert_eq!(refused(json!({ "input": 42 })).await, (400, "invalid_type".into(), json!("input")));
        assert_eq!(refused(json!({ "input": "x", "temperature": 5 })).await, (400, "invalid_value".into(), json!("temperature")));
        assert_eq!(refused(json!({ "input": [{ "type": "dream" }] })).await, (400, "invalid_value".into(), json!("input[0].type")));
        assert_eq!(refused(json!({ "input": "x", "tools": [{ "type": "foo" }] })).await.1, "unsupported_tool");
        assert_eq!(refused(json!({ "input": "x", "store": false, "background": true })).await.1, "background_requires_store");
        for stream in [false, true] {
            let unknown = refused(json!({ "model": "none", "input": "x", "stream": stream })).await;
            assert_eq!(unknown, (404, "model_not_found".into(), json!("model")));
        }
        assert_eq!(fixture.n_rows("responses").await, 0);
        assert_eq!(fixture.upstream.n_requests(), 0);
        let kept = fixture.program.respond(json!({ "input": "x", "metadata": { "store": "false" } })).await;
        assert_eq!(kept["metadata"]["store"], "false");
        assert_eq!(fixture.n_rows("responses").await, 1);
        fixture.close().await;
    }

    async fn models_are_listed_and_each_answers_by_both_names(backend) {
        let fixture = V1Fixture::open(backend).await;

        let (_, models) = fixture.program.get("/models").await;

        let ids: Vec<&str> = models["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        let full = ids.iter().find(|it| it.ends_with("/scripted")).unwrap();
        assert!(ids.contains(&"scripted"));
        assert_eq!(fixture.program.get(&format!("/models/{full}")).await.0, 200);
        assert_eq!(fixture.program.get("/models/none").await.0, 404);
        let response = fixture.program.respond(json!({ "model": full, "input": "Hi." })).await;
        assert_eq!(response["model"], **full);
        fixture.close().await;
    }

    async fn tokens_are_counted_without_a_model(backend) {
        let fixture = V1Fixture::open(backend).await;

        let (status, count) = fixture.program.post("/responses/input_tokens", json!({ "model": "scripted", "input": "hello world" })).await;

        assert_eq!((status, &count["input_tokens"]), (200, &json!(2)));
        assert_eq!(fixture.upstream.n_requests(), 0);
        assert_eq!(fixture.n_rows("responses").await, 0);
        fixture.close().await;
    }

    async fn a_prompt_that_is_too_long_is_rejected_or_truncated(backend) {
        let fixture = V1Fixture::open(backend).await;
        let (_, providers) = fixture.admin.get("/api/providers").await;
        let own = providers["data"].as_array().unwrap().iter().find(|it| it["model"] == "scripted").unwrap();
        let path = format!("/api/providers/{}", own["id"]);
        let (status, answer) = fixture.admin.patch(&path, json!({ "settings": { "context_tokens": 64 } })).await;
        assert_eq!(status, 200, "{answer}");
        let first = fixture.program.respond(json!({ "input": "word ".repeat(40) })).await;
        let next = json!({ "input": "word ".repeat(40), "previous_response_id": first["id"] });

        let refused = fixture.program.respond_with_error(next.clone()).await;
        let mut cut = next;
        cut["truncation"] = json!("auto");
        let answered = fixture.program.respond(cut).await;
        let turns = json!([
            { "role": "developer", "content": "Be kind." },
            { "role": "user", "content": "word ".repeat(40) },
            { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "done" },
            { "role": "user", "content": "And now?" },
        ]);
        let of_input = fixture.program.respond_with_error(json!({ "input": turns })).await;
        fixture.program.respond(json!({ "input": turns, "truncation": "auto", "store": false })).await;

        assert_eq!(refused.1, "context_length_exceeded");
        assert_eq!(answered["status"], "completed");
        assert_eq!(prompt_texts(&fixture.upstream.body(1)).len(), 1);
        assert_eq!(of_input.1, "context_length_exceeded");
        assert_eq!(prompt_texts(&fixture.upstream.body(2)), ["Be kind.", "And now?"]);
        fixture.close().await;
    }
}
