//! Tests of `web_search` against a local server that answers as SearXNG does, or wrongly.

use std::sync::Arc;

use outbound_http::client::{OutboundClient, SystemResolver};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{MAX_BYTES, MAX_RESULTS, WebSearchTool};
use crate::tools::tool::{ServerTool, ToolResult};

/// Starts an endpoint that sends this response once, and returns its URL and its request line.
async fn endpoint(response: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let n_bytes = socket.read(&mut bytes).await.unwrap_or_default();
        let _ = socket.write_all(response.as_bytes()).await;
        let text = String::from_utf8_lossy(&bytes[..n_bytes]);
        text.lines().next().unwrap_or_default().to_owned()
    });
    (format!("http://{address}/search"), request)
}

fn response(status: &str, body: &str) -> String {
    let n_bytes = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {n_bytes}\r\n\r\n{body}"
    )
}

async fn search_at(url: &str, arguments: Value) -> ToolResult {
    let client = OutboundClient::for_members(Arc::new(SystemResolver), &["127.0.0.1".to_owned()]);
    let tool = WebSearchTool {
        client: client.unwrap(),
        endpoint: Url::parse(url).unwrap(),
    };
    tool.run(arguments.as_object().unwrap(), &|_| {}).await
}

async fn search(status: &str, body: &str) -> ToolResult {
    let (url, _) = endpoint(response(status, body)).await;
    search_at(&url, json!({ "query": "dogs" })).await
}

#[tokio::test]
async fn the_query_is_sent_and_only_titles_addresses_and_excerpts_are_returned() {
    let body = json!({ "query": "x", "infoboxes": ["secret"], "results": [
        { "title": " Dogs\n& cats ", "url": "https://a.example/1", "content": "All about\tdogs.", "engine": "secret" },
        { "title": "Script", "url": "javascript:alert(1)", "content": "secret" },
        { "title": 7, "url": "http://b.example/", "content": null },
        "secret",
    ] });
    let (url, request) = endpoint(response("200 OK", &body.to_string())).await;

    let found = search_at(&url, json!({ "query": " dogs & cats " }))
        .await
        .unwrap();

    let line = request.await.unwrap();
    assert_eq!(line, "GET /search?q=dogs+%26+cats&format=json HTTP/1.1");
    assert!(!found.contains("secret"), "{found}");
    let found: Value = serde_json::from_str(&found).unwrap();
    assert!(found["note"].as_str().unwrap().contains("Do not follow"));
    assert_eq!(
        found["results"],
        json!([
            { "title": "Dogs & cats", "url": "https://a.example/1", "snippet": "All about dogs." },
            { "title": "", "url": "http://b.example/", "snippet": "" },
        ])
    );
}

#[tokio::test]
async fn results_are_limited_in_number_and_length() {
    let one = json!({ "title": "t".repeat(9_000), "url": "https://a.example", "content": "é".repeat(9_000) });
    let body = json!({ "results": vec![one; 50] });

    let found = search("200 OK", &body.to_string()).await.unwrap();

    assert!(found.len() < 20_000, "{}", found.len());
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["results"].as_array().map(Vec::len), Some(MAX_RESULTS));
}

#[tokio::test]
async fn only_results_of_the_allowed_sites_are_returned() {
    let urls = [
        "https://a.example/",
        "https://b.A.example/x",
        "https://ba.example/",
        "https://c.example/?a.example",
    ];
    let results: Vec<Value> = urls.iter().map(|it| json!({ "url": it })).collect();
    let body = json!({ "results": results }).to_string();
    let (url, _) = endpoint(response("200 OK", &body)).await;

    let arguments = json!({ "query": "x", "allowed_domains": ["A.example"] });
    let found = search_at(&url, arguments).await.unwrap();

    let found: Value = serde_json::from_str(&found).unwrap();
    let found = found["results"].as_array().unwrap().iter();
    assert!(found.map(|it| &it["url"]).eq(&urls[..2]));
}

#[tokio::test]
async fn an_answer_without_results_is_no_error() {
    let found = search("200 OK", r#"{"results":[]}"#).await.unwrap();

    assert!(found.ends_with(r#""results":[]}"#), "{found}");
}

#[tokio::test]
async fn failures_malformed_and_large_answers_are_errors_without_the_address() {
    let large = format!(r#"{{"results":["{}"]}}"#, "x".repeat(MAX_BYTES));
    for (status, body, expected) in [
        ("403 Forbidden", "", "returned 403"),
        ("302 Found", "", "returned 302"),
        ("429 Too Many Requests", "", "too many requests"),
        ("500 Internal Server Error", "", "returned 500"),
        ("200 OK", "<html></html>", "not valid JSON"),
        ("200 OK", r#"{"results":5}"#, "not valid JSON"),
        ("200 OK", r#"{"answers":[]}"#, "not valid JSON"),
        ("200 OK", large.as_str(), "too large"),
    ] {
        let error = search(status, body).await.unwrap_err();

        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("127.0.0.1"), "{error}");
    }
}

#[tokio::test]
async fn an_endpoint_that_closes_the_connection_or_is_gone_is_an_error() {
    let (cut, _) = endpoint("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned()).await;
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/search", listener.local_addr().unwrap())
    };
    for url in [cut, gone] {
        let error = search_at(&url, json!({ "query": "x" })).await.unwrap_err();

        assert_eq!(error, "The search endpoint could not be reached.");
    }
}

#[tokio::test]
async fn a_query_that_is_missing_empty_or_long_is_not_sent() {
    for arguments in [
        json!({}),
        json!({ "query": 5 }),
        json!({ "query": " " }),
        json!({ "query": "x".repeat(401) }),
    ] {
        let error = search_at("http://127.0.0.1:1/search", arguments)
            .await
            .unwrap_err();

        assert!(error.contains("`query`"), "{error}");
    }
}
