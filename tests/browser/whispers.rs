//! Tests of whispers in the page: who sees them, and that everyone knows it before sending.

use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::device::SMALL_TARGETS;
use crate::page::{FIELD, Page, Viewport};
use crate::several_users::SeveralUsers;
use crate::support::http_client::{HttpClient, expect};
use crate::support::poll;

const CANARY: &str = "xylophone";
const WHISPER: &str = ".message--whisper[data-state=final]";
/// Who sees the next message.
const SEEN_BY: &str = ".whisper:not([hidden]) .whisper__text";

/// Records everything that a page receives.
const RECORD: &str = "
    window.received = []
    const Native = WebSocket
    window.WebSocket = class extends Native {
      constructor(...args) {
        super(...args)
        this.addEventListener('message', ({ data }) => window.received.push(data))
      }
    }
    const load = window.fetch
    window.fetch = async (...args) => {
      const answer = await load(...args)
      answer.clone().text().then((text) => window.received.push(text))
      return answer
    }";

/// Opens a browser of this user that records what it receives.
async fn recording_page(person: &HttpClient, path: &str) -> Page {
    let page = Page::open(person.base(), Viewport::Desktop).await;
    page.set_cookie(person.cookie()).await;
    let script = json!({"source": RECORD});
    page.cdp("Page.addScriptToEvaluateOnNewDocument", script)
        .await;
    page.go(path).await;
    page.see(FIELD).await;
    page.see(".intro").await;
    page
}

/// Asserts that neither the document nor anything that the page has received contains a text, after
/// it has received `later`.
async fn assert_never_received(page: &Page, text: &str, later: &str) {
    let received = "[...window.received, document.documentElement.outerHTML].join('\\n')";
    page.truth(
        "a later text has arrived",
        &format!("{received}.includes({})", json!(later)),
    )
    .await;
    let includes = format!("{received}.includes({})", json!(text));
    assert_eq!(page.value(&includes).await, json!(false), "{text}");
}

/// Chooses these members, who have no other recipients yet.
async fn choose(page: &Page, names: &[&str]) {
    page.click(".composer__whisper").await;
    for name in names {
        page.click_text(".recipients__row", name).await;
    }
    page.click_text("dialog button", "Done").await;
}

async fn set_list_order(users: &SeveralUsers) {
    let path = format!("/api/spaces/{}", users.space);
    let rules = json!({"reply_order": "list", "user_turn_debounce_ms": 0});
    expect(200, users.test_space.ann.patch(&path, rules).await);
}

async fn written(page: &Page) -> Value {
    page.value(&format!("document.querySelector('{FIELD}').value"))
        .await
}

#[tokio::test]
async fn a_whisper_reaches_only_those_whom_the_composer_names() {
    let users = SeveralUsers::with("member").await;
    let cleo = users.guest("cleo").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    let outsider = recording_page(&cleo, &users.test_space.path()).await;

    choose(&ann, &["bob"]).await;
    ann.see_text(SEEN_BY, "Only bob can see this. No character replies.")
        .await;
    ann.send_message(CANARY).await;

    ann.see_text(WHISPER, "Whisper to bob").await;
    bob.see_text(WHISPER, "Whisper to you").await;
    bob.see_text(WHISPER, CANARY).await;
    ann.see_text(SEEN_BY, "Only bob").await;
    ann.click("[data-act=everyone]").await;
    ann.gone(SEEN_BY).await;
    ann.send_message("Good evening.").await;
    outsider.see_text(".message", "Good evening.").await;
    assert_never_received(&outsider, CANARY, "rev_advanced").await;
    assert_eq!(outsider.n(".message").await, 1);
    assert_eq!(bob.n(WHISPER).await, 1);
}

