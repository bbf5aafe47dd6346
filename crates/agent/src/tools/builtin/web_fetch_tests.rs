//! Tests of `web_fetch` against a local server, which the test allows or blocks.

use std::sync::Arc;

use outbound_http::client::{OutboundClient, SystemResolver};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{WebFetchTool, html_to_text};
use crate::tools::fetch::WebFetcher;
use crate::tools::tool::{ServerTool, ToolResult};

async fn fetch_page(url: &str, allow_private: bool) -> ToolResult {
    let egress = OutboundClient::new(Arc::new(SystemResolver), allow_private).unwrap();
    let arguments = json!({ "url": url });
    let web = WebFetcher { client: egress };
    WebFetchTool { fetcher: web }
        .run(arguments.as_object().unwrap(), &|_| {})
        .await
}

/// Starts a server that sends one of these responses per connection, and returns its URL.
async fn server(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            let _ = socket.read(&mut asked).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let n_bytes = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {n_bytes}\r\n{headers}\r\n{body}"
    )
}

#[tokio::test]
async fn redirects_are_followed_and_the_page_is_returned_as_text() {
    let page = "<html><style>p {}</style><script>alert(1)</script><p>Rain &amp; wind</p></html>";
    let to = server(vec![
        answer("302 Found", "location: /there\r\n", ""),
        answer("200 OK", "content-type: text/html; charset=utf-8\r\n", page),
    ])
    .await;

    assert_eq!(fetch_page(&to, true).await, Ok("Rain & wind".to_owned()));
}

#[tokio::test]
async fn a_failed_or_binary_page_is_an_error() {
    for (said, told) in [
        (answer("404 Not Found", "", ""), "The page returned 404."),
        (
            answer("200 OK", "content-type: image/png\r\n", "x"),
            "The page is not text.",
        ),
        (answer("302 Found", "", ""), "The redirect is invalid."),
    ] {
        let to = server(vec![said]).await;
        assert_eq!(fetch_page(&to, true).await, Err(told.to_owned()));
    }
    let around = vec![answer("302 Found", "location: /\r\n", ""); 5];
    let to = server(around).await;
    assert_eq!(
        fetch_page(&to, true).await,
        Err("The page redirects too often.".to_owned())
    );
}

#[tokio::test]
async fn private_networks_and_invalid_urls_are_rejected() {
    for url in [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/",
    ] {
        let told = fetch_page(url, false).await.unwrap_err();
        assert_eq!(told, "This address is not allowed.", "{url}");
    }
    for url in [
        "ftp://example.com",
        "http://me@example.com",
        "file:///etc/passwd",
        "nowhere",
    ] {
        assert!(fetch_page(url, true).await.is_err(), "{url}");
    }
}

#[test]
fn only_the_text_of_html_is_kept() {
    assert_eq!(html_to_text("<h1>A</h1>\n\n <p>1 &lt; 2</p>"), "A\n1 < 2");
}
