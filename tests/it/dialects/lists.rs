//! Model lists and connection tests of each kind of provider.

use std::time::Duration;

use llm::model_list;
use llm::registry::ProviderKind;
use serde_json::json;

use super::kinds::{ALL, error_response, provider, recorded, sends, spec};
use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{expect, id};
use crate::support::model_call::{KEY, registry};

#[tokio::test]
async fn every_kind_lists_its_models() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.models(&["small", "large"]);
        let endpoint = registry().endpoint(&spec(kind, &upstream)).unwrap();

        let listed = model_list::list_models(&endpoint).await.unwrap().models;

        let listed: Vec<String> = listed.into_iter().map(|it| it.id).collect();
        assert_eq!(listed, ["small", "large"], "{kind}");
    }
}

#[tokio::test]
async fn a_probe_of_every_kind_succeeds_with_text_or_reasoning() {
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.next(sends(kind, recorded(kind, "hello").unwrap()));
        upstream.next(sends(kind, recorded(kind, "only_thinking").unwrap()));
        upstream.next(error_response(kind, 403, "Not you."));
        let provider = provider(kind, &upstream);

        let with_text = model_list::probe(&*provider, "scripted").await;
        let with_reasoning = model_list::probe(&*provider, "scripted").await;
        let refused = model_list::probe(&*provider, "scripted").await;

        assert!(with_text.is_ok_and(|it| it > Duration::ZERO), "{kind}");
        assert!(with_reasoning.is_ok(), "{kind}");
        assert!(
            refused.unwrap_err().to_string().contains("Not you."),
            "{kind}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_is_created_tested_and_listed_through_the_api() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        upstream.always(sends(kind, recorded(kind, "hello").unwrap()));
        let base_url = spec(kind, &upstream).base_url;
        let body =
            json!({"name": "x", "kind": kind, "base_url": base_url, "model": "m", "api_key": KEY});
        let made = expect(201, admin.post("/api/providers", body).await);
        let path = format!("/api/providers/{}", id(&made));

        let tried = expect(200, admin.post(&format!("{path}/test"), json!({})).await);
        let listed = expect(200, admin.get(&format!("{path}/models")).await);

        assert_eq!(tried["ok"], true, "{kind}: {tried}");
        assert_eq!(
            listed["data"],
            json!([{"id": "scripted", "vision": null, "context_tokens": null}]),
            "{kind}"
        );
        assert_eq!(made["has_api_key"], true, "{kind}");
    }
    // These kinds have a default address, so it can be omitted.
    for kind in ["openai", "anthropic", "gemini", "ollama"] {
        let body = json!({"name": "x", "kind": kind, "model": "m"});
        let made = expect(201, admin.post("/api/providers", body).await);
        assert_eq!(
            (&made["kind"], &made["base_url"]),
            (&json!(kind), &json!(null))
        );
    }
    app.close().await;
}

#[tokio::test]
async fn a_base_url_may_include_or_omit_the_api_path() {
    for (kind, paths) in [
        (ProviderKind::Anthropic, ["", "/v1/", "/v1/messages"]),
        (ProviderKind::Gemini, ["", "/v1beta", "/v1beta/models"]),
        (ProviderKind::Ollama, ["/", "/v1", "/api/chat"]),
        (
            ProviderKind::OpenaiCompatible,
            ["/v1", "/v1/", "/v1/chat/completions"],
        ),
    ] {
        let upstream = FakeProvider::start().await;
        for path in paths {
            let mut spec = spec(kind, &upstream);
            spec.base_url = Some(format!("{}{path}", upstream.origin()));
            let endpoint = registry().endpoint(&spec).unwrap();

            let listed = model_list::list_models(&endpoint).await;

            let listed: Vec<String> = listed.unwrap().models.into_iter().map(|it| it.id).collect();
            assert_eq!(listed, ["scripted"], "{kind} {path}");
        }
    }
}
