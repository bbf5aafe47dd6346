//! The server rejects foreign host names, which protects against DNS rebinding.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::expect;
use crate::support::raw_http::{UPGRADE, exchange, request};

const FOREIGN: &str = "attacker.test";

fn port_of(app: &TestApp) -> &str {
    app.base.rsplit(':').next().expect("a URL with a port")
}

/// Returns the loopback address of a server that is bound to every address of the machine.
fn on_loopback(app: &TestApp) -> String {
    format!("http://127.0.0.1:{}", port_of(app))
}

fn misdirected() -> (u16, String) {
    (421, "misdirected_request".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_host_is_rejected_by_every_endpoint() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let body = r#"{"username":"evil","password":"correct horse","display_name":"E"}"#;
    let length = body.len().to_string();
    let json = [
        ("Content-Type", "application/json"),
        ("Content-Length", length.as_str()),
    ];
    let with_port = format!("{FOREIGN}:{}", port_of(&app));

    for host in [FOREIGN, &with_port, "8.8.8.8", "localhost.attacker.test"] {
        for line in [
            "GET / HTTP/1.1",
            "GET /js/main.js HTTP/1.1",
            "GET /api/setup HTTP/1.1",
            "GET /nowhere HTTP/1.1",
        ] {
            let refused = exchange(&app.base, request(line, Some(host), &[])).await;
            assert_eq!(refused.error(), misdirected(), "{line} {host}");
        }
        // On a fresh server this would make the author of the page its admin.
        let set_up = request("POST /api/setup HTTP/1.1", Some(host), &json) + body;
        assert_eq!(exchange(&app.base, set_up).await.error(), misdirected());
        let upgrade = request("GET /ws HTTP/1.1", Some(host), &UPGRADE);
        assert_eq!(exchange(&app.base, upgrade).await.error(), misdirected());
    }
    let page = exchange(&app.base, request("GET / HTTP/1.1", Some(FOREIGN), &[])).await;
    assert!(page.body.contains("TROUPE_ALLOWED_HOSTS") && page.body.contains(FOREIGN));
    assert!(!page.header("content-security-policy").is_empty());
    assert_eq!(app.admin().await.get("/api/setup").await.1["needed"], false);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_do_not_help_under_a_foreign_host() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let made = expect(201, admin.post("/api/api_keys", json!({"name": "k"})).await);
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    let origin = format!("http://{FOREIGN}");
    // The headers that a browser sends after DNS rebinding: for the browser, everything has one
    // origin.
    let browser = [
        ("Cookie", admin.cookie()),
        ("Origin", &origin),
        ("Sec-Fetch-Site", "same-origin"),
    ];

    let get = request("GET /api/spaces HTTP/1.1", Some(FOREIGN), &browser);
    assert_eq!(exchange(&app.base, get).await.error(), misdirected());
    let upgrade = request(
        "GET /ws HTTP/1.1",
        Some(FOREIGN),
        &[&browser[..], &UPGRADE].concat(),
    );
    assert_eq!(exchange(&app.base, upgrade).await.error(), misdirected());
    let program = [("Authorization", bearer.as_str())];
    let get = request("GET /api/spaces HTTP/1.1", Some(FOREIGN), &program);
    assert_eq!(exchange(&app.base, get).await.error(), misdirected());
    let get = request("GET /api/spaces HTTP/1.1", Some("localhost"), &program);
    assert_eq!(exchange(&app.base, get).await.status, 200);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_checks_answer_under_any_host() {
    let app = TestApp::start(TestBackend::Sqlite).await;

    for path in ["/healthz", "/readyz"] {
        let line = format!("GET {path} HTTP/1.1");
        let healthy = exchange(&app.base, request(&line, Some("10.0.0.7:8080"), &[])).await;
        assert_eq!(healthy.status, 200, "{path}");
        // Old load balancers send no host name.
        let line = format!("GET {path} HTTP/1.0");
        assert_eq!(
            exchange(&app.base, request(&line, None, &[])).await.status,
            200
        );
    }
    let nameless = exchange(&app.base, request("GET / HTTP/1.0", None, &[])).await;
    assert_eq!(nameless.error(), misdirected());
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absolute_url_and_the_host_header_are_both_checked() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let host = app.base.strip_prefix("http://").unwrap();
    let send = async |name: &str, host: &str| {
        let line = format!("GET http://{name}/api/setup HTTP/1.1");
        exchange(&app.base, request(&line, Some(host), &[])).await
    };

    assert_eq!(send(FOREIGN, host).await.error(), misdirected());
    assert_eq!(send(host, FOREIGN).await.error(), misdirected());
    assert_eq!(send(host, host).await.status, 200);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_bind_accepts_ip_addresses_and_configured_names() {
    let env = [
        ("TROUPE_BIND", "0.0.0.0:0"),
        ("TROUPE_PUBLIC_URL", "https://troupe.example"),
        ("TROUPE_ALLOWED_HOSTS", "my-host,troupe.lan"),
    ];
    let app = TestApp::start_with(TestBackend::Sqlite, &env).await;
    let base = on_loopback(&app);
    let send = async |host: &str| {
        let line = "GET /api/setup HTTP/1.1";
        exchange(&base, request(line, Some(host), &[])).await
    };

    for host in [
        "192.168.1.5:8080",
        "[fd00::5]:8080",
        "localhost:8080",
        "my-host:8080",
        "troupe.lan",
        "troupe.example",
    ] {
        assert_eq!(send(host).await.status, 200, "{host}");
    }
    for host in [
        FOREIGN,
        "other-host:8080",
        "sub.troupe.lan",
        "troupe.example.attacker.test",
    ] {
        assert_eq!(send(host).await.error(), misdirected(), "{host}");
    }
    app.close().await;
}
