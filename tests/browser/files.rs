//! Files that somebody brings to the page.

use crate::house::House;
use crate::page::Screen;

#[tokio::test]
async fn c69_a_file_of_no_kind_that_is_known_is_named_and_nothing_happens() {
    let house = House::open().await;
    let room = house.room(serde_json::json!({}), &["Mina"]).await;
    let page = room.page_on(Screen::Desktop).await;

    page.drop_file("shopping <b>list</b>.txt", b"milk, bread")
        .await;

    page.see_text(".toast", "“shopping <b>list</b>.txt” is no card")
        .await;
    page.gone(".drop").await;
    page.gone("dialog").await;
}
