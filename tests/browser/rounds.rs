//! Tests of rounds of several speakers in the page: the slots in the queue bar, their reasons, and
//! pause, skip and retry.

use serde_json::{Value, json};

use crate::page::{FIELD, Page, Viewport};
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer};

/// The authors of the shown messages, in order.
const AUTHORS: &str = "[...document.querySelectorAll('.message:not(.message--own)')]
    .map((it) => it.querySelector('.message__author')?.innerText)";

/// Sets the reply order to list and lets every character answer.
pub fn list_order() -> Value {
    json!({"reply_order": "list", "replies_per_turn": "activated"})
}

/// A space in natural order: a mentioned member answers, the others by their talkativeness.
fn natural_order() -> Value {
    json!({"reply_order": "natural", "replies_per_turn": "activated"})
}

/// The next response waits until its hold point is opened.
pub fn next_waits(test_server: &TestServer, text: &str) -> HoldPoint {
    let gate = HoldPoint::closed();
    test_server
        .upstream
        .next(ResponseScript::say(text).held_at(&gate));
    gate
}

/// Waits until the slots of the round have these states, such as "spoken speaking pending".
pub async fn places(page: &Page, standing: &str) {
    let found =
        "[...document.querySelectorAll('.queue .slot')].map((it) => it.dataset.slot).join(' ')";
    let what = format!("the places stand as {standing:?}");
    page.truth(&what, &format!("{found} === {}", json!(standing)))
        .await;
}

/// Waits until exactly these members have spoken, in this order.
pub async fn have_spoken(page: &Page, names: &[&str]) {
    let what = format!("{names:?} have spoken");
    let finished =
        "[...document.querySelectorAll('.message')].every((it) => it.dataset.state === 'final')";
    let wanted = format!(
        "{finished} && JSON.stringify({AUTHORS}) === {}",
        json!(json!(names).to_string())
    );
    page.truth(&what, &wanted).await;
}

/// Sets the talkativeness of a character.
async fn talkativeness(test_space: &SpaceFixture, character: usize, value: f64) {
    let path = format!(
        "/api/memberships/{}",
        test_space.memberships[character]["id"]
    );
    expect(
        200,
        test_space
            .ann
            .patch(&path, json!({"talkativeness": value}))
            .await,
    );
}

#[tokio::test]
async fn in_a_round_of_three_the_bar_shows_each_slot_in_order() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook", "Iris"])
        .await;
    let gates = ["Mina here.", "Rook here.", "Iris here."].map(|it| next_waits(&test_server, it));
    let page = test_space.page().await;

    page.send_message("All of you").await;
    places(&page, "speaking pending pending").await;
    page.see_text(".queue__now", "Mina is writing").await;
    page.see_text(".queue__next", "then Rook").await;
    gates[0].open();
    places(&page, "spoken speaking pending").await;
    gates[1].open();
    places(&page, "spoken spoken speaking").await;
    gates[2].open();

    have_spoken(&page, &["Mina", "Rook", "Iris"]).await;
    page.see_text(".queue", "Your turn").await;
    page.gone(".queue .slot").await;
}

#[tokio::test]
async fn in_a_round_mentioned_speakers_come_before_talkative_ones() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(natural_order(), &["Mina", "Rook", "Iris"])
        .await;
    talkativeness(&test_space, 0, 1.0).await;
    talkativeness(&test_space, 1, 0.0).await;
    talkativeness(&test_space, 2, 0.0).await;
    let page = test_space.page().await;

    page.send_message("Iris, what now?").await;

    have_spoken(&page, &["Iris", "Mina"]).await;
}

#[tokio::test]
async fn your_turn_is_a_hint_and_blocks_no_speaker() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook"])
        .await;
    let gate = next_waits(&test_server, "Mina here.");
    let page = test_space.page().await;

    page.send_message("Both of you").await;
    places(&page, "speaking pending").await;
    let during = page.texts(".queue").await;
    page.see(&format!("{FIELD}:enabled")).await;
    gate.open();
    page.see_text(".queue", "Your turn.").await;

    assert!(!during[0].contains("Your turn"), "{during:?}");
    have_spoken(&page, &["Mina", "Rook"]).await;
    let conversation = test_space.ann.conversation(test_space.conversation).await;
    assert_eq!(conversation["round"], Value::Null, "a user has a slot");
}

