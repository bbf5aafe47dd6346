//! Lorebooks: brought by a drop, tried on a sentence, changed in their editor.

use crate::house::House;
use crate::page::Screen;

const WORLD: &str = r#"{"name": "The coast", "entries": {
    "0": {"uid": 0, "key": ["gull"], "keysecondary": [], "comment": "Gulls", "content": "They steal."},
    "1": {"uid": 1, "key": ["whale"], "keysecondary": [], "comment": "Whales", "content": "They sing."},
    "2": {"uid": 2, "key": ["gull"], "keysecondary": ["bread"], "comment": "Bread", "content": "Gone."}}}"#;

#[tokio::test]
async fn c71_trying_a_sentence_says_which_entries_fire_and_why_the_others_do_not() {
    let house = House::open().await;
    let room = house.room(serde_json::json!({}), &["Mina"]).await;
    let page = room.page_on(Screen::Desktop).await;
    page.drop_file("coast.json", WORLD.as_bytes()).await;
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
