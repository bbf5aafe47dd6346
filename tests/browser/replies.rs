//! Tests of replies that quote a message, reactions and bookmarks.

use thirtyfour::Key;

use crate::page::{FIELD, Viewport};
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn a_reply_shows_what_it_answers_until_that_is_deleted() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("The first word").await;
    let page = test_space.page().await;
    let other = test_space.page().await;
    page.see_text(".message", "The first word").await;

    page.click(".message").await;
    page.click(".message__tools [aria-label=Reply]").await;
    page.see_text(".composer__quote", "The first word").await;
    page.send_message("The second word").await;

    page.gone(".composer__quote:not([hidden])").await;
    for page in [&page, &other] {
        page.see_text(".message__quote-link", "The first word")
            .await;
    }
    page.click(".message__quote-link").await;
    page.see_text(".message--found", "The first word").await;
    page.click(".message--found").await;
    page.click(".message__tools [aria-label=Delete]").await;
    for page in [&page, &other] {
        page.see_text(".message__quote-gone", "Message deleted")
            .await;
    }
}

#[tokio::test]
async fn r_quotes_the_focused_message_and_escape_removes_the_quotation() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("The first word").await;
    let page = test_space.page().await;
    page.see_text(".message", "The first word").await;

    page.run("document.querySelector('.message').focus()").await;
    page.press("r").await;
    page.see_text(".composer__quote", "The first word").await;
    page.write(FIELD, Key::Escape).await;

    page.gone(".composer__quote:not([hidden])").await;
}

#[tokio::test]
async fn a_reaction_is_seen_by_others_and_removed_again() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Look").await;
    let page = test_space.page_on(Viewport::Phone).await;
    let other = test_space.page().await;
    page.see_text(".message", "Look").await;

    page.click(".message").await;
    page.click(".message__tools [aria-label='Add reaction']")
        .await;
    page.write(".emoji-picker input", "rocket").await;
    page.click_text(".emoji-grid__choice", "🚀").await;

    for page in [&page, &other] {
        page.see_text(".reactions__chip[aria-pressed=true]", "🚀")
            .await;
    }
    page.click(".reactions__chip").await;
    other.gone(".reactions__chip").await;
}

#[tokio::test]
async fn a_bookmark_leads_back_to_its_message() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Worth keeping").await;
    let page = test_space.page().await;
    page.see_text(".message", "Worth keeping").await;

    page.click(".message").await;
    page.click(".message__tools [aria-label=Bookmark]").await;
    page.see(".message__tools [aria-label='Remove bookmark']")
        .await;
    page.click(".main__head [aria-haspopup=menu]").await;
    page.click_text(".menu__item", "Bookmarks").await;
    page.see_text(".bookmarks__message", "Worth keeping").await;
    page.click(".bookmarks__message").await;

    page.see_text(".message--found", "Worth keeping").await;
}
