//! Tests of the tab "Memory": changes are shown without Refresh, and an open editor keeps its text.

use serde_json::{Value, json};

use crate::page::Page;
use crate::support::http_client::{expect, id};
use crate::test_server::{SpaceFixture, TestServer};

const CONTENT: &str = ".memory__content";
const TEXT: &str = "dialog textarea";

fn path(test_space: &SpaceFixture) -> String {
    let space = &test_space.memberships[0]["space_id"];
    format!("/api/spaces/{space}/memories")
}

async fn open_tab(page: &Page) {
    page.click("#panel-tab-memory").await;
    page.see(".memories").await;
}

async fn remember(test_space: &SpaceFixture, content: &str) -> Value {
    let body = json!({"content": content, "kind": "event"});
    expect(201, test_space.ann.post(&path(test_space), body).await)
}

#[tokio::test]
async fn what_is_learned_appears_without_refresh_and_a_deleted_memory_disappears() {
    let test_server = TestServer::open().await;
    let columns = json!({"reply_order": "manual"});
    let test_space = test_server.create_space(columns, &["Mina"]).await;
    let page = test_space.page().await;
    open_tab(&page).await;
    page.see_text(".memories", "Nothing is remembered yet")
        .await;

    let answer = json!({"memories": [{
        "kind": "relation", "content": "Ann has a dog called Pixel.", "importance": 0.7,
        "about": null, "owner": null, "replaces": null, "sources": [1],
    }]});
    test_server.upstream.reply_with(&answer.to_string());
    for n in 0..10 {
        let line = format!("My dog is called Pixel, I told you {n} times that he loves the sea.");
        test_space.post(&line).await;
    }

    page.see_text(CONTENT, "Pixel").await;
    let list = expect(200, test_space.ann.get(&path(&test_space)).await);
    for memory in list["data"].as_array().expect("a list") {
        let path = format!("{}/{}", path(&test_space), id(memory));
        expect(204, test_space.ann.delete(&path).await);
    }
    page.gone(CONTENT).await;
}

#[tokio::test]
async fn an_open_editor_keeps_its_text_and_shows_a_newer_one() {
    let test_server = TestServer::open().await;
    let columns = json!({"reply_order": "manual"});
    let test_space = test_server.create_space(columns, &["Mina"]).await;
    let memory = remember(&test_space, "The mill burned down.").await;
    let page = test_space.page().await;
    open_tab(&page).await;
    page.click(".memory [data-act=edit]").await;
    page.rewrite(TEXT, "The mill was sold.").await;

    let change = json!({"content": "The mill was rebuilt.", "expected_version": 1});
    let path = format!("{}/{}", path(&test_space), id(&memory));
    expect(200, test_space.ann.patch(&path, change).await);

    page.see_text(".message__conflict-text", "The mill was rebuilt.")
        .await;
    let text = format!("document.querySelector('{TEXT}').value");
    assert_eq!(page.value(&text).await, json!("The mill was sold."));
    page.click_text("dialog [type=submit]", "Keep mine").await;
    page.see_text(CONTENT, "The mill was sold.").await;
}
