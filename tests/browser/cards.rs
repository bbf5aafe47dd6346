//! Tests of character cards in the page: dropped, previewed, refused, edited and exported.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::page::Viewport;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Own words: a keeper of a harbor, with a book of four entries, linked to a world.
fn card() -> Value {
    let entry = |key: &str| json!({"keys": [key], "content": format!("About the {key}."), "enabled": true, "insertion_order": 1, "extensions": {}});
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mina Vale", "description": "Keeps the lighthouse.", "personality": "", "scenario": "",
        "first_mes": "Mind the step, {{user}}. {{char}} is up here.", "mes_example": "",
        "creator_notes": "", "system_prompt": "", "post_history_instructions": "",
        "alternate_greetings": ["Again you, {{user}}?"], "tags": ["sea"], "creator": "", "character_version": "",
        "character_book": {"entries": [entry("lamp"), entry("storm"), entry("gull"), entry("key")], "extensions": {}},
        "extensions": {"world": "Harbor Lights Atlas", "talkativeness": "0.7", "own_tool": {"kept": [1, 2]}},
    }})
}

/// A small picture that carries `text` as its card.
fn picture_with(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 32, 48);
    encoder.set_color(png::ColorType::Rgb);
    let packed = BASE64_STANDARD.encode(text);
    encoder
        .add_text_chunk("chara".to_owned(), packed)
        .expect("a text chunk");
    let mut writer = encoder.write_header().expect("a header");
    writer
        .write_image_data(&[200; 32 * 48 * 3])
        .expect("a picture");
    writer.finish().expect("a whole file");
    bytes
}

async fn empty_room(test_server: &TestServer) -> SpaceFixture {
    test_server.room(manual(), &[]).await
}

/// The number of characters in Ann's library; the two of the sample space exist from the start.
async fn n_on_shelf(room: &SpaceFixture) -> usize {
    let list = expect(200, room.ann.get("/api/characters").await);
    list["data"].as_array().expect("a list").len()
}

#[tokio::test]
async fn a_dropped_card_is_shown_before_it_is_stored_and_greets_by_name() {
    let test_server = TestServer::open().await;
    let room = empty_room(&test_server).await;
    let page = room.page().await;
    let before = n_on_shelf(&room).await;

    page.drop_file("mina.png", &picture_with(&card().to_string()))
        .await;
    page.see_text("dialog .card-preview__name", "Mina Vale")
        .await;
    page.see_text(
        "dialog .card-preview__greeting",
        "Mind the step, ann. Mina Vale is up here.",
    )
    .await;
    page.see_text("dialog .card-preview__facts", "4 World Info entries")
        .await;
    page.see_text("dialog .card-preview__facts", "Harbor Lights Atlas")
        .await;
    page.truth(
        "the picture is shown",
        "document.querySelector('dialog .avatar__image')?.naturalWidth > 0",
    )
    .await;
    assert_eq!(n_on_shelf(&room).await, before, "nothing is stored yet");
    page.click("dialog [data-act=add_to_space]").await;

    page.gone("dialog").await;
    page.see_text(".member__name", "Mina Vale").await;
    page.see_text(".message", "Mind the step, ann. Mina Vale is up here.")
        .await;
    page.truth(
        "her face is seen in the cast and beside her words",
        "['.member', '.message'].every((it) => document.querySelector(`${it} .avatar__image`)?.naturalWidth > 0)",
    )
    .await;
    page.see_text(".swipes", "1/2").await;
}

#[tokio::test]
async fn a_broken_card_is_refused_with_its_reason_and_nothing_is_stored() {
    let test_server = TestServer::open().await;
    let room = empty_room(&test_server).await;
    let page = room.page_on(Viewport::Phone).await;
    let before = n_on_shelf(&room).await;
    let plain = {
        let mut bytes = Vec::new();
        let encoder = png::Encoder::new(&mut bytes, 1, 1);
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&[0]).expect("a picture");
        writer.finish().expect("a whole file");
        bytes
    };
    let whole = picture_with(&card().to_string());
    let files = [
        ("holiday.png", plain),
        ("words.png", picture_with("no card at all")),
        ("torn.png", whole[..whole.len() / 3].to_vec()),
        ("mina.charx", b"PK\x03\x04 and no more".to_vec()),
    ];

    for (name, bytes) in files {
        page.drop_file(name, &bytes).await;
        page.see_text("dialog .dialog__lead", name).await;
        let said = page.texts("dialog .outcome--bad").await;
        assert!(said[0].len() > 20, "{name}: {said:?}");
        page.click("dialog .form__actions button").await;
        page.gone("dialog").await;
    }

    assert_eq!(n_on_shelf(&room).await, before);
}

#[tokio::test]
async fn an_edited_card_keeps_unknown_fields() {
    let test_server = TestServer::open().await;
    let room = empty_room(&test_server).await;
    let made = expect(
        201,
        room.ann
            .post("/api/characters", json!({"card": card()}))
            .await,
    );
    let seat = json!({"character_id": made["id"]});
    let at = format!("/api/conversations/{}", room.conversation);
    let space = expect(200, room.ann.get(&at).await)["space_id"].clone();
    let seats = format!("/api/spaces/{space}/memberships");
    expect(201, room.ann.post(&seats, seat).await);
    let page = room.page().await;

    page.click_text(".member__button", "Mina Vale").await;
    page.click(".member__details [data-act=edit]").await;
    page.rewrite(
        "dialog [name=description]",
        "Keeps the lighthouse, and bees.",
    )
    .await;
    page.click("dialog [data-act=add_alternate_greetings]")
        .await;
    page.press("The lamp is lit.").await;
    page.click("dialog [type=submit]").await;
    page.gone("dialog").await;

    let stored = expect(
        200,
        room.ann
            .get(&format!("/api/characters/{}", made["id"]))
            .await,
    );
    let mut expected = made["card"].clone();
    expected["data"]["description"] = json!("Keeps the lighthouse, and bees.");
    expected["data"]["alternate_greetings"] = json!(["Again you, {{user}}?", "The lamp is lit."]);
    assert_eq!(stored["card"], expected);
}

#[tokio::test]
async fn unsaved_card_edits_survive_closing_the_dialog() {
    let test_server = TestServer::open().await;
    let room = empty_room(&test_server).await;
    expect(
        201,
        room.ann
            .post("/api/characters", json!({"card": card()}))
            .await,
    );
    let page = room.page().await;
    let open = async || {
        page.click("[aria-label='Add a character']").await;
        page.click_text("dialog .choice", "My characters").await;
        page.click("dialog [aria-label='Card of Mina Vale']").await;
        page.see("dialog [name=description]").await;
    };

    open().await;
    page.rewrite("dialog [name=description]", "Half a thought")
        .await;
    page.click("dialog:last-of-type [aria-label=Close]").await;
    page.see_text(".toast", "kept").await;
    page.click("dialog:last-of-type [aria-label=Close]").await;
    page.gone("dialog").await;
    open().await;

    page.see_text("dialog", "unsaved changes").await;
    page.truth(
        "the text is there",
        "document.querySelector('dialog [name=description]').value === 'Half a thought'",
    )
    .await;
}
