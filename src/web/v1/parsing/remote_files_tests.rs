//! Tests of fetching pictures and documents from a local server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use agent::tools::web_fetcher::WebFetcher;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outbound_http::client::{OutboundClient, SystemResolver};
use serde_json::{Value, json};

use super::find_remote_files;
use crate::web::v1::error::V1Result;

async fn inline_all(web: &WebFetcher, name: &str, items: &mut [Value]) -> V1Result<()> {
    super::inline_all(web, &find_remote_files(name, items), items).await
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn web(allow_private: bool) -> WebFetcher {
    WebFetcher {
        client: OutboundClient::new(Arc::new(SystemResolver), allow_private).unwrap(),
    }
}

/// Starts a server that returns this response to every request; returns its URL.
fn server(status: &'static str, body: &'static [u8]) -> String {
    typed_server(status, "application/octet-stream", body)
}

fn typed_server(status: &'static str, kind: &'static str, body: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; 4096];
            let _ = socket.read(&mut request);
            let n_bytes = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {n_bytes}\r\n\r\n"
            );
            let _ = socket.write_all(head.as_bytes());
            let _ = socket.write_all(body);
        }
    });
    format!("http://{address}/a.png")
}

fn message(urls: &[&str]) -> Value {
    let parts = urls
        .iter()
        .map(|url| json!({ "type": "input_image", "image_url": url }));
    let mut content = vec![json!({ "type": "input_text", "text": "Look." })];
    content.extend(parts);
    json!({ "type": "message", "role": "user", "content": content })
}

fn code_and_param(answer: V1Result<()>) -> (String, String) {
    let problem = answer.unwrap_err();
    (problem.code.to_owned(), problem.param.unwrap())
}

#[tokio::test]
async fn remote_files_are_inlined_in_order() {
    let (png, gif) = (server("200 OK", PNG), server("200 OK", b"GIF89a."));
    let near = "data:image/jpeg;base64,/9j/";
    let mut items = [message(&[&png]), message(&[near, &gif])];

    inline_all(&web(true), "input", &mut items).await.unwrap();

    let urls = |item: &Value, n: usize| item["content"][n]["image_url"].clone();
    let data =
        |kind: &str, bytes: &[u8]| json!(format!("data:{kind};base64,{}", STANDARD.encode(bytes)));
    assert_eq!(urls(&items[0], 1), data("image/png", PNG));
    assert_eq!(urls(&items[1], 1), json!(near));
    assert_eq!(urls(&items[1], 2), data("image/gif", b"GIF89a."));
}

#[tokio::test]
async fn an_unusable_remote_picture_is_rejected_with_its_path() {
    let good = server("200 OK", PNG);
    for bad in [
        server("200 OK", b"<svg>"),
        server("404 Not Found", PNG),
        "http://127.0.0.1:1/a.png".to_owned(),
        "https://user:pass@example.org/a.png".to_owned(),
    ] {
        let mut items = [message(&[]), message(&[&good, &bad])];
        let refused = code_and_param(inline_all(&web(true), "input", &mut items).await);
        let at = ("invalid_image", "input[1].content[2].image_url");
        assert_eq!((refused.0.as_str(), refused.1.as_str()), at, "{bad}");
        assert_eq!(items[1], message(&[&good, &bad]), "no part is changed");
    }
    let many: Vec<&str> = vec![good.as_str(); 33];
    let refused = code_and_param(inline_all(&web(true), "items", &mut [message(&many)]).await);
    assert_eq!(refused.1, "items[0].content[33].image_url");
}

#[tokio::test]
async fn private_networks_are_blocked() {
    let near = server("200 OK", PNG);
    for url in [near.as_str(), "http://169.254.169.254/a", "http://[::1]/a"] {
        let refused =
            code_and_param(inline_all(&web(false), "input", &mut [message(&[url])]).await);
        assert_eq!(refused.0, "invalid_image", "{url}");
    }
}

#[tokio::test]
async fn a_remote_document_is_a_pdf_and_is_inlined() {
    let document = |url: &str| {
        let part = json!({ "type": "input_file", "filename": "a.pdf", "file_url": url });
        json!({ "type": "message", "role": "user", "content": [part] })
    };
    let (pdf, png) = (server("200 OK", b"%PDF-1.7"), server("200 OK", PNG));
    let mut items = [document(&pdf)];

    inline_all(&web(true), "input", &mut items).await.unwrap();

    let data = format!(
        "data:application/pdf;base64,{}",
        STANDARD.encode(b"%PDF-1.7")
    );
    let part = json!({ "type": "input_file", "filename": "a.pdf", "file_data": data });
    assert_eq!(items[0]["content"], json!([part]));
    let refused = code_and_param(inline_all(&web(true), "input", &mut [document(&png)]).await);
    let at = ("invalid_value", "input[0].content[0].file_url");
    assert_eq!((refused.0.as_str(), refused.1.as_str()), at);
    let refused = code_and_param(inline_all(&web(true), "input", &mut [message(&[&pdf])]).await);
    assert_eq!(refused.0, "invalid_image", "a document is not a picture");
}

#[tokio::test]
async fn a_remote_text_file_in_the_output_of_a_tool_is_inlined() {
    let output = |url: &str| {
        let part = json!({ "type": "input_file", "file_url": url });
        json!({ "type": "function_call_output", "call_id": "c", "output": [part] })
    };
    let text = typed_server("200 OK", "text/csv; charset=utf-8", b"a,b");
    let binary = typed_server("200 OK", "text/csv", b"a\xff");
    let mut items = [output(&text)];

    inline_all(&web(true), "input", &mut items).await.unwrap();

    let data = format!("data:text/csv;base64,{}", STANDARD.encode(b"a,b"));
    let part = json!({ "type": "input_file", "file_data": data });
    assert_eq!(items[0]["output"], json!([part]));
    let refused = code_and_param(inline_all(&web(true), "input", &mut [output(&binary)]).await);
    let at = ("invalid_value", "input[0].output[0].file_url");
    assert_eq!((refused.0.as_str(), refused.1.as_str()), at);
}
