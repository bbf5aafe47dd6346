//! Tests of the provider for OpenAI-compatible endpoints: requests, responses, errors, and that the
//! key is never revealed.

use std::time::Duration;

use futures::StreamExt;
use llm::delta::{Delta, FinishReason, TokenUsage};
use llm::error::LlmError;
use llm::model_list;
use llm::request::Request;
use serde_json::json;

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call;
use crate::support::model_call::{KEY, provider, registry, request};

async fn request_error(upstream: &FakeProvider) -> LlmError {
    match provider(upstream).stream(&request()).await {
        Err(error) => error,
        Ok(_) => panic!("the request succeeded"),
    }
}

#[tokio::test]
async fn a_request_contains_its_parameters_and_the_key_in_its_header() {
    let upstream = FakeProvider::start().await;
    let custom_request = Request {
        temperature: Some(0.5),
        max_tokens: Some(90),
        ..request()
    };

    let sent = provider(&upstream).stream(&custom_request).await;

    assert!(sent.is_ok());
    let seen = upstream.seen(0);
    assert_eq!(
        seen.body,
        json!({
            "model": "scripted",
            "messages": [
                { "role": "system", "content": "Be Ada." },
                { "role": "user", "content": "Eve: Hi." },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
            "temperature": 0.5,
            "max_tokens": 90,
        }),
    );
    assert_eq!(seen.header("authorization"), Some("Bearer planted-key"));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn a_response_that_is_not_streamed_is_accepted() {
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::json(
        200,
        &json!({
            "choices": [{ "message": { "role": "assistant", "content": "Hello." }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 2 },
        }),
    ));

    let stream = provider(&upstream).stream(&request()).await.unwrap();
    let deltas: Vec<Delta> = stream.map(Result::unwrap).collect().await;

    let usage = TokenUsage {
        prompt_tokens: 3,
        completion_tokens: 2,
    };
    let received: Vec<Delta> = deltas
        .into_iter()
        .filter(|it| *it != Delta::KeepAlive)
        .collect();
    assert_eq!(
        received,
        [
            Delta::Text("Hello.".to_owned()),
            Delta::End(FinishReason::Stop),
            Delta::Usage(usage)
        ]
    );
}

#[tokio::test]
async fn a_completely_read_response_leaves_its_connection_for_reuse() {
    let upstream = FakeProvider::start().await;
    let provider = provider(&upstream);

    for _ in 0..3 {
        let (outcome, _) =
            model_call::call_model_with_deltas(&*provider, model_call::patient_watches()).await;
        assert_eq!(model_call::text(&outcome), "Hello.");
    }

    assert_eq!(upstream.seen(2).connection, upstream.seen(0).connection);
}

#[tokio::test]
async fn a_server_without_tls_is_not_called_in_plain_text() {
    let upstream = FakeProvider::start().await;
    let spec = model_call::spec(&upstream.base_url().replace("http:", "https:"));

    let sent = registry().provider(&spec).unwrap().stream(&request()).await;

    let message = sent.err().map(|it| it.to_string()).unwrap_or_default();
    assert_eq!(
        message,
        "The provider could not be reached: no secure connection could be made."
    );
    assert_eq!(upstream.n_requests(), 0);
}

#[tokio::test]
async fn the_key_appears_in_no_message_and_in_no_debug_output() {
    let upstream = FakeProvider::start().await;
    let echo = json!({ "error": { "message": format!("The key {KEY} is wrong.") } });
    for status in [400, 401, 403, 429, 500] {
        upstream.next(ResponseScript::json(status, &echo));

        let error = request_error(&upstream).await;

        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    }
    let endpoint = registry()
        .endpoint(&model_call::spec(&upstream.base_url()))
        .unwrap();
    assert!(!format!("{endpoint:?}").contains(KEY));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeProvider::start().await;
    let upstream = FakeProvider::start().await;
    for status in [301, 302, 307, 308] {
        let target = format!("{}/chat/completions", elsewhere.base_url());
        upstream.next(ResponseScript::status(status).header("Location", &target));

        assert_eq!(request_error(&upstream).await.status(), Some(status));
    }
    assert_eq!(elsewhere.n_requests(), 0);
}

#[tokio::test]
async fn excessive_headers_and_endless_error_bodies_are_rejected() {
    let upstream = FakeProvider::start().await;
    let many = (0..1_000).fold(ResponseScript::say("Hello."), |it, i| {
        it.header(&format!("X-{i}"), "x")
    });
    upstream.next(many);
    upstream.next(ResponseScript::say("Hello.").header("X-Long", &"x".repeat(100_000)));
    upstream.next(
        ResponseScript::body(500, "text/plain", Vec::new()).forever([b'x'; 8_192], Duration::ZERO),
    );

    assert!(matches!(
        request_error(&upstream).await,
        LlmError::Unreachable { .. }
    ));
    assert!(matches!(
        request_error(&upstream).await,
        LlmError::Upstream { .. }
    ));
    assert_eq!(request_error(&upstream).await.status(), Some(500));
    upstream.wait_for_disconnect(2).await;
}

#[tokio::test]
async fn an_unsendable_key_is_reported_without_a_request() {
    let upstream = FakeProvider::start().await;
    let mut spec = model_call::spec(&upstream.base_url());
    spec.api_key = Some(llm::secret::Secret::new("line\nbreak"));

    let sent = registry().provider(&spec).unwrap().stream(&request()).await;

    assert!(matches!(sent.err(), Some(LlmError::Unusable { .. })));
    assert_eq!(upstream.n_requests(), 0);
}

#[tokio::test]
async fn an_endpoint_lists_its_models() {
    let upstream = FakeProvider::start().await;
    upstream.models(&["small", "large"]);
    let endpoint = registry()
        .endpoint(&model_call::spec(&upstream.base_url()))
        .unwrap();

    let listed = model_list::list_models(&endpoint).await.unwrap().models;
    let listed: Vec<String> = listed.into_iter().map(|it| it.id).collect();
    assert_eq!(listed, ["small", "large"]);
}

#[tokio::test]
async fn a_probe_requests_one_word_and_reports_errors() {
    let upstream = FakeProvider::start().await;
    upstream.next(ResponseScript::say("Hello."));
    upstream.next(ResponseScript::status(404));
    upstream.next(ResponseScript::stream().role());
    let provider = provider(&upstream);

    let latency = model_list::probe(&*provider, "scripted").await;
    let unknown = model_list::probe(&*provider, "scripted").await.unwrap_err();
    let cut = model_list::probe(&*provider, "scripted").await.unwrap_err();

    assert!(latency.is_ok_and(|it| it > Duration::ZERO));
    assert_eq!(upstream.body(0)["max_tokens"], 16);
    assert_eq!(
        unknown.to_string(),
        "The provider does not know this model or address (404): Scripted 404."
    );
    assert_eq!(cut.to_string(), "The provider's response was cut off.");
}
