//! Files that somebody brings to the page.

use crate::house::House;
use crate::page::Page;
use crate::page::Screen;

/// Drops a file with this name and this text in the middle of the page.
pub async fn drop_text(page: &Page, name: &str, text: &str) {
    let script = format!(
        "const transfer = new DataTransfer();
         transfer.items.add(new File([{text:?}], {name:?}));
         const target = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
         for (const type of ['dragenter', 'dragover', 'drop'])
           target.dispatchEvent(new DragEvent(type, {{ bubbles: true, cancelable: true, dataTransfer: transfer }}));"
    );
    page.run(&script).await;
}

#[tokio::test]
async fn c69_a_file_of_no_kind_that_is_known_is_named_and_nothing_happens() {
    let house = House::open().await;
    let room = house.room(serde_json::json!({}), &["Mina"]).await;
    let page = room.page_on(Screen::Desktop).await;

    drop_text(&page, "shopping <b>list</b>.txt", "milk, bread").await;

    page.see_text(".toast", "“shopping <b>list</b>.txt” is no card")
        .await;
    page.gone(".drop").await;
    page.gone("dialog").await;
}
