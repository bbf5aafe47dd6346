//! Tests of a user's own account: a guest who keeps it, sessions, the password, and two windows of
//! one user.

use serde_json::json;
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::several_users::{SeveralUsers, page_of};
use crate::support::http_client::{HttpClient, expect, http_client};
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn a_guest_is_warned_before_signing_out_and_keeps_the_account() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let path = format!(
        "/api/spaces/{}/invites",
        test_space.memberships[0]["space_id"]
    );
    let link = expect(
        201,
        test_space.ann.post(&path, json!({"role": "guest"})).await,
    );
    let page = Page::open(test_space.ann.base(), Viewport::Desktop).await;
    page.go(&format!(
        "/join#{}",
        link["token"].as_str().expect("the response has a token")
    ))
    .await;
    page.write("[name=display_name]", "Cleo").await;
    page.click("button[type=submit]").await;
    page.see(FIELD).await;
    page.gone("#sidebar [aria-label='New space']").await;

    page.click(".sidebar__me").await;
    page.click_text(".menu__item", "Sign out").await;
    page.see_text("dialog", "cannot sign in again").await;
    page.click_text("dialog button", "Keep this account").await;
    page.write(".settings [name=username]", "cleo").await;
    page.write(".settings [name=password]", "correct horse battery")
        .await;
    page.click_text(".settings button[type=submit]", "Keep this account")
        .await;

    page.see_text(".settings", "Sessions").await;
    page.gone(".sidebar__keep").await;
    page.see("#sidebar [aria-label='New space']").await;
    page.click_text("#sidebar a", "Main").await;
    page.send_message("Still me").await;
    page.see_text(".message[data-state=final]", "Still me")
        .await;
    let cleo = HttpClient::sign_in(test_space.ann.base(), "cleo").await;
    let again = page_of(&cleo, &test_space.path()).await;
    again.see_text(".message--own", "Still me").await;
}

#[tokio::test]
async fn a_guest_that_signs_out_after_the_warning_is_deleted() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let path = format!(
        "/api/spaces/{}/invites",
        test_space.memberships[0]["space_id"]
    );
    let link = expect(
        201,
        test_space.ann.post(&path, json!({"role": "guest"})).await,
    );
    let ann = test_space.page().await;
    let page = Page::open(test_space.ann.base(), Viewport::Desktop).await;
    page.go(&format!(
        "/join#{}",
        link["token"].as_str().expect("the response has a token")
    ))
    .await;
    page.write("[name=display_name]", "Cleo").await;
    page.click("button[type=submit]").await;
    ann.see_text(".member", "Cleo").await;

    page.click(".sidebar__me").await;
    page.click_text(".menu__item", "Sign out").await;
    page.click_text("dialog button", "Sign out anyway").await;

    page.see("[name=username]").await;
    ann.truth(
        "the membership is removed",
        "![...document.querySelectorAll('.member')].some((it) => it.innerText.includes('Cleo'))",
    )
    .await;
}

#[tokio::test]
async fn a_session_that_is_ended_elsewhere_asks_to_sign_in_and_keeps_the_draft() {
    let users = SeveralUsers::with("member").await;
    let here = users.bobs_page().await;
    here.write(FIELD, "half a thought").await;
    let bob = HttpClient::sign_in(users.bob.base(), "bob").await;
    let elsewhere = page_of(&bob, "/settings/profile").await;
    elsewhere
        .see_text(".list__item[data-session=this]", "This session")
        .await;

    elsewhere
        .click(".list__item[data-session=other] button")
        .await;
    elsewhere.gone(".list__item[data-session=other]").await;

    here.see_text("dialog", "Your draft is still here").await;
    here.write("dialog [name=password]", "correct horse battery")
        .await;
    here.press(Key::Enter).await;
    here.gone("dialog").await;
    let draft = format!("document.querySelector('{FIELD}').value");
    assert_eq!(here.value(&draft).await, json!("half a thought"));
    here.write(FIELD, Key::Enter).await;
    here.see_text(".message[data-state=final]", "half a thought")
        .await;
    users.test_space.post("I hear you").await;
    here.see_text(".message", "I hear you").await;
}

