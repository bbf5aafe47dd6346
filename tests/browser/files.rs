//! Tests of files that a user uploads in the page.

use serde_json::json;

use crate::page::Viewport;
use crate::support::http_client::expect;
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn a_file_of_unknown_type_is_rejected_by_name() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(serde_json::json!({}), &["Mina"])
        .await;
    let page = test_space.page_on(Viewport::Desktop).await;

    page.drop_file("shopping <b>list</b>.txt", b"milk, bread")
        .await;

    page.see_text(
        ".toast",
        "“shopping <b>list</b>.txt” is not a character card",
    )
    .await;
    page.gone(".drop").await;
    page.gone("dialog").await;
}

#[tokio::test]
async fn a_chat_of_another_program_is_shown_before_it_is_imported() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page_on(Viewport::Phone).await;
    let chat = json!({"type": "risuChat", "data": {
        "name": "Evening", "note": "It rains.", "scriptstate": {"hour": "22"},
        "message": [{"role": "char", "name": "Mina", "data": "Good evening."}, {"role": "user", "data": "Is it late?"}],
        "localLore": [{"key": "clock", "content": "It strikes ten.", "insertorder": 100}],
    }});

    page.drop_file("evening.json", chat.to_string().as_bytes())
        .await;
    page.see_text("dialog .import__text", "evening.json: 2 messages.")
        .await;
    for text in ["Evening", "1 entry", "It rains."] {
        page.see_text("dialog .import__chats li", text).await;
    }
    page.see_text("dialog .import__note", "scriptstate").await;
    let assigned = page
        .value("[...document.querySelectorAll('dialog select')].map((it) => it.selectedOptions[0].text)")
        .await;
    let mut assigned: Vec<&str> = assigned
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it.as_str())
        .collect();
    assigned.sort_unstable();
    assert_eq!(assigned, ["Mina, character", "ann, person"]);
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    page.truth("nothing is wider than the screen", fits).await;
    page.click_text("dialog button", "Import").await;
    page.see_text("dialog .import__text", "2 messages imported.")
        .await;
    page.click_text("dialog button", "Open").await;

    page.see_text(".message", "Good evening.").await;
    page.drop_file("torn.jsonl", b"no line of a chat").await;
    page.see_text("dialog [role=alert]", "no readable messages")
        .await;
    let books = expect(200, test_space.ann.get("/api/lorebooks").await);
    assert_eq!(books["data"].as_array().map(Vec::len), Some(1));
}
