//! Tests of who speaks next where people take turns, and where a model directs: what each person sees, and
//! what they can do.

use serde_json::{Value, json};

use crate::page::Page;
use crate::several_users::{SeveralUsers, page_of};
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::{expect, root_of};

const OWN_TURN: &str = ".queue__box[data-turn=own][data-state=waiting]";

/// Ann and Bob, a guest, take turns with Mina and Rook, who are before Bob.
async fn taking_turns(rules: Value) -> SeveralUsers {
    let users = SeveralUsers::with("guest").await;
    let path = format!("/api/spaces/{}", users.space);
    let mut all =
        json!({"reply_order": "list", "replies_per_turn": "activated", "humans_take_turns": true});
    for (key, value) in rules.as_object().expect("an object") {
        all[key] = value.clone();
    }
    expect(200, users.test_space.ann.patch(&path, all).await);
    users.test_server.upstream.reply_with("Welcome.");
    users
}

async fn wait_for_bob(page: &Page) {
    page.see_text(".queue__text", "Waiting for bob").await;
}

#[tokio::test]
async fn each_person_sees_whose_turn_it_is_and_the_post_is_the_turn() {
    let users = taking_turns(json!({"human_turn_timeout_s": 600})).await;
    let (of_ann, of_bob) = (users.test_space.page().await, users.bobs_page().await);

    of_ann.send_message("Good evening.").await;
    of_bob.see(OWN_TURN).await;
    of_bob.see_text(".queue__text", "It is your turn.").await;
    of_bob.see_text(".queue__countdown", "minutes left").await;
    wait_for_bob(&of_ann).await;
    of_ann.send_message("Take your time.").await;
    wait_for_bob(&of_ann).await;
    of_bob.send_message("I enter the inn.").await;

    of_ann.gone(".queue__box[data-state=waiting]").await;
    of_bob.gone(OWN_TURN).await;
    of_ann
        .see_text(".message[data-state=final]", "I enter the inn.")
        .await;
}

#[tokio::test]
async fn a_guest_skips_their_turn_and_goes_away() {
    let users = taking_turns(json!({})).await;
    let page = users.bobs_page().await;
    users.test_space.post("Good evening.").await;
    page.see(OWN_TURN).await;
    assert_eq!(
        page.n(".queue [data-act=pause]").await,
        0,
        "a guest cannot pause"
    );

    page.click(".queue [data-act=skip]").await;
    page.gone(OWN_TURN).await;
    users.change_bob(json!({"is_away": true})).await;
    page.see_text("#panel", "Away").await;
    users.test_space.post("Again.").await;

    page.see_text(".message[data-state=final]", "Again.").await;
    page.see(".queue__box[data-state=idle]").await;
    page.gone(".queue__box[data-state=waiting]").await;
}

#[tokio::test]
async fn a_notice_names_the_conversation_if_another_page_is_open() {
    let users = taking_turns(json!({})).await;
    let manual = json!({"reply_order": "manual"});
    let barn = users.bob.create_space("Bob's Barn", manual).await;
    let page = page_of(&users.bob, &format!("/c/{}", root_of(&barn))).await;
    page.see_text(".main__space", "Bob's Barn").await;

    users.test_space.post("Good evening.").await;

    page.see_text(".toast", "It is your turn in").await;
    page.click_text(".toast__action", "Open").await;
    page.see(OWN_TURN).await;
}

#[tokio::test]
async fn the_settings_of_turns_are_saved() {
    let users = taking_turns(json!({})).await;
    let page = users.test_space.page().await;
    page.click_text("[role=tab]", "Settings").await;
    page.see_text("#panel", "People take turns").await;
    page.see_text("#panel", "Time per turn").await;
}

#[tokio::test]
async fn the_reason_of_the_director_is_shown() {
    let users = taking_turns(json!({"reply_order": "director", "humans_take_turns": false})).await;
    let gate = HoldPoint::closed();
    let held = gate.clone();
    // The memory may ask the same model at any time.
    users.test_server.upstream.answer_with(move |body| {
        match body.to_string().contains("speakers") {
            true => ResponseScript::say(r#"{"speakers": ["Rook"], "reason": "He knows the way."}"#),
            false => ResponseScript::say("Follow me.").held_at(&held),
        }
    });
    let page = users.test_space.page().await;

    page.send_message("Where to?").await;
    page.see_text(".queue__text", "Rook is writing").await;
    page.click(".queue [data-act=because]").await;

    page.see_text(".toast", "He knows the way.").await;
    gate.open();
    page.answered_by("Rook").await;
}
