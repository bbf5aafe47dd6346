//! Tests of devices and accessibility: a phone, keyboard only, a screen reader, preferences of the
//! system.

use serde_json::json;
use thirtyfour::{Key, TypingData};

use crate::page::{FIELD, Page, Viewport};
use crate::support::http_client::{HttpClient, expect};
use crate::test_server::{TestServer, list, manual};

#[tokio::test]
async fn a_phone_shows_all_without_scrolling_sideways() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina", "Rook"]).await;
    test_space
        .post("A message that is long enough to need more than one line on a small screen.")
        .await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.see(".message").await;

    assert_eq!(
        page.value("document.documentElement.scrollWidth").await,
        json!(390)
    );
    assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
    page.click("[aria-label='Open the list of conversations']")
        .await;
    page.see_text("#sidebar", "Harbor Lights").await;
    assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
    page.press(Key::Escape).await;
    page.gone("#sidebar").await;
    page.click("[aria-label='Cast, prompt and settings']").await;
    page.see_text("#panel", "Mina").await;
    assert_eq!(
        page.value("document.documentElement.scrollWidth").await,
        json!(390)
    );
    page.press(Key::Escape).await;
    page.gone("#panel").await;

    page.resize(390, 450, true).await;
    page.truth(
        "the composer is above the keyboard",
        &format!("innerHeight === 450 && document.querySelector('{FIELD}').getBoundingClientRect().bottom <= 450"),
    )
    .await;
}

#[tokio::test]
async fn touch_targets_stay_large_in_a_language_with_short_words() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let preset = json!({"name": "Sea"});
    expect(201, test_space.ann.post("/api/presets", preset).await);
    let body = json!({"locale": "zh-CN"});
    expect(200, test_space.ann.patch("/api/users/me", body).await);
    let page = test_space.page_on(Viewport::Phone).await;

    page.click("[aria-controls=panel]").await;
    for tab in ["cast", "lore", "runs"] {
        page.click(&format!("#panel-tab-{tab}")).await;
        page.see(&format!("#panel-tab-{tab}[aria-selected=true]"))
            .await;
        assert_eq!(page.value(SMALL_TARGETS).await, json!([]), "{tab}");
    }
    page.go("/settings/presets").await;
    page.see_text(".list__item", "Sea").await;
    assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
}

#[tokio::test]
async fn every_menu_in_the_list_names_its_item() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.see_text("#sidebar .space__name", "Harbor Lights")
        .await;

    let names = "[...document.querySelectorAll('#sidebar .space [aria-haspopup]')].map((it) => it.ariaLabel)";
    let names = page.value(names).await.to_string();

    assert!(names.contains("Space menu: Harbor Lights"), "{names}");
    assert!(names.contains("Conversation menu: Main"), "{names}");
}

/// Touch targets that are too small; 0.5 px tolerance for sliding ones.
pub const SMALL_TARGETS: &str =
    "[...document.querySelectorAll('button, a[href], input, select, textarea, summary')]
    .filter((it) => it.checkVisibility({ visibilityProperty: true }))
    .filter((it) => it.getBoundingClientRect().height < 43.5 || it.getBoundingClientRect().width < 43.5)
    .map((it) => it.outerHTML.slice(0, 120))";

/// Presses Tab until the element with this name has the focus.
async fn tab_to(page: &Page, name: &str) {
    walk_to(page, name, || Key::Tab.into()).await;
}

/// The same with Shift+Tab.
async fn back_to(page: &Page, name: &str) {
    walk_to(page, name, || Key::Shift + Key::Tab).await;
}

/// Fails if that takes too many steps or the focus is not visible on one of them.
async fn walk_to(page: &Page, name: &str, step: impl Fn() -> TypingData) {
    for _ in 0..40 {
        if page.focus().await.contains(name) {
            assert_eq!(page.value(FOCUS_IS_SEEN).await, json!(true), "on {name}");
            return;
        }
        page.press(step()).await;
    }
    panic!("{name} cannot be reached by Tab");
}

/// The focus of the composer is shown by the box around it.
const FOCUS_IS_SEEN: &str = "getComputedStyle(document.activeElement).outlineStyle !== 'none' || document.activeElement.matches('.composer__field')";

