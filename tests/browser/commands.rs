//! Tests of the commands of the composer and of quick replies in the page.

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::several_users::SeveralUsers;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, list, manual};

const LIST: &str = ".completions:not([hidden]) .completions__option";
const REFUSAL: &str = ".composer__refusal:not([hidden])";
const QUICK: &str = ".quick-replies__reply";

async fn written(page: &Page) -> Value {
    page.value(&format!("document.querySelector('{FIELD}').value"))
        .await
}

async fn is_empty(page: &Page) {
    let empty = format!("document.querySelector('{FIELD}').value === ''");
    page.truth("the composer is empty", &empty).await;
}

async fn set_quick_replies(test_space: &SpaceFixture, replies: Value) {
    let space = format!("/api/spaces/{}", test_space.memberships[0]["space_id"]);
    let settings = json!({"settings": {"quick_replies": replies}});
    expect(200, test_space.ann.patch(&space, settings).await);
}

#[tokio::test]
async fn the_list_of_commands_is_used_by_keyboard_and_the_server_rolls() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;

    page.write(FIELD, "/").await;
    page.see_text(LIST, "/note").await;
    assert_eq!(page.n(LIST).await, 10);
    page.write(FIELD, "ro").await;
    page.truth(
        "one command is left",
        &format!("document.querySelectorAll('{LIST}').length === 1"),
    )
    .await;
    page.write(FIELD, Key::Escape).await;
    page.gone(LIST).await;
    page.rewrite(FIELD, "/").await;
    page.see(LIST).await;
    page.write(FIELD, "ro").await;
    page.write(FIELD, Key::Tab).await;
    assert_eq!(written(&page).await, json!("/roll "));
    page.write(FIELD, "2d6+3").await;
    page.write(FIELD, Key::Enter).await;

    page.see_text(".message[data-state=final]", "rolls 2d6+3: ")
        .await;
    page.send_message("/sys The rain stops.").await;
    page.see_text(
        ".message--narrator[data-state=final] .message__body",
        "The rain stops.",
    )
    .await;
    page.see_text(".message--narrator .message__author", "Narrator")
        .await;
    page.send_message("/as Mina Good evening.").await;
    page.see_text(".message[data-state=final] .message__author", "Mina")
        .await;
    page.see_text(".message__note", "Written by ann").await;
    assert_eq!(test_server.upstream.n_requests(), 0);
    assert_eq!(test_space.texts().await.len(), 3);
}

#[tokio::test]
async fn an_unknown_command_is_not_sent_and_its_text_stays() {
    let users = SeveralUsers::with("member").await;
    let bob = users.bobs_page().await;

    bob.send_message("/wave Mina").await;
    bob.see_text(REFUSAL, "There is no command /wave.").await;
    bob.see_text(LIST, "/sys").await;
    assert_eq!(written(&bob).await, json!("/wave Mina"));
    bob.write(FIELD, Key::Escape).await;
    bob.gone(LIST).await;
    bob.rewrite(FIELD, "/as Mina Hello.").await;
    bob.write(FIELD, Key::Enter).await;
    bob.see_text(REFUSAL, "does not allow /as").await;
    bob.write(FIELD, Key::Escape).await;
    bob.rewrite(FIELD, "/roll banana").await;
    bob.write(FIELD, Key::Enter).await;
    bob.see_text(REFUSAL, "2d6+3").await;
    assert_eq!(written(&bob).await, json!("/roll banana"));
    bob.rewrite(FIELD, "//wave Mina").await;
    bob.gone(REFUSAL).await;
    bob.write(FIELD, Key::Enter).await;

    bob.see_text(".message[data-state=final]", "//wave Mina")
        .await;
    assert_eq!(users.test_space.texts().await, ["//wave Mina"]);
}

#[tokio::test]
async fn commands_hide_messages_set_the_note_and_open_a_branch() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("One.").await;
    test_space.post("Two.").await;
    let page = test_space.page().await;

    page.send_message("/hide 1").await;
    page.see_text(".message--excluded", "One.").await;
    is_empty(&page).await;
    page.send_message("/hide 9").await;
    page.see_text(REFUSAL, "There is no message 9.").await;
    page.rewrite(FIELD, "/note It is night.").await;
    page.write(FIELD, Key::Enter).await;
    page.see_text(".toast", "The author’s note was saved.")
        .await;
    is_empty(&page).await;
    let path = format!("/api/conversations/{}", test_space.conversation);
    let conversation = expect(200, test_space.ann.get(&path).await);
    assert_eq!(
        conversation["settings"]["author_note"]["text"],
        "It is night."
    );

    page.send_message("/branch 2").await;
    page.see("[data-id=parent]").await;
    page.see_text(".message[data-state=final]", "Two.").await;
    is_empty(&page).await;
    page.go(&test_space.path()).await;
    page.see_text(".message", "Two.").await;
    is_empty(&page).await;
}

#[tokio::test]
async fn suggestions_and_a_continuation_follow_the_instruction() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    test_server.upstream.reply_with("The sea is calm");
    page.send_message("Hello.").await;
    page.answered_by("Mina").await;

    page.send_message("/continue Mention a plover.").await;
    page.see_text(".swipes__position", "2").await;
    is_empty(&page).await;
    let asked = test_server.upstream.seen(1).body.to_string();
    assert!(
        asked.contains("asks for this: Mention a plover.]"),
        "{asked}"
    );
    page.send_message("/impersonate Ask about the tide.").await;
    page.see_text(".suggestion", "The sea is calm").await;
    let asked = test_server.upstream.seen(2).body.to_string();
    assert!(asked.contains("Ask about the tide."), "{asked}");
}

#[tokio::test]
async fn quick_replies_are_edited_in_the_settings_and_sent_on_a_phone() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let desktop = test_space.page().await;
    desktop.click("#panel-tab-settings").await;
    desktop
        .click_text("[data-section=quick-replies] button", "Add a quick reply")
        .await;
    desktop.press("Look").await;
    desktop
        .write("[data-section=quick-replies] textarea", "I look around.")
        .await;
    desktop
        .click("[data-section=quick-replies] [type=submit]")
        .await;
    desktop.see_text(QUICK, "Look").await;
    set_quick_replies(
        &test_space,
        json!([{"label": "Look", "text": "I look around."}, {"label": "Fate", "text": "/roll 1d1"}, {"label": "Odd", "text": "/wave"}]),
    )
    .await;
    desktop.see_text(QUICK, "Fate").await;

    let phone = test_space.page_on(Viewport::Phone).await;
    phone.write(FIELD, "My draft").await;
    phone.click_text(QUICK, "Look").await;
    phone
        .see_text(".message[data-state=final]", "I look around.")
        .await;
    phone.click_text(QUICK, "Fate").await;
    phone
        .see_text(".message[data-state=final]", "rolls 1d1: 1")
        .await;
    phone.click_text(QUICK, "Odd").await;
    phone.see_text(REFUSAL, "There is no command /wave.").await;

    assert_eq!(written(&phone).await, json!("My draft"));
    assert_eq!(
        test_space.texts().await,
        ["I look around.", "ann rolls 1d1: 1"]
    );
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    phone.truth("nothing is wider than the screen", fits).await;
}
