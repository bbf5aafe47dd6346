//! Bodies that stall: 408, and the connection closes, at every kind of endpoint and framing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use troupe::rate_limit::body_timeouts::BodyTimeouts;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::{expect, id};
use crate::support::poll::DEADLINE;
use crate::support::v1_client::V1Client;

const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data; boundary=b";

/// Returns everything that a connection receives until the server closes it.
async fn until_closed(base: &str, request: &str) -> String {
    let host = base.strip_prefix("http://").expect("an http:// URL");
    let mut stream = TcpStream::connect(host).await.expect("the server listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the request can be sent");
    let mut bytes = Vec::new();
    let read = timeout(DEADLINE, stream.read_to_end(&mut bytes)).await;
    let _ = read.unwrap_or_else(|_| panic!("the connection is still open: {request}"));
    String::from_utf8_lossy(&bytes).to_lowercase()
}

/// Returns a request whose body stalls after its first bytes, with a length and in chunks.
fn stalling_requests(call: &str, headers: &str, beginning: &str) -> [String; 2] {
    let head = format!("{call} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}");
    let n = beginning.len();
    [
        format!("{head}content-length: 4000\r\n\r\n{beginning}"),
        format!("{head}transfer-encoding: chunked\r\n\r\n{n:x}\r\n{beginning}\r\n"),
    ]
}

/// Starts a server with a short timeout for bodies that stall.
async fn start_with_short_timeout() -> TestApp {
    TestApp::start_changed(TestBackend::Sqlite, &[], |app| {
        app.body_timeouts = BodyTimeouts {
            grace: Duration::from_millis(100),
            ..BodyTimeouts::default()
        };
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_stalls_is_408_and_the_connection_closes() {
    let app = start_with_short_timeout().await;
    let admin = app.admin().await;
    let mina = id(&admin.create_character("Mina", None).await);
    let space = id(&admin.create_space("Room", serde_json::json!({})).await);
    let key = V1Client::new(&admin).await.key;
    let file = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nxx";
    let calls = [
        ("POST /api/session".to_owned(), JSON, "{"),
        ("POST /api/spaces".to_owned(), JSON, "{"),
        (format!("PATCH /api/spaces/{space}"), JSON, "{"),
        ("PATCH /api/users/me".to_owned(), JSON, "{\"locale\":"),
        ("POST /api/characters/import".to_owned(), FORM, file),
        ("POST /api/characters/preview".to_owned(), FORM, "--b\r\n"),
        (format!("PUT /api/characters/{mina}/avatar"), FORM, file),
        (format!("POST /api/spaces/{space}/import"), FORM, file),
        ("POST /api/lorebooks/import".to_owned(), FORM, file),
        ("POST /v1/responses".to_owned(), JSON, "{\"input\":"),
        ("POST /v1/responses/compact".to_owned(), JSON, "{"),
        ("POST /v1/chat/completions".to_owned(), JSON, "{"),
        ("POST /v1/conversations".to_owned(), JSON, "{"),
    ];

    for (call, kind, beginning) in calls {
        let headers = format!("authorization: Bearer {key}\r\ncontent-type: {kind}\r\n");
        for request in stalling_requests(&call, &headers, beginning) {
            let response = until_closed(&app.base, &request).await;

            assert!(response.starts_with("http/1.1 408 "), "{call}: {response}");
            assert!(
                response.contains("\"request_timeout\""),
                "{call}: {response}"
            );
            assert!(response.contains("connection: close"), "{call}: {response}");
        }
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_sent_before_the_body_arrived_closes_the_connection() {
    let app = start_with_short_timeout().await;
    let admin = app.admin().await;
    let made = expect(
        201,
        admin
            .post("/api/api_keys", serde_json::json!({"name": "x"}))
            .await,
    );
    let authorization = format!(
        "authorization: Bearer {}\r\n",
        made["key"].as_str().unwrap()
    );
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    for (call, headers, status) in [
        ("POST /api/spaces", "", 401),
        ("POST /api/spaces", authorization.as_str(), 415),
        ("GET /api/setup", "", 200),
        ("GET /healthz", "", 200),
        ("GET /", "", 200),
        ("POST /nowhere", "", 404),
        ("PUT /api/spaces", "", 405),
        ("POST /v1/responses", "", 401),
        ("GET /v1/models", authorization.as_str(), 200),
        ("GET /ws", upgrade, 401),
        ("GET /v1/responses", upgrade, 401),
        ("DELETE /api/session", authorization.as_str(), 204),
    ] {
        for request in stalling_requests(call, headers, "{") {
            let response = until_closed(&app.base, &request).await;

            let expected = format!("http/1.1 {status} ");
            assert!(response.starts_with(&expected), "{call}: {response}");
        }
    }
    app.close().await;
}
