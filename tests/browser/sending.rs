//! Tests of sending in the page: keys, the pending message, failures, drafts.

use serde_json::json;
use thirtyfour::Key;

use crate::page::{FIELD, Viewport};
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn enter_sends_and_shift_enter_begins_a_line() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;

    page.write(FIELD, "one").await;
    page.write(FIELD, Key::Shift + Key::Enter).await;
    page.write(FIELD, "two").await;
    page.write(FIELD, Key::Enter).await;

    page.see_text(".message[data-state=final]", "two").await;
    assert_eq!(test_space.texts().await, ["one\ntwo"]);
}

#[tokio::test]
async fn enter_that_ends_a_composition_sends_nothing() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.write(FIELD, "ni hao").await;

    let was_taken = page
        .value(&format!(
            "!document.querySelector('{FIELD}').dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter', isComposing: true, bubbles: true, cancelable: true }}))"
        ))
        .await;

    assert_eq!(was_taken, json!(false));
    assert_eq!(page.n(".message").await, 0);
    assert_eq!(
        page.value(&format!("document.querySelector('{FIELD}').value"))
            .await,
        json!("ni hao")
    );
}

#[tokio::test]
async fn on_a_phone_enter_begins_a_line() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page_on(Viewport::Phone).await;

    page.write(FIELD, "one").await;
    page.write(FIELD, Key::Enter).await;
    page.write(FIELD, "two").await;
    page.click("[aria-label=Send]").await;

    page.see_text(".message[data-state=final]", "two").await;
    assert_eq!(test_space.texts().await, ["one\ntwo"]);
}

#[tokio::test]
async fn a_message_is_shown_at_once_and_becomes_final_in_the_same_dom_node() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.run(WATCH_FOR_PENDING).await;

    page.send_message("Hello there").await;
    page.see_text(".message[data-state=final]", "Hello there")
        .await;

    assert_eq!(page.value("window.isAtOnce").await, json!(true));
    let is_same = "window.pendingNode.isConnected && window.pendingNode.dataset.state === 'final'";
    assert_eq!(page.value(is_same).await, json!(true));
    assert_eq!(page.n(".message").await, 1);
}

/// Records the first pending node, and whether it was added in the task of the key press, that is
/// before the next frame and independent of the server.
const WATCH_FOR_PENDING: &str = "
    let isInTask = false
    addEventListener('keydown', (event) => {
        if (event.key !== 'Enter') return
        isInTask = true
        setTimeout(() => { isInTask = false })
    }, true)
    new MutationObserver(() => {
        const node = document.querySelector('[data-state=pending]')
        if (!node || window.pendingNode) return
        window.pendingNode = node
        window.isAtOnce = isInTask
    }).observe(document.body, { subtree: true, childList: true, attributes: true })
";

#[tokio::test]
async fn a_failed_message_is_sent_again_without_a_duplicate() {
    let mut test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;

    test_server.server.kill9();
    page.send_message("Is anybody there?").await;
    page.see_text(".message[data-state=failed]", "Not sent")
        .await;
    page.see_text(".message[data-state=failed] button", "Discard")
        .await;
    test_server.server.restart().await;
    page.click_text(".message[data-state=failed] button", "Retry")
        .await;

    page.see_text(".message[data-state=final]", "Is anybody there?")
        .await;
    assert_eq!(test_space.texts().await, ["Is anybody there?"]);
    assert_eq!(page.n(".message").await, 1);
}

#[tokio::test]
async fn a_failed_message_can_be_discarded() {
    let mut test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;

    test_server.server.kill9();
    page.send_message("Never mind").await;
    page.click_text(".message[data-state=failed] button", "Discard")
        .await;

    page.gone(".message").await;
}

#[tokio::test]
async fn a_draft_survives_a_reload_and_ends_with_sending() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    let field = format!("document.querySelector('{FIELD}')?.value");

    page.write(FIELD, "half a thought").await;
    page.reload().await;
    page.truth(
        "the draft is kept",
        &format!("{field} === 'half a thought'"),
    )
    .await;
    page.write(FIELD, Key::Enter).await;
    page.see_text(".message[data-state=final]", "half a thought")
        .await;
    page.reload().await;

    page.see_text(".message[data-state=final]", "half a thought")
        .await;
    assert_eq!(page.value(&field).await, json!(""));
}
