//! Tests of regex scripts in the page: the editor of a card lists and tests them, and what changes once they
//! are allowed.

use serde_json::json;

use crate::page::Viewport;
use crate::support::http_client::expect;
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn a_script_of_a_card_is_tested_and_changes_what_is_shown_once_it_is_allowed() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let script = json!({
        "scriptName": "Loud", "findRegex": "/rain/g", "replaceString": "**storm**", "placement": [1],
        "markdownOnly": true, "disabled": false,
    });
    let card = json!({"data": {
        "name": "Mina", "description": "{{char}} paints.", "extensions": {"regex_scripts": [script]},
    }});
    let mina = &test_space.memberships[0]["character_id"];
    let path = format!("/api/characters/{mina}");
    expect(
        200,
        test_space.ann.patch(&path, json!({"card": card})).await,
    );
    test_space.post("It will rain.").await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.see_text(".message .message__body", "It will rain.")
        .await;

    page.click(".main__head [aria-controls=panel]").await;
    page.click(".member__button").await;
    page.click(".member__details [data-act=edit]").await;
    page.click_text("dialog .regex-scripts summary", "Loud")
        .await;
    page.write("dialog .regex-scripts [name=text]", "More rain.")
        .await;
    page.click("dialog [data-act=test_script]").await;
    page.see_text("dialog .regex-script__text", "More **storm**.")
        .await;
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    page.truth("nothing is wider than the screen", fits).await;
    page.click_text("dialog .check", "Allow the regex scripts")
        .await;
    page.see_text(".toast", "Saved").await;
    page.reload().await;

    page.see_text(".message .message__body strong", "storm")
        .await;
    assert_eq!(test_space.texts().await, ["It will rain."]);
}
