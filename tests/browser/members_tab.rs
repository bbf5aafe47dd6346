//! Tests of the members tab: order, roles, removal and persona. Other users see each change at
//! once.

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::Page;
use crate::several_users::SeveralUsers;
use crate::support::http_client::expect;

/// The names of the members, in order.
const NAMES: &str = "[...document.querySelectorAll('.member__name')].map((it) => it.innerText)";

async fn sees_order(page: &Page, names: &[&str]) {
    let expected = format!(
        "JSON.stringify({NAMES}) === JSON.stringify({})",
        json!(names)
    );
    page.truth(&format!("the order is {names:?}"), &expected)
        .await;
}

/// Opens the row of a member.
async fn open_row(page: &Page, name: &str) {
    page.click_text(".member__button", name).await;
    page.see(".member__details").await;
}

#[tokio::test]
async fn reordering_members_by_keyboard_is_visible_to_others() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    for page in [&ann, &bob] {
        sees_order(page, &["Mina", "Rook", "ann", "bob"]).await;
    }

    ann.run("[...document.querySelectorAll('.member__button')][0].focus()")
        .await;
    ann.press(Key::Alt + Key::Down).await;

    for page in [&ann, &bob] {
        sees_order(page, &["Rook", "Mina", "ann", "bob"]).await;
    }
    ann.truth(
        "the moved row keeps the focus",
        "document.activeElement.innerText.includes('Mina')",
    )
    .await;
    ann.press(Key::Alt + Key::Up).await;
    for page in [&ann, &bob] {
        sees_order(page, &["Mina", "Rook", "ann", "bob"]).await;
    }
}

#[tokio::test]
async fn everyone_switches_their_own_memory() {
    let users = SeveralUsers::with("guest").await;
    let bob = users.bobs_page().await;
    let switches = "JSON.stringify([...document.querySelectorAll('.member__details [type=checkbox]')].map((it) => it.checked))";
    open_row(&bob, "bob").await;
    assert_eq!(bob.value(switches).await, json!("[true,true]"));

    bob.click("[data-act=memory-learn]").await;

    bob.truth(
        "only learning is off",
        &format!("{switches} === '[false,true]'"),
    )
    .await;
    bob.reload().await;
    open_row(&bob, "bob").await;
    bob.truth("it was stored", &format!("{switches} === '[false,true]'"))
        .await;
}

#[tokio::test]
async fn reordering_members_by_dragging_is_visible_to_others() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    for page in [&ann, &bob] {
        sees_order(page, &["Mina", "Rook", "ann", "bob"]).await;
    }

    drag(&ann, "[data-membership-id] .member__grip", 50).await;

    for page in [&ann, &bob] {
        sees_order(page, &["Rook", "Mina", "ann", "bob"]).await;
    }
    ann.reload().await;
    sees_order(&ann, &["Rook", "Mina", "ann", "bob"]).await;
    assert_eq!(bob.n(".member__grip").await, 0);
}

/// Drags the first matching element with the mouse and drops it further down.
pub async fn drag(page: &Page, css: &str, by: i64) {
    let place = page
        .value(&format!(
            "(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])(document.querySelector({}).getBoundingClientRect())",
            json!(css)
        ))
        .await;
    let (x, y) = (
        place[0].clone(),
        place[1].as_f64().expect("the position is a number"),
    );
    let mouse = async |kind: &str, y: f64| {
        let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
        page.cdp("Input.dispatchMouseEvent", event).await;
    };
    mouse("mousePressed", y).await;
    for step in 1..=by / 5 {
        #[allow(clippy::cast_precision_loss)]
        mouse("mouseMoved", y + (step * 5) as f64).await;
    }
    #[allow(clippy::cast_precision_loss)]
    mouse("mouseReleased", y + by as f64).await;
}

#[tokio::test]
async fn a_new_role_applies_at_once_and_shows_its_buttons() {
    let users = SeveralUsers::with("guest").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    bob.see_text("#panel", "Guest").await;

    open_row(&ann, "bob").await;
    choose(&ann, "[data-act=role]", "moderator").await;

    bob.see(".queue [aria-label='Trigger Mina']").await;
    bob.see("[aria-label='Add a character']").await;
    open_row(&bob, "Mina").await;
    bob.click_text(".member__details button", "Mute").await;
    ann.see_text(".member--muted", "Mina").await;
}

