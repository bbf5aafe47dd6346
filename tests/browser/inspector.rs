//! Tests of the prompt inspector, opened from a reply.

use serde_json::json;

use crate::page::Page;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, list, manual};

const TAIL: &str = ".message:last-child .message__body";

/// Opens the inspector from the toolbar of a message.
async fn inspect(page: &Page, message: &str) {
    page.click(message).await;
    page.click(".message__tools [aria-label='Show prompt']")
        .await;
}

/// Returns whether the open inspector contains this text, collapsed or not.
async fn prompt_contains(page: &Page, text: &str) -> bool {
    let blocks =
        "[...document.querySelectorAll('dialog .block__text')].map((it) => it.textContent)";
    page.see("dialog .block").await;
    page.value(&format!(
        "{blocks}.some((it) => it.includes({}))",
        json!(text)
    ))
    .await
        == json!(true)
}

async fn close(page: &Page) {
    page.press(thirtyfour::Key::Escape).await;
    page.gone("dialog").await;
}

/// Adds this to the character card of Mina, and so to every later prompt.
async fn describe(test_space: &SpaceFixture, text: &str) {
    let path = format!(
        "/api/characters/{}",
        test_space.memberships[0]["character_id"]
    );
    expect(
        200,
        test_space
            .ann
            .patch(&path, json!({"description": text}))
            .await,
    );
}

#[tokio::test]
async fn the_inspector_shows_the_prompt_of_a_reply() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("What do you know about lighthouses?")
        .await;
    page.answered_by("Mina").await;

    inspect(&page, TAIL).await;

    page.see_text("dialog", "tokens").await;
    assert!(prompt_contains(&page, "What do you know about lighthouses?").await);
    close(&page).await;
}

#[tokio::test]
async fn the_inspector_shows_the_prompt_of_each_swipe() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    describe(&test_space, "Keeps the lighthouse.").await;
    let page = test_space.page().await;
    page.send_message("Good evening.").await;
    page.answered_by("Mina").await;
    describe(&test_space, "Keeps the ferry.").await;
    test_server
        .upstream
        .next(ResponseScript::say("Good day to you."));
    page.click(TAIL).await;
    page.click(".message__tools [aria-label='Regenerate']")
        .await;
    page.see_text(TAIL, "Good day to you.").await;
    page.see_text(".swipes__position", "2/2").await;

    inspect(&page, TAIL).await;
    assert!(prompt_contains(&page, "Keeps the ferry.").await);
    assert!(!prompt_contains(&page, "Keeps the lighthouse.").await);
    close(&page).await;
    page.click("[data-id='swipe--1']").await;
    page.see_text(".swipes__position", "1/2").await;
    inspect(&page, TAIL).await;

    assert!(prompt_contains(&page, "Keeps the lighthouse.").await);
    assert!(!prompt_contains(&page, "Keeps the ferry.").await);
}

#[tokio::test]
async fn the_inspector_shows_the_prompt_of_a_copilot_text() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    page.click("[aria-label='Help me write']").await;
    page.run("document.querySelector('.copilot-panel__row--copilot select').value = '1'")
        .await;
    page.click_text(".copilot-panel button", "Turn on copilot")
        .await;
    page.gone(".copilot-notice").await;
    page.answered_by("Mina").await;

    inspect(&page, ".message--own .message__body").await;
    page.see("dialog .block").await;
    close(&page).await;
    page.send_message("These are my own words.").await;
    page.see_text(".message--own[data-state=final]", "These are my own words.")
        .await;

    page.answered_by("Mina").await;
    page.click(".message--own:nth-last-child(2) .message__body")
        .await;
    page.see(".message__tools [aria-label='Copy']").await;
    assert_eq!(
        page.n(".message__tools [aria-label='Show prompt']").await,
        0
    );
}

#[tokio::test]
async fn the_inspector_reports_a_prompt_that_is_no_longer_stored() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("Good evening.").await;
    page.answered_by("Mina").await;
    let mut facts = test_server.facts().await;
    // As retention does after fifty further replies.
    facts.execute("DELETE FROM run_prompts").await;

    inspect(&page, TAIL).await;

    page.see_text(".toast", "is no longer stored").await;
    page.gone("dialog").await;
}

#[tokio::test]
async fn the_inspector_reports_a_text_without_a_run() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &[]).await;
    let card = json!({"name": "Ada", "first_mes": "Hi.", "alternate_greetings": ["Ho."]});
    let ada = expect(201, test_space.ann.post("/api/characters", card).await);
    let space = expect(
        200,
        test_space
            .ann
            .get(&format!("/api/conversations/{}", test_space.conversation))
            .await,
    );
    let space = json!({"id": space["space_id"]});
    test_space.ann.add_character(&space, &ada).await;
    let page = test_space.page().await;

    inspect(&page, TAIL).await;

    page.see_text(".toast", "This text was not generated here")
        .await;
}
