//! Every response has the security headers, and none reveals anything internal.

use std::collections::BTreeSet;

use base::ids::{SessionId, UserId};
use reqwest::Method;
use troupe::accounts::credential::Credential;
use troupe::server::client_files;

use super::space_isolation::{EndpointFixture, all_endpoints};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;
use crate::support::raw_http::{UPGRADE, exchange, request};

/// The policy with the hash of the script that sets the theme.
const POLICY: &str = "default-src 'none'; script-src 'self' 'sha256-THEME'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; manifest-src 'self'; \
    base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

const REQUIRED_HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("x-dns-prefetch-control", "off"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Headers that no response may have: they would weaken the others.
const FORBIDDEN_HEADERS: [&str; 4] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "server",
    "x-powered-by",
];

/// Replaces the hash of the one script in the pages, which changes with the script.
fn without_script_hash(policy: &str) -> String {
    match policy.split_once("'sha256-") {
        Some((before, rest)) => {
            let (_, after) = rest.split_once('\'').expect("a hash ends");
            format!("{before}'sha256-THEME'{after}")
        }
        None => policy.to_owned(),
    }
}

fn assert_has_headers<'a>(what: &str, status: u16, header: impl Fn(&str) -> &'a str) {
    for (name, value) in REQUIRED_HEADERS {
        let sent = without_script_hash(header(name));
        assert_eq!(sent, value, "{what}: {status}");
    }
    for name in FORBIDDEN_HEADERS {
        assert_eq!(header(name), "", "{what}: {status}");
    }
    assert_eq!(header("x-request-id").len(), 32, "{what}: {status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_of_every_endpoint_has_the_security_headers() {
    let fixture = EndpointFixture::create(TestBackend::Sqlite, &[]).await;
    let mut seen = BTreeSet::new();
    let mut check = async |what: &str, request: reqwest::RequestBuilder| {
        let answer = Answer::to(request).await;
        assert_has_headers(what, answer.status, |name| answer.header(name));
        seen.insert(answer.status);
    };

    for endpoint in all_endpoints() {
        let address = fixture.address(&endpoint);
        let method = Method::from_bytes(endpoint.method().as_str().as_bytes()).unwrap();
        let signed_out = http_client().request(method, format!("{}{address}", fixture.app.base));
        check(&address, signed_out).await;
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::OPTIONS] {
            check(&address, fixture.request(method, &address)).await;
        }
        let broken = fixture
            .request(Method::POST, &address)
            .header("content-type", "application/json");
        check(&address, broken.body("{")).await;
        let foreign = fixture
            .request(Method::POST, &address)
            .header("origin", "https://evil.example");
        check(&address, foreign).await;
    }
    for path in client_files::paths() {
        check(&path, fixture.request(Method::GET, &path)).await;
        check(
            &path,
            fixture
                .request(Method::GET, &path)
                .header("if-none-match", "*"),
        )
        .await;
        check(&path, fixture.request(Method::POST, &path)).await;
    }
    for path in [
        "/nowhere",
        "/api/nowhere",
        "/api",
        "/..%2fx",
        "/%00",
        "/c/1",
        "/join/x",
        "/api/spaces?limit=0",
    ] {
        check(path, fixture.request(Method::GET, path)).await;
    }
    let huge = fixture
        .request(Method::POST, "/api/spaces")
        .header("content-type", "application/json");
    check("a huge body", huge.body("x".repeat(1024 * 1024 + 1))).await;
    let text = fixture
        .request(Method::POST, "/api/spaces")
        .header("content-type", "text/plain");
    check("a text", text.body("x")).await;
    for _ in 0..=10 {
        let guess = http_client().post(format!("{}/api/session", fixture.app.base));
        let guess = guess.header("content-type", "application/json");
        check(
            "a guess",
            guess.body(r#"{"username":"x","password":"wrong horse"}"#),
        )
        .await;
    }

    for status in [200, 304, 400, 401, 403, 404, 405, 413, 415, 429] {
        assert!(seen.contains(&status), "{status} is not among {seen:?}");
    }
    fixture.app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_upgrades_and_foreign_hosts_get_the_security_headers() {
    let fixture =
        EndpointFixture::create(TestBackend::Sqlite, &[("LIMIT_SOCKETS_PER_USER", "1")]).await;
    let base = &fixture.app.base;
    let own_host = base.strip_prefix("http://").unwrap();
    let cookie = ("Cookie", fixture.admin.cookie());
    let origin = ("Origin", base.as_str());
    let browser = Credential::Session(SessionId(0));
    let sockets = &fixture.app.app.limits.sockets;
    let _held = sockets.acquire(UserId(1), browser, None).await;

    for (host, headers, status) in [
        (own_host, UPGRADE.to_vec(), 401),
        (own_host, [&[cookie][..], &UPGRADE].concat(), 403),
        (own_host, vec![cookie, origin], 400),
        (own_host, [&[cookie, origin][..], &UPGRADE].concat(), 429),
        (
            "attacker.test",
            [&[cookie, origin][..], &UPGRADE].concat(),
            421,
        ),
    ] {
        let answer = exchange(base, request("GET /ws HTTP/1.1", Some(host), &headers)).await;

        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.error().1.is_empty());
        assert_has_headers("/ws", answer.status, |name| answer.header(name));
    }
    fixture.app.close().await;
}

on_sqlite! {
    async fn an_error_response_reveals_no_internals(backend) {
        let fixture = EndpointFixture::create(backend, &[]).await;
        fixture.app.app.db.clone().close().await;
        let internals = ["SELECT", "INSERT", "sqlx", "sea_orm", "DbErr", "sqlite", "postgres", "panicked", "src/", ".rs:", "/root", "/home", "/tmp"];

        for endpoint in all_endpoints() {
            let method = Method::from_bytes(endpoint.method().as_str().as_bytes()).unwrap();
            let request_builder = fixture.request(method, &fixture.address(&endpoint)).header("content-type", "application/json");
            let answer = Answer::to(request_builder.body("{}")).await;

            for word in internals {
                assert!(!answer.text.contains(word), "{}: {}", endpoint.path(), answer.text);
            }
            assert_has_headers(endpoint.path(), answer.status, |name| answer.header(name));
        }
        fixture.app.close().await;
    }
}
