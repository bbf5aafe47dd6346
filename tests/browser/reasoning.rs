//! Test of how a model's reasoning is shown in the page.

use serde_json::json;

use crate::support::fake_provider::script::ResponseScript;
use crate::test_server::{TestServer, list};

const THOUGHTS: &str = "<img src=x onerror=alert(1)> **Eve** greets me.\nSo do I.";

#[tokio::test]
async fn reasoning_is_collapsed_labelled_and_plain_text() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let thought =
        json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": THOUGHTS } }] });
    let thinks = ResponseScript::stream()
        .role()
        .event(&thought)
        .words("Hi, Eve.");
    test_server.upstream.next(thinks.finish("stop").done());
    let page = test_space.page().await;

    page.send_message("Hi.").await;
    page.see_text(".message[data-state=final]", "Hi, Eve.")
        .await;

    page.see_text(".reasoning summary", "Reasoning").await;
    let is_open = "document.querySelector('.reasoning details').open";
    assert_eq!(page.value(is_open).await, json!(false));
    assert_eq!(page.n(".message__body .reasoning").await, 0);
    page.click(".reasoning summary").await;
    assert_eq!(page.value(is_open).await, json!(true));
    let text = page
        .value("document.querySelector('.reasoning__text').textContent")
        .await;
    assert_eq!(text, json!(THOUGHTS));
    assert_eq!(page.n(".reasoning__text *").await, 0);
    // A user that joins later sees it as well.
    page.reload().await;
    page.see(".reasoning summary").await;
}
