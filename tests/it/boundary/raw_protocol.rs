//! Tests of malformed HTTP requests, sent as raw bytes.

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::raw_http::{exchange, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_an_ambiguous_length_or_host_is_rejected() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let host = app.base.strip_prefix("http://").unwrap();
    let smuggled = "0\r\n\r\nGET /api/setup HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let ambiguous: [&[(&str, &str)]; 6] = [
        &[("Content-Length", "5"), ("Transfer-Encoding", "chunked")],
        &[("Transfer-Encoding", "chunked"), ("Content-Length", "5")],
        &[("Content-Length", "5"), ("Content-Length", "6")],
        &[
            ("Transfer-Encoding", "chunked"),
            ("Transfer-Encoding", "identity"),
        ],
        &[("Content-Length", "+5")],
        &[("Host", "localhost")],
    ];

    for headers in ambiguous {
        let post = request("POST /api/session HTTP/1.1", Some(host), headers) + smuggled;
        let answer = exchange(&app.base, post).await;
        assert_eq!(answer.status, 400, "{headers:?}");
        // The bytes that follow are not parsed as another request.
        assert!(!answer.body.contains("HTTP/1.1"), "{}", answer.body);
    }
    let without_host = exchange(&app.base, request("GET / HTTP/1.1", None, &[])).await;
    assert_eq!(without_host.status, 400);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_path_escapes_the_client_folder() {
    let app = TestApp::start(TestBackend::Sqlite).await;

    for path in [
        "/../Cargo.toml",
        "/js/../../Cargo.toml",
        "/..%2fCargo.toml",
        "/..%5cCargo.toml",
        "/%2e%2e/Cargo.toml",
        "/..;/Cargo.toml",
        "/js/..\\..\\Cargo.toml",
        "/js/main.js%00.html",
        "//etc/passwd",
        "/.env",
        "/.git/config",
        "/js/",
        "/%c0%ae%c0%ae/Cargo.toml",
        "/static/index.html",
        "file:///etc/passwd",
    ] {
        let get = request(&format!("GET {path} HTTP/1.1"), Some("localhost"), &[]);
        let answer = exchange(&app.base, get).await;
        assert!(
            [400, 404, 421].contains(&answer.status),
            "{path}: {answer:?}"
        );
        assert!(
            !answer.body.contains("[package]") && !answer.body.contains("root:"),
            "{path}"
        );
    }
    app.close().await;
}
