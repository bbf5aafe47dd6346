//! Tests of the writing help in the page: suggested replies, and the copilot that writes for a
//! user.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::device::SMALL_TARGETS;
use crate::page::{FIELD, Page, Viewport};
use crate::support::fake_provider::script::ResponseScript;
use crate::test_server::{TestServer, list, manual};

const HELP: &str = "[aria-label='Help me write']";

async fn written(page: &Page) -> Value {
    page.value(&format!("document.querySelector('{FIELD}').value"))
        .await
}

/// Touch targets of the composer that are too small.
fn small_targets() -> String {
    let here = "document.querySelector('.composer').querySelectorAll";
    SMALL_TARGETS.replace("document.querySelectorAll", here)
}

/// Stores a screenshot if `TROUPE_PICTURES` names a folder.
async fn keep_picture(page: &Page, name: &str) {
    if let Ok(folder) = env::var("TROUPE_PICTURES") {
        let file = Path::new(&folder).join(format!("{name}.png"));
        fs::write(file, page.picture().await).expect("write the screenshot");
    }
}

#[tokio::test]
async fn a_suggested_reply_fills_the_composer_and_is_sent_by_its_user() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    test_server
        .upstream
        .reply_with("With pleasure, and two lumps of sugar.");
    page.write(FIELD, "Hm").await;

    page.click(HELP).await;
    page.write(".copilot-panel input", "Say yes").await;
    page.press(Key::Enter).await;
    page.see_text("button.suggestion", "two lumps").await;
    page.truth(
        "three suggestions are shown",
        "document.querySelectorAll('button.suggestion').length === 3",
    )
    .await;
    keep_picture(&page, "suggestions-1280").await;
    page.click("button.suggestion").await;

    assert_eq!(
        written(&page).await,
        "With pleasure, and two lumps of sugar."
    );
    assert!(
        test_space.texts().await.is_empty(),
        "a suggestion was posted before it was sent"
    );
    let asked = test_server.upstream.body(0)["messages"].to_string();
    assert!(asked.contains("[ann asks for this: Say yes]"), "{asked}");
    page.write(FIELD, Key::Enter).await;
    page.see_text(".message--own[data-state=final]", "two lumps")
        .await;
    page.gone(".copilot-panel").await;
}

#[tokio::test]
async fn a_failed_suggestion_shows_its_reason() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    test_server.upstream.always(ResponseScript::status(400));

    page.click(HELP).await;
    page.click_text(".copilot-panel button", "Suggest replies")
        .await;

    page.see_text(".suggestion--failed", "The model returned an error.")
        .await;
    page.gone(".suggestion--waiting").await;
}

#[tokio::test]
async fn the_writing_help_opens_and_closes_by_keyboard_and_restores_the_focus() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.see(HELP).await;

    page.press(Key::Shift + Key::Tab).await;
    page.press(Key::Enter).await;
    page.truth(
        "the instruction field has the focus",
        "document.activeElement.matches('.copilot-panel input')",
    )
    .await;
    page.press(Key::Escape).await;

    page.gone(".copilot-panel").await;
    page.truth(
        "the composer has the focus",
        &format!("document.activeElement.matches('{FIELD}')"),
    )
    .await;
}

#[tokio::test]
async fn while_the_copilot_writes_the_composer_is_locked_until_the_user_takes_over() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;

    page.click(HELP).await;
    page.click_text(".copilot-panel button", "Turn on copilot")
        .await;
    page.see_text(
        ".copilot-notice",
        "The copilot writes for you, as ann. 3 messages left.",
    )
    .await;
    page.gone(FIELD).await;
    keep_picture(&page, "copilot-1280").await;
    page.click_text(".copilot-notice button", "Take over").await;

    page.gone(".copilot-notice").await;
    gate.open();
    page.send_message("It is me.").await;
    page.answered_by("Mina").await;
    assert_eq!(test_space.texts().await[0], "It is me.");
}

#[tokio::test]
async fn the_copilot_writes_its_steps_and_then_unlocks_the_composer() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;

    page.click(HELP).await;
    page.run(
        "const it = document.querySelector('.copilot-panel__row--copilot select'); it.value = '2'",
    )
    .await;
    page.click_text(".copilot-panel button", "Turn on copilot")
        .await;

    page.truth(
        "two texts of the copilot and their replies are shown",
        "[...document.querySelectorAll('.message[data-state=final]')].map((it) => it.classList.contains('message--own')).join() === 'true,false,true,false'",
    )
    .await;
    page.gone(".copilot-notice").await;
    page.see(FIELD).await;
}

#[tokio::test]
async fn a_stopped_copilot_can_be_resumed() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    test_server.upstream.next(ResponseScript::status(400));

    page.click(HELP).await;
    page.click_text(".copilot-panel button", "Turn on copilot")
        .await;
    page.see_text(".copilot-notice", "It is waiting until you continue.")
        .await;
    page.click_text(".copilot-notice button", "Continue").await;

    page.gone(".copilot-notice").await;
    // The reply to its last text arrives after the copilot is off.
    page.truth(
        "three texts of the copilot and their replies are shown",
        "document.querySelectorAll('.message[data-state=final]').length === 6",
    )
    .await;
    assert_eq!(test_space.texts().await.len(), 6);
}

#[tokio::test]
async fn a_phone_shows_the_writing_help_and_the_lock_completely() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page_on(Viewport::Phone).await;
    test_server
        .upstream
        .reply_with("With pleasure, and two lumps of sugar, if it is not too much trouble.");
    let width = "document.documentElement.scrollWidth";

    page.click(HELP).await;
    page.click_text(".copilot-panel button", "Suggest replies")
        .await;
    page.see("button.suggestion").await;
    assert_eq!(page.value(width).await, json!(390));
    assert_eq!(page.value(&small_targets()).await, json!([]));
    keep_picture(&page, "suggestions-390").await;
    let gate = test_server.upstream.gate();
    page.click_text(".copilot-panel button", "Turn on copilot")
        .await;
    page.see(".copilot-notice").await;

    assert_eq!(page.value(width).await, json!(390));
    assert_eq!(page.value(&small_targets()).await, json!([]));
    keep_picture(&page, "copilot-390").await;
    gate.open();
}