/// Selects an option and sends its change event.
async fn choose(page: &Page, css: &str, value: &str) {
    page.see(css).await;
    let script = format!(
        "const list = document.querySelector({});
        list.value = {};
        list.dispatchEvent(new Event('change', {{ bubbles: true }}))",
        json!(css),
        json!(value)
    );
    page.run(&script).await;
}

#[tokio::test]
async fn the_new_owner_of_a_transferred_space_can_delete_it() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    open_row(&bob, "bob").await;
    bob.see_text(".member__details button", "Leave the space")
        .await;

    open_row(&ann, "bob").await;
    ann.click_text(".member__details button", "Hand over").await;
    ann.see_text("dialog", "You become a moderator").await;
    ann.click_text("dialog button", "Hand over").await;

    bob.see_text(".member__details", "As the owner, you cannot leave")
        .await;
    bob.see_text("#panel", "You · Owner").await;
    ann.see_text("#panel", "You · Moderator").await;
    let space = expect(
        200,
        users.bob.get(&format!("/api/spaces/{}", users.space)).await,
    );
    assert_eq!(space["my_role"], "owner");
}

#[tokio::test]
async fn an_observer_reads_and_has_no_composer() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    bob.see(".composer__field").await;

    open_row(&ann, "bob").await;
    ann.click_text(".member__details button", "Observer").await;

    bob.see_text(".composer__closed", "You are an observer")
        .await;
    bob.gone(".queue [aria-label='Trigger Mina']").await;
    bob.gone(".sidebar-item__add").await;
    ann.click_text(".member__details button[aria-pressed=true]", "Observer")
        .await;
    bob.see(".composer__field").await;
}

#[tokio::test]
async fn a_member_that_leaves_disappears_for_others_and_sees_how_to_return() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    users.test_space.post("A word to keep").await;

    open_row(&bob, "bob").await;
    bob.click_text(".member__details button", "Leave the space")
        .await;
    bob.click_text("dialog button", "Leave the space").await;

    bob.see_text("h1", "You have left Harbor Lights").await;
    sees_order(&ann, &["Mina", "Rook", "ann"]).await;
}

#[tokio::test]
async fn a_member_is_removed_only_after_a_confirmation() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    bob.see(".composer__field").await;

    open_row(&ann, "bob").await;
    ann.click_text(".member__details button", "Remove").await;
    ann.see_text("dialog", "Remove bob?").await;
    ann.press(Key::Escape).await;
    ann.gone("dialog").await;
    sees_order(&ann, &["Mina", "Rook", "ann", "bob"]).await;
    ann.click_text(".member__details button", "Remove").await;
    ann.click_text("dialog button", "Remove").await;

    sees_order(&ann, &["Mina", "Rook", "ann"]).await;
    bob.see_text("h1", "You were removed").await;
}

#[tokio::test]
async fn changing_the_persona_keeps_the_draft_and_shows_the_new_name() {
    let users = SeveralUsers::with("guest").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    bob.write(".composer__field", "half a thought").await;

    open_row(&bob, "bob").await;
    bob.click_text(".member__details button", "Edit name and persona")
        .await;
    bob.write("dialog [name=persona]", "The smith of the harbor")
        .await;
    bob.write("dialog [name=aliases]", "Smith, Old Bob").await;
    bob.click_text("dialog button", "Save").await;

    ann.see_text(".member__persona", "The smith of the harbor")
        .await;
    bob.reload().await;
    bob.truth(
        "the draft is kept",
        "document.querySelector('.composer__field')?.value === 'half a thought'",
    )
    .await;
    let path = format!("/api/spaces/{}/memberships", users.space);
    let memberships = expect(200, users.bob.get(&path).await);
    let mine = memberships["data"]
        .as_array()
        .and_then(|all| all.iter().find(|it| it["id"] == users.membership));
    assert_eq!(
        mine.map(|it| &it["aliases"]),
        Some(&json!(["Smith", "Old Bob"]))
    );
    assert_ne!(mine.map(|it| &it["persona"]), Some(&Value::Null));
}
