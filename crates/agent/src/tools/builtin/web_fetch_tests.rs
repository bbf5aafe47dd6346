//! Tests of `web_fetch` against a local server: redirects, pages that are errors or not text, and
//! rejected addresses.

use std::sync::Arc;

use outbound_http::client::{OutboundClient, SystemResolver};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{WebFetchTool, html_to_text};
use crate::tools::tool::{ServerTool, ToolResult};
use crate::tools::web_fetcher::WebFetcher;

async fn fetch_page(url: &str, allow_private: bool) -> ToolResult {
    let client = OutboundClient::new(Arc::new(SystemResolver), allow_private).unwrap();
    let arguments = json!({ "url": url });
    let fetcher = WebFetcher { client };
    WebFetchTool { fetcher }
        .run(arguments.as_object().unwrap(), &|_| {})
        .await
}

/// Starts a server that sends one of these responses per connection, and returns its URL.
async fn server(responses: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for response in responses {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(response.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let n_bytes = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {n_bytes}\r\n{headers}\r\n{body}"
    )
}

#[tokio::test]
async fn redirects_are_followed_and_the_page_is_returned_as_text() {
    let page = "<html><style>p {}</style><script>alert(1)</script><p>Rain &amp; wind</p></html>";
    let url = server(vec![
        response("302 Found", "location: /there\r\n", ""),
        response("200 OK", "content-type: text/html; charset=utf-8\r\n", page),
    ])
    .await;

    assert_eq!(fetch_page(&url, true).await, Ok("Rain & wind".to_owned()));
}

#[tokio::test]
async fn a_failed_or_binary_page_is_an_error() {
    for (page, message) in [
        (response("404 Not Found", "", ""), "The page returned 404."),
        (
            response("200 OK", "content-type: image/png\r\n", "x"),
            "The page is not text.",
        ),
        (response("302 Found", "", ""), "The redirect is invalid."),
    ] {
        let url = server(vec![page]).await;
        assert_eq!(fetch_page(&url, true).await, Err(message.to_owned()));
    }
    let redirects = vec![response("302 Found", "location: /\r\n", ""); 5];
    let url = server(redirects).await;
    assert_eq!(
        fetch_page(&url, true).await,
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
        let message = fetch_page(url, false).await.unwrap_err();
        assert_eq!(message, "This address is not allowed.", "{url}");
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
