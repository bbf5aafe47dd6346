//! Lorebooks: brought by a drop, tried on a sentence, changed in their editor.

use crate::house::House;
use crate::page::Page;
use crate::page::Screen;

const WORLD: &str = r#"{"name": "The coast", "entries": {
    "0": {"uid": 0, "key": ["gull"], "keysecondary": [], "comment": "Gulls", "content": "They steal."},
    "1": {"uid": 1, "key": ["whale"], "keysecondary": [], "comment": "Whales", "content": "They sing."},
    "2": {"uid": 2, "key": ["gull"], "keysecondary": ["bread"], "comment": "Bread", "content": "Gone."}}}"#;

/// Drops a file with this name and this text in the middle of the page.
async fn drop_text(page: &Page, name: &str, text: &str) {
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
async fn c71_trying_a_sentence_says_which_entries_fire_and_why_the_others_do_not() {
    let house = House::open().await;
    let room = house.room(serde_json::json!({}), &["Mina"]).await;
    let page = room.page_on(Screen::Desktop).await;
    drop_text(&page, "coast.json", WORLD).await;
    page.click("dialog button[type=submit]").await;
    page.gone("dialog").await;
    page.click("#panel-tab-lore").await;
    page.see_text("[data-lore=spaces]", "The coast").await;

    page.click("[data-lore=shelf] [data-book-id]").await;
    page.write(".lore-tester textarea", "A GULL on the quay")
        .await;
    page.click(".lore-tester button[type=submit]").await;

    page.see_text(".lore-judged--good", "Gulls").await;
    page.see_text(".lore-judged--good", "Found: gull").await;
    page.see_text(".lore-judged--quiet", "None of its keys is there.")
        .await;
    page.see_text(".lore-judged--quiet", "the other keys do not fit")
        .await;
}
