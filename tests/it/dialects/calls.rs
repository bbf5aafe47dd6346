//! Requests to each kind of provider: format, path, key and errors.

use std::time::Duration;

use llm::error::LlmError;
use llm::provider_options::ProviderOptions;
use llm::registry::{ProviderKind, ProviderRegistry, ProviderSpec};
use outbound_http::client::OutboundClient;
use serde_json::json;

use super::kinds::{ALL, error_response, provider, recorded, sends, spec};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call;
use crate::support::model_call::{KEY, registry, request};
use crate::support::test_resolver::TestResolver;
use crate::support::trap_server::TrapServer;

#[tokio::test]
async fn every_kind_is_called_with_its_own_format_and_path() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.always(sends(kind, recorded(kind, "hello").unwrap()));

        let sent = provider(kind, &upstream).stream(&request()).await;

        assert!(sent.is_ok(), "{kind}");
        let seen = upstream.seen(0);
        let (path, expected) = match kind {
            ProviderKind::Anthropic => (
                "/v1/messages",
                json!({
                    "model": "scripted",
                    "max_tokens": 4_096,
                    "stream": true,
                    "system": [{ "type": "text", "text": "Be Ada.", "cache_control": { "type": "ephemeral" } }],
                    "messages": [{ "role": "user", "content": "Eve: Hi." }],
                }),
            ),
            ProviderKind::Gemini => (
                "/v1beta/models/scripted:streamGenerateContent?alt=sse",
                json!({
                    "systemInstruction": { "parts": [{ "text": "Be Ada." }] },
                    "contents": [{ "role": "user", "parts": [{ "text": "Eve: Hi." }] }],
                }),
            ),
            ProviderKind::Ollama => (
                "/api/chat",
                json!({
                    "model": "scripted",
                    "stream": true,
                    "messages": [
                        { "role": "system", "content": "Be Ada." },
                        { "role": "user", "content": "Eve: Hi." },
                    ],
                }),
            ),
            _ => (
                "/v1/chat/completions",
                json!({
                    "model": "scripted",
                    "stream": true,
                    "stream_options": { "include_usage": true },
                    "messages": [
                        { "role": "system", "content": "Be Ada." },
                        { "role": "user", "content": "Eve: Hi." },
                    ],
                }),
            ),
        };
        assert_eq!(
            (seen.path.as_str(), &seen.body),
            (path, &expected),
            "{kind}"
        );
        assert_eq!(seen.header("accept-encoding"), Some("identity"), "{kind}");
    }
}

#[tokio::test]
async fn reasoning_effort_is_sent_in_the_format_of_every_kind() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.always(sends(kind, recorded(kind, "hello").unwrap()));
        let mut spec = spec(kind, &upstream);
        spec.options = ProviderOptions::from_settings(&json!({ "reasoning": "low" }));

        let provider = registry().provider(&spec).unwrap();
        let _ = provider.stream(&request()).await;

        let (pointer, expected) = match kind {
            ProviderKind::Anthropic => ("/output_config/effort", json!("low")),
            ProviderKind::Gemini => (
                "/generationConfig/thinkingConfig/thinkingBudget",
                json!(1_024),
            ),
            ProviderKind::Ollama => ("/think", json!("low")),
            _ => ("/reasoning_effort", json!("low")),
        };
        assert_eq!(upstream.body(0).pointer(pointer), Some(&expected), "{kind}");
    }
}

#[tokio::test]
async fn no_kind_of_provider_reaches_a_private_address() {
    let decoy = TrapServer::start();
    let names = TestResolver::new(&[("inside.example", &["127.0.0.1", "::1"])]);
    let egress = OutboundClient::new(names, false).unwrap();
    let registry = ProviderRegistry::new(egress, Duration::ZERO, None);
    for kind in ALL {
        let at = |host: &str| ProviderSpec {
            kind,
            ..model_call::spec(&format!("http://{host}:{}/v1", decoy.port))
        };

        let by_name = registry.provider(&at("inside.example")).unwrap();
        let called = by_name.stream(&request()).await.err();
        let by_address = registry.provider(&at("127.0.0.1")).err();

        assert!(matches!(called, Some(LlmError::Unusable { .. })), "{kind}");
        assert!(by_address.is_some(), "{kind}");
    }
    assert_eq!(decoy.n_came(), 0);
}

#[tokio::test]
async fn the_key_is_sent_in_one_header_only() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.always(sends(kind, recorded(kind, "hello").unwrap()));

        let _ = provider(kind, &upstream).stream(&request()).await;

        let seen = upstream.seen(0);
        let (header, value) = match kind {
            ProviderKind::Anthropic => ("x-api-key", KEY.to_owned()),
            ProviderKind::Gemini => ("x-goog-api-key", KEY.to_owned()),
            _ => ("authorization", format!("Bearer {KEY}")),
        };
        let with_key: Vec<_> = seen
            .headers
            .iter()
            .filter(|it| it.1.contains(KEY))
            .collect();
        assert_eq!(with_key, [&(header.to_owned(), value)], "{kind}");
        assert!(
            !seen.path.contains(KEY) && !seen.body.to_string().contains(KEY),
            "{kind}"
        );
    }
    let anthropic = FakeProvider::start().await;
    let _ = provider(ProviderKind::Anthropic, &anthropic)
        .stream(&request())
        .await;
    assert_eq!(
        anthropic.seen(0).header("anthropic-version"),
        Some("2023-06-01")
    );
}

#[tokio::test]
async fn the_key_appears_in_no_message_and_in_no_debug_output() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        for status in [400, 401, 403, 404, 429, 500, 529] {
            upstream.next(error_response(
                kind,
                status,
                &format!("The key {KEY} is wrong."),
            ));

            let error = provider(kind, &upstream).stream(&request()).await;

            let error = error.err().unwrap();
            assert_eq!(error.status(), Some(status), "{kind}");
            assert!(
                !format!("{error} {error:?}").contains(KEY),
                "{kind}: {error:?}"
            );
        }
        let endpoint = registry().endpoint(&spec(kind, &upstream)).unwrap();
        assert!(!format!("{endpoint:?}").contains(KEY), "{kind}");
    }
}

#[tokio::test]
async fn an_error_is_read_in_the_format_of_every_kind() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.next(error_response(kind, 404, "No such model."));

        let error = provider(kind, &upstream).stream(&request()).await.err();

        assert_eq!(
            error.unwrap().to_string(),
            "The provider does not know this model or address (404): No such model.",
            "{kind}"
        );
    }
}

#[tokio::test]
async fn web_pages_compressed_responses_and_redirects_are_errors() {
    let elsewhere = FakeProvider::start().await;
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        let target = format!("{}/v1/chat/completions", elsewhere.origin());
        upstream.next(ResponseScript::html());
        upstream.next(
            ResponseScript::stream()
                .header("Content-Encoding", "gzip")
                .raw([0x1f, 0x8b]),
        );
        upstream.next(ResponseScript::status(307).header("Location", &target));

        let mut messages = Vec::new();
        for _ in 0..3 {
            let error = provider(kind, &upstream).stream(&request()).await.err();
            messages.push(error.unwrap().to_string());
        }

        assert!(messages[0].contains("web page"), "{kind}: {messages:?}");
        assert!(messages[1].contains("compressed"), "{kind}: {messages:?}");
        assert!(messages[2].contains("redirect"), "{kind}: {messages:?}");
    }
    assert_eq!(elsewhere.n_requests(), 0);
}
