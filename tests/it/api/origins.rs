//! Tests that cross-site requests from a browser are rejected.

use reqwest::Method;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::{HttpClient, http_client};
use crate::support::http_response::Answer;
use crate::support::raw_http::{RawResponse, UPGRADE, exchange, request};

const PUBLIC: &[(&str, &str)] = &[("TROUPE_PUBLIC_URL", "https://troupe.example")];

/// Sends a request to create a space, as a page would.
async fn create_space(base: &str, host: &str, headers: &[(&str, &str)]) -> RawResponse {
    let body = r#"{"name":"Room"}"#;
    let length = body.len().to_string();
    let json = [
        ("Content-Type", "application/json"),
        ("Content-Length", &length),
    ];
    let headers = [headers, &json].concat();
    let post = request("POST /api/spaces HTTP/1.1", Some(host), &headers) + body;
    exchange(base, post).await
}

/// Sends a WebSocket upgrade, as a page would.
async fn upgrade(base: &str, host: &str, headers: &[(&str, &str)]) -> RawResponse {
    let headers = [headers, &UPGRADE].concat();
    exchange(base, request("GET /ws HTTP/1.1", Some(host), &headers)).await
}

/// Returns origins that differ from the origin of `host`, each in a different way.
fn foreign_origins(host: &str) -> Vec<String> {
    let (name, port) = host.rsplit_once(':').expect("the host has a port");
    vec![
        "null".to_owned(),
        "https://evil.example".to_owned(),
        format!("http://evil.{host}"),
        format!("http://{host}.evil.example"),
        format!("http://{name}.evil.example:{port}"),
        format!("http://{name}:1"),
        format!("http://{name}"),
        format!("https://{host}"),
        format!("ws://{host}"),
        format!("HTTP://{host}"),
        format!("http://{name}.:{port}"),
        format!("http://me@{host}"),
        format!("http://{host}@evil.example"),
        format!("http://[::1]:{port}"),
        format!("http://localhost:{port}"),
        format!("http://{host}/"),
        format!("http://{host}, https://evil.example"),
        "http://troupe.example".to_owned(),
        "https://troupe.example:8443".to_owned(),
        "https://sub.troupe.example".to_owned(),
        "https://troupe.example.evil.example".to_owned(),
        "https://troupe.example.".to_owned(),
        "HTTPS://TROUPE.EXAMPLE".to_owned(),
        "https://me@troupe.example".to_owned(),
        "file://".to_owned(),
        "*".to_owned(),
        String::new(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_servers_own_origin_may_use_the_cookie() {
    for env in [&[][..], PUBLIC] {
        let app = TestApp::start_with(TestBackend::Sqlite, env).await;
        let admin = app.admin().await;
        let (base, host) = (app.base.as_str(), app.base.strip_prefix("http://").unwrap());
        let cookie = ("Cookie", admin.cookie());
        let refused = (403, "cross_origin".to_owned());

        for origin in &foreign_origins(host) {
            let headers = [cookie, ("Origin", origin)];
            assert_eq!(
                create_space(base, host, &headers).await.error(),
                refused,
                "{origin}"
            );
            assert_eq!(
                upgrade(base, host, &headers).await.error(),
                refused,
                "{origin}"
            );
        }
        for other in [base, "https://evil.example"] {
            let twice = [cookie, ("Origin", base), ("Origin", other)];
            assert_eq!(create_space(base, host, &twice).await.error(), refused);
            assert_eq!(upgrade(base, host, &twice).await.error(), refused);
        }
        let own = [cookie, ("Origin", base)];
        assert_eq!(create_space(base, host, &own).await.status, 201);
        assert_eq!(upgrade(base, host, &own).await.status, 101);
        // The public origin is accepted only where it is configured.
        let public = [cookie, ("Origin", "https://troupe.example")];
        let (made, opened) = if env.is_empty() {
            (403, 403)
        } else {
            (201, 101)
        };
        assert_eq!(create_space(base, host, &public).await.status, made);
        assert_eq!(upgrade(base, host, &public).await.status, opened);
        // A program sends no origin. Browsers always send one with an upgrade, so the socket
        // requires it.
        assert_eq!(create_space(base, host, &[cookie]).await.status, 201);
        assert_eq!(upgrade(base, host, &[cookie]).await.error(), refused);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_proxy_only_the_public_origin_is_accepted() {
    let app = TestApp::start_with(TestBackend::Sqlite, PUBLIC).await;
    let admin = app.admin().await;
    // The proxy forwards the host name that the browser requested.
    let host = "troupe.example";

    for (origin, made, opened) in [
        ("https://troupe.example", 201, 101),
        ("https://evil.example", 403, 403),
        ("https://troupe.example.evil.example", 403, 403),
        ("null", 403, 403),
        (app.base.as_str(), 403, 403),
    ] {
        let headers = [("Cookie", admin.cookie()), ("Origin", origin)];
        assert_eq!(
            create_space(&app.base, host, &headers).await.status,
            made,
            "{origin}"
        );
        assert_eq!(
            upgrade(&app.base, host, &headers).await.status,
            opened,
            "{origin}"
        );
    }
    app.close().await;
}

async fn create_space_with(
    app: &TestApp,
    person: &HttpClient,
    headers: &[(&str, &str)],
) -> (u16, String) {
    let mut request = http_client()
        .post(format!("{}/api/spaces", app.base))
        .header("cookie", person.cookie())
        .json(&json!({"name": "Room"}));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = Answer::to(request).await;
    match answer.status {
        201 => (201, String::new()),
        _ => answer.refusal(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sec_fetch_site_header_is_checked() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;

    for (site, status) in [
        ("same-origin", 201),
        ("none", 201),
        ("same-site", 403),
        ("cross-site", 403),
    ] {
        let answer = create_space_with(&app, &admin, &[("sec-fetch-site", site)]).await;
        assert_eq!(answer.0, status, "{site}");
    }
    assert_eq!(create_space_with(&app, &admin, &[]).await.0, 201);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_unsafe_method_is_protected_and_reading_is_not() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let request_from_other_site = |method: Method, path: &str| {
        http_client()
            .request(method, format!("{}{path}", app.base))
            .header("cookie", admin.cookie())
            .header("origin", "https://evil.example")
    };

    for (method, path) in [
        (Method::DELETE, "/api/session"),
        (Method::PATCH, "/api/users/me"),
        (Method::PUT, "/api/nowhere"),
        (Method::POST, "/api/session"),
    ] {
        let answer = Answer::to(request_from_other_site(method, path)).await;
        assert_eq!(answer.refusal(), (403, "cross_origin".to_owned()), "{path}");
    }

    assert_eq!(
        Answer::to(request_from_other_site(Method::GET, "/api/session"))
            .await
            .status,
        200
    );
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_an_api_key_needs_no_origin_check() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let key = admin.post("/api/api_keys", json!({"name": "bot"})).await.1["key"].clone();
    let request_from_other_site = |scheme: &str| {
        http_client()
            .post(format!("{}/api/spaces", app.base))
            .header("cookie", admin.cookie())
            .header("origin", "https://evil.example")
            .header(
                "authorization",
                format!("{scheme} {}", key.as_str().unwrap()),
            )
            .json(&json!({"name": "Room"}))
    };

    assert_eq!(
        Answer::to(request_from_other_site("Bearer")).await.status,
        201
    );
    // A credential that is not an API key (a proxy's password) is ignored: the cookie counts, and
    // its origin check applies.
    assert_eq!(
        Answer::to(request_from_other_site("Basic")).await.status,
        403
    );
    app.close().await;
}
