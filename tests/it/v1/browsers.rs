//! Tests of calls by pages of other sites (CORS).

use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::json;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::fixture::V1Fixture;
use crate::support::backends::on_sqlite;
use crate::support::http_client::http_client;

const PAGE: &str = "https://app.example";

/// Sends the preflight request that a browser sends before a call, without an API key.
async fn preflight(fixture: &V1Fixture, path: &str) -> Response {
    let url = format!("{}{path}", fixture.app.base);
    let request = http_client()
        .request(Method::OPTIONS, url)
        .header("origin", PAGE);
    let request = request.header("access-control-request-method", "POST");
    let request = request.header(
        "access-control-request-headers",
        "authorization,x-stainless-os",
    );
    request.send().await.unwrap()
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|it| it.to_str().unwrap())
}

/// Opens a socket as a page of this origin; returns the status of a refusal.
async fn socket_status(fixture: &V1Fixture, origin: &'static str) -> Option<u16> {
    let address = fixture.app.base.replacen("http", "ws", 1);
    let mut request = format!("{address}/v1/responses")
        .into_client_request()
        .unwrap();
    let bearer = format!("Bearer {}", fixture.program.key).parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    request
        .headers_mut()
        .insert("origin", origin.parse().unwrap());
    match tokio_tungstenite::connect_async(request).await {
        Ok(_) => None,
        Err(Error::Http(answer)) => Some(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

on_sqlite! {
    async fn every_page_may_call_v1_by_default_and_reads_errors_too(backend) {
        let fixture = V1Fixture::open(backend).await;

        let asked = preflight(&fixture, "/v1/responses").await;
        assert_eq!(asked.status(), 204);
        let headers = asked.headers();
        assert_eq!(value(headers, "access-control-allow-origin"), Some("*"));
        assert_eq!(value(headers, "access-control-allow-methods"), Some("GET, POST"));
        assert_eq!(value(headers, "access-control-allow-headers"), Some("authorization,x-stainless-os"));
        assert_eq!(value(headers, "access-control-max-age"), Some("600"));
        let page = |method: Method, path: &str| fixture.program.request(method, path).header("origin", PAGE);
        let refused = page(Method::POST, "/responses").json(&json!({ "input": 1 })).send().await.unwrap();
        assert_eq!(refused.status(), 400);
        let without_key = http_client().get(format!("{}/v1/models", fixture.app.base)).header("origin", PAGE).send().await.unwrap();
        assert_eq!(without_key.status(), 401);
        let models = page(Method::GET, "/models").send().await.unwrap();
        for answer in [refused, without_key, models, preflight(&fixture, "/v1/nothing").await] {
            let headers = answer.headers();
            assert_eq!(value(headers, "access-control-allow-origin"), Some("*"), "{answer:?}");
            assert!(value(headers, "access-control-expose-headers").unwrap().contains("troupe-ignored"));
            assert!(headers.get("access-control-allow-credentials").is_none());
        }
        let of_api = preflight(&fixture, "/api/me").await;
        assert!(!of_api.headers().keys().any(|it| it.as_str().starts_with("access-control-")), "{of_api:?}");
        assert_eq!(socket_status(&fixture, PAGE).await, None);
        fixture.close().await;
    }

    async fn no_page_may_call_v1_if_the_setting_is_none(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_CORS_ORIGINS", "none")]).await;

        let asked = preflight(&fixture, "/v1/responses").await;
        let answered = fixture.program.request(Method::GET, "/models").header("origin", PAGE).send().await.unwrap();

        assert_eq!((asked.status().as_u16(), answered.status().as_u16()), (401, 200));
        for answer in [asked, answered] {
            assert!(!answer.headers().keys().any(|it| it.as_str().starts_with("access-control-")), "{answer:?}");
        }
        assert_eq!(socket_status(&fixture, PAGE).await, Some(403));
        fixture.close().await;
    }

    async fn only_listed_pages_may_call_v1_if_the_setting_is_a_list(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_CORS_ORIGINS", PAGE)]).await;

        let asked = preflight(&fixture, "/v1/responses").await;
        let foreign = fixture.program.request(Method::GET, "/models").header("origin", "https://evil.example").send().await.unwrap();

        assert_eq!(value(asked.headers(), "access-control-allow-origin"), Some(PAGE));
        assert_eq!(value(asked.headers(), "vary"), Some("origin"));
        assert_eq!(value(foreign.headers(), "access-control-allow-origin"), None);
        assert_eq!(socket_status(&fixture, PAGE).await, None);
        assert_eq!(socket_status(&fixture, "https://evil.example").await, Some(403));
        fixture.close().await;
    }
}