#[tokio::test]
async fn a_whole_session_works_with_the_keyboard_only() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server
        .upstream
        .reply_with("Once upon a time there was a harbor.");
    let gate = test_server.upstream.gate();
    let page = Page::open(&test_server.server.url(), Viewport::Desktop).await;
    page.go(&test_space.path()).await;

    page.see("[name=username]").await;
    page.press("ann").await;
    page.press(Key::Tab).await;
    page.press("correct horse battery").await;
    page.press(Key::Enter).await;
    page.truth(
        "the composer is enabled and has the focus",
        &format!("document.activeElement.matches('{FIELD}')"),
    )
    .await;
    page.press("Tell me a story").await;
    page.press(Key::Enter).await;
    gate.step();
    page.see(".message[data-state=streaming]").await;
    tab_to(&page, "Stop").await;
    page.press(Key::Enter).await;
    page.see_text(".message__note", "Stopped").await;

    page.truth(
        "the focus is restored",
        &format!("document.activeElement.matches('{FIELD}')"),
    )
    .await;
    back_to(&page, "Mina, ").await;
    page.see(".message__tools").await;
    tab_to(&page, "Edit").await;
    page.press(Key::Enter).await;
    page.press(" And a lighthouse.").await;
    page.press(Key::Enter).await;
    page.see_text(".message", "And a lighthouse.").await;
    tab_to(&page, "open").await;
    page.press(Key::Enter).await;
    page.see(".member__details").await;
    tab_to(&page, "mute").await;
    page.press(Key::Enter).await;
    page.see_text(".member--muted", "Muted").await;
}

#[tokio::test]
async fn escape_closes_the_top_layer_and_restores_the_focus() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;

    page.click("#sidebar [aria-label='New space']").await;
    page.see("dialog").await;
    page.press(Key::Escape).await;
    page.gone("dialog").await;
    assert_eq!(page.focus().await, "New space");
    page.click(".main__head [aria-label='Conversation menu']")
        .await;
    page.see("[role=menu]").await;
    page.press(Key::Escape).await;
    page.gone("[role=menu]").await;

    assert_eq!(page.focus().await, "Conversation menu");
}

#[tokio::test]
async fn a_finished_message_is_announced_once_and_a_streaming_one_never() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with("One two three four five.");
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    page.run(
        "window.read = []
        new MutationObserver((changes) => {
            for (const { addedNodes } of changes) for (const node of addedNodes) window.read.push(node.textContent)
        }).observe(document.getElementById('announcer'), { childList: true })",
    )
    .await;

    page.send_message("Count").await;
    gate.step();
    page.see(".message[data-state=streaming]").await;
    let while_growing = page.value("window.read").await;
    gate.open();
    page.answered_by("Mina").await;

    assert_eq!(while_growing, json!([]));
    page.truth("the message is announced", "window.read.length > 0")
        .await;
    assert_eq!(
        page.value("window.read").await,
        json!(["Mina: One two three four five."])
    );
    let log = "document.querySelector('[role=log]').contains(document.querySelector('.message')) && document.querySelector('[role=log]').getAttribute('aria-live') === 'off' && document.getElementById('announcer').getAttribute('aria-live') === 'polite'";
    assert_eq!(page.value(log).await, json!(true));
}

#[tokio::test]
async fn a_failure_is_announced_at_once() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server
        .upstream
        .next(crate::support::fake_provider::script::ResponseScript::status(400));
    let page = test_space.page().await;

    page.send_message("Hello").await;

    page.see("[data-card=failed]").await;
    page.truth(
        "the alert region has a text",
        "document.querySelector('#alarm[role=alert]').textContent.length > 0",
    )
    .await;
}

#[tokio::test]
async fn system_preferences_are_honored() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with("One two three four five.");
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    let background = "getComputedStyle(document.body).backgroundColor";
    let light = page.value(background).await;

    let preferences = json!({"features": [
        {"name": "prefers-reduced-motion", "value": "reduce"},
        {"name": "prefers-color-scheme", "value": "dark"}]});
    page.cdp("Emulation.setEmulatedMedia", preferences).await;
    page.send_message("Hello").await;
    gate.step();
    page.see(".message[data-state=streaming]").await;
    let moving = "document.getAnimations().length";

    page.truth("the page is dark", &format!("{background} !== {light}"))
        .await;
    assert_eq!(page.value(moving).await, json!(0));
    gate.open();
    page.answered_by("Mina").await;
}

#[tokio::test]
async fn the_page_contacts_only_its_own_server() {
    let test_server = TestServer::demo().await;
    let person = HttpClient::set_up(&test_server.server.url(), "ann").await;
    let page = test_server.visitor().await;
    page.set_cookie(person.cookie()).await;

    page.go("/").await;
    page.see(".message").await;

    let strangers = "performance.getEntriesByType('resource').map((it) => it.name).filter((it) => !it.startsWith(location.origin))";
    assert_eq!(page.value(strangers).await, json!([]));
}
