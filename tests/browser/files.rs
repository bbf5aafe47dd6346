//! Tests of files that a user uploads in the page.

use crate::page::Viewport;
use crate::test_server::TestServer;

#[tokio::test]
async fn a_file_of_unknown_type_is_rejected_by_name() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(serde_json::json!({}), &["Mina"])
        .await;
    let page = test_space.page_on(Viewport::Desktop).await;

    page.drop_file("shopping <b>list</b>.txt", b"milk, bread")
        .await;

    page.see_text(
        ".toast",
        "“shopping <b>list</b>.txt” is not a character card",
    )
    .await;
    page.gone(".drop").await;
    page.gone("dialog").await;
}