#[tokio::test]
async fn each_slot_shows_why_it_was_chosen() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(natural_order(), &["Mina", "Rook"])
        .await;
    talkativeness(&test_space, 0, 1.0).await;
    let gate = next_waits(&test_server, "Rook here.");
    let page = test_space.page().await;

    page.send_message("Rook, what now?").await;
    places(&page, "speaking pending").await;
    let reasons = page
        .value("[...document.querySelectorAll('.queue .slot')].map((it) => it.title)")
        .await;
    let read_out = page.texts(".queue .slot").await;
    gate.open();

    assert_eq!(reasons[0], "Rook: writing · “Rook” was mentioned");
    let drawn = reasons[1].as_str().expect("the reason is text");
    assert!(drawn.starts_with("Mina: pending · joined by talkativeness (rolled 0."));
    assert!(drawn.ends_with("needed ≤ 1.00)"), "{drawn}");
    assert_eq!(json!(read_out), reasons);
    have_spoken(&page, &["Rook", "Mina"]).await;
    page.click(".queue [aria-label='Trigger Rook']").await;
    have_spoken(&page, &["Rook", "Mina", "Rook"]).await;
    page.click_text("[role=tab]", "Prompt").await;
    page.click_text(".run__summary", "Rook").await;
    page.see_text("#panel", "triggered by ann").await;
}

#[tokio::test]
async fn a_message_during_a_round_comes_first_and_the_bar_names_dropped_speakers() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(natural_order(), &["Mina", "Rook", "Iris"])
        .await;
    for character in 0..3 {
        talkativeness(&test_space, character, 0.0).await;
    }
    let (first, second) = (
        next_waits(&test_server, "Mina here."),
        next_waits(&test_server, "Iris here."),
    );
    let page = test_space.page().await;

    page.send_message("Mina and Rook, good evening").await;
    places(&page, "speaking pending").await;
    page.send_message("Iris?").await;
    page.see_text(".queue__now", "Mina is writing").await;
    page.see_text(".queue", "finishes first").await;
    page.see_text(".queue__next", "then Iris").await;
    page.see_text(".queue__dropped", "newer message or request: Rook")
        .await;
    assert_eq!(page.n(".message[data-state=streaming]").await, 1);
    assert_eq!(test_server.upstream.n_requests(), 1);
    first.open();
    page.see_text(".queue__now", "Iris is writing").await;
    second.open();

    have_spoken(&page, &["Mina", "Iris"]).await;
    page.gone(".queue__dropped").await;
}

#[tokio::test]
async fn a_rejected_message_is_explained_in_the_language_of_the_page() {
    let test_server = TestServer::open().await;
    let mut rules = list_order();
    rules["during_generation_user_input_policy"] = json!("reject");
    let test_space = test_server.create_space(rules, &["Mina"]).await;
    let language = test_space
        .ann
        .patch("/api/users/me", json!({"locale": "zh-CN"}))
        .await;
    expect(200, language);
    let gate = next_waits(&test_server, "Mina here.");
    let page = test_space.page().await;

    page.send_message("First").await;
    page.see_text(".queue__now", "Mina").await;
    page.send_message("Second").await;
    page.see_text(".message__foot--failed", "正在生成回复")
        .await;
    gate.open();
    page.see_text(".queue", "轮到你了").await;
    page.click_text(".message__foot--failed button", "重试")
        .await;

    have_spoken(&page, &["Mina", "Mina"]).await;
}

