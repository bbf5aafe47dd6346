//! Lorebooks: brought by a drop, tried on a sentence, changed in their editor.

use crate::house::House;
use crate::page::Screen;
use crate::support::person::expect;
use thirtyfour::Key;

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
    let is_there = "document.activeElement.matches('.lore-tester button[type=submit]')";
    page.truth("the button keeps the focus", is_there).await;
    page.see_text(".lore-judged--good", "Found: gull").await;
    page.see_text(".lore-judged--quiet", "None of its keys is there.")
        .await;
    page.see_text(".lore-judged--quiet", "the other keys do not fit")
        .await;
}

#[tokio::test]
async fn c78_what_was_saved_or_closed_leaves_the_focus_where_it_was() {
    let house = House::open().await;
    let room = house.room(serde_json::json!({}), &["Mina"]).await;
    let book = serde_json::json!({"name": "The coast"});
    expect(201, room.ann.post("/api/lorebooks", book).await);
    let page = room.page_on(Screen::Desktop).await;
    page.click("#panel-tab-lore").await;

    page.write("#panel textarea", "It rains.").await;
    page.press(Key::Tab).await;
    page.press(Key::Tab).await;
    page.press(Key::Enter).await;
    page.see_text(".toast", "Saved").await;
    let at_save = "document.activeElement.matches('#panel form:first-of-type [type=submit]')";
    page.truth("one is at the button that saved", at_save).await;

    page.click("[data-lore=shelf] [data-book-id]").await;
    page.see("dialog .lore-book").await;
    page.press(Key::Escape).await;
    page.gone("dialog").await;
    let at_book = "document.activeElement.matches('[data-lore=shelf] [data-book-id]')";
    page.truth("one is at the book that was open", at_book)
        .await;
}
