//! Tests of what the page loads: few and small files on a first visit, almost none on the next, and
//! parts that are not on the first screen only when they are opened.

use serde_json::json;

use crate::page_load::{create_conversation, slow_phone, visit};
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn a_first_visit_loads_little_and_the_next_one_almost_nothing() {
    let test_server = TestServer::open().await;
    let fixture = create_conversation(&test_server).await;
    let page = slow_phone(&fixture).await;

    let cold = visit(&page, &fixture).await;
    let warm = visit(&page, &fixture).await;

    assert!(cold.requests <= 15, "{cold:#?}");
    assert!(cold.bytes <= 200_000, "{cold:#?}");
    assert!(cold.shifts < 0.1, "{cold:#?}");
    assert!(!cold.thumbnails.is_empty(), "{cold:#?}");
    assert!(cold.thumbnails.iter().all(|it| *it <= 15_000), "{cold:#?}");
    assert!(warm.files <= 3, "{warm:#?}");
    assert!(warm.shifts < 0.1, "{warm:#?}");
}

#[tokio::test]
async fn a_part_that_cannot_be_loaded_offers_to_reload_the_page() {
    let test_server = TestServer::open().await;
    let fixture = test_server.create_space(manual(), &["Mina"]).await;
    let page = fixture.page().await;
    let files = json!({"urls": ["*search_dialog*"]});
    page.cdp("Network.enable", json!({})).await;
    page.cdp("Network.setBlockedURLs", files).await;

    page.click(".sidebar__head [aria-label^=Search]").await;

    page.see_text(".toast", "could not be loaded").await;
    let files = json!({"urls": []});
    page.cdp("Network.setBlockedURLs", files).await;
    page.click_text(".toast__action", "Reload").await;
    page.see(".composer__field").await;
    page.click(".sidebar__head [aria-label^=Search]").await;
    page.see("dialog").await;
}