#[tokio::test]
async fn when_all_are_muted_no_speaker_is_due_and_one_can_be_chosen() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(natural_order(), &["Mina", "Rook"])
        .await;
    for membership in &test_space.memberships {
        let path = format!("/api/memberships/{}", membership["id"]);
        expect(
            200,
            test_space
                .ann
                .patch(&path, json!({"participation": "muted"}))
                .await,
        );
    }
    let page = test_space.page().await;

    page.send_message("Is nobody there?").await;
    page.see_text(".queue", "No reply is queued. Choose a character.")
        .await;
    page.click(".queue [aria-label='Trigger Rook (muted)']")
        .await;

    have_spoken(&page, &["Rook"]).await;
}

#[tokio::test]
async fn a_round_can_be_paused_resumed_and_skip_a_speaker() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook", "Iris"])
        .await;
    let gates = ["Mina here.", "Rook here.", "Iris here."].map(|it| next_waits(&test_server, it));
    let page = test_space.page().await;

    page.send_message("All of you").await;
    places(&page, "speaking pending pending").await;
    page.click(".queue [aria-label=Pause]").await;
    page.see_text(".queue", "then the round pauses").await;
    page.gone(".queue [aria-label=Resume]").await;
    gates[0].open();
    page.see_text(".queue__now", "Paused").await;
    places(&page, "spoken next pending").await;
    page.click(".queue [aria-label=Skip]").await;
    places(&page, "spoken skipped next").await;
    let why = page
        .value("document.querySelector('.slot--skipped').title")
        .await;
    page.click(".queue [aria-label=Resume]").await;
    places(&page, "spoken skipped speaking").await;
    gates[1].open();

    assert_eq!(why, "Rook: skipped · skipped by a member");
    have_spoken(&page, &["Mina", "Iris"]).await;
}

#[tokio::test]
async fn a_round_that_fails_midway_shows_its_failure_and_can_be_retried() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(list_order(), &["Mina", "Rook", "Iris"])
        .await;
    test_server.upstream.next(ResponseScript::say("Mina here."));
    test_server.upstream.next(ResponseScript::status(400));
    test_server.upstream.next(ResponseScript::status(400));
    let page = test_space.page().await;

    page.send_message("All of you").await;
    page.see_text(".queue__now", "Rook could not reply").await;
    places(&page, "spoken failed pending").await;
    page.see_text("[data-card=failed]", "Rook could not reply")
        .await;
    page.click("[data-card=failed] .button--primary").await;
    test_server.upstream.wait_for_requests(3).await;
    places(&page, "spoken failed pending").await;
    page.click(".queue [aria-label=Skip]").await;

    have_spoken(&page, &["Mina", "Iris"]).await;
    page.gone("[data-card=failed]").await;
}

#[tokio::test]
async fn on_a_phone_the_queue_bar_leaves_space_for_the_composer() {
    let test_server = TestServer::open().await;
    let names = ["Mina", "Rook", "Iris", "Captain Barnaby", "Ottoline"];
    let test_space = test_server.create_space(list_order(), &names).await;
    let gate = next_waits(&test_server, "Mina here.");
    let page = test_space.page_on(Viewport::Phone).await;

    page.write(FIELD, "All of you").await;
    page.click("[aria-label=Send]").await;
    places(&page, "speaking pending pending pending pending").await;
    // The keyboard of the phone covers half of the screen.
    page.resize(390, 450, true).await;
    let is_usable = "document.documentElement.scrollWidth === 390
        && document.querySelector('.composer__field').getBoundingClientRect().bottom <= innerHeight
        && document.querySelector('.queue').getBoundingClientRect().bottom <= document.querySelector('.composer').getBoundingClientRect().top
        && document.querySelector('.timeline').getBoundingClientRect().height > 100
        && [...document.querySelectorAll('.queue button')].every((it) => it.getBoundingClientRect().height >= 44)";
    page.truth("the composer and the messages have enough space", is_usable)
        .await;
    page.click(".queue [data-act=round]").await;
    page.click(".round [aria-label='Add Mina']").await;
    page.click(".round [data-act=save]").await;
    page.gone("dialog").await;
    gate.open();
}
