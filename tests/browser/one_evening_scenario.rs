//! A long scenario: the host, a friend on a phone and a guest who joined by a link play with two
//! characters, through a crash of the server. Each must see what is stored.

use serde_json::{Value, json};

use crate::page::{FIELD, Page, Viewport};
use crate::several_users::SeveralUsers;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;

/// The number of messages; a character answers each of them.
const LINES: usize = 15;

/// The line during whose reply the server is killed.
const FATAL: usize = 7;

/// The authors and texts of the messages, in the order of the page.
const SHOWN: &str = "[...document.querySelectorAll('.message[data-state=final]')]
    .map((it) => it.querySelector('.message__body').innerText.trim())";

async fn see_n(pages: &[&Page], n: usize) {
    for page in pages {
        let there = format!(
            "document.querySelectorAll('.message[data-state=final]').length === {n} && document.querySelectorAll('.message').length === {n}"
        );
        page.truth(&format!("{n} messages are shown, all finished"), &there)
            .await;
    }
}

async fn invited(users: &SeveralUsers, name: &str) -> Page {
    let path = format!("/api/spaces/{}/invites", users.space);
    let invite = users
        .test_space
        .ann
        .post(&path, json!({"role": "guest"}))
        .await;
    let invite = expect(201, invite);
    let url = invite["url"].as_str().expect("the response has a link");
    let path = url.strip_prefix(users.test_space.ann.base());
    let page = Page::open(users.test_space.ann.base(), Viewport::Desktop).await;
    page.go(path.expect("the link belongs to this server"))
        .await;
    page.write("[name=display_name]", name).await;
    page.click("button[type=submit]").await;
    page.see(FIELD).await;
    page
}

/// Returns whether a request contains this line as a message of its own, with the name of its author or
/// without. The memory's requests contain messages as parts of a longer text.
fn answers_line(request: &Value, line: usize) -> bool {
    let end = format!("Line {line} of the evening.");
    let messages = request["messages"].as_array();
    let mut contents = messages.into_iter().flatten().map(|it| &it["content"]);
    contents.any(|it| {
        it.as_str()
            .is_some_and(|it| it.len() < 60 && it.ends_with(&end))
    })
}

/// Types a line and sends it with the button, as on a phone.
async fn post(page: &Page, text: &str) {
    page.write(FIELD, text).await;
    page.click("[aria-label=Send]").await;
}

#[tokio::test]
async fn three_users_play_through_a_crash_and_see_what_is_stored() {
    let mut users = SeveralUsers::with("member").await;
    let space = format!("/api/spaces/{}", users.space);
    let order = users
        .test_space
        .ann
        .patch(&space, json!({"reply_order": "list"}));
    expect(200, order.await);
    let mut n_asked = 0;
    let mut has_hung = false;
    users.test_server.upstream.answer_with(move |request| {
        // The memory asks the same model in the background: only the reply to this line hangs.
        if !has_hung && answers_line(request, FATAL) {
            has_hung = true;
            return ResponseScript::stream()
                .role()
                .words("Once upon a time ")
                .hang();
        }
        n_asked += 1;
        let text = format!("And so answer number {n_asked} is given, slowly and with care.");
        ResponseScript::say(&text)
    });
    let host = users.test_space.page().await;
    let friend = Page::open(users.test_space.ann.base(), Viewport::Phone).await;
    friend.set_cookie(users.bob.cookie()).await;
    friend.go(&users.test_space.path()).await;
    friend.see(FIELD).await;
    let guest = invited(&users, "Cleo").await;
    let pages = [&host, &friend, &guest];

    for line in 0..LINES {
        let speaker = pages[line % pages.len()];
        if line != FATAL {
            post(speaker, &format!("Line {line} of the evening.")).await;
            see_n(&pages, 2 * line + 2).await;
            continue;
        }
        post(speaker, &format!("Line {line} of the evening.")).await;
        for page in pages {
            page.see(".message[data-state=streaming]").await;
        }
        users.test_server.server.kill9();
        for page in pages {
            page.see_text(".banner", "Reconnecting").await;
        }
        users.test_server.server.restart().await;
        see_n(&pages, 2 * line + 2).await;
    }

    let stored = users.test_space.texts().await;
    assert_eq!(stored.len(), 2 * LINES);
    for (page, who) in pages.into_iter().zip(["host", "friend", "guest"]) {
        assert_eq!(page.value(SHOWN).await, json!(stored), "{who}");
    }
    assert_eq!(
        friend.value("document.documentElement.scrollWidth").await,
        Value::from(390)
    );
}
