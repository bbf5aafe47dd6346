//! Tests of invitations of one user, and of the card of a character that another user owns.

use serde_json::json;

use crate::several_users::{SeveralUsers, page_of};
use crate::support::http_client::{HttpClient, expect};

#[tokio::test]
async fn an_invited_user_sees_the_invitation_at_once_and_joins_under_another_name() {
    let users = SeveralUsers::with("member").await;
    let carl = HttpClient::register(users.test_space.ann.base(), "carl").await;
    let like_bob = json!({"display_name": "b\u{43e}b"});
    let me = expect(200, carl.patch("/api/users/me", like_bob).await);
    let page = page_of(&carl, "/").await;

    let path = format!("/api/spaces/{}/memberships", users.space);
    let body = json!({"user_id": me["id"], "role": "member"});
    expect(202, users.test_space.ann.post(&path, body).await);

    page.click("[data-invitation]").await;
    page.see_text("dialog", "You will join as a member").await;
    page.click("dialog [type=submit]").await;
    page.see_text("dialog .field__error", "Choose another name")
        .await;
    page.rewrite("dialog [name=display_name]", "Carl").await;
    page.click("dialog [type=submit]").await;
    page.gone("dialog").await;
    page.gone("[data-invitation]").await;
    let roster = expect(200, carl.get(&path).await);
    let roster = roster["data"].as_array().unwrap();
    assert!(
        roster.iter().any(|it| it["display_name"] == "Carl"),
        "{roster:?}"
    );
}

#[tokio::test]
async fn an_invitation_is_accepted_or_declined_in_its_notice() {
    let users = SeveralUsers::with("member").await;
    let carl = HttpClient::register(users.test_space.ann.base(), "carl").await;
    let name = json!({"display_name": "Carl"});
    let me = expect(200, carl.patch("/api/users/me", name).await);
    let path = format!("/api/spaces/{}/memberships", users.space);
    let body = json!({"user_id": me["id"], "role": "member"});
    expect(202, users.test_space.ann.post(&path, body.clone()).await);

    let page = page_of(&carl, "/").await;
    page.see_text("[data-notice]", "invites you to Harbor Lights")
        .await;
    page.click("[data-notice] [data-act=decline]").await;
    page.gone("[data-notice]").await;
    expect(202, users.test_space.ann.post(&path, body).await);
    page.click("[data-notice] [data-act=accept]").await;

    page.gone("[data-notice]").await;
    page.see(".composer__field").await;
}

#[tokio::test]
async fn the_card_of_another_users_character_shows_its_public_part() {
    let users = SeveralUsers::with("moderator").await;
    let character = format!(
        "/api/characters/{}",
        users.test_space.memberships[0]["character_id"]
    );
    let card = json!({"creator_notes": "Likes the sea.", "description": "A secret."});
    expect(200, users.test_space.ann.patch(&character, card).await);
    let page = users.bobs_page().await;

    page.click_text(".member__button", "Mina").await;
    page.click(".member__details [data-act=edit]").await;

    page.see_text("dialog", "does not share the whole card")
        .await;
    page.see_text("dialog", "Likes the sea.").await;
    let text = page
        .value("document.querySelector('dialog').textContent")
        .await;
    assert!(!text.to_string().contains("A secret."), "{text}");
    page.press(thirtyfour::Key::Escape).await;
    page.gone("dialog").await;

    let anns = page_of(&users.test_space.ann, &users.test_space.path()).await;
    anns.click_text(".member__button", "Mina").await;
    anns.click(".member__details [data-act=edit]").await;
    anns.click("dialog [name=share_whole_card]").await;
    anns.click("dialog [type=submit]").await;
    anns.gone("dialog").await;
    page.click(".member__details [data-act=edit]").await;
    page.see("dialog [name=description]").await;
}
