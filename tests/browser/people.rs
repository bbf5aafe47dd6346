//! Tests of several users in one space: each sees the actions that are allowed, and a removed
//! member is informed.

use serde_json::json;

use crate::several_users::{SeveralUsers, page_of};
use crate::support::http_client::expect;
use crate::test_server::manual;

#[tokio::test]
async fn a_member_that_becomes_a_guest_loses_the_buttons_at_once() {
    let users = SeveralUsers::with("member").await;
    let page = users.bobs_page().await;
    page.see(".queue [aria-label='Trigger Mina']").await;
    page.see_text("#sidebar", "New conversation").await;

    users.change_bob(json!({"role": "guest"})).await;

    page.gone(".queue [aria-label='Trigger Mina']").await;
    page.gone(".sidebar-item__add").await;
    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    page.click_text("[role=tab]", "Prompt").await;
    page.see_text("#panel", "Runs").await;
    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    page.click_text("[role=tab]", "Settings").await;
    page.see_text("#panel", "Only moderators").await;
    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    let refused = users
        .bob
        .generate(users.test_space.conversation, None)
        .await;
    assert_eq!(refused.0, 403, "{}", refused.1);
}

/// Buttons whose request would be rejected with 403.
const FORBIDDEN_TO_GUESTS: &str = "[...document.querySelectorAll('button')]
    .filter((it) => it.checkVisibility({ visibilityProperty: true }))
    .map((it) => it.getAttribute('aria-label') ?? it.innerText)
    .filter((it) => /^(Let |Anyone|New conversation|Invite|Add a character|Pause|Resume|Skip|Retry|Stop|Save|Show(?! original)|Mute|Remove|Move|Leave .* out|Add(?! a picture)|Auto)/.test(it))";

#[tokio::test]
async fn a_guest_cannot_stop_replies_but_can_post() {
    let users = SeveralUsers::with("guest").await;
    users
        .test_server
        .upstream
        .reply_with("One two three four five.");
    let gate = users.test_server.upstream.gate();
    let page = users.bobs_page().await;
    users
        .test_space
        .ann
        .generate(
            users.test_space.conversation,
            users.test_space.memberships[0]["id"].as_i64(),
        )
        .await;
    gate.step();
    page.see(".message[data-state=streaming]").await;

    assert_eq!(page.value(FORBIDDEN_TO_GUESTS).await, json!([]));
    gate.open();
    page.answered_by("Mina").await;
    page.send_message("I only look").await;
    page.see_text(".message[data-state=final]", "I only look")
        .await;
}

#[tokio::test]
async fn a_removed_member_sees_a_notice_and_a_way_to_continue() {
    let users = SeveralUsers::with("member").await;
    users.bob.create_space("Bob's Barn", manual()).await;
    let page = users.bobs_page().await;
    page.see_text("#sidebar", "Harbor Lights").await;

    let path = format!("/api/memberships/{}", users.membership);
    expect(204, users.test_space.ann.delete(&path).await);

    page.see_text("h1", "You were removed from Harbor Lights")
        .await;
    page.gone(".composer").await;
    page.truth(
        "the space is not in the sidebar",
        "!document.querySelector('#sidebar').innerText.includes('Harbor Lights')",
    )
    .await;
    let space = format!("/api/spaces/{}", users.space);
    assert_eq!(users.bob.get(&space).await.0, 404);
    page.click_text(".empty-state a", "Go to my conversations")
        .await;
    page.see_text(".main__space", "Bob's Barn").await;
    page.go(&users.test_space.path()).await;
    page.see_text("h1", "not found").await;
}

#[tokio::test]
async fn a_removed_member_without_another_space_sees_the_start_page() {
    let users = SeveralUsers::with("member").await;
    let page = users.bobs_page().await;

    let path = format!("/api/memberships/{}", users.membership);
    expect(204, users.test_space.ann.delete(&path).await);
    page.click_text(".empty-state a", "Go to my conversations")
        .await;

    page.click_text(".empty-state button", "New space").await;
    page.see("dialog").await;
}

#[tokio::test]
async fn a_remote_image_is_a_link_that_loads_nothing() {
    let users = SeveralUsers::with("guest").await;
    let page = users.test_space.page().await;
    let text = "Look ![a cat](https://pictures.example/cat.png)";

    let posted = users
        .bob
        .post_message(users.test_space.conversation, text, None)
        .await;
    expect(201, posted);

    page.see_text(".message a.external-image", "a cat").await;
    assert_eq!(page.n(".message img").await, 0);
    let strangers = "performance.getEntriesByType('resource').filter((it) => !it.name.startsWith(location.origin)).length";
    assert_eq!(page.value(strangers).await, json!(0));
}
#[tokio::test]
async fn a_deleted_conversation_leaves_the_sidebar_of_others_and_its_page_shows_a_notice() {
    let users = SeveralUsers::with("member").await;
    let side = users.conversation("Side stage").await;
    let there = page_of(&users.bob, &format!("/c/{side}")).await;
    let elsewhere = users.bobs_page().await;
    elsewhere.see_text("#sidebar", "Side stage").await;
    there.see_text(".main__title", "Side stage").await;

    let path = format!("/api/conversations/{side}");
    expect(204, users.test_space.ann.delete(&path).await);

    there.see_text("h1", "This conversation was deleted").await;
    elsewhere
        .truth(
            "the sidebar does not list it",
            "!document.querySelector('#sidebar').innerText.includes('Side stage')",
        )
        .await;
    there
        .click_text(".empty-state a", "Back to the space")
        .await;
    there.see_text(".main__title", "Main").await;
}

#[tokio::test]
async fn a_deleted_space_leaves_the_sidebar_of_others_and_its_page_shows_a_notice() {
    let users = SeveralUsers::with("member").await;
    users.bob.create_space("Bob's Barn", manual()).await;
    let page = users.bobs_page().await;
    page.see_text("#sidebar", "Harbor Lights").await;

    let path = format!("/api/spaces/{}", users.space);
    expect(204, users.test_space.ann.delete(&path).await);

    page.see_text("h1", "Harbor Lights was deleted").await;
    page.truth(
        "the sidebar does not list it",
        "!document.querySelector('#sidebar').innerText.includes('Harbor Lights')",
    )
    .await;
}
