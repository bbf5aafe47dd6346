//! Tests of edits and swipes of earlier messages, of drafts of edits, and of the actions of a message on a
//! touch screen.

use serde_json::json;
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

const EDITOR: &str = ".message__edit textarea";

/// Waits until the message with this `seq` has this text.
async fn says(page: &Page, seq: i64, text: &str) {
    page.see_text(&format!(".message[data-seq='{seq}'] .message__body"), text)
        .await;
}

async fn press_tool(page: &Page, seq: i64, label: &str) {
    page.click(&format!(".message[data-seq='{seq}'] .message__body"))
        .await;
    page.click(&format!(".message__tools [aria-label='{label}']"))
        .await;
}

/// A space in which Ann has posted, Mina has answered "Hello.", and Ann has posted again.
async fn talked(test_server: &TestServer, screen: Viewport) -> (SpaceFixture, Page) {
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Good evening.").await;
    let mina = test_space.memberships[0]["id"].as_i64();
    let generated = test_space.ann.generate(test_space.conversation, mina);
    expect(202, generated.await);
    let page = test_space.page_on(screen).await;
    says(&page, 2, "Hello.").await;
    test_space.post("And then?").await;
    says(&page, 3, "And then?").await;
    (test_space, page)
}

#[tokio::test]
async fn an_earlier_message_is_edited_while_a_reply_is_written() {
    let test_server = TestServer::open().await;
    let (test_space, page) = talked(&test_server, Viewport::Desktop).await;
    let other = test_space.page().await;
    test_server.upstream.next(ResponseScript::say("One two."));
    let gate = test_server.upstream.gate();
    page.click(".queue [aria-label='Trigger Mina']").await;
    gate.step();
    page.see(".message[data-state=streaming]").await;

    press_tool(&page, 2, "Edit").await;
    page.rewrite(EDITOR, "Good day.").await;
    page.write(EDITOR, Key::Control + Key::Enter).await;

    says(&other, 2, "Good day.").await;
    page.see_text(".message[data-seq='2']", "(edited)").await;
    gate.open();
    says(&page, 4, "One two.").await;
    let expected = ["Good evening.", "Good day.", "And then?", "One two."];
    assert_eq!(test_space.texts().await, expected);
}

#[tokio::test]
async fn arrow_up_edits_my_last_message_although_others_have_written_since() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("typo hree").await;
    let mina = test_space.memberships[0]["id"].as_i64();
    let generated = test_space.ann.generate(test_space.conversation, mina);
    expect(202, generated.await);
    let page = test_space.page().await;
    says(&page, 2, "Hello.").await;

    page.write(FIELD, Key::Up).await;
    page.rewrite(EDITOR, "typo here").await;
    page.press(Key::Enter).await;

    says(&page, 1, "typo here").await;
    page.gone(EDITOR).await;
}

#[tokio::test]
async fn the_draft_of_an_edit_survives_a_reload() {
    let test_server = TestServer::open().await;
    let (test_space, page) = talked(&test_server, Viewport::Desktop).await;
    press_tool(&page, 1, "Edit").await;
    page.rewrite(EDITOR, "Good morning.").await;

    page.reload().await;
    page.see(EDITOR).await;
    let text = format!("document.querySelector('{EDITOR}').value");
    assert_eq!(page.value(&text).await, "Good morning.");
    page.write(EDITOR, Key::Enter).await;

    says(&page, 1, "Good morning.").await;
    assert_eq!(test_space.texts().await[0], "Good morning.");
}

#[tokio::test]
async fn two_changes_of_one_message_are_merged() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let text = "One.\nTwo.\nThree.";
    let posted = test_space
        .ann
        .post_message(test_space.conversation, text, None);
    let message = expect(201, posted.await)["message"].clone();
    let page = test_space.page().await;
    press_tool(&page, 1, "Edit").await;
    page.write(EDITOR, " Four.").await;
    let change = json!({"content": "Uno.\nTwo.\nThree.", "expected_version": 1});
    let path = format!("/api/messages/{}", message["id"]);
    expect(200, test_space.ann.patch(&path, change).await);

    page.press(Key::Enter).await;
    page.click_text("dialog button", "Merge").await;
    page.see_text(".message__edit-hint", "Both changes").await;
    page.write(EDITOR, Key::Enter).await;

    page.gone(EDITOR).await;
    assert_eq!(test_space.texts().await, ["Uno.\nTwo.\nThree. Four."]);
}

