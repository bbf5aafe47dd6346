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
        let stage = V1Fixture::open(backend).await;
        stage.upstream.next(ResponseScript::status(503));
        stage.upstream.next(ResponseScript::status(503));

        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(text(&response), "Hello.");
        let came = |at| stage.upstream.seen(at).came_at;
        assert_eq!(stage.upstream.n_requests(), 3);
        assert!(came(2) - came(1) >= Duration::from_millis(500));
        stage.close().await;
    }

    async fn a_refusal_of_the_model_is_the_end_of_the_response_and_no_http_error(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(ResponseScript::status(400));

        let response = stage.program.respond(json!({ "input": "Hi." })).await;
        let events = stage.program.stream(json!({ "input": "Hi." })).await.rest().await;

        assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("upstream_error")));
        assert_eq!(kinds(&events), ["created", "in_progress", "failed"]);
        assert_eq!(stage.upstream.n_requests(), 2);
        stage.close().await;
    }

    async fn an_interrupted_answer_is_reported_once_as_failed(backend) {
        let stage = V1Fixture::open(backend).await;
        let broken = [begun().reset(), begun(), begun().garbage(), begun().error("Overloaded.")];
        for (at, script) in broken.into_iter().enumerate() {
            stage.upstream.next(script);

            let events = stage.program.stream(json!({ "input": "Hi." })).await.rest().await;

            let (kind, response) = last(&events);
            assert_eq!(kind, "failed", "{at}");
            assert_eq!(deltas(&events).concat(), "One two three ");
            assert_eq!(text(response), "One two three ");
            assert_eq!(response["output"][0]["status"], "incomplete");
            assert_eq!(stage.upstream.n_requests(), at + 1);
            let id = response["id"].as_str().unwrap();
            assert_eq!(&stage.program.get(&format!("/responses/{id}")).await.1, response);
        }
        stage.close().await;
    }

    async fn a_role_restarts_the_first_chunk_limit_and_begins_nothing(backend) {
        let limits = [("LLM_FIRST_CHUNK_TIMEOUT_MS", "3000"), ("LLM_IDLE_TIMEOUT_MS", "500")];
        let stage = V1Fixture::open_with(backend, &limits).await;
        let pause = Duration::from_millis(1_600);
        let thinks = ResponseScript::stream().pause(pause).role().pause(pause);
        stage.upstream.next(thinks.words("At last.").finish("stop").done());

        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!((text(&response).as_str(), stage.upstream.n_requests()), ("At last.", 1));
        stage.close().await;
    }

    async fn a_model_that_falls_silent_has_failed_with_what_it_said(backend) {
        let stage = V1Fixture::open_with(backend, &[("LLM_IDLE_TIMEOUT_MS", "500")]).await;
        stage.upstream.always(begun().hang());

        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(response["error"]["code"], "upstream_timeout");
        assert_eq!(text(&response), "One two three ");
        stage.close().await;
    }

    async fn the_deadline_ends_a_slow_answer(backend) {
        let stage = V1Fixture::open_with(backend, &[("RUN_TIMEOUT_MS", "1000")]).await;
        stage.upstream.always(begun().forever(": here\n\n", Duration::from_millis(50)));

        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(response["incomplete_details"]["reason"], "run_timeout");
        stage.upstream.wait_for_disconnect(0).await;
        stage.close().await;
    }

    async fn a_disconnected_client_cancels_its_response(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(begun().hang());
        let mut ears = stage.program.stream(json!({ "input": "Hi." })).await;
        let begun = ears.until("response.output_text.delta").await;
        let id = begun[0]["response"]["id"].as_str().unwrap().to_owned();

        drop(ears);

        stage.upstream.wait_for_disconnect(0).await;
        let ended = stage.wait_for_status(&id, "cancelled").await;
        assert_eq!(ended["incomplete_details"]["reason"], "cancelled");
        let (program, body) = (stage.program.clone(), json!({ "input": "Hi." }));
        let waiting = tokio::spawn(async move { program.respond(body).await });
        stage.upstream.wait_for_texts(1, 3).await;
        waiting.abort();
        stage.upstream.wait_for_disconnect(1).await;
        stage.close().await;
    }
}
