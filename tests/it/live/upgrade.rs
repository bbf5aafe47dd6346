//! The WebSocket upgrade: authentication and limits. For origins see `api/origins.rs`.

use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};

use crate::live::fixture::LiveFixture;
use crate::support::http_client::expect;
use crate::support::poll;
use crate::support::ws_client::connect;

/// Returns the status of an upgrade with these headers and the error code.
async fn upgrade(base: &str, headers: &[(&str, &str)]) -> (u16, Option<String>) {
    upgrade_with_query(base, "", headers).await
}

async fn upgrade_with_query(
    base: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> (u16, Option<String>) {
    let address = format!("{}/ws{query}", base.replacen("http", "ws", 1));
    let mut request = address.into_client_request().unwrap();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        request
            .headers_mut()
            .append(name, HeaderValue::from_str(value).unwrap());
    }
    match connect_async(request).await {
        Ok((_, answer)) => (answer.status().as_u16(), None),
        Err(Error::Http(answer)) => {
            let body = answer.body().clone().unwrap_or_default();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let code = body["error"]["code"].as_str().map(str::to_owned);
            (answer.status().as_u16(), code)
        }
        Err(error) => panic!("the upgrade failed: {error}"),
    }
}

fn refused(status: u16, code: &str) -> (u16, Option<String>) {
    (status, Some(code.to_owned()))
}

#[tokio::test]
async fn an_api_key_needs_no_origin_and_invalid_credentials_are_rejected() {
    let fixture = LiveFixture::open().await;
    let base = fixture.house.base.as_str();
    let made = expect(
        201,
        fixture
            .bob
            .post("/api/api_keys", json!({"name": "k"}))
            .await,
    );
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());

    assert_eq!(upgrade(base, &[("authorization", &bearer)]).await.0, 101);
    let unauthenticated = refused(401, "not_authenticated");
    assert_eq!(upgrade(base, &[("origin", base)]).await, unauthenticated);
    assert_eq!(
        upgrade(base, &[("authorization", "Bearer trp_wrong")]).await,
        unauthenticated
    );
    let stale = [("cookie", "troupe_session=wrong"), ("origin", base)];
    assert_eq!(upgrade(base, &stale).await, unauthenticated);
    fixture.close().await;
}

#[tokio::test]
async fn an_unknown_protocol_is_rejected_and_known_ones_are_accepted() {
    let fixture = LiveFixture::open().await;
    let base = fixture.house.base.as_str();
    let bob = [("cookie", fixture.bob.cookie()), ("origin", base)];

    for query in ["?protocol=1", "?protocol=2", "?other=3"] {
        let (status, _) = upgrade_with_query(base, query, &bob).await;
        assert_eq!(status, 101, "{query}");
    }
    for query in ["?protocol=", "?protocol=0", "?protocol=3", "?protocol=two"] {
        let answer = upgrade_with_query(base, query, &bob).await;
        assert_eq!(answer, refused(400, "invalid_value"), "{query}");
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_request_without_an_upgrade_gets_a_json_error() {
    let fixture = LiveFixture::open().await;

    let (status, answer) = fixture.bob.get("/ws").await;

    // The test client sends no origin.
    assert_eq!(
        (status, &answer["error"]["code"]),
        (403, &json!("cross_origin"))
    );
    fixture.close().await;
}

#[tokio::test]
async fn sockets_per_user_are_limited_and_a_closed_one_frees_a_permit() {
    let env = [("LIMIT_SOCKETS_PER_USER", "2")];
    let fixture = LiveFixture::open_changed(&env, |_| {}).await;
    let base = fixture.house.base.as_str();
    let bob = [("cookie", fixture.bob.cookie()), ("origin", base)];
    let first = connect(&fixture.bob).await.unwrap();
    let _second = connect(&fixture.bob).await.unwrap();

    assert_eq!(upgrade(base, &bob).await, refused(429, "rate_limited"));
    let ann = [("cookie", fixture.ann.cookie()), ("origin", base)];
    assert_eq!(upgrade(base, &ann).await.0, 101);
    drop(first);

    poll::until("a permit is free", async || {
        (upgrade(base, &bob).await.0 == 101).then_some(())
    })
    .await;
    fixture.close().await;
}
