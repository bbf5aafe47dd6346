//! Tests failures of the model: a call is repeated while nothing was sent, and reported afterwards.

use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{V1Fixture, deltas, kinds, text};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

fn begun() -> ResponseScript {
    ResponseScript::stream().role().words("One two three ")
}

/// The last event of a stream and the response in it.
fn last(events: &[Value]) -> (String, &Value) {
    (
        kinds(events).pop().unwrap(),
        &events.last().unwrap()["response"],
    )
}

on_sqlite! {
    async fn a_transient_error_is_retried(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::status(503));
        fixture.upstream.next(ResponseScript::status(503));

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(text(&response), "Hello.");
        let arrived_at = |at| fixture.upstream.seen(at).came_at;
        assert_eq!(fixture.upstream.n_requests(), 3);
        assert!(arrived_at(2) - arrived_at(1) >= Duration::from_millis(500));
        fixture.close().await;
    }

    async fn a_rejected_model_call_fails_the_response_without_an_http_error(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::status(400));

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;
        let events = fixture.program.stream(json!({ "input": "Hi." })).await.rest().await;

        assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("upstream_error")));
        assert_eq!(kinds(&events), ["created", "in_progress", "failed"]);
        assert_eq!(fixture.upstream.n_requests(), 2);
        fixture.close().await;
    }

    async fn the_error_of_a_failed_response_has_a_type(backend) {
        let fixture = V1Fixture::open(backend).await;
        for (status, code, kind) in [
            (400, "upstream_error", "server_error"),
            (429, "rate_limit_exceeded", "rate_limit_error"),
        ] {
            fixture.upstream.always(ResponseScript::status(status));

            let response = fixture.program.respond(json!({ "input": "Hi." })).await;

            let error = &response["error"];
            assert_eq!((&error["code"], &error["type"]), (&json!(code), &json!(kind)));
            let id = response["id"].as_str().unwrap();
            assert_eq!(&fixture.program.get(&format!("/responses/{id}")).await.1["error"], error);
        }
        fixture.close().await;
    }

    async fn an_interrupted_answer_is_reported_once_as_failed(backend) {
        let fixture = V1Fixture::open(backend).await;
        let broken = [begun().reset(), begun(), begun().garbage(), begun().error("Overloaded.")];
        for (at, script) in broken.into_iter().enumerate() {
            fixture.upstream.next(script);

            let events = fixture.program.stream(json!({ "input": "Hi." })).await.rest().await;

            let (kind, response) = last(&events);
            assert_eq!(kind, "failed", "{at}");
            assert_eq!(deltas(&events).concat(), "One two three ");
            assert_eq!(text(response), "One two three ");
            assert_eq!(response["output"][0]["status"], "incomplete");
            assert_eq!(fixture.upstream.n_requests(), at + 1);
            let id = response["id"].as_str().unwrap();
            assert_eq!(&fixture.program.get(&format!("/responses/{id}")).await.1, response);
        }
        fixture.close().await;
    }

    async fn a_role_chunk_restarts_the_first_chunk_timeout_and_not_the_idle_timeout(backend) {
        let limits = [("LLM_FIRST_CHUNK_TIMEOUT_MS", "3000"), ("LLM_IDLE_TIMEOUT_MS", "500")];
        let fixture = V1Fixture::open_with(backend, &limits).await;
        let pause = Duration::from_millis(1_600);
        let script = ResponseScript::stream().pause(pause).role().pause(pause);
        fixture.upstream.next(script.words("At last.").finish("stop").done());

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!((text(&response).as_str(), fixture.upstream.n_requests()), ("At last.", 1));
        fixture.close().await;
    }

    async fn an_idle_model_fails_the_response_and_keeps_its_text(backend) {
        let fixture = V1Fixture::open_with(backend, &[("LLM_IDLE_TIMEOUT_MS", "500")]).await;
        fixture.upstream.always(begun().hang());

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(response["error"]["code"], "upstream_timeout");
        assert_eq!(text(&response), "One two three ");
        fixture.close().await;
    }

    async fn the_deadline_ends_a_slow_answer(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RUN_TIMEOUT_MS", "1000")]).await;
        fixture.upstream.always(begun().forever(": here\n\n", Duration::from_millis(50)));

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(response["incomplete_details"]["reason"], "run_timeout");
        fixture.upstream.wait_for_disconnect(0).await;
        fixture.close().await;
    }

    async fn a_disconnected_client_cancels_its_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(begun().hang());
        let mut stream = fixture.program.stream(json!({ "input": "Hi." })).await;
        let begun = stream.until("response.output_text.delta").await;
        let id = begun[0]["response"]["id"].as_str().unwrap().to_owned();

        drop(stream);

        fixture.upstream.wait_for_disconnect(0).await;
        let ended = fixture.wait_for_status(&id, "cancelled").await;
        assert_eq!(ended["incomplete_details"]["reason"], "cancelled");
        let (program, body) = (fixture.program.clone(), json!({ "input": "Hi." }));
        let waiting = tokio::spawn(async move { program.respond(body).await });
        fixture.upstream.wait_for_texts(1, 3).await;
        waiting.abort();
        fixture.upstream.wait_for_disconnect(1).await;
        fixture.close().await;
    }
}