#[tokio::test]
async fn back_and_reload_keep_the_conversation_and_two_windows_agree() {
    let users = SeveralUsers::with("member").await;
    let side = users.conversation("Side stage").await;
    let first = users.bobs_page().await;
    let second = page_of(&users.bob, &format!("/c/{side}")).await;
    second.see_text(".main__title", "Side stage").await;

    first.click_text("#sidebar a", "Side stage").await;
    first.see_text(".main__title", "Side stage").await;
    first.run("history.back()").await;
    first.see_text(".main__title", "Main").await;
    first.run("history.forward()").await;
    first.see_text(".main__title", "Side stage").await;
    first.reload().await;
    first.see_text(".main__title", "Side stage").await;

    first.send_message("Said in one window").await;
    second.see_text(".message--own", "Said in one window").await;
    first.click(".sidebar__me").await;
    first.click_text(".menu__item", "Profile").await;
    first
        .rewrite(".settings [name=display_name]", "Robert")
        .await;
    first
        .click_text(".settings button[type=submit]", "Save")
        .await;
    second.see_text(".sidebar__me", "Robert").await;
}

#[tokio::test]
async fn another_user_in_the_same_browser_starts_without_old_state() {
    let users = SeveralUsers::with("member").await;
    let page = users.bobs_page().await;
    page.see_text(".sidebar__me", "bob").await;

    page.set_cookie(users.test_space.ann.cookie()).await;
    page.offline(true).await;
    page.see(".banner").await;
    page.offline(false).await;

    page.see_text(".sidebar__me", "ann").await;
}

#[tokio::test]
async fn a_changed_password_revokes_the_api_keys_when_asked() {
    let users = SeveralUsers::with("member").await;
    let bob = HttpClient::sign_in(users.bob.base(), "bob").await;
    let made = bob.post("/api/api_keys", json!({"name": "bot"})).await;
    let key = expect(201, made)["key"].as_str().unwrap().to_owned();
    let page = page_of(&bob, "/settings/profile").await;

    page.write(".settings [name=current_password]", "correct horse battery")
        .await;
    page.write(".settings [name=password]", "a better battery")
        .await;
    page.click(".settings [name=revoke_api_keys]").await;
    page.click_text(".settings button", "Change password").await;

    page.see_text(".toast", "Password changed").await;
    let asked = http_client().get(format!("{}/v1/models", bob.base()));
    let answer = asked.bearer_auth(&key).send().await.unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions_and_the_page_continues() {
    let users = SeveralUsers::with("member").await;
    let elsewhere = users.bobs_page().await;
    elsewhere.write(FIELD, "half a thought").await;
    let bob = HttpClient::sign_in(users.bob.base(), "bob").await;
    let page = page_of(&bob, "/settings/profile").await;

    page.write(".settings [name=current_password]", "not my password")
        .await;
    page.write(".settings [name=password]", "a better battery")
        .await;
    page.click_text(".settings button", "Change password").await;
    page.see_text(".field__error", "not your current password")
        .await;
    page.rewrite(".settings [name=current_password]", "correct horse battery")
        .await;
    page.click_text(".settings button", "Change password").await;

    page.see_text(".toast", "Password changed").await;
    elsewhere.see_text("dialog", "Please sign in again").await;
    page.click_text("#sidebar a", "Main").await;
    page.send_message("Still here").await;
    page.see_text(".message[data-state=final]", "Still here")
        .await;
    elsewhere
        .write("dialog [name=password]", "a better battery")
        .await;
    elsewhere.press(Key::Enter).await;
    elsewhere.see_text(".message--own", "Still here").await;
}
