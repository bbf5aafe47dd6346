//! A key is sent only to the address it was entered for, and no input becomes a header.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;

const PLANTED: &str = "sk-planted-0123456789";

/// Tests the provider; returns the key with which it was called.
async fn key_at(upstream: &FakeProvider, admin: &HttpClient, path: &str) -> Option<String> {
    let nth = upstream.n_requests();
    let tested = admin.post(&format!("{path}/test"), json!({})).await;
    assert_eq!(expect(200, tested)["ok"], true);
    upstream
        .seen(nth)
        .header("authorization")
        .map(str::to_owned)
}

on_sqlite! {
    async fn a_key_is_not_sent_to_a_changed_address(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let (here, elsewhere) = (FakeProvider::start().await, FakeProvider::start().await);
        let body = json!({"name": "x", "base_url": here.base_url(), "model": "m", "api_key": PLANTED});
        let path = format!("/api/providers/{}", id(&expect(201, admin.post("/api/providers", body).await)));
        let with_key = Some(format!("Bearer {PLANTED}"));
        assert_eq!(key_at(&here, &admin, &path).await, with_key);

        let moved = admin.patch(&path, json!({"base_url": elsewhere.base_url()})).await;

        assert_eq!(expect(200, moved)["api_key_cleared"], true);
        assert_eq!(key_at(&elsewhere, &admin, &path).await, None);
        // The key is not restored with the old address.
        expect(200, admin.patch(&path, json!({"base_url": here.base_url()})).await);
        assert_eq!(key_at(&here, &admin, &path).await, None);
        // The same applies to another kind, because it may imply another address.
        expect(200, admin.patch(&path, json!({"api_key": PLANTED})).await);
        let changed = expect(200, admin.patch(&path, json!({"kind": "openai"})).await);
        assert_eq!((&changed["has_api_key"], &changed["api_key_cleared"]), (&json!(false), &json!(true)));
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_quoted_by_the_provider_is_not_returned() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let upstream = FakeProvider::start().await;
    let body =
        json!({"name": "x", "base_url": upstream.base_url(), "model": "m", "api_key": PLANTED});
    let made = expect(201, admin.post("/api/providers", body).await);
    let path = format!("/api/providers/{}", id(&made));
    let echo = json!({"error": {"message": format!("Incorrect API key provided: {PLANTED}.")}});

    for status in [400, 401, 403, 404, 429, 500] {
        upstream.next(ResponseScript::json(status, &echo));
        let tested = admin.post(&format!("{path}/test"), json!({})).await;

        assert_eq!(tested.1["ok"], false);
        assert!(!tested.1.to_string().contains("planted"), "{}", tested.1);
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_field_of_a_provider_accepts_a_line_break() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let upstream = FakeProvider::start().await;
    let base_url = upstream.base_url();
    let good = json!({"name": "x", "base_url": base_url, "model": "m", "api_key": PLANTED});
    let path = format!(
        "/api/providers/{}",
        id(&expect(
            201,
            admin.post("/api/providers", good.clone()).await
        ))
    );

    for field in ["name", "base_url", "model", "api_key"] {
        for evil in ["\r\nx-injected: 1", "\nx-injected: 1", "\rx", "\0x"] {
            let value = format!("{}{evil}", good[field].as_str().unwrap());
            let mut body = good.clone();
            body[field] = json!(value);
            let expected = (422, "invalid_value".to_owned());

            let made = admin.post("/api/providers", body).await;
            assert_eq!(refusal(&made), expected, "{field} {evil:?}");
            let changed = admin.patch(&path, json!({field: value})).await;
            assert_eq!(refusal(&changed), expected, "{field} {evil:?}");
        }
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_program_cannot_be_configured() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;

    for kind in ["stdio", "mcp", "command"] {
        let body = json!({"name": "x", "kind": kind, "model": "m", "base_url": "sh -c id"});
        let refused = admin.post("/api/providers", body).await;
        assert_eq!(
            refusal(&refused),
            (422, "invalid_value".to_owned()),
            "{kind}"
        );
    }
    let body =
        json!({"name": "x", "base_url": "https://api.example/v1", "model": "m", "command": "id"});
    let refused = admin.post("/api/providers", body).await;
    assert_eq!(refusal(&refused), (400, "unknown_field".to_owned()));
    app.close().await;
}