#[tokio::test]
async fn a_moderator_restores_a_replaced_text() {
    let test_server = TestServer::open().await;
    let (test_space, page) = talked(&test_server, Viewport::Desktop).await;
    press_tool(&page, 2, "Edit").await;
    page.rewrite(EDITOR, "Something worse.").await;
    page.press(Key::Enter).await;
    says(&page, 2, "Something worse.").await;

    press_tool(&page, 2, "Replaced texts").await;
    page.see_text("dialog .revisions", "Hello.").await;
    page.click_text("dialog button", "Restore").await;

    says(&page, 2, "Hello.").await;
    assert_eq!(test_space.texts().await[1], "Hello.");
}

#[tokio::test]
async fn an_earlier_message_gets_a_version_in_place_and_switches_with_undo() {
    let test_server = TestServer::open().await;
    let (test_space, page) = talked(&test_server, Viewport::Desktop).await;
    let other = test_space.page().await;
    test_server.upstream.next(ResponseScript::say("Good day."));

    press_tool(&page, 2, "Regenerate").await;
    page.click_text("dialog button", "In place").await;
    says(&other, 2, "Good day.").await;
    page.see_text(".message[data-seq='2'] .swipes__position", "2/2")
        .await;
    page.click(".message[data-seq='2'] [aria-label='Previous swipe']")
        .await;
    says(&other, 2, "Hello.").await;
    other.see_text(".swipes__chooser", "chosen by").await;
    page.see_text(".toast", "answered another version").await;
    page.click_text(".toast__action", "Undo").await;

    says(&other, 2, "Good day.").await;
    let expected = ["Good evening.", "Good day.", "And then?"];
    assert_eq!(test_space.texts().await, expected);
}

#[tokio::test]
async fn on_a_phone_a_tap_shows_labelled_actions_below_the_text() {
    let test_server = TestServer::open().await;
    let (test_space, page) = talked(&test_server, Viewport::Phone).await;
    assert_eq!(page.n(".message__tools").await, 0);

    page.click(".message[data-seq='2'] .message__body").await;
    page.see_text(".message[data-seq='2'] .message__tools", "Edit")
        .await;
    let is_below = "(() => { const [body, tools] = ['.message__body', '.message__tools'].map((it) => document.querySelector(`.message[data-seq='2'] ${it}`).getBoundingClientRect()); return tools.top >= body.bottom && tools.right <= innerWidth })()";
    assert_eq!(page.value(is_below).await, json!(true));
    let n_tools = page.n(".message__tools button").await;
    let large = "[...document.querySelectorAll('.message__tools button')].filter((it) => it.getBoundingClientRect().height >= 43.5 && it.innerText.trim() !== '').length";
    assert_eq!(page.value(large).await, json!(n_tools));
    page.click(".message[data-seq='2'] .message__body").await;
    page.gone(".message__tools").await;

    press_tool(&page, 3, "Edit").await;
    page.write(EDITOR, Key::Enter).await;
    page.write(EDITOR, "Tell me.").await;
    page.click(".message__edit button[type=submit]").await;
    page.gone(EDITOR).await;
    assert_eq!(test_space.texts().await[2], "And then?\nTell me.");
}

#[tokio::test]
async fn the_toolbar_leaves_with_the_pointer_and_back_asks_before_it_discards() {
    let test_server = TestServer::open().await;
    let (test_space, page) = talked(&test_server, Viewport::Desktop).await;
    press_tool(&page, 1, "Exclude from prompts").await;
    page.see(".message__tools [aria-label='Include in prompts']")
        .await;
    page.click(FIELD).await;
    page.gone(".message__tools").await;

    press_tool(&page, 1, "Edit").await;
    page.rewrite(EDITOR, "Good morning.").await;
    page.value("history.back()").await;
    page.see_text("dialog", "Discard your changes?").await;
    page.click_text("dialog button", "Cancel").await;
    page.gone("dialog").await;
    page.press(Key::Escape).await;
    page.click_text("dialog button", "Discard").await;
    page.gone(EDITOR).await;
    assert_eq!(test_space.texts().await[0], "Good evening.");
}
