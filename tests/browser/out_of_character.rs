//! Tests of the composer in the page: messages that are out of character, slow mode, and the list of
//! members that `@` opens; and of the preview of the next speaker.

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::device::SMALL_TARGETS;
use crate::page::{FIELD, Page, Viewport};
use crate::several_users::SeveralUsers;
use crate::support::http_client::expect;
use crate::test_server::{TestServer, list, manual};

const OOC: &str = ".composer__ooc";
const MENTIONS: &str = ".completions:not([hidden]) .completions__option";

async fn written(page: &Page) -> Value {
    page.value(&format!("document.querySelector('{FIELD}').value"))
        .await
}

#[tokio::test]
async fn a_message_out_of_character_is_marked_and_no_one_replies() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;

    page.click(OOC).await;
    page.see("[placeholder='Out of character…']").await;
    page.write(FIELD, "Is this thing on?").await;
    page.write(FIELD, Key::Enter).await;
    page.see_text(".message--ooc[data-state=final]", "Is this thing on?")
        .await;
    page.write(FIELD, "((Back in five.))").await;
    page.write(FIELD, Key::Enter).await;
    page.see_text(".message--ooc[data-state=final]", "Back in five.")
        .await;

    page.see_text(".message--ooc .message__note", "Out of character")
        .await;
    assert_eq!(test_server.upstream.n_requests(), 0);
    page.truth(
        "the next message is in character again",
        &format!("document.querySelector('{OOC}').getAttribute('aria-pressed') === 'false'"),
    )
    .await;
    page.send_message("Good evening.").await;
    page.answered_by("Mina").await;
    assert_eq!(page.n(".message--ooc").await, 2);
}

#[tokio::test]
async fn the_mark_of_a_message_can_be_removed() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("((Hello.))").await;
    page.see(".message--ooc[data-state=final]").await;

    page.click(".message--ooc .message__body").await;
    page.click("[aria-label='Mark as in character']").await;

    page.gone(".message--ooc").await;
}

#[tokio::test]
async fn in_slow_mode_the_composer_counts_down() {
    let users = SeveralUsers::with("member").await;
    let path = format!("/api/spaces/{}", users.space);
    let slow = json!({"reply_order": "manual", "slow_mode_s": 600});
    expect(200, users.test_space.ann.patch(&path, slow).await);
    let page = users.bobs_page().await;

    page.send_message("Once.").await;

    page.see_text(".composer__slow", "Slow mode").await;
    page.write(FIELD, "Twice.").await;
    page.truth(
        "Send is disabled",
        "document.querySelector('[aria-label=Send]').disabled",
    )
    .await;
    page.write(FIELD, Key::Enter).await;
    assert_eq!(written(&page).await, "Twice.");
}

#[tokio::test]
async fn an_at_sign_opens_the_members_and_the_post_carries_the_chosen_one() {
    let test_server = TestServer::open().await;
    let rules = json!({"reply_order": "natural", "user_turn_debounce_ms": 0});
    let test_space = test_server
        .create_space(rules, &["Mina", "Sir Lancelot", "孙悟空"])
        .await;
    let page = test_space.page().await;

    page.write(FIELD, "Hi @lan").await;
    page.see_text(MENTIONS, "Sir Lancelot").await;
    page.write(FIELD, Key::Enter).await;
    assert_eq!(written(&page).await, "Hi @Sir Lancelot ");
    page.gone(MENTIONS).await;
    page.write(FIELD, Key::Enter).await;
    page.answered_by("Sir Lancelot").await;
    page.write(FIELD, "你好@悟").await;
    page.click(MENTIONS).await;
    assert_eq!(written(&page).await, "你好@孙悟空 ");
    page.write(FIELD, "@").await;
    page.see(MENTIONS).await;
    page.write(FIELD, Key::Down).await;
    page.write(FIELD, Key::Escape).await;
    page.gone(MENTIONS).await;
}

#[tokio::test]
async fn on_a_phone_a_tap_chooses_a_member_and_all_targets_are_large() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(manual(), &["Mina", "Sir Lancelot"])
        .await;
    let page = test_space.page_on(Viewport::Phone).await;

    page.write(FIELD, "@").await;
    page.see_text(MENTIONS, "Mina").await;
    let here = "document.querySelector('.composer').querySelectorAll";
    let small = SMALL_TARGETS.replace("document.querySelectorAll", here);
    assert_eq!(page.value(&small).await, json!([]));
    assert_eq!(
        page.value("document.documentElement.scrollWidth").await,
        json!(390)
    );
    page.click_text(MENTIONS, "Mina").await;

    assert_eq!(written(&page).await, "@Mina ");
}

#[tokio::test]
async fn the_preview_of_the_next_speaker_is_loaded_when_it_is_opened() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina", "Otto"]).await;
    let page = test_space.page().await;

    page.click("[data-act=odds]").await;
    page.see_text(".odds__row", "Mina").await;
    page.see_text(".odds__share", "100%").await;
    test_space.post("Good evening.").await;

    page.see_text(".odds__row", "Otto").await;
}