#[tokio::test]
async fn a_reply_to_a_whisper_is_one_unless_it_is_made_public() {
    let users = SeveralUsers::with("member").await;
    let cleo = users.guest("cleo").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    let outsider = recording_page(&cleo, &users.test_space.path()).await;
    choose(&ann, &["bob"]).await;
    ann.send_message("Psst").await;
    bob.see_text(WHISPER, "Psst").await;

    bob.click(WHISPER).await;
    bob.click(".message__tools [aria-label=Reply]").await;
    bob.see_text(SEEN_BY, "Only ann can see this.").await;
    bob.send_message(CANARY).await;
    ann.see_text(WHISPER, CANARY).await;
    bob.click(WHISPER).await;
    bob.click(".message__tools [aria-label=Reply]").await;
    bob.see(".composer__quote:not([hidden])").await;
    bob.click("[data-act=everyone]").await;
    bob.gone(SEEN_BY).await;
    bob.send_message("For everyone").await;

    outsider.see_text(".message", "For everyone").await;
    assert_never_received(&outsider, CANARY, "For everyone").await;
    assert_never_received(&outsider, "Psst", "For everyone").await;
    assert_eq!(outsider.n(".message__quote:not([hidden])").await, 0);
    assert_eq!(ann.n(WHISPER).await, 2);
}

#[tokio::test]
async fn the_command_names_the_members_and_a_wrong_name_keeps_the_text() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);

    ann.write(FIELD, "/w Bruno hide").await;
    ann.write(FIELD, Key::Enter).await;
    ann.see_text(SEEN_BY, "No member is called “Bruno”.").await;
    assert_eq!(written(&ann).await, "/w Bruno hide");
    ann.rewrite(FIELD, "/w Rook, bob, hide").await;
    ann.write(FIELD, Key::Enter).await;
    ann.see_text(SEEN_BY, "No member is called “hide”.").await;
    ann.rewrite(FIELD, "/w Rook, bob hide").await;
    ann.see_text(SEEN_BY, "Only Rook and bob can see this.")
        .await;
    ann.write(FIELD, Key::Enter).await;

    bob.see_text(WHISPER, "Whisper to Rook and you").await;
    bob.see_text(".message--whisper .message__body", "hide")
        .await;
    assert_eq!(users.test_space.texts().await, ["hide"]);
    ann.reload().await;
    ann.see_text(SEEN_BY, "Only Rook and bob can see this.")
        .await;
}

#[tokio::test]
async fn a_whispered_reply_is_nameless_for_others() {
    let users = SeveralUsers::with("member").await;
    set_list_order(&users).await;
    let cleo = users.guest("cleo").await;
    let ann = users.test_space.page().await;
    let outsider = recording_page(&cleo, &users.test_space.path()).await;
    users.test_server.upstream.reply_with(CANARY);
    let gate = users.test_server.upstream.gate();

    ann.send_message("/w Rook Where is the key?").await;

    ann.see_text(".queue__text", "Rook is writing").await;
    outsider
        .see_text(".queue__text", "A private reply is being written")
        .await;
    assert_eq!(outsider.n(".message").await, 0);
    let shown = outsider.texts(".queue").await.concat();
    assert!(!shown.contains("Rook is"), "{shown}");
    gate.open();
    ann.answered_by("Rook").await;
    ann.see_text(WHISPER, CANARY).await;
    ann.see_text(".message--whisper:not(.message--own)", "Whisper to you")
        .await;
    outsider
        .truth(
            "the queue is idle",
            "document.querySelector('.queue__box').dataset.state === 'idle'",
        )
        .await;
    assert_never_received(&outsider, CANARY, "rev_advanced").await;
    assert_never_received(&outsider, "Where is the key?", "rev_advanced").await;
}

