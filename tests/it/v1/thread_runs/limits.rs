//! Tests of the limits of runs: tokens, model calls, failures of the model.

use serde_json::json;

use super::support::{ThreadClient, function};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::v1::fixture::{V1Fixture, id, lines};

on_sqlite! {
    async fn a_run_that_reaches_its_completion_tokens_is_incomplete(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::stream().role().words("One two ").finish("length").usage(7, 2).done());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;

        let run = client.run_until(json!({ "max_completion_tokens": 2 }), "incomplete").await;

        assert_eq!(run["incomplete_details"], json!({ "reason": "max_completion_tokens" }));
        assert_eq!(run["usage"]["completion_tokens"], 2);
        let message = client.messages().await.remove(1);
        assert_eq!((&message["status"], &message["incomplete_details"]["reason"]), (&json!("incomplete"), &json!("max_tokens")));
        fixture.close().await;
    }

    async fn a_thread_that_exceeds_the_prompt_tokens_is_shortened_or_the_run_is_incomplete(backend) {
        let fixture = V1Fixture::open(backend).await;
        let (old, new) = ("word ".repeat(60), "word ".repeat(20));
        let client = ThreadClient::new(&fixture.program, json!({}), &[&old, &new]).await;

        client.run_until(json!({ "max_prompt_tokens": 40 }), "completed").await;
        let run = client.run_until(json!({ "max_prompt_tokens": 10, "additional_messages": [{ "role": "user", "content": old }] }), "incomplete").await;

        assert_eq!(lines(&fixture.upstream.body(0)).len(), 1);
        assert_eq!(run["incomplete_details"]["reason"], "max_prompt_tokens");
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn the_model_calls_of_all_resumptions_count_together(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.answer_with(|body| {
            let id = format!("call_{}", body["messages"].as_array().unwrap().len());
            ResponseScript::calls(&[(&id, "look", "{}")])
        });
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let run = client.create(json!({})).await;

        for _ in 0..10 {
            let waiting = client.wait_for(id(&run), "requires_action").await;
            let call = &waiting["required_action"]["submit_tool_outputs"]["tool_calls"][0]["id"];
            expect(200, client.submit(id(&run), &[(call.as_str().unwrap(), "again")]).await);
        }
        let ended = client.wait_for(id(&run), "incomplete").await;

        assert_eq!(ended["incomplete_details"]["reason"], "max_steps");
        assert_eq!(fixture.upstream.n_requests(), 10);
        fixture.close().await;
    }

    async fn a_failure_of_the_model_has_a_code(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        for (script, code) in [
            (ResponseScript::status(400), "server_error"),
            (ResponseScript::rate_limited("0"), "rate_limit_exceeded"),
        ] {
            fixture.upstream.always(script);

            let run = client.run_until(json!({}), "failed").await;

            assert_eq!(run["last_error"]["code"], code, "{run}");
            assert!(run["failed_at"].is_i64());
        }
        fixture.close().await;
    }
}
