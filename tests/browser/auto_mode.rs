//! Tests of auto mode in the page: its switch, the remaining turns, the delay, and what stops it.

use serde_json::{Value, json};

use crate::page::Page;
use crate::several_users::SeveralUsers;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::test_server::TestServer;

/// A delay that no test waits for.
const NEVER_MS: i64 = 600_000;

fn among_themselves(turns: i64, delay_ms: i64) -> Value {
    json!({
        "reply_order": "list",
        "auto_mode_max_turns": turns,
        "auto_mode_delay_ms": delay_ms,
    })
}

/// Waits until the switch shows this number of remaining turns.
async fn left(page: &Page, n: i64) {
    page.see(&format!(".auto[data-left='{n}']")).await;
}

async fn n_messages(page: &Page, n: usize) {
    let there = format!(
        "document.querySelectorAll('.message[data-state=final]').length === {n}
        && document.querySelectorAll('.message').length === {n}"
    );
    page.truth(&format!("{n} messages are shown"), &there).await;
}

#[tokio::test]
async fn auto_mode_counts_down_its_turns_and_shows_when_it_stops() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(among_themselves(3, 0), &["Mina", "Rook"])
        .await;
    let gates: Vec<HoldPoint> = (0..4)
        .map(|_| {
            let gate = HoldPoint::closed();
            test_server
                .upstream
                .next(ResponseScript::say("So it goes.").held_at(&gate));
            gate
        })
        .collect();
    let page = test_space.page().await;

    page.click(".queue [role=switch]").await;
    page.see_text(".queue", "Auto Mode is on").await;
    page.send_message("Go on, you two").await;
    for (gate, n) in gates.iter().zip([3, 2, 1, 0]) {
        left(&page, n).await;
        page.see_text(".queue__now", "is writing").await;
        gate.open();
    }
    n_messages(&page, 5).await;
    page.see_text(".queue", "Auto Mode has stopped: its 3 turns are used up")
        .await;
    page.reload().await;
    page.see_text(".queue", "Auto Mode has stopped: its 3 turns are used up")
        .await;
    left(&page, 0).await;
    page.send_message("And once more").await;

    n_messages(&page, 10).await;
    left(&page, 0).await;
    assert_eq!(test_server.upstream.n_requests(), 8);
}

#[tokio::test]
async fn a_user_message_comes_before_auto_mode_and_switching_it_off_ends_it_at_once() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(among_themselves(5, NEVER_MS), &["Mina", "Rook"])
        .await;
    let page = test_space.page().await;

    page.click(".queue [role=switch]").await;
    page.send_message("Go on, you two").await;
    page.answered_by("Mina").await;
    page.see_text(".queue__now", "Rook is next").await;
    page.see_text(".queue__countdown", "in ").await;
    page.reload().await;
    page.see_text(".queue__countdown", "in ").await;
    left(&page, 4).await;
    page.send_message("Wait").await;
    page.answered_by("Rook").await;
    left(&page, 4).await;
    page.see_text(".queue__now", "Mina is next").await;
    page.click(".queue [role=switch]").await;

    page.see_text(".queue", "Your turn").await;
    page.gone(".queue__countdown").await;
    page.see(".queue [role=switch][aria-checked=false]").await;
    n_messages(&page, 4).await;
    let conversation = test_space.ann.conversation(test_space.conversation).await;
    assert_eq!(conversation["state"], "idle");
}

#[tokio::test]
async fn a_waiting_turn_can_be_paused_and_resumed() {
    let test_server = TestServer::open().await;
    let test_space = test_server
        .create_space(among_themselves(5, NEVER_MS), &["Mina", "Rook"])
        .await;
    let page = test_space.page().await;

    page.click(".queue [role=switch]").await;
    page.send_message("Go on, you two").await;
    page.answered_by("Mina").await;
    page.see_text(".queue__countdown", "in ").await;
    page.click(".queue [aria-label=Pause]").await;
    page.see_text(".queue__now", "Paused").await;
    page.gone(".queue__countdown").await;
    page.click(".queue [aria-label=Resume]").await;

    page.answered_by("Rook").await;
}

#[tokio::test]
async fn auto_mode_settings_are_visible_to_all_and_changed_only_with_the_right() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);

    ann.click("#panel-tab-settings").await;
    ann.click_text(".check", "keep replying").await;
    choose(&ann, "Group reply strategy", "list").await;
    choose(&ann, "Replies per message", "activated").await;
    fill(&ann, "Turns after", "7").await;
    fill(&ann, "Auto Mode delay", "2.5").await;
    ann.click_text("#panel button", "Save").await;

    bob.see("span.auto[data-left='7']").await;
    let space = format!("/api/spaces/{}", users.space);
    let (_, space) = users.test_space.ann.get(&space).await;
    assert_eq!(space["auto_mode_delay_ms"], 2500);
    assert_eq!(space["auto_mode_max_turns"], 7);
    assert_eq!(space["replies_per_turn"], "activated");
    assert_eq!(space["reply_order"], "list");
    bob.click("#panel-tab-settings").await;
    bob.see_text("#panel", "Only moderators").await;
    let open =
        "document.querySelectorAll('#panel-body :is(input, select, textarea):enabled').length";
    assert_eq!(bob.value(open).await, json!(0));
}

/// Returns an expression for the field with this label.
fn labelled(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('#panel-body .field')].find((it) => it.querySelector('label').innerText.includes({})).querySelector('input, select')",
        json!(label)
    )
}

async fn choose(page: &Page, label: &str, value: &str) {
    let script = format!(
        "const list = {}; list.value = {}; list.dispatchEvent(new Event('change', {{ bubbles: true }}))",
        labelled(label),
        json!(value)
    );
    page.run(&script).await;
}

async fn fill(page: &Page, label: &str, value: &str) {
    let script = format!(
        "const field = {}; field.value = {}; field.dispatchEvent(new Event('input', {{ bubbles: true }}))",
        labelled(label),
        json!(value)
    );
    page.run(&script).await;
}