#[tokio::test]
async fn a_triggered_reply_shows_who_will_see_it_and_can_be_public() {
    let users = SeveralUsers::with("member").await;
    let (ann, bob) = (users.test_space.page().await, users.bobs_page().await);
    ann.send_message("/w Mina Where is the key?").await;
    ann.see_text(".queue__text", "Only Mina and you will see the reply.")
        .await;

    ann.click("[aria-label='Trigger Mina. Only Mina and you will see the reply.']")
        .await;
    ann.answered_by("Mina").await;
    ann.see_text(".message--whisper:not(.message--own)", "Whisper to you")
        .await;
    ann.see("[aria-label='Trigger Rook. Everyone will see the reply.']")
        .await;
    ann.click("[data-act=public]").await;
    ann.see_text(".queue__text", "Everyone will see the reply.")
        .await;
    ann.click("[aria-label='Trigger Mina. Everyone will see the reply.']")
        .await;

    assert!(!bob.answered_by("Mina").await.is_empty());
    assert_eq!(bob.n(".message").await, 1);
    ann.gone("[data-act=public]").await;
}

#[tokio::test]
async fn on_a_phone_members_are_chosen_by_touch_and_nothing_scrolls_sideways() {
    let users = SeveralUsers::with("member").await;
    let page = users.test_space.page_on(Viewport::Phone).await;

    page.click(".composer__whisper").await;
    page.click_text(".recipients__row", "Mina").await;
    page.click_text(".recipients__row", "bob").await;
    let small = SMALL_TARGETS.replace(
        "document.querySelectorAll",
        "document.querySelector('dialog').querySelectorAll",
    );
    assert_eq!(page.value(&small).await, json!([]));
    page.click_text("dialog button", "Done").await;

    page.see_text(SEEN_BY, "Only Mina and bob can see this.")
        .await;
    let here = "document.querySelector('.composer').querySelectorAll";
    let small = SMALL_TARGETS.replace("document.querySelectorAll", here);
    assert_eq!(page.value(&small).await, json!([]));
    page.write(FIELD, "Psst").await;
    page.click("[aria-label=Send]").await;
    page.see(WHISPER).await;
    let width = page.value("document.documentElement.scrollWidth").await;
    assert_eq!(width, json!(390));
    page.click(".whisper__member [data-act^=remove]").await;
    page.see_text(SEEN_BY, "Only bob").await;
}

#[tokio::test]
async fn a_recipient_who_has_left_must_be_chosen_again() {
    let users = SeveralUsers::with("member").await;
    let page = users.test_space.page().await;
    choose(&page, &["bob"]).await;
    page.write(FIELD, CANARY).await;

    let path = format!("/api/memberships/{}", users.membership);
    let (status, _) = users.test_space.ann.delete(&path).await;

    assert!(status < 300, "{status}");
    page.see_text(SEEN_BY, "No longer a member: bob").await;
    page.write(FIELD, Key::Enter).await;
    assert_eq!(written(&page).await, CANARY);
    page.click("[data-act=everyone]").await;
    page.write(FIELD, Key::Enter).await;
    page.see_text(".message:not(.message--whisper)", CANARY)
        .await;
}

#[tokio::test]
async fn a_character_can_be_limited_to_what_it_heard() {
    let users = SeveralUsers::with("member").await;
    let page = users.test_space.page().await;
    page.click_text(".member__button", "Mina").await;

    page.click("[data-act=memory-heard]").await;

    let mina = users.test_space.memberships[0]["id"].clone();
    let path = format!("/api/spaces/{}/memberships", users.space);
    let is_limited = async || {
        let members = expect(200, users.test_space.ann.get(&path).await);
        let members = members["data"].as_array().cloned().unwrap_or_default();
        let found = members.into_iter().find(|it| it["id"] == mina)?;
        (found["settings"]["remembers_only_what_it_heard"] == true).then_some(())
    };
    poll::find_within(Duration::from_secs(20), is_limited)
        .await
        .expect("the setting is stored");
    page.reload().await;
    page.click_text(".member__button", "Mina").await;
    page.truth(
        "the switch is on",
        "document.querySelector('[data-act=memory-heard]').checked",
    )
    .await;
}
