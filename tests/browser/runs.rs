//! Tests of the panel of prompts and runs, and of a session that ends.

use serde_json::json;

use crate::page::FIELD;
use crate::support::http_client::expect;
use crate::test_server::{TestServer, list, manual};

#[tokio::test]
async fn the_panel_shows_the_runs_and_what_would_be_sent() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("What do you know about lighthouses?")
        .await;
    page.answered_by("Mina").await;

    page.click("#panel-tab-runs").await;
    page.click(".run__summary").await;
    page.see_text(".run", "succeeded").await;
    page.click_text("#panel button", "Show").await;

    page.see_text("dialog", "tokens").await;
    let words = "document.querySelector('dialog').textContent.includes('What do you know about lighthouses?')";
    assert_eq!(page.value(words).await, json!(true));
}

#[tokio::test]
async fn the_runs_name_their_speaker_even_if_members_load_late() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    page.send_message("Good evening.").await;
    page.answered_by("Mina").await;
    page.click("#panel-tab-runs").await;
    page.see_text(".run", "Mina").await;

    page.reload().await;

    page.see_text(".run", "Mina").await;
    page.see_text(".run", "succeeded").await;
}

#[tokio::test]
async fn a_pasted_card_is_shown_before_it_is_stored() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &[]).await;
    let page = test_space.page().await;
    let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Seraphina", "description": "A guardian.", "personality": "", "scenario": "", "mes_example": "",
        "first_mes": "You are safe here.", "creator_notes": "", "system_prompt": "", "post_history_instructions": "",
        "alternate_greetings": [], "tags": [], "creator": "", "character_version": "", "extensions": {}}});

    page.click_text(".intro button", "Add a character").await;
    page.click_text("dialog .choice", "Import a card").await;
    page.write("dialog textarea", &card.to_string()).await;
    page.see_text(".preview", "Seraphina").await;
    page.see_text(".preview", "You are safe here.").await;
    let before = expect(200, test_space.ann.get("/api/characters").await);
    page.click_text("dialog button", "Add to the cast").await;

    assert!(!before.to_string().contains("Seraphina"), "{before}");
    page.see_text(".member", "Seraphina").await;
    page.see_text(".message", "You are safe here.").await;
}

#[tokio::test]
async fn a_session_that_ended_asks_to_sign_in_and_keeps_the_draft() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.write(FIELD, "half a thought").await;

    expect(204, test_space.ann.delete("/api/session").await);
    page.write("dialog [name=password]", "correct horse battery")
        .await;
    page.click("dialog button[type=submit]").await;
    page.gone("dialog").await;
    page.gone(".banner").await;

    let field = format!("document.querySelector('{FIELD}').value");
    assert_eq!(page.value(&field).await, json!("half a thought"));
}
