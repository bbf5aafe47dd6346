//! Tests of character cards in the page: dropped, previewed, refused, edited and exported.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::page::Viewport;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

/// A card written for this test, with a lorebook of four entries and a linked world.
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

/// A small PNG with `text` as its card.
fn picture_with(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 32, 48);
    encoder.set_color(png::ColorType::Rgb);
    let packed = BASE64_STANDARD.encode(text);
    encoder
        .add_text_chunk("chara".to_owned(), packed)
        .expect("add the text chunk");
    let mut writer = encoder.write_header().expect("write the header");
    writer
        .write_image_data(&[200; 32 * 48 * 3])
        .expect("write the pixels");
    writer.finish().expect("finish the file");
    bytes
}

async fn empty_space(test_server: &TestServer) -> SpaceFixture {
    test_server.create_space(manual(), &[]).await
}

/// The number of characters in Ann's library, including the two of the sample space.
async fn n_in_library(test_space: &SpaceFixture) -> usize {
    let list = expect(200, test_space.ann.get("/api/characters").await);
    list["data"]
        .as_array()
        .expect("the response has a list")
        .len()
}

#[tokio::test]
async fn a_dropped_card_is_shown_before_it_is_stored_and_greets_by_name() {
    let test_server = TestServer::open().await;
    let test_space = empty_space(&test_server).await;
    let page = test_space.page().await;
    let before = n_in_library(&test_space).await;

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
    assert_eq!(
        n_in_library(&test_space).await,
        before,
        "a card was stored before it was confirmed"
    );
    page.click("dialog [data-act=add_to_space]").await;

    page.gone("dialog").await;
    page.see_text(".member__name", "Mina Vale").await;
    page.see_text(".message", "Mind the step, ann. Mina Vale is up here.")
        .await;
    page.truth(
        "the avatar is shown in the member list and next to the message",
        "['.member', '.message'].every((it) => document.querySelector(`${it} .avatar__image`)?.naturalWidth > 0)",
    )
    .await;
    page.see_text(".swipes", "1/2").await;
}

#[tokio::test]
async fn a_broken_card_is_rejected_with_its_reason_and_nothing_is_stored() {
    let test_server = TestServer::open().await;
    let test_space = empty_space(&test_server).await;
    let page = test_space.page_on(Viewport::Phone).await;
    let before = n_in_library(&test_space).await;
    let plain = {
        let mut bytes = Vec::new();
        let encoder = png::Encoder::new(&mut bytes, 1, 1);
        let mut writer = encoder.write_header().expect("write the header");
        writer.write_image_data(&[0]).expect("write the pixels");
        writer.finish().expect("finish the file");
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
        let errors = page.texts("dialog .outcome--bad").await;
        assert!(errors[0].len() > 20, "{name}: {errors:?}");
        page.click("dialog .form__actions button").await;
        page.gone("dialog").await;
    }

    assert_eq!(n_in_library(&test_space).await, before);
}

#[tokio::test]
async fn an_edited_card_keeps_unknown_fields() {
    let test_server = TestServer::open().await;
    let test_space = empty_space(&test_server).await;
    let made = expect(
        201,
        test_space
            .ann
            .post("/api/characters", json!({"card": card()}))
            .await,
    );
    let membership = json!({"character_id": made["id"]});
    let at = format!("/api/conversations/{}", test_space.conversation);
    let space = expect(200, test_space.ann.get(&at).await)["space_id"].clone();
    let memberships = format!("/api/spaces/{space}/memberships");
    expect(201, test_space.ann.post(&memberships, membership).await);
    let page = test_space.page().await;

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
        test_space
            .ann
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
    let test_space = empty_space(&test_server).await;
    expect(
        201,
        test_space
            .ann
            .post("/api/characters", json!({"card": card()}))
            .await,
    );
    let page = test_space.page().await;
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
        "the field keeps the typed text",
        "document.querySelector('dialog [name=description]').value === 'Half a thought'",
    )
    .await;
}
