//! Tests of streaming: text grows, and interruptions leave no gap for any reader at any time.

use serde_json::json;

use crate::page::Page;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::test_server::{TestServer, list, manual};

const TEXT: &str = "Well now, that is a question one does not hear every evening.";
const STREAMING: &str = ".message[data-state=streaming]";

/// Waits until the streamed text is longer than `n` characters, and returns it.
async fn grown_past(page: &Page, n: usize) -> String {
    let body = format!("document.querySelector('{STREAMING} .message__body')?.innerText");
    page.truth(
        "more text is shown",
        &format!("({body} ?? '').length > {n}"),
    )
    .await;
    let text = page.value(&body).await;
    text.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn text_grows_and_earlier_messages_keep_their_distance() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with(TEXT);
    let page = test_space.page().await;
    page.send_message("First").await;
    page.answered_by("Mina").await;
    let gate = test_server.upstream.gate();
    let distance = "document.querySelectorAll('.message')[1].getBoundingClientRect().top - document.querySelectorAll('.message')[0].getBoundingClientRect().top";
    let before = page.value(distance).await;

    page.send_message("Second").await;
    let mut shown = String::new();
    for _ in 0..3 {
        gate.step();
        let text = grown_past(&page, shown.len()).await;
        assert!(
            text.starts_with(shown.trim_end()),
            "{text:?} does not begin with {shown:?}"
        );
        shown = text;
        assert_eq!(page.value(distance).await, before);
    }
    gate.open();

    assert_eq!(page.answered_by("Mina").await, TEXT);
}

#[tokio::test]
async fn the_streamed_text_becomes_the_message_in_the_same_dom_node() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with(TEXT);
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;

    page.send_message("Hello").await;
    gate.step();
    grown_past(&page, 0).await;
    page.run(&format!(
        "window.node = document.querySelector('{STREAMING}')"
    ))
    .await;
    gate.open();
    page.answered_by("Mina").await;

    let is_same = "window.node.isConnected && window.node.dataset.state === 'final'";
    assert_eq!(page.value(is_same).await, json!(true));
}

#[tokio::test]
async fn a_reload_during_a_stream_shows_the_text_so_far() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with(TEXT);
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    page.send_message("Hello").await;
    gate.step();
    gate.step();
    let before = grown_past(&page, 5).await;

    page.reload().await;
    let after = grown_past(&page, 0).await;
    gate.open();

    assert!(
        after.starts_with(before.trim_end()),
        "{after:?} does not contain all of {before:?}"
    );
    assert_eq!(page.answered_by("Mina").await, TEXT);
    assert_eq!(test_space.texts().await, ["Hello", TEXT]);
}

#[tokio::test]
async fn a_reply_finishes_without_a_viewer() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with(TEXT);
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    page.send_message("Hello").await;
    gate.step();
    grown_past(&page, 0).await;

    drop(page);
    gate.open();
    test_server.upstream.finished(0).await;
    let page = test_space.page().await;

    assert_eq!(page.answered_by("Mina").await, TEXT);
}

#[tokio::test]
async fn a_lost_connection_leaves_no_gap_and_no_duplicate() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with(TEXT);
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    page.send_message("Hello").await;
    gate.step();
    grown_past(&page, 0).await;

    page.offline(true).await;
    page.see_text(".banner", "Reconnecting").await;
    gate.step();
    gate.step();
    test_server.upstream.wait_for_texts(0, 3).await;
    page.offline(false).await;
    page.gone(".banner").await;
    gate.open();

    assert_eq!(page.answered_by("Mina").await, TEXT);
    assert_eq!(page.n(".message").await, 2);
    assert_eq!(test_space.texts().await, ["Hello", TEXT]);
}

#[tokio::test]
async fn stop_keeps_the_text_so_far_and_others_see_it() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.reply_with(TEXT);
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;
    let other = test_space.page().await;
    page.send_message("Hello").await;
    gate.step();
    let shown = grown_past(&page, 0).await;

    page.click("[aria-label=Stop]").await;

    page.see_text(".message__note", "Stopped").await;
    other.see_text(".message__note", "Stopped").await;
    let kept = other.answered_by("Mina").await;
    assert!(
        kept.starts_with(shown.trim_end()),
        "{kept:?} does not contain all of {shown:?}"
    );
    page.gone("[aria-label=Stop]").await;
    test_server.upstream.wait_for_disconnect(0).await;
}

#[tokio::test]
async fn a_failed_reply_is_a_card_and_posting_still_works() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.next(ResponseScript::status(400));
    let page = test_space.page().await;

    page.send_message("Hello").await;
    page.see_text("[data-card=failed]", "Mina could not reply")
        .await;
    page.see_text("[data-card=failed] button", "Change model")
        .await;
    page.click_text("[data-card=failed] button", "Retry").await;

    assert_eq!(page.answered_by("Mina").await, "Hello.");
    page.gone("[data-card=failed]").await;
    page.send_message("And on we go").await;
    page.answered_by("Mina").await;
    assert_eq!(
        test_space.texts().await,
        ["Hello", "Hello.", "And on we go", "Hello."]
    );
}

#[tokio::test]
async fn the_failure_card_is_shown_to_later_visitors() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.next(ResponseScript::status(400));
    let page = test_space.page().await;
    page.send_message("Hello").await;
    page.see("[data-card=failed]").await;

    page.reload().await;

    page.see_text("[data-card=failed]", "Mina could not reply")
        .await;
}

#[tokio::test]
async fn a_failed_generate_in_manual_order_is_shown_after_a_reload_and_can_be_retried() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    test_server.upstream.next(ResponseScript::status(400));
    expect(
        202,
        test_space.ann.generate(test_space.conversation, None).await,
    );
    page.see_text("[data-card=failed]", "Mina could not reply")
        .await;

    page.reload().await;

    page.see_text("[data-card=failed]", "Mina could not reply")
        .await;
    page.click_text("[data-card=failed] button", "Retry").await;
    assert_eq!(page.answered_by("Mina").await, "Hello.");
    page.gone("[data-card=failed]").await;
}

#[tokio::test]
async fn after_a_crash_during_a_reply_nothing_is_generating() {
    let mut test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.next(
        ResponseScript::stream()
            .role()
            .words("Once upon a time ")
            .hang(),
    );
    let page = test_space.page().await;
    page.send_message("Hello").await;
    grown_past(&page, 0).await;

    test_server.server.kill9();
    page.see_text(".banner", "Reconnecting").await;
    test_server.server.restart().await;

    assert_eq!(page.answered_by("Mina").await, "Hello.");
    page.gone(STREAMING).await;
    page.gone("[aria-label=Stop]").await;
}
