//! Tests of pictures in messages: button, drop and paste, descriptions, failures, and the large view.

use serde_json::{Value, json};

use crate::page::{FIELD, Viewport};
use crate::support::http_client::expect;
use crate::support::pictures::png;
use crate::test_server::{TestServer, manual};

const READY: &str = ".composer__picture[data-state=ready]";

#[tokio::test]
async fn a_pasted_picture_is_described_sent_and_seen_by_others() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let other = test_space.page_on(Viewport::Phone).await;

    page.paste_file("cat.png", "image/png", &png(1_600, 800, 1))
        .await;
    page.see(READY).await;
    page.see_text(".composer__pictures-notice", "gets the description")
        .await;
    page.write(".composer__picture-alt", "A grey cat").await;
    page.send_message("Look at this").await;

    page.gone(".composer__picture").await;
    for page in [&page, &other] {
        page.see("img.message__picture-image[alt='A grey cat']")
            .await;
    }
    // Its space is reserved before it is loaded.
    let size = "[...document.querySelectorAll('.message__picture-image')].map((it) => [it.width, it.height, it.clientWidth])";
    assert_eq!(page.value(size).await, json!([[320, 160, 320]]));
    other
        .truth(
            "the page does not scroll sideways",
            "document.documentElement.scrollWidth <= innerWidth",
        )
        .await;
    page.click(".message__picture").await;
    page.see_text("dialog .picture-view__caption", "A grey cat")
        .await;
    page.truth(
        "the picture is shown in full size",
        "document.querySelector('.picture-view__image').naturalWidth === 1600",
    )
    .await;
}

#[tokio::test]
async fn a_message_of_pictures_alone_is_sent_and_quoted() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.see(FIELD).await;

    for seed in 0..5 {
        let name = format!("{seed}.png");
        page.paste_file(&name, "image/png", &png(40, 30, seed))
            .await;
    }
    page.see_text(".toast", "at most 4 pictures").await;
    page.truth(
        "four pictures are ready",
        &format!("document.querySelectorAll('{READY}').length === 4"),
    )
    .await;
    page.click(".composer__picture [aria-label='Remove 0.png']")
        .await;
    page.click(".composer__send").await;

    page.truth(
        "three pictures are shown",
        "document.querySelectorAll('.message[data-state=final] .message__picture').length === 3",
    )
    .await;
    page.click(".message").await;
    page.click(".message__tools [aria-label=Reply]").await;
    page.see_text(".composer__quote", "[Picture: 1.png, 40×30]")
        .await;
    page.click(".message__picture").await;
    page.click("dialog [aria-label='Next picture']").await;
    page.see("dialog .picture-view__image").await;
}

#[tokio::test]
async fn a_refused_picture_says_why_and_a_failed_one_can_be_sent_again() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.see(FIELD).await;

    page.paste_file("fake.png", "image/png", b"not a picture")
        .await;
    page.see_text(
        ".composer__picture-problem",
        "is not a PNG, JPEG, WebP or GIF",
    )
    .await;
    assert_eq!(
        page.value("document.querySelector('.composer__send').disabled")
            .await,
        json!(true)
    );
    page.click("[aria-label='Remove fake.png']").await;
    let large = vec![0; 10 * 1024 * 1024 + 1];
    page.run(&format!(
        "const file = new File([new Uint8Array({})], 'large.jpg', {{ type: 'image/jpeg' }})
         const transfer = new DataTransfer()
         transfer.items.add(file)
         document.querySelector('.composer__field').dispatchEvent(
           new ClipboardEvent('paste', {{ bubbles: true, cancelable: true, clipboardData: transfer }}))",
        large.len()
    ))
    .await;
    page.see_text(".composer__picture-problem", "larger than 10 MiB")
        .await;
    page.click("[aria-label='Remove large.jpg']").await;

    page.offline(true).await;
    page.paste_file("cat.png", "image/png", &png(64, 48, 1))
        .await;
    page.see(".composer__picture[data-state=failed]").await;
    page.offline(false).await;
    page.click(".composer__picture-retry").await;
    page.see(READY).await;
    // The field has the width of the screen, above its buttons.
    page.truth(
        "the field is wide",
        "document.querySelector('.composer__field').clientWidth > 300",
    )
    .await;
    page.click(".composer__send").await;
    page.see(".message[data-state=final] .message__picture")
        .await;
}

#[tokio::test]
async fn a_dropped_card_is_offered_as_import_and_as_picture() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let made = test_space
        .ann
        .post(
            "/api/characters",
            json!({"card": {"data": {"name": "Ada", "description": "A painter."}}}),
        )
        .await;
    let ada: Value = expect(201, made);
    let path = format!("/api/characters/{}/export?format=png", ada["id"]);
    let card = crate::support::file_uploads::fetch(&test_space.ann, &path).await;

    page.paste_file("ada.png", "image/png", &card).await;
    page.see_text("dialog", "Ada").await;
    page.click_text("dialog button", "Add as a picture").await;

    page.see(READY).await;
    page.gone("dialog").await;
    page.send_message("Her portrait").await;
    page.see(".message[data-state=final] .message__picture")
        .await;
}
