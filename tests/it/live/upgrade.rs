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
    let address = format!("{}/ws", base.replacen("http", "ws", 1));
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
        Err(error) => panic!("the server answers: {error}"),
    }
}

fn refused(status: u16, code: &str) -> (u16, Option<String>) {
    (status, Some(code.to_owned()))
}

#[tokio::test]
async fn a_key_needs_no_origin_and_a_cookie_does() {
    let stage = LiveFixture::open().await;
    let base = stage.house.base.as_str();
    let made = expect(
        201,
        stage.bob.post("/api/api_keys", json!({"name": "k"})).await,
    );
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());

    assert_eq!(upgrade(base, &[("authorization", &bearer)]).await.0, 101);
    let nobody = refused(401, "not_authenticated");
    assert_eq!(upgrade(base, &[("origin", base)]).await, nobody);
    assert_eq!(
        upgrade(base, &[("authorization", "Bearer trp_wrong")]).await,
        nobody
    );
    let stale = [("cookie", "troupe_session=wrong"), ("origin", base)];
    assert_eq!(upgrade(base, &stale).await, nobody);
    stage.close().await;
}

#[tokio::test]
async fn what_is_no_upgrade_is_an_ordinary_error() {
    let stage = LiveFixture::open().await;

    let (status, answer) = stage.bob.get("/ws").await;

    // The test client sends no origin.
    assert_eq!(
        (status, &answer["error"]["code"]),
        (403, &json!("cross_origin"))
    );
    stage.close().await;
}

#[tokio::test]
async fn one_person_has_so_many_sockets_and_a_closed_one_makes_room() {
    let env = [("LIMIT_SOCKETS_PER_USER", "2")];
    let stage = LiveFixture::open_changed(&env, |_| {}).await;
    let base = stage.house.base.as_str();
    let bob = [("cookie", stage.bob.cookie()), ("origin", base)];
    let first = connect(&stage.bob).await.unwrap();
    let _second = connect(&stage.bob).await.unwrap();

    assert_eq!(upgrade(base, &bob).await, refused(429, "rate_limited"));
    let ann = [("cookie", stage.ann.cookie()), ("origin", base)];
    assert_eq!(upgrade(base, &ann).await.0, 101);
    drop(first);

    poll::until("there is room again", async || {
        (upgrade(base, &bob).await.0 == 101).then_some(())
    })
    .await;
    stage.close().await;
}
