//! Tests of personas in the page: the page of the user's personas, the choice at the composer, the face
//! and the person behind a message, and messages that are sent later.

use serde_json::json;

use crate::page::{FIELD, Page, Viewport};
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

const SWITCH: &str = ".composer__persona";
const NEWEST: &str = ".message--own[data-state=final]";

async fn create(space: &SpaceFixture, name: &str) {
    let body = json!({"name": name, "description": "Tall."});
    expect(201, space.ann.post("/api/personas", body).await);
}

async fn choose(page: &Page, name: &str) {
    page.click(SWITCH).await;
    page.click_text("[role=menuitem]", name).await;
    page.see(&format!("{SWITCH}[aria-label='Persona: {name}']"))
        .await;
}

async fn a_persona_is_written_and_chosen(screen: Viewport) {
    let test_server = TestServer::open().await;
    let space = test_server.create_space(manual(), &["Mina"]).await;
    let page = space.page_on(screen).await;
    page.go("/settings/personas").await;

    page.click_text(".button", "New persona").await;
    page.write("dialog input[type=text]", "Captain").await;
    page.write("dialog textarea", "Commands a ship.").await;
    page.click("dialog button[type=submit]").await;
    page.see_text(".personas", "Captain").await;
    page.go(&space.path()).await;
    page.see(FIELD).await;
    choose(&page, "Captain").await;
    page.write(FIELD, "Ahoy.").await;
    page.click(".composer__send").await;

    page.see_text(&format!("{NEWEST} .message__author"), "Captain")
        .await;
    page.see_text(&format!("{NEWEST} .message__person"), "ann")
        .await;
    page.truth(
        "the page is not wider than the screen",
        "document.documentElement.scrollWidth <= innerWidth",
    )
    .await;
    let message = space.ann.messages(space.conversation).await.remove(0);
    assert_eq!(message["persona"]["name"], "Captain");
    page.see(&format!("{SWITCH}[aria-label='Persona: Captain']"))
        .await;
}

#[tokio::test]
async fn a_persona_is_written_and_chosen_on_a_large_screen() {
    a_persona_is_written_and_chosen(Viewport::Desktop).await;
}

#[tokio::test]
async fn a_persona_is_written_and_chosen_on_a_phone() {
    a_persona_is_written_and_chosen(Viewport::Phone).await;
}

/// Selects an option of the open dialog and sends its change event.
async fn select(page: &Page, name: &str, value: &str) {
    let (name, value) = (json!(format!("dialog [name={name}]")), json!(value));
    page.run(&format!(
        "const list = document.querySelector({name})
         list.value = {value}
         list.dispatchEvent(new Event('change', {{ bubbles: true }}))",
    ))
    .await;
}

#[tokio::test]
async fn the_position_of_a_description_is_chosen_in_its_dialog() {
    let test_server = TestServer::open().await;
    let space = test_server.create_space(manual(), &["Mina"]).await;
    create(&space, "Captain").await;
    let page = space.page().await;
    page.go("/settings/personas").await;
    page.click_text(".personas .button", "Edit").await;
    page.see("dialog [name=position]").await;

    page.truth(
        "the depth is hidden",
        "document.querySelector('dialog [name=depth]').closest('.field').hidden",
    )
    .await;
    page.write("dialog [name=title]", "Seafarer").await;
    select(&page, "position", "at_depth").await;
    page.rewrite("dialog [name=depth]", "0").await;
    select(&page, "role", "user").await;
    page.click("dialog button[type=submit]").await;
    page.see_text(".personas", "Seafarer").await;

    let personas = expect(200, space.ann.get("/api/personas").await);
    let saved = &personas["data"][0];
    let placement = [&saved["position"], &saved["depth"], &saved["role"]];
    assert_eq!(placement, [&json!("at_depth"), &json!(0), &json!("user")]);
    assert_eq!(saved["title"], "Seafarer");
    page.click_text(".personas .button", "Edit").await;
    page.truth(
        "the dialog shows what was saved",
        "['title', 'position', 'depth', 'role']
            .map((name) => document.querySelector(`dialog [name=${name}]`).value)
            .join() === 'Seafarer,at_depth,0,user'",
    )
    .await;
}

#[tokio::test]
async fn a_prefix_switches_the_composer_to_its_persona() {
    let test_server = TestServer::open().await;
    let space = test_server.create_space(manual(), &["Mina"]).await;
    create(&space, "Captain Blue").await;
    let page = space.page().await;

    page.send_message("=captain blue Ahoy.").await;
    page.see_text(&format!("{NEWEST} .message__author"), "Captain Blue")
        .await;
    page.see(&format!("{SWITCH}[aria-label='Persona: Captain Blue']"))
        .await;
    page.send_message("Cast off!").await;
    page.see_text(NEWEST, "Cast off!").await;

    assert_eq!(space.texts().await, ["Ahoy.", "Cast off!"]);
    let messages = space.ann.messages(space.conversation).await;
    assert!(
        messages
            .iter()
            .all(|it| it["persona"]["name"] == "Captain Blue")
    );
}

#[tokio::test]
async fn a_message_without_a_connection_keeps_the_persona_of_its_moment() {
    let test_server = TestServer::open().await;
    let space = test_server.create_space(manual(), &["Mina"]).await;
    create(&space, "Captain").await;
    create(&space, "Cook").await;
    let page = space.page().await;
    choose(&page, "Captain").await;
    page.offline(true).await;
    page.send_message("Ahoy.").await;
    page.see(".message[data-state=failed]").await;
    page.offline(false).await;
    choose(&page, "Cook").await;

    page.click(".message__foot--failed .button").await;

    page.see_text(&format!("{NEWEST} .message__author"), "Captain")
        .await;
    let message = space.ann.messages(space.conversation).await.remove(0);
    assert_eq!(message["persona"]["name"], "Captain");
}
