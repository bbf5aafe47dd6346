//! Tests of the browser's Back button while dialogs are open.

use serde_json::json;

use crate::page::Page;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

async fn back(page: &Page) {
    page.run("history.back()").await;
}

/// The number of history entries above the page, as counted by the page.
const LAYERS: &str = "history.state?.layer ?? 0";

async fn at_layer(page: &Page, n: usize) {
    page.truth(
        "the history has the expected number of entries",
        &format!("({LAYERS}) === {n}"),
    )
    .await;
}

async fn with_a_lorebook(test_server: &TestServer) -> (SpaceFixture, Page) {
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let entries = json!([{"name": "Gulls", "keys": ["gull"], "content": "They steal."}]);
    let lorebook = json!({"name": "The coast", "entries": entries});
    expect(201, test_space.ann.post("/api/lorebooks", lorebook).await);
    let page = test_space.page().await;
    page.click("#panel-tab-lore").await;
    page.click("[data-lore=library] [data-book-id]").await;
    page.see("dialog .lore-book").await;
    at_layer(&page, 1).await;
    (test_space, page)
}

async fn stored_name(test_space: &SpaceFixture) -> String {
    let list = expect(200, test_space.ann.get("/api/lorebooks").await);
    list["data"][0]["name"]
        .as_str()
        .expect("the lorebook has a name")
        .to_owned()
}

#[tokio::test]
async fn back_closes_the_topmost_dialog_and_then_leaves_the_page() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
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
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
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
    let (test_space, page) = with_a_lorebook(&test_server).await;
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
        "the question is closed, the lorebook is open",
        "document.querySelectorAll('dialog').length === 1",
    )
    .await;
    page.click("dialog [aria-label=Close]").await;
    page.click_text("dialog:last-of-type button", "Cancel")
        .await;
    page.truth(
        "the field keeps the typed text",
        &format!("document.querySelector(\"{name}\").value === 'The cliffs'"),
    )
    .await;
    back(&page).await;
    page.click_text("dialog:last-of-type button", "Discard")
        .await;

    page.gone("dialog").await;
    at_layer(&page, 0).await;
    assert_eq!(stored_name(&test_space).await, "The coast");
}

#[tokio::test]
async fn a_field_that_saves_on_blur_is_saved_by_back_too() {
    let test_server = TestServer::open().await;
    let (test_space, page) = with_a_lorebook(&test_server).await;
    page.click_text("dialog .member__button", "Gulls").await;
    page.rewrite("dialog .lore-form [name=content]", "They steal bread.")
        .await;

    back(&page).await;

    page.gone("dialog").await;
    let list = expect(200, test_space.ann.get("/api/lorebooks").await);
    let path = format!("/api/lorebooks/{}/entries", list["data"][0]["id"]);
    crate::support::poll::until("the text is stored", async || {
        let entries = expect(200, test_space.ann.get(&path).await);
        (entries["data"][0]["content"] == "They steal bread.").then_some(())
    })
    .await;
}

#[tokio::test]
async fn back_from_a_page_opened_in_a_dialog_returns_to_the_page_before() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let before = page.value("location.pathname").await;

    page.click("#sidebar [aria-label='New space']").await;
    page.write("dialog input", "The cellar").await;
    page.click("dialog button[type=submit]").await;
    page.gone("dialog").await;
    page.see_text(".sidebar__space, #sidebar", "The cellar")
        .await;
    page.truth(
        "the other page is shown",
        &format!("location.pathname !== {before}"),
    )
    .await;
    at_layer(&page, 0).await;

    back(&page).await;
    page.truth(
        "the first page is shown",
        &format!("location.pathname === {before}"),
    )
    .await;
    at_layer(&page, 0).await;
}
