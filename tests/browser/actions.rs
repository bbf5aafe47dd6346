//! Tests of the actions on a message: edit, delete and undo, exclude from the prompt, switch its memory
//! off, and edit conflicts.

use serde_json::json;
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::support::http_client::expect;
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn arrow_up_edits_the_newest_own_message_and_escape_restores_it() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("typo hree").await;
    page.see_text(".message[data-state=final]", "typo hree")
        .await;

    page.write(FIELD, Key::Up).await;
    page.rewrite(".message__edit textarea", "never mind").await;
    page.press(Key::Escape).await;
    page.see_text("dialog", "Discard your changes?").await;
    page.click_text("dialog button", "Discard").await;
    page.see_text(".message", "typo hree").await;
    page.write(FIELD, Key::Up).await;
    page.rewrite(".message__edit textarea", "typo here").await;
    page.press(Key::Enter).await;

    page.see_text(".message", "(edited)").await;
    assert_eq!(test_space.texts().await, ["typo here"]);
}

#[tokio::test]
async fn undo_restores_a_deleted_message() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let other = test_space.page().await;
    page.send_message("Too much said").await;
    other.see_text(".message", "Too much said").await;

    page.truth(
        "the message is final",
        "document.querySelector('.message').dataset.state === 'final'",
    )
    .await;
    page.click(".message").await;
    page.click(".message__tools [aria-label=Delete]").await;
    page.gone(".message").await;
    other.gone(".message").await;
    page.click_text(".toast__action", "Undo").await;

    page.see_text(".message", "Too much said").await;
    other.see_text(".message", "Too much said").await;
}

#[tokio::test]
async fn a_message_whose_memory_is_off_is_marked_on_every_page() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let other = test_space.page().await;
    page.send_message("My dog is called Pixel").await;
    page.see_text(".message[data-state=final]", "Pixel").await;

    page.click(".message").await;
    page.click(".message__tools [aria-label='Do not remember']")
        .await;
    for page in [&page, &other] {
        page.see_text(".message__note", "Not remembered").await;
    }

    page.click(".message__tools [aria-label=Remember]").await;
    other.gone(".message__note").await;
    page.see(".message__tools [aria-label='Do not remember']")
        .await;
}

#[tokio::test]
async fn an_excluded_message_is_dimmed_and_not_sent() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("A secret of the audience").await;
    page.see_text(".message[data-state=final]", "A secret")
        .await;

    page.click(".message").await;
    page.click(".message__tools [aria-label='Exclude from prompts']")
        .await;
    page.see_text(".message--excluded", "Excluded from prompts")
        .await;
    page.click(".queue [aria-label='Trigger Mina']").await;
    page.answered_by("Mina").await;

    let sent = test_server.upstream.body(0).to_string();
    assert!(!sent.contains("A secret"), "{sent}");
    assert_eq!(
        page.value("document.querySelectorAll('.message--excluded').length")
            .await,
        json!(1)
    );
}

#[tokio::test]
async fn the_toolbar_offers_what_is_possible_now_after_do_not_send_to_the_ai() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("A secret of the audience").await;
    page.see_text(".message[data-state=final]", "A secret")
        .await;

    page.click(".message").await;
    page.click(".message__tools [aria-label='Exclude from prompts']")
        .await;
    page.see(".message__tools [aria-label='Include in prompts']")
        .await;
    assert_eq!(page.focus().await, "Include in prompts");
    page.click(".message__tools [aria-label='Include in prompts']")
        .await;

    page.gone(".message--excluded").await;
    page.see(".message__tools [aria-label='Exclude from prompts']")
        .await;
}

#[tokio::test]
async fn on_an_edit_conflict_the_second_editor_sees_both_texts_and_chooses() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let (first, second) = (
        test_space.page().await,
        test_space.page_on(Viewport::Phone).await,
    );
    first.send_message("As it was.").await;
    second
        .see_text(".message[data-state=final]", "As it was.")
        .await;
    let edit = async |page: &Page, text: &str| {
        page.click(".message").await;
        page.click(".message__tools [aria-label=Edit]").await;
        page.rewrite(".message__edit textarea", text).await;
    };

    edit(&second, "As the second has it.").await;
    edit(&first, "As the first has it.").await;
    first.click(".message__edit button[type=submit]").await;
    first.see_text(".message", "(edited)").await;
    second.click(".message__edit button[type=submit]").await;

    second
        .see_text("[data-side=theirs]", "As the first has it.")
        .await;
    second
        .see_text("[data-side=mine]", "As the second has it.")
        .await;
    assert_eq!(test_space.texts().await, ["As the first has it."]);
    second.click_text("dialog button", "Keep mine").await;
    first
        .see_text(".message__body", "As the second has it.")
        .await;
    assert_eq!(test_space.texts().await, ["As the second has it."]);
    assert_eq!(second.n(".message__edit").await, 0);
    second.click_text(".toast__action", "Undo").await;
    first
        .see_text(".message__body", "As the first has it.")
        .await;
}

#[tokio::test]
async fn the_text_of_the_other_user_can_be_kept() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let posted = test_space
        .ann
        .post_message(test_space.conversation, "As it was.", None);
    let message = expect(201, posted.await)["message"].clone();
    page.see_text(".message[data-state=final]", "As it was.")
        .await;
    page.click(".message").await;
    page.click(".message__tools [aria-label=Edit]").await;
    page.rewrite(".message__edit textarea", "Mine.").await;
    let change = json!({"content": "Theirs.", "expected_version": 1});
    let path = format!("/api/messages/{}", message["id"]);
    expect(200, test_space.ann.patch(&path, change).await);

    page.press(Key::Enter).await;
    page.see_text("[data-side=theirs]", "Theirs.").await;
    page.click_text("dialog button", "Keep theirs").await;

    page.see_text(".message__body", "Theirs.").await;
    assert_eq!(test_space.texts().await, ["Theirs."]);
    page.click_text(".toast__action", "Undo").await;
    assert_eq!(
        page.value("document.querySelector('.message__edit textarea')?.value")
            .await,
        "Mine."
    );
    page.press(Key::Enter).await;
    page.see_text(".message__body", "Mine.").await;
}
