//! Tests of the API reference page.

use serde_json::json;
use thirtyfour::Key;

use crate::device::SMALL_TARGETS;
use crate::test_server::TestServer;

/// The width of the page, including what is scrolled out of view.
const WIDTH: &str =
    "Math.max(document.documentElement.scrollWidth, document.getElementById('docs').scrollWidth)";

#[tokio::test]
async fn the_api_reference_can_be_searched_and_read_by_keyboard() {
    let test_server = TestServer::open().await;
    let page = test_server.visitor().await;
    page.go("/docs").await;
    page.see(".operation").await;
    let all = page.n(".operation").await;
    assert!(all > 60, "{all}");

    page.press("/").await;
    page.press("post message scheduler").await;
    page.see_text(".docs__count", "1 operation").await;
    assert_eq!(page.n(".operation").await, 1);
    page.press(Key::Escape).await;
    let everything = format!("document.querySelectorAll('.operation').length === {all}");
    page.truth("all operations are shown", &everything).await;

    page.run("location.hash = 'messages_create'").await;
    page.see("#messages_create[open] .operation__body").await;
    page.see_text("#messages_create .operation__curl", "curl -X POST")
        .await;
    page.see_text("#messages_create .schema__fields", "conversation_id")
        .await;
    let focus = "document.activeElement.matches('#messages_create > summary')";
    page.truth("the line of the operation has the focus", focus)
        .await;
    page.press(Key::Enter).await;
    page.gone("#messages_create[open]").await;
}

#[tokio::test]
async fn the_api_reference_fits_a_phone_and_has_the_language_of_the_device() {
    let test_server = TestServer::open().await;
    let page = test_server.visitor().await;
    page.resize(390, 844, true).await;
    page.go("/docs").await;
    page.see(".operation").await;
    page.run("localStorage.setItem('troupe.language', 'zh-CN')")
        .await;
    page.reload().await;
    page.see_text(".docs__count", "个操作").await;

    page.go("/docs#spaces_change").await;
    page.see("#spaces_change[open] .schema__fields").await;
    for _ in 0..2 {
        page.run("document.querySelectorAll('#spaces_change .schema__more').forEach((it) => it.open = true)")
            .await;
        page.see("#spaces_change .schema__more[open] .schema__inside")
            .await;
    }

    assert_eq!(page.value(WIDTH).await, json!(390));
    assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
}
