//! Every response has the security headers, and none reveals anything internal.

use std::collections::BTreeSet;

use base::ids::{SessionId, UserId};
use reqwest::Method;
use troupe::accounts::credential::Credential;

use super::space_isolation::{EndpointFixture, all_endpoints, client_files};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;
use crate::support::raw_http::{UPGRADE, exchange, request};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
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

fn assert_has_headers<'a>(what: &str, status: u16, header: impl Fn(&str) -> &'a str) {
    for (name, value) in REQUIRED_HEADERS {
        assert_eq!(header(name), value, "{what}: {status}");
    }
    for name in FORBIDDEN_HEADERS {
        assert_eq!(header(name), "", "{what}: {status}");
    }
    assert_eq!(header("x-request-id").len(), 32, "{what}: {status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_of_every_endpoint_has_the_security_headers() {
    let house = EndpointFixture::create(TestBackend::Sqlite, &[]).await;
    let mut seen = BTreeSet::new();
    let mut look = async |what: &str, request: reqwest::RequestBuilder| {
        let answer = Answer::to(request).await;
        assert_has_headers(what, answer.status, |name| answer.header(name));
        seen.insert(answer.status);
    };

    for door in all_endpoints() {
        let address = house.address(&door);
        let method = Method::from_bytes(door.method().as_str().as_bytes()).unwrap();
        let stranger = http_client().request(method, format!("{}{address}", house.app.base));
        look(&address, stranger).await;
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::OPTIONS] {
            look(&address, house.request(method, &address)).await;
        }
        let broken = house
            .request(Method::POST, &address)
            .header("content-type", "application/json");
        look(&address, broken.body("{")).await;
        let foreign = house
            .request(Method::POST, &address)
            .header("origin", "https://evil.example");
        look(&address, foreign).await;
    }
    for path in client_files() {
        look(&path, house.request(Method::GET, &path)).await;
        look(
            &path,
            house
                .request(Method::GET, &path)
                .header("if-none-match", "*"),
        )
        .await;
        look(&path, house.request(Method::POST, &path)).await;
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
        look(path, house.request(Method::GET, path)).await;
    }
    let huge = house
        .request(Method::POST, "/api/spaces")
        .header("content-type", "application/json");
    look("a huge body", huge.body("x".repeat(1024 * 1024 + 1))).await;
    let text = house
        .request(Method::POST, "/api/spaces")
        .header("content-type", "text/plain");
    look("a text", text.body("x")).await;
    for _ in 0..=10 {
        let guess = http_client().post(format!("{}/api/session", house.app.base));
        let guess = guess.header("content-type", "application/json");
        look(
            "a guess",
            guess.body(r#"{"username":"x","password":"wrong horse"}"#),
        )
        .await;
    }

    for status in [200, 304, 400, 401, 403, 404, 405, 413, 415, 429] {
        assert!(seen.contains(&status), "{status} is not among {seen:?}");
    }
    house.app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_upgrade_and_a_foreign_host_have_them_too() {
    let house =
        EndpointFixture::create(TestBackend::Sqlite, &[("LIMIT_SOCKETS_PER_USER", "1")]).await;
    let base = &house.app.base;
    let ours = base.strip_prefix("http://").unwrap();
    let cookie = ("Cookie", house.admin.cookie());
    let origin = ("Origin", base.as_str());
    let browser = Credential::Session(SessionId(0));
    let sockets = &house.app.app.limits.sockets;
    let _held = sockets.acquire(UserId(1), browser, None).await;

    for (host, headers, status) in [
        (ours, UPGRADE.to_vec(), 401),
        (ours, [&[cookie][..], &UPGRADE].concat(), 403),
        (ours, vec![cookie, origin], 400),
        (ours, [&[cookie, origin][..], &UPGRADE].concat(), 429),
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
    house.app.close().await;
}

on_sqlite! {
    async fn a_failure_reveals_nothing_internal(backend) {
        let house = EndpointFixture::create(backend, &[]).await;
        house.app.app.db.clone().close().await;
        let inside = ["SELECT", "INSERT", "sqlx", "sea_orm", "DbErr", "sqlite", "postgres", "panicked", "src/", ".rs:", "/root", "/home", "/tmp"];

        for door in all_endpoints() {
            let method = Method::from_bytes(door.method().as_str().as_bytes()).unwrap();
            let ask = house.request(method, &house.address(&door)).header("content-type", "application/json");
            let answer = Answer::to(ask.body("{}")).await;

            for word in inside {
                assert!(!answer.text.contains(word), "{}: {}", door.path(), answer.text);
            }
            assert_has_headers(door.path(), answer.status, |name| answer.header(name));
        }
        house.app.close().await;
    }
}
