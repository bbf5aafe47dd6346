//! Tests of lorebooks in the page: import by a drop, testing a text, and their settings.

use thirtyfour::Key;

use crate::page::{Page, Viewport};
use crate::support::http_client::expect;
use crate::test_server::TestServer;

const WORLD: &str = r#"{"name": "The coast", "entries": {
    "0": {"uid": 0, "key": ["gull"], "keysecondary": [], "comment": "Gulls", "content": "They steal."},
    "1": {"uid": 1, "key": ["whale"], "keysecondary": [], "comment": "Whales", "content": "They sing."},
    "2": {"uid": 2, "key": ["gull"], "keysecondary": ["bread"], "comment": "Bread", "content": "Gone."},
    "3": {"uid": 3, "key": ["/(/"], "keysecondary": [], "comment": "Broken", "content": "Never."}}}"#;

#[tokio::test]
async fn testing_a_text_shows_which_entries_activate_and_why_others_do_not() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(serde_json::json!({}), &["Mina"])
        .await;
    let page = test_space.page_on(Viewport::Desktop).await;
    page.drop_file("coast.json", WORLD.as_bytes()).await;
    page.click("dialog button[type=submit]").await;
    page.gone("dialog").await;
    page.click("#panel-tab-lore").await;
    page.see_text("[data-lore=spaces]", "The coast").await;

    page.click("[data-lore=library] [data-book-id]").await;
    page.write(".lore-tester textarea", "A GULL on the quay")
        .await;
    page.click(".lore-tester button[type=submit]").await;

    page.see_text(".lore-judged--good", "Gulls").await;
    let is_there = "document.activeElement.matches('.lore-tester button[type=submit]')";
    page.truth("the button keeps the focus", is_there).await;
    page.see_text(".lore-judged--good", "Keyword found: gull")
        .await;
    page.see_text(".lore-judged--quiet", "No keyword found.")
        .await;
    page.see_text(".lore-judged--quiet", "the Optional Filter does not match")
        .await;
    // The page uses typographic quotes, the server straight ones.
    page.see_text(".lore-outcome", "“Broken” of “The coast” is not activated")
        .await;
}

/// Elements that are wider than the window.
const TOO_WIDE: &str = "[...document.querySelectorAll('.lorebook-settings *')]
    .filter((it) => it.getBoundingClientRect().right > innerWidth + 1)
    .map((it) => it.className || it.tagName)";

/// Elements that are too small for a finger; a label counts as part of its checkbox.
const TOO_SMALL: &str = "[...document.querySelectorAll('.lorebook-settings :is(.check, input:not([type=checkbox]), select, summary, button)')]
    .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44)
    .map((it) => it.outerHTML.slice(0, 120))";

/// Stores a screenshot if `TROUPE_PICTURES` names a folder.
async fn keep_picture(page: &Page, name: &str) {
    if let Ok(folder) = std::env::var("TROUPE_PICTURES") {
        let file = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(file, page.picture().await).expect("write the screenshot");
    }
}

#[tokio::test]
async fn world_info_settings_can_be_changed_by_keyboard_only() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(serde_json::json!({}), &["Mina"])
        .await;
    let space = format!("/api/spaces/{}", test_space.memberships[0]["space_id"]);
    let known = serde_json::json!({"settings": {"scenario_override": "Rain.", "world_info": {"made_up": 1, "max_steps": 2}}});
    expect(200, test_space.ann.patch(&space, known).await);
    let page = test_space.page_on(Viewport::Desktop).await;
    page.click("#panel-tab-lore").await;
    page.see(".lorebook-settings").await;
    page.run("document.querySelector('.lorebook-settings__summary').focus()")
        .await;

    page.press(Key::Enter).await;
    page.see("[name='lorebook_settings.scan_depth']").await;
    page.press(Key::Tab).await;
    page.press(Key::Control + "a").await;
    page.press("7").await;
    for _ in 0..2 {
        page.press(Key::Tab).await;
    }
    page.press(" ").await;
    keep_picture(&page, "world-desktop").await;
    page.press(Key::Enter).await;

    page.see_text(".toast", "Saved").await;
    let settings = expect(200, test_space.ann.get(&space).await)["settings"].clone();
    assert_eq!(
        settings,
        serde_json::json!({"scenario_override": "Rain.", "world_info": {"made_up": 1, "max_steps": 2, "scan_depth": 7, "recursive": true}})
    );
    page.truth(
        "the section stays open",
        "document.querySelector('.lorebook-settings').open",
    )
    .await;
    page.rewrite("[name='lorebook_settings.scan_depth']", "5000")
        .await;
    page.press(Key::Enter).await;
    page.see_text(".lorebook-settings .field__error", "1000")
        .await;
    page.truth(
        "the invalid field has the focus",
        "document.activeElement.name === 'lorebook_settings.scan_depth'",
    )
    .await;
    // Changes by other users are shown immediately.
    let theirs = serde_json::json!({"settings": {"world_info": {"scan_depth": 9}}});
    expect(200, test_space.ann.patch(&space, theirs).await);
    page.truth(
        "the settings of the other user are shown",
        "document.querySelector('[name=\"lorebook_settings.scan_depth\"]').value === '9'",
    )
    .await;
}

#[tokio::test]
async fn world_info_settings_fit_on_a_phone_and_in_chinese() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(serde_json::json!({}), &["Mina"])
        .await;
    for (locale, title) in [("en", "World Info settings"), ("zh-CN", "世界书设置")] {
        let me = serde_json::json!({"locale": locale});
        expect(200, test_space.ann.patch("/api/users/me", me).await);
        let page = test_space.page_on(Viewport::Phone).await;
        page.click("[data-id=panel]").await;
        page.click("#panel-tab-lore").await;
        page.click_text(".lorebook-settings__summary", title).await;
        page.click(".lorebook-settings details > summary").await;
        page.run("document.querySelector('.lorebook-settings').scrollIntoView()")
            .await;

        page.see("[name='lorebook_settings.min_activations']").await;
        assert_eq!(page.value(TOO_WIDE).await, serde_json::json!([]));
        assert_eq!(page.value(TOO_SMALL).await, serde_json::json!([]));
        keep_picture(&page, &format!("world-phone-{locale}")).await;
    }
}

#[tokio::test]
async fn saving_or_closing_keeps_the_focus() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(serde_json::json!({}), &["Mina"])
        .await;
    let lorebook = serde_json::json!({"name": "The coast"});
    expect(201, test_space.ann.post("/api/lorebooks", lorebook).await);
    let page = test_space.page_on(Viewport::Desktop).await;
    page.click("#panel-tab-lore").await;

    page.write("#panel textarea", "It rains.").await;
    page.press(Key::Tab).await;
    page.press(Key::Tab).await;
    page.press(Key::Enter).await;
    page.see_text(".toast", "Saved").await;
    let at_save = "document.activeElement.matches('#panel form:first-of-type [type=submit]')";
    page.truth("the save button has the focus", at_save).await;

    page.click("[data-lore=library] [data-book-id]").await;
    page.see("dialog .lore-book").await;
    page.press(Key::Escape).await;
    page.gone("dialog").await;
    let at_book = "document.activeElement.matches('[data-lore=library] [data-book-id]')";
    page.truth("the lorebook that was open has the focus", at_book)
        .await;
}
