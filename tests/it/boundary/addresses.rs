//! Limits per address count the address of the connection, or the forwarded one if a trusted proxy
//! sends it.

use base::ids::{SessionId, UserId};
use reqwest::RequestBuilder;
use serde_json::json;
use troupe::accounts::credential::Credential;

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::TestBackend;
use crate::support::http_client::{HttpClient, http_client};
use crate::support::http_response::Answer;
use crate::support::raw_http::{RawResponse, UPGRADE, exchange, request};

/// Headers by which a client could claim another identity or address.
const CLAIMS: [&str; 8] = [
    "x-forwarded-for",
    "x-real-ip",
    "x-client-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "forwarded",
    "x-forwarded-host",
    "x-original-forwarded-for",
];

fn guess(app: &TestApp, nth: usize) -> RequestBuilder {
    // A different username each time, so that only the limit per address counts.
    http_client()
        .post(format!("{}/api/session", app.base))
        .json(&json!({"username": format!("somebody{nth}"), "password": "wrong horse"}))
}

fn claimed(nth: usize) -> String {
    format!("203.0.113.{}", nth % 250)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_cannot_be_evaded_by_forwarded_headers() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    for nth in 0..10 {
        let claim = guess(&app, nth).header("x-forwarded-for", claimed(nth));
        assert_eq!(Answer::to(claim).await.status, 401);
    }

    for (nth, header) in (10..).zip(CLAIMS) {
        let value = match header {
            "forwarded" => format!("for={}", claimed(nth)),
            _ => claimed(nth),
        };
        let late = Answer::to(guess(&app, nth).header(header, value)).await;

        assert_eq!(late.refusal(), (429, "rate_limited".to_owned()), "{header}");
        assert_eq!(late.header("retry-after"), "180", "{header}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_header_does_not_authenticate() {
    let env = [("TROUPE_TRUSTED_PROXIES", "127.0.0.1")];
    let app = TestApp::start_with(TestBackend::Sqlite, &env).await;
    app.admin().await;

    for header in [
        "remote-user",
        "x-remote-user",
        "x-forwarded-user",
        "x-auth-request-user",
        "x-authentik-username",
    ] {
        let ask = http_client()
            .get(format!("{}/api/session", app.base))
            .header(header, "admin");
        assert_eq!(Answer::to(ask).await.status, 401, "{header}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_trusted_proxy_each_client_has_its_own_limit() {
    let env = [("TROUPE_TRUSTED_PROXIES", "127.0.0.0/8, 10.0.0.0/8")];
    let app = TestApp::start_with(TestBackend::Sqlite, &env).await;
    let from = |nth: usize, chain: String| guess(&app, nth).header("x-forwarded-for", chain);
    for nth in 0..10 {
        // The client's own first entry changes with each request; the entry of the proxy does not.
        let chain = format!("{}, 198.51.100.7, 10.0.0.2", claimed(nth));
        assert_eq!(Answer::to(from(nth, chain)).await.status, 401);
    }

    let again = from(10, "192.0.2.1, 198.51.100.7".to_owned());
    assert_eq!(Answer::to(again).await.status, 429);
    let neighbor = from(11, "198.51.100.7, 198.51.100.8".to_owned());
    assert_eq!(Answer::to(neighbor).await.status, 401);
    assert_eq!(
        Answer::to(guess(&app, 12)).await.status,
        401,
        "the address of the proxy itself"
    );
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registrations_are_limited_by_the_client_address() {
    let limit = [
        ("LIMIT_REGISTRATIONS_PER_HOUR", "1"),
        ("TROUPE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let app = TestApp::start_with(TestBackend::Sqlite, &[OPEN_REGISTRATION, &limit].concat()).await;
    app.admin().await;
    let register = async |name: &str, chain: &str| {
        let body = json!({"username": name, "password": "correct horse", "display_name": "X"});
        let ask = http_client()
            .post(format!("{}/api/users", app.base))
            .header("x-forwarded-for", chain)
            .json(&body);
        Answer::to(ask).await
    };

    assert_eq!(register("ann", "192.0.2.1, 198.51.100.7").await.status, 201);
    let second = register("ben", "192.0.2.2, 198.51.100.7").await;
    assert_eq!(second.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(second.header("retry-after"), "3600");
    assert_eq!(register("ben", "198.51.100.8").await.status, 201);
    app.close().await;
}

async fn upgrade(app: &TestApp, person: &HttpClient, chain: Option<&str>) -> RawResponse {
    let mut headers = vec![("Cookie", person.cookie()), ("Origin", app.base.as_str())];
    headers.extend(UPGRADE);
    headers.extend(chain.map(|it| ("X-Forwarded-For", it)));
    let host = app.base.strip_prefix("http://");
    exchange(&app.base, request("GET /ws HTTP/1.1", host, &headers)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_per_address_are_limited_across_users() {
    let limit = [
        ("LIMIT_SOCKETS_PER_ADDRESS", "2"),
        ("TROUPE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let app = TestApp::start_with(TestBackend::Sqlite, &[OPEN_REGISTRATION, &limit].concat()).await;
    let (ann, ben) = (app.admin().await, app.register("ben").await);
    let home = Some("198.51.100.7");
    // Holds permits directly: the server would notice only later that a real socket was dropped.
    let address =
        troupe::rate_limit::client_network::ClientNetwork::from(std::net::IpAddr::from([
            198, 51, 100, 7,
        ]));
    let browser = Credential::Session(SessionId(0));
    let mut held = Vec::new();
    for it in 1..=2 {
        let sockets = &app.app.limits.sockets;
        held.push(sockets.acquire(UserId(it), browser, Some(address)).await);
    }
    assert!(held.iter().all(Option::is_some));

    for person in [&ann, &ben] {
        let refused = upgrade(&app, person, home).await;
        assert_eq!(refused.error(), (429, "rate_limited".to_owned()));
        assert_eq!(refused.header("retry-after"), "10");
    }
    assert_eq!(upgrade(&app, &ben, Some("198.51.100.8")).await.status, 101);
    assert_eq!(upgrade(&app, &ben, None).await.status, 101);
    drop(held);
    assert_eq!(upgrade(&app, &ben, home).await.status, 101);
    app.close().await;
}
