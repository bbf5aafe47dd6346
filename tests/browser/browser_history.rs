//! Tests of the browser's Back button while dialogs are open.

use serde_json::json;

use crate::page::Page;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

async fn back(page: &Page) {
    page.run("history.back()").await;
}

/// How many steps the history has above the page, as the page keeps count of them.
const LAYERS: &str = "history.state?.layer ?? 0";

async fn at_layer(page: &Page, n: usize) {
    page.truth("the history follows", &format!("({LAYERS}) === {n}"))
        .await;
}

async fn with_a_book(test_server: &TestServer) -> (SpaceFixture, Page) {
    let room = test_server.room(manual(), &["Mina"]).await;
    let entries = json!([{"name": "Gulls", "keys": ["gull"], "content": "They steal."}]);
    let book = json!({"name": "The coast", "entries": entries});
    expect(201, room.ann.post("/api/lorebooks", book).await);
    let page = room.page().await;
    page.click("#panel-tab-lore").await;
    page.click("[data-lore=library] [data-book-id]").await;
    page.see("dialog .lore-book").await;
    at_layer(&page, 1).await;
    (room, page)
}

async fn stored_name(room: &SpaceFixture) -> String {
    let list = expect(200, room.ann.get("/api/lorebooks").await);
    list["data"][0]["name"].as_str().expect("a name").to_owned()
}

#[tokio::test]
async fn back_closes_the_topmost_dialog_and_then_leaves_the_page() {
    let test_server = TestServer::open().await;
    let room = test_server.room(manual(), &["Mina"]).await;
    let page = room.page().await;
    page.click(".sidebar__me").await;
    page.click_text(".menu__item", "Profile").await;
    page.see(".settings").await;
    page.click_text("#sidebar a", "Main").await;
    page.see(".composer__field").await;

    page.click("[aria-label='Add a character']").await;
    page.click_text("dialog .choice", "My characters").await;
    page.click("dialog button[aria-label^='Card of']").await;
    page.see("dialog [name=description]").await;
    at_layer(&page, 2).await;

    back(&page).await;
    page.gone("dialog [name=description]").await;
    page.see("dialog .choice").await;
    page.see(".composer__field").await;
    back(&page).await;
    page.gone("dialog").await;
    page.see(".composer__field").await;
    at_layer(&page, 0).await;
    back(&page).await;
    page.see(".settings").await;
}

#[tokio::test]
async fn a_dialog_closed_by_its_button_leaves_no_history_entry() {
    let test_server = TestServer::open().await;
    let room = test_server.room(manual(), &["Mina"]).await;
    let page = room.page().await;
    page.click(".sidebar__me").await;
    page.click_text(".menu__item", "Profile").await;
    page.see(".settings").await;
    page.click_text("#sidebar a", "Main").await;
    page.see(".composer__field").await;

    page.click("[aria-label='Add a character']").await;
    page.see("dialog").await;
    at_layer(&page, 1).await;
    page.click("dialog [aria-label=Close]").await;
    page.gone("dialog").await;
    at_layer(&page, 0).await;

    back(&page).await;
    page.see(".settings").await;
    page.run("history.forward()").await;
    page.see(".composer__field").await;
}

#[tokio::test]
async fn unsaved_text_is_discarded_only_after_a_question() {
    let test_server = TestServer::open().await;
    let (room, page) = with_a_book(&test_server).await;
    page.click_text("dialog .lore-fold__title", "About this lorebook")
        .await;
    let name = "dialog .lore-fold .form input[maxlength='100']";
    page.rewrite(name, "The cliffs").await;

    back(&page).await;
    page.see_text("dialog:last-of-type", "Discard your changes?")
        .await;
    at_layer(&page, 2).await;
    back(&page).await;
    page.truth(
        "the question is gone, the book is not",
        "document.querySelectorAll('dialog').length === 1",
    )
    .await;
    page.click("dialog [aria-label=Close]").await;
    page.click_text("dialog:last-of-type button", "Cancel")
        .await;
    page.truth(
        "what was typed is there",
        &format!("document.querySelector(\"{name}\").value === 'The cliffs'"),
    )
    .await;
    back(&page).await;
    page.click_text("dialog:last-of-type button", "Discard")
        .await;

    page.gone("dialog").await;
    at_layer(&page, 0).await;
    assert_eq!(stored_name(&room).await, "The coast");
}

#[tokio::test]
async fn a_field_that_saves_on_blur_is_saved_by_back_too() {
    let test_server = TestServer::open().await;
    let (room, page) = with_a_book(&test_server).await;
    page.click_text("dialog .member__button", "Gulls").await;
    page.rewrite("dialog .lore-form [name=content]", "They steal bread.")
        .await;

    back(&page).await;

    page.gone("dialog").await;
    let list = expect(200, room.ann.get("/api/lorebooks").await);
    let path = format!("/api/lorebooks/{}/entries", list["data"][0]["id"]);
    crate::support::poll::until("it is stored", async || {
        let entries = expect(200, room.ann.get(&path).await);
        (entries["data"][0]["content"] == "They steal bread.").then_some(())
    })
    .await;
}

#[tokio::test]
async fn back_from_a_page_opened_in_a_dialog_returns_to_the_page_before() {
    let test_server = TestServer::open().await;
    let room = test_server.room(manual(), &["Mina"]).await;
    let page = room.page().await;
    let before = page.value("location.pathname").await;

    page.click("#sidebar [aria-label='New space']").await;
    page.write("dialog input", "The cellar").await;
    page.click("dialog button[type=submit]").await;
    page.gone("dialog").await;
    page.see_text(".sidebar__space, #sidebar", "The cellar")
        .await;
    page.truth(
        "one is elsewhere",
        &format!("location.pathname !== {before}"),
    )
    .await;
    at_layer(&page, 0).await;

    back(&page).await;
    page.truth(
        "one is where one was",
        &format!("location.pathname === {before}"),
    )
    .await;
    at_layer(&page, 0).await;
}
