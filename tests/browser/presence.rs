//! Tests of presence in the page: who is online, who types, and unread messages.

use std::time::{Duration, Instant};

use serde_json::json;
use thirtyfour::Key;

use crate::page::{FIELD, Page};
use crate::several_users::{SeveralUsers, page_of};
use crate::support::ws_client::WsClient;

#[tokio::test]
async fn the_typing_indicator_appears_and_disappears() {
    let users = SeveralUsers::with("member").await;
    let ann = users.test_space.page().await;
    let bob = users.bobs_page().await;
    ann.see(".presence-list").await;

    bob.write(FIELD, "I was just about to").await;
    ann.see_text(".typing-indicator", "bob is typing").await;
    let since = Instant::now();
    ann.truth(
        "the typing indicator is empty",
        "document.querySelector('.typing-indicator').innerText === ''",
    )
    .await;
    assert!(since.elapsed() < Duration::from_secs(7), "{since:?}");
    bob.write(FIELD, " say").await;
    ann.see_text(".typing-indicator", "bob is typing").await;
    bob.press(Key::Enter).await;

    ann.see_text(".message", "about to say").await;
    ann.truth(
        "a user whose message arrived does not type",
        "document.querySelector('.typing-indicator').innerText === ''",
    )
    .await;
}

#[tokio::test]
async fn the_typing_indicator_summarizes_several_users() {
    let users = SeveralUsers::with("member").await;
    let ann = users.test_space.page().await;
    let conversation = users.test_space.conversation;
    let mut writers = vec![WsClient::subscribed(&users.bob, conversation).await];
    for name in ["cleo", "dora", "emil"] {
        let person = users.guest(name).await;
        writers.push(WsClient::subscribed(&person, conversation).await);
    }
    let typing = json!({"op": "typing", "conversation_id": conversation, "active": true});

    for writer in &writers[..2] {
        writer.call(typing.clone()).await;
    }
    ann.see_text(".typing-indicator", "bob and cleo are typing")
        .await;
    // All of them, because the indicators of the first ones may have expired.
    for writer in &writers {
        writer.call(typing.clone()).await;
    }

    ann.see_text(".typing-indicator", "Several people").await;
}

#[tokio::test]
async fn the_typing_indicator_names_a_character() {
    let users = SeveralUsers::with("guest").await;
    users
        .test_server
        .upstream
        .reply_with("One two three four five.");
    let gate = users.test_server.upstream.gate();
    let page = users.bobs_page().await;
    page.see(".composer__field").await;

    let speaker = users.test_space.memberships[0]["id"].as_i64();
    users
        .test_space
        .ann
        .generate(users.test_space.conversation, speaker)
        .await;

    page.see_text(".queue", "Mina is writing").await;
    gate.open();
    page.answered_by("Mina").await;
    page.see_text(".queue", "Your turn").await;
}

#[tokio::test]
async fn unread_messages_are_marked_until_seen_in_every_window() {
    let users = SeveralUsers::with("member").await;
    let side = users.conversation("Side stage").await;
    users.test_space.post("Before").await;
    let first = users.bobs_page().await;
    first.see_text(".message", "Before").await;
    first.click_text("#sidebar a", "Side stage").await;
    first.see_text(".main__title", "Side stage").await;
    let second = page_of(&users.bob, &format!("/c/{side}")).await;
    second.see_text(".main__title", "Side stage").await;

    for text in ["one", "two"] {
        users.test_space.post(text).await;
    }
    for page in [&first, &second] {
        page.see_text(".sidebar-item--unread .badge", "2").await;
        page.see_text(".space__name .badge", "2").await;
        page.truth(
            "the title shows the number of unread messages",
            "document.title.startsWith('(2) ')",
        )
        .await;
    }
    first.click_text("#sidebar a", "Main").await;

    first.see_text(".divider--unread", "New").await;
    let after = "document.querySelector('.divider--unread').nextElementSibling.innerText";
    first
        .truth(
            "the divider is above the first unread message",
            &format!("{after}.includes('one')"),
        )
        .await;
    for page in [&first, &second] {
        page.gone(".badge").await;
        page.truth(
            "the title shows no unread messages",
            "!document.title.startsWith('(')",
        )
        .await;
    }
}

#[tokio::test]
async fn messages_received_in_the_background_appear_below_a_divider() {
    let users = SeveralUsers::with("member").await;
    users.test_space.post("Before").await;
    let page = users.bobs_page().await;
    page.see_text(".message", "Before").await;
    page.gone(".badge").await;
    set_visible(&page, false).await;

    users.test_space.post("While you were away").await;
    page.see_text(".divider--unread", "New").await;
    page.truth(
        "the title shows the number of unread messages",
        "document.title.startsWith('(1) ')",
    )
    .await;
    set_visible(&page, true).await;

    page.truth(
        "the title shows no unread messages",
        "!document.title.startsWith('(')",
    )
    .await;
}

#[tokio::test]
async fn a_hidden_tab_is_away_and_a_closed_one_offline() {
    let users = SeveralUsers::with("member").await;
    let ann = users.test_space.page().await;
    let bob = users.bobs_page().await;
    let row = format!("[data-membership-id='{}']", users.membership);
    ann.see_text(&row, "online").await;
    ann.see(&format!("{row} .avatar__presence--online")).await;
    ann.see("[aria-label='Online: bob']").await;

    set_visible(&bob, false).await;
    ann.see_text(&row, "away").await;
    ann.see("[aria-label='Online: bob (away)']").await;
    set_visible(&bob, true).await;
    ann.see_text(&row, "online").await;
    drop(bob);

    ann.see_text(&row, "last seen").await;
    ann.gone(".presence-list").await;
}

/// Shows or hides the tab, as far as the page can detect it.
async fn set_visible(page: &Page, is_visible: bool) {
    let script = format!(
        "Object.defineProperty(document, 'hidden', {{ value: {}, configurable: true }});
        document.dispatchEvent(new Event('visibilitychange'))",
        !is_visible
    );
    page.run(&script).await;
}
