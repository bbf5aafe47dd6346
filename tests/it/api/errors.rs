//! Tests that all errors have the same shape, and all responses the same security headers.

use reqwest::{Method, RequestBuilder};

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::{HttpClient, http_client};
use crate::support::http_response::Answer;

fn build_request(app: &TestApp, person: &HttpClient, method: Method, path: &str) -> RequestBuilder {
    http_client()
        .request(method, format!("{}{path}", app.base))
        .header("cookie", person.cookie())
}

async fn error_of(request: RequestBuilder) -> (u16, String, String) {
    let answer = Answer::to(request).await;
    let (status, code) = answer.refusal();
    let param = answer.json()["error"]["param"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (status, code, param)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_bodies_have_distinct_errors() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let json = "application/json";
    let cases: &[(&str, Vec<u8>, u16, &str, &str)] = &[
        (json, b"{".to_vec(), 400, "invalid_json", ""),
        (json, Vec::new(), 400, "invalid_json", ""),
        (json, b"\xff\xfe".to_vec(), 400, "invalid_json", ""),
        (json, b"[]".to_vec(), 400, "invalid_type", ""),
        (json, b"{}".to_vec(), 400, "missing_field", "name"),
        (
            json,
            br#"{"name":"x","nmae":1}"#.to_vec(),
            400,
            "unknown_field",
            "nmae",
        ),
        (json, br#"{"name":7}"#.to_vec(), 400, "invalid_type", "name"),
        (
            json,
            br#"{"name":null}"#.to_vec(),
            400,
            "invalid_type",
            "name",
        ),
        (
            json,
            br#"{"name":"x","settings":[]}"#.to_vec(),
            400,
            "invalid_type",
            "settings",
        ),
        (
            json,
            br#"{"name":"x","reply_order":"loud"}"#.to_vec(),
            422,
            "invalid_value",
            "reply_order",
        ),
        (
            json,
            br#"{"name":"x","auto_mode_delay_ms":600001}"#.to_vec(),
            422,
            "invalid_value",
            "auto_mode_delay_ms",
        ),
        (
            json,
            br#"{"name":"a\u0000b"}"#.to_vec(),
            422,
            "invalid_value",
            "name",
        ),
        (
            json,
            br#"{"name":"a\ud800"}"#.to_vec(),
            422,
            "invalid_value",
            "",
        ),
        (
            json,
            br#"{"name":"   "}"#.to_vec(),
            422,
            "invalid_value",
            "name",
        ),
        (
            json,
            br#"{"name":"x","owner_id":2}"#.to_vec(),
            400,
            "unknown_field",
            "owner_id",
        ),
        (
            json,
            br#"{"name":"x","tokens_used":0}"#.to_vec(),
            400,
            "unknown_field",
            "tokens_used",
        ),
        (
            "text/plain",
            br#"{"name":"x"}"#.to_vec(),
            415,
            "unsupported_media_type",
            "",
        ),
        (
            "application/x-www-form-urlencoded",
            b"name=x".to_vec(),
            415,
            "unsupported_media_type",
            "",
        ),
    ];

    for (content_type, body, status, code, param) in cases {
        let request = build_request(&app, &admin, Method::POST, "/api/spaces")
            .header("content-type", *content_type)
            .body(body.clone());
        let expected = (*status, (*code).to_owned(), (*param).to_owned());
        assert_eq!(
            error_of(request).await,
            expected,
            "{}",
            String::from_utf8_lossy(body)
        );
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_one_mebibyte_is_too_large() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let post = |n: usize| {
        let body = format!(r#"{{"name":"x","description":"{}"}}"#, "x".repeat(n));
        build_request(&app, &admin, Method::POST, "/api/spaces")
            .header("content-type", "application/json")
            .body(body)
    };

    assert_eq!(error_of(post(1024 * 1024)).await.0, 413);
    // Just below the limit the body is read, and only its value is invalid.
    assert_eq!(error_of(post(1024 * 1024 - 100)).await.1, "invalid_value");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_paths_return_404_and_unsupported_methods_405() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let not_found = [
        (Method::GET, "/nowhere"),
        (Method::POST, "/nowhere"),
        (Method::GET, "/api"),
        (Method::GET, "/api/"),
        (Method::GET, "/api/nowhere"),
        (Method::GET, "/api/spaces/abc"),
        (Method::GET, "/api/spaces/1.5"),
        (Method::GET, "/api/spaces/99999999999999999999"),
        (Method::GET, "/api/spaces/-1"),
        (Method::GET, "/api/spaces/424242"),
        (Method::DELETE, "/api/sessions/abc"),
        (Method::GET, "/api/characters/abc"),
        (Method::GET, "/api/spaces/424242/invites"),
        (Method::GET, "/metrics/all"),
    ];

    for (method, path) in not_found {
        let answer = error_of(build_request(&app, &admin, method, path)).await;
        assert_eq!(
            answer,
            (404, "not_found".to_owned(), String::new()),
            "{path}"
        );
    }
    for (method, path) in [
        (Method::PUT, "/api/session"),
        (Method::DELETE, "/api/spaces"),
        (Method::POST, "/healthz"),
        (Method::PATCH, "/api/setup"),
    ] {
        let answer = error_of(build_request(&app, &admin, method, path)).await;
        assert_eq!(
            (answer.0, answer.1.as_str()),
            (405, "method_not_allowed"),
            "{path}"
        );
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_page_query_returns_400() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;

    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "after=x",
        "before=1.5",
        "all=maybe",
    ] {
        let path = format!("/api/spaces?{query}");
        let (status, code, param) = error_of(build_request(&app, &admin, Method::GET, &path)).await;
        assert_eq!((status, code.as_str()), (400, "invalid_value"), "{query}");
        assert_eq!(Some(param.as_str()), query.split('=').next());
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unauthenticated_request_gets_401_before_anything_is_validated() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;
    let unauthenticated =
        |method: Method, path: &str| http_client().request(method, format!("{}{path}", app.base));

    for (method, path) in [
        (Method::GET, "/api/session"),
        (Method::GET, "/api/spaces"),
        (Method::GET, "/api/spaces/1"),
        (Method::GET, "/api/spaces/424242"),
        (Method::POST, "/api/spaces"),
        (Method::GET, "/api/spaces?limit=0"),
        (Method::PATCH, "/api/memberships/1"),
        (Method::GET, "/api/providers"),
        (Method::POST, "/api/admin/reap"),
    ] {
        let request = unauthenticated(method, path).body("{");
        let (status, code, _) = error_of(request).await;
        assert_eq!(
            (status, code.as_str()),
            (401, "not_authenticated"),
            "{path}"
        );
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_has_the_security_headers_and_an_id() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let client = http_client();
    let mut ids = Vec::new();

    for path in [
        "/",
        "/healthz",
        "/api/session",
        "/nowhere",
        "/api/setup",
        "/robots.txt",
    ] {
        let answer = Answer::to(client.get(format!("{}{path}", app.base))).await;
        let policy = answer.header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(
            answer.header("cross-origin-opener-policy"),
            "same-origin",
            "{path}"
        );
        ids.push(answer.header("x-request-id").to_owned());
    }

    assert!(ids.iter().all(|it| it.len() == 32));
    ids.dedup();
    assert_eq!(ids.len(), 6);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_before_the_handler_has_its_request_id() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    app.app.db.clone().close().await;

    let answer = Answer::to(build_request(&app, &admin, Method::GET, "/api/session")).await;

    assert!(answer.status >= 500, "{answer:?}");
    let id = answer.json()["error"]["request_id"].clone();
    assert_eq!(id, answer.header("x-request-id"));
    app.close().await;
}
