//! Tests of exporting and importing a whole space in the page, and of links to messages.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::http_client::{HttpClient, expect, root_of};
use crate::test_server::{TestServer, manual};

/// Exports a space; returns the file as a data URL.
async fn exported(page: &Page, space: &Value) -> String {
    let script = format!(
        "window.packed = null
         fetch('/api/spaces/{space}/export').then((it) => it.blob()).then((blob) => {{
           const reader = new FileReader()
           reader.onload = () => {{ window.packed = reader.result }}
           reader.readAsDataURL(blob)
         }})"
    );
    page.run(&script).await;
    page.truth("the file is downloaded", "window.packed !== null")
        .await;
    let packed = page.value("window.packed").await;
    packed.as_str().expect("a data URL").to_owned()
}

/// Selects this file in every file dialog that the page opens from now on.
async fn give_files(page: &Page, name: &str, packed: &str) {
    let (_, base64) = packed.split_once(',').expect("a data URL");
    let script = format!(
        "const bytes = Uint8Array.from(atob('{base64}'), (it) => it.charCodeAt(0))
         const transfer = new DataTransfer()
         transfer.items.add(new File([bytes], '{name}'))
         HTMLInputElement.prototype.click = function () {{
           this.files = transfer.files
           this.dispatchEvent(new Event('change'))
         }}"
    );
    page.run(&script).await;
}

#[tokio::test]
async fn an_exported_space_is_the_same_on_an_empty_installation() {
    let old = TestServer::open().await;
    let test_space = old.create_space(manual(), &["Mina", "Otto"]).await;
    for text in ["Good evening.", "The tide is low.", "We wait."] {
        test_space.post(text).await;
    }
    let lorebook =
        json!({"name": "The coast", "entries": [{"keys": ["tide"], "content": "Twice a day."}]});
    let lorebook = expect(201, test_space.ann.post("/api/lorebooks", lorebook).await);
    let space = &test_space.memberships[0]["space_id"];
    let links = json!({"lorebook_ids": [lorebook["id"]]});
    expect(
        200,
        test_space
            .ann
            .put(&format!("/api/spaces/{space}/lorebooks"), links)
            .await,
    );
    let before = test_space.texts().await;
    let page = test_space.page_on(Viewport::Desktop).await;
    let packed = exported(&page, space).await;

    let new = TestServer::open().await;
    let ann = HttpClient::set_up(&new.server.url(), "ann").await;
    let page = new.visitor().await;
    page.set_cookie(ann.cookie()).await;
    page.go("/").await;
    page.see(".sidebar__me").await;
    give_files(&page, "harbor.troupe.zip", &packed).await;
    page.click(".sidebar__me").await;
    page.click_text(".menu__item", "Import a space").await;
    page.see_text("dialog", "3 messages imported.").await;
    page.click_text("dialog button", "Open").await;

    page.see_text(".message", "We wait.").await;
    page.see_text(".member", "Otto").await;
    page.click("#panel-tab-lore").await;
    page.see_text("[data-lore=spaces]", "The coast").await;
    let spaces = expect(200, ann.get("/api/spaces").await);
    let arrived = spaces["data"]
        .as_array()
        .expect("the response has spaces")
        .iter();
    let arrived = arrived
        .filter(|it| it["name"] == "Harbor Lights")
        .collect::<Vec<_>>();
    assert_eq!(arrived.len(), 1);
    let messages = ann.messages(root_of(arrived[0])).await;
    let after: Vec<_> = messages.iter().map(|it| it["content"].clone()).collect();
    assert_eq!(json!(after), json!(before));
}

#[tokio::test]
async fn the_address_of_a_message_opens_the_conversation_at_the_message() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    for n in 0..120 {
        test_space.post(&format!("Line {n}.")).await;
    }
    let third = test_space.ann.messages(test_space.conversation).await[3]["id"].clone();
    let page = test_space.page_on(Viewport::Phone).await;
    page.see_text(".message", "Line 119.").await;

    page.go("/").await;
    page.go(&format!("{}#m-{third}", test_space.path())).await;

    page.see_text(&format!("#m-{third}"), "Line 3.").await;
    page.truth(
        "the message is in view",
        &format!(
            "(() => {{ const it = document.querySelector('#m-{third}').getBoundingClientRect()
             return it.top >= 0 && it.bottom <= innerHeight }})()"
        ),
    )
    .await;
    page.see(&format!("#m-{third}.message--found")).await;
}
