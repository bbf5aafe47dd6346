//! Tests of who speaks, in the page: the reply orders, the queue bar, muting.

use serde_json::json;
use thirtyfour::Key;

use crate::support::fake_provider::script::ResponseScript;
use crate::test_server::{TestServer, list, manual};

#[tokio::test]
async fn in_manual_order_no_speaker_answers_unless_asked() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina", "Rook"]).await;
    let page = test_space.page().await;

    page.send_message("Hello").await;
    page.see_text(".message[data-state=final]", "Hello").await;
    page.see_text(".queue", "No reply is queued").await;
    let n_runs = test_space.ann.runs(test_space.conversation).await.len();
    page.click(".queue [aria-label='Trigger Rook']").await;

    assert_eq!(n_runs, 0);
    page.answered_by("Rook").await;
    page.click(".queue [aria-label='Trigger any character']")
        .await;
    page.answered_by("Mina").await;
}

#[tokio::test]
async fn in_list_order_speakers_answer_in_turn() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list(), &["Mina", "Rook", "Iris"])
        .await;
    let page = test_space.page().await;

    for name in ["Mina", "Rook", "Iris"] {
        page.send_message("Next, please").await;
        page.answered_by(name).await;
    }
    page.click(".member__button").await;
    page.see(".member--open").await;
    page.press(Key::Alt + Key::Down).await;
    page.truth(
        "Rook is the first member",
        "document.querySelector('.member__name').innerText === 'Rook'",
    )
    .await;
    page.send_message("In the new order").await;

    page.answered_by("Rook").await;
}

#[tokio::test]
async fn the_queue_bar_shows_the_speaker_and_the_reason() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;

    page.send_message("Hello").await;
    page.see_text(".queue__now", "Mina is writing").await;
    let because = page
        .value("document.querySelector('.queue__because').title")
        .await;
    gate.open();

    assert!(
        because
            .as_str()
            .is_some_and(|it| it.contains("order of the cast")),
        "{because}"
    );
    page.answered_by("Mina").await;
    page.see_text(".queue", "Your turn").await;
}

#[tokio::test]
async fn in_natural_order_the_mentioned_speaker_answers() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(json!({"reply_order": "natural"}), &["Mina", "Rook"])
        .await;
    let page = test_space.page().await;

    page.send_message("Rook, what now?").await;
    page.answered_by("Rook").await;
    page.send_message("And you, Rook?").await;

    page.truth(
        "Rook has spoken twice",
        "[...document.querySelectorAll('.message:not(.message--own)')].length === 2",
    )
    .await;
    page.answered_by("Rook").await;
}

#[tokio::test]
async fn in_pooled_order_one_message_selects_exactly_one_speaker() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(json!({"reply_order": "pooled"}), &["Mina", "Rook"])
        .await;
    let page = test_space.page().await;

    for n in 1..=3 {
        page.send_message("Somebody").await;
        page.truth(
            "a character has answered",
            &format!(
                "document.querySelectorAll('.message[data-state=final]').length === {}",
                2 * n
            ),
        )
        .await;
        page.see_text(".queue", "Your turn").await;
    }

    assert_eq!(test_space.texts().await.len(), 6);
}

#[tokio::test]
async fn a_muted_character_is_skipped_and_can_still_be_asked() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina", "Rook"]).await;
    let page = test_space.page().await;

    page.click(".member__button").await;
    page.click_text(".member--open button", "Mute").await;
    page.see_text(".member--muted", "Muted").await;
    page.send_message("Hello").await;
    page.answered_by("Rook").await;
    page.click(".queue [aria-label='Trigger Mina (muted)']")
        .await;

    page.answered_by("Mina").await;
}

#[tokio::test]
async fn a_stopped_round_waits_and_is_resumed() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let gate = test_server.upstream.gate();
    let page = test_space.page().await;

    page.send_message("Hello").await;
    page.see_text(".queue__now", "Mina is writing").await;
    page.click("[aria-label=Stop]").await;
    page.see_text(".queue__now", "Paused").await;
    gate.open();
    page.click(".queue [aria-label=Resume]").await;

    assert_eq!(page.answered_by("Mina").await, "Hello.");
}

#[tokio::test]
async fn a_failed_round_is_retried_or_skipped() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    test_server.upstream.next(ResponseScript::status(400));
    test_server.upstream.next(ResponseScript::status(400));
    let page = test_space.page().await;

    page.send_message("Hello").await;
    page.click(".queue [aria-label=Retry]").await;
    test_server.upstream.wait_for_requests(2).await;
    page.see("[data-card=failed]").await;
    page.click(".queue [aria-label=Skip]").await;

    page.see_text(".queue", "No reply is queued").await;
    page.gone("[data-card=failed]").await;
}
