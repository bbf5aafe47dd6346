//! What one does with a message: edit, delete and undo, keep it from the model.

use serde_json::json;
use thirtyfour::Key;

use crate::house::House;
use crate::house::manual;
use crate::page::FIELD;

#[tokio::test]
async fn c17_arrow_up_edits_my_newest_message_and_escape_gives_it_back() {
    let house = House::open().await;
    let room = house.room(manual(), &["Mina"]).await;
    let page = room.page().await;
    page.say("typo hree").await;
    page.see_text(".message[data-state=final]", "typo hree")
        .await;

    page.write(FIELD, Key::Up).await;
    page.rewrite(".message__edit textarea", "never mind").await;
    page.press(Key::Escape).await;
    page.see_text(".message", "typo hree").await;
    page.write(FIELD, Key::Up).await;
    page.rewrite(".message__edit textarea", "typo here").await;
    page.press(Key::Enter).await;

    page.see_text(".message", "(edited)").await;
    assert_eq!(room.texts().await, ["typo here"]);
}

#[tokio::test]
async fn c49_a_deleted_message_comes_back_with_undo() {
    let house = House::open().await;
    let room = house.room(manual(), &["Mina"]).await;
    let page = room.page().await;
    let other = room.page().await;
    page.say("Too much said").await;
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
async fn c54_an_excluded_message_is_dimmed_and_not_sent() {
    let house = House::open().await;
    let room = house.room(manual(), &["Mina"]).await;
    let page = room.page().await;
    page.say("A secret of the audience").await;
    page.see_text(".message[data-state=final]", "A secret")
        .await;

    page.click(".message").await;
    page.click(".message__tools [aria-label='Do not send to the AI']")
        .await;
    page.see_text(".message--excluded", "Not sent to the AI")
        .await;
    page.click(".queue [aria-label='Let Mina speak']").await;
    page.answered_by("Mina").await;

    let sent = house.upstream.body(0).to_string();
    assert!(!sent.contains("A secret"), "{sent}");
    assert_eq!(
        page.value("document.querySelectorAll('.message--excluded').length")
            .await,
        json!(1)
    );
}
