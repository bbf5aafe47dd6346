//! Tests of editing the pending slots of a round, by mouse and keyboard, while it runs.

use serde_json::json;
use thirtyfour::Key;

use crate::members_tab::drag;
use crate::page::Page;
use crate::rounds::{have_spoken, list_order, next_waits, places};
use crate::several_users::SeveralUsers;
use crate::support::http_client::expect;
use crate::test_server::TestServer;

#[tokio::test]
async fn the_rest_of_a_round_is_rearranged_with_the_keyboard() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook", "Iris"])
        .await;
    let gate = next_waits(&test_server, "Mina here.");
    let page = test_space.page().await;

    page.send_message("All of you").await;
    places(&page, "speaking pending pending").await;
    focus(&page, ".queue [data-act=round]").await;
    page.press(Key::Enter).await;
    page.see_text("dialog", "Mina").await;
    focus(&page, ".round [aria-label='Remove Iris']").await;
    page.press(Key::Alt + Key::Up).await;
    page.see_text(".round [role=status]", "Iris is now number 1")
        .await;
    focus(&page, ".round [aria-label='Remove Rook']").await;
    page.press(Key::Delete).await;
    page.see_text(".round [role=status]", "Rook was removed")
        .await;
    focus(&page, ".round [aria-label='Add Mina']").await;
    page.press(Key::Enter).await;
    focus(&page, ".round [data-act=save]").await;
    page.press(Key::Enter).await;
    page.gone("dialog").await;
    gate.open();

    have_spoken(&page, &["Mina", "Iris", "Mina"]).await;
}

#[tokio::test]
async fn the_rest_of_a_round_is_rearranged_with_the_mouse() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook", "Iris"])
        .await;
    let gate = next_waits(&test_server, "Mina here.");
    let page = test_space.page().await;

    page.send_message("All of you").await;
    places(&page, "speaking pending pending").await;
    page.click(".queue [data-act=round]").await;
    page.see_text(".round", "Iris").await;
    page.truth(
        "the animation of the dialog has ended",
        "document.querySelector('dialog').getAnimations().length === 0",
    )
    .await;
    drag(&page, ".round [data-membership-id] .member__grip", 50).await;
    page.see_text(".round [role=status]", "Rook is now number 2")
        .await;
    page.click(".round [aria-label='Add Rook']").await;
    page.click(".round [data-act=save]").await;
    page.gone("dialog").await;
    places(&page, "speaking pending pending pending").await;
    gate.open();

    have_spoken(&page, &["Mina", "Iris", "Rook", "Rook"]).await;
}

async fn focus(page: &Page, css: &str) {
    page.see(css).await;
    page.run(&format!("document.querySelector({}).focus()", json!(css)))
        .await;
}

#[tokio::test]
async fn a_slot_that_starts_leaves_the_list_being_edited() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook", "Iris"])
        .await;
    let gates = ["Mina here.", "Rook here."].map(|it| next_waits(&test_server, it));
    let page = test_space.page().await;

    page.send_message("All of you").await;
    places(&page, "speaking pending pending").await;
    page.click(".queue [data-act=round]").await;
    page.click(".round [aria-label='Add Mina']").await;
    gates[0].open();
    page.gone(".round [aria-label='Remove Rook']").await;
    page.click(".round [data-act=save]").await;
    page.gone("dialog").await;
    gates[1].open();

    have_spoken(&page, &["Mina", "Rook", "Iris", "Mina"]).await;
}

#[tokio::test]
async fn an_edit_of_a_replaced_round_is_rejected_with_an_explanation() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook"])
        .await;
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    // Another user posts a message while the new order is being sent.
    let path = format!("/api/conversations/{}/messages", test_space.conversation);
    let source = format!(
        "const ask = fetch
        window.fetch = async (url, how) => {{
          if (how?.method === 'PATCH' && url.endsWith('/round') && !window.wasQuicker) {{
            window.wasQuicker = true
            const body = JSON.stringify({{ content: 'Wait' }})
            await ask({}, {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, body }})
          }}
          return ask(url, how)
        }}",
        json!(path)
    );
    page.cdp(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": source}),
    )
    .await;
    page.reload().await;

    page.send_message("Both of you").await;
    places(&page, "speaking pending").await;
    page.click(".queue [data-act=round]").await;
    page.click(".round [aria-label='Remove Rook']").await;
    page.click(".round [data-act=save]").await;
    page.see_text(".round [role=status]", "The round has changed")
        .await;
    page.see(".round [aria-label='Remove Mina']").await;
    page.click(".round [aria-label='Remove Mina']").await;
    page.click(".round [data-act=save]").await;
    page.gone("dialog").await;
    gate.open();

    have_spoken(&page, &["Mina", "Rook"]).await;
}

#[tokio::test]
async fn a_guest_sees_the_round_and_cannot_edit_it() {
    let users = SeveralUsers::with("guest").await;
    let space = format!("/api/spaces/{}", users.space);
    let mut rules = list_order();
    rules["auto_mode_enabled"] = json!(true);
    expect(200, users.test_space.ann.patch(&space, rules).await);
    let gate = next_waits(&users.test_server, "Mina here.");
    let page = users.bobs_page().await;

    page.send_message("Both of you").await;
    places(&page, "speaking pending").await;
    page.see("span.auto").await;
    page.click(".queue [data-act=round]").await;
    page.see_text(".round", "writing").await;
    let controls = page.texts(".round button").await;
    page.click_text(".round button", "Close").await;
    let buttons = page.texts(".queue__actions button").await;
    let path = format!("/api/conversations/{}/round", users.test_space.conversation);
    let round = users
        .test_space
        .ann
        .conversation(users.test_space.conversation)
        .await["round"]["id"]
        .clone();
    let refused = users
        .bob
        .patch(&path, json!({"round_id": round, "slots": []}))
        .await;
    gate.open();

    assert_eq!(controls, ["Close"]);
    assert_eq!(
        buttons,
        ["", ""],
        "a guest has another button than those that show the round and who speaks next"
    );
    assert_eq!(refused.0, 403, "{}", refused.1);
}
