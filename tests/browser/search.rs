//! Tests of the search in the page, and of the jump to a message, however old it is.

use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::support::file_uploads::bring;
use crate::support::http_client::{expect, id};
use crate::support::poll;
use crate::test_server::{SpaceFixture, TestServer, manual};

/// A room with a chat of `n` lines that came out of a file, the one at `found` about a heron.
async fn long_room(test_server: &TestServer, n: usize, found: usize) -> SpaceFixture {
    let mut room = test_server.room(manual(), &["Ada"]).await;
    let line = |i: usize| {
        let about = if i == found { "a heron" } else { "the tide" };
        let text = format!("Line {i} is about {about}, and a few more words to fill it.");
        let name = if i.is_multiple_of(2) { "Ada" } else { "Kai" };
        json!({"name": name, "is_user": i % 2 == 1, "mes": text}).to_string()
    };
    let head =
        json!({"user_name": "Kai", "character_name": "Ada", "chat_metadata": {}}).to_string();
    let file: Vec<_> = std::iter::once(head).chain((1..=n).map(line)).collect();
    let door = format!("/api/spaces/{}/import", room.cast[0]["space_id"]);
    let file = file.join("\n").into_bytes();
    let begun = expect(202, bring(&room.ann, &door, "tides.jsonl", &file).await);
    let path = format!("/api/imports/{}", id(&begun));
    let minute = Duration::from_secs(60);
    room.conversation = poll::until_within(minute, "the chat is here", async || {
        expect(200, room.ann.get(&path).await)["conversation_id"].as_i64()
    })
    .await;
    room
}

/// Ada says hello.
async fn answer(room: &SpaceFixture) {
    let ada = room.cast[0]["id"].as_i64();
    expect(202, room.ann.generate(room.conversation, ada).await);
}

/// Looks for the heron and goes there, with the keyboard alone.
async fn jump(page: &Page) {
    page.press(Key::Control + "k").await;
    page.write(".search input[type=search]", "heron").await;
    page.see_text(".search__hit[aria-selected=true]", "heron")
        .await;
    page.press(Key::Enter).await;
    page.see_text(".message--found", "heron").await;
    page.truth(
        "one is at the message",
        "document.activeElement.matches('.message--found')",
    )
    .await;
}

/// The places of what is on the page, in order.
async fn places(page: &Page) -> Vec<i64> {
    let seqs = "[...document.querySelectorAll('.message')].map((it) => Number(it.dataset.seq))";
    let seqs = page.value(seqs).await;
    let seqs = seqs.as_array().expect("a list").iter();
    seqs.filter_map(Value::as_i64).collect()
}

/// Neither a hole nor a double.
fn assert_whole(places: &[i64]) {
    let pairs = places.windows(2);
    let wrong: Vec<_> = pairs.filter(|it| it[1] != it[0] + 1).collect();
    assert!(wrong.is_empty(), "{wrong:?} in {places:?}");
}

/// The calls of a kind that the page has made.
fn calls(part: &str) -> String {
    format!(
        "performance.getEntriesByType('resource').filter((it) => it.name.includes({})).length",
        json!(part)
    )
}

#[tokio::test]
async fn after_a_jump_back_scrolling_reaches_the_newest_without_a_gap() {
    let test_server = TestServer::open().await;
    let room = long_room(&test_server, 400, 60).await;
    let page = room.page().await;
    page.see_text(".message", "Line 400 ").await;

    jump(&page).await;
    let there = places(&page).await;
    assert!(there.contains(&60) && !there.contains(&300), "{there:?}");
    assert_whole(&there);
    page.see_text(".jump", "Latest").await;
    answer(&room).await;
    page.see_text(".jump", "1 new").await;
    assert_eq!(places(&page).await, there);

    for target in [160, 220, 280, 340, 401] {
        let newest = "Number([...document.querySelectorAll('.message')].at(-1).dataset.seq)";
        page.truth(
            "newer messages come",
            &format!(
                "(document.querySelector('.timeline').scrollTop += 1500, {newest} >= {target})"
            ),
        )
        .await;
        assert_whole(&places(&page).await);
        assert!(page.n(".message").await <= 320);
    }
    page.see_text(".message:last-child", "Hello.").await;
    page.truth(
        "the end is the end",
        "(document.querySelector('.timeline').scrollTop += 1500, document.querySelector('.jump').hidden)",
    )
    .await;
    room.post("It is me again.").await;
    page.see_text(".message:last-child", "It is me again.")
        .await;
    assert_whole(&places(&page).await);
}

#[tokio::test]
async fn one_button_returns_from_a_jump_and_shows_new_messages_once() {
    let test_server = TestServer::open().await;
    let room = long_room(&test_server, 400, 60).await;
    let page = room.page_on(Viewport::Phone).await;
    page.go(&room.path()).await;
    page.see_text(".message", "Line 400 ").await;
    let hit = expect(200, room.ann.get("/api/search?q=heron").await)["data"][0].clone();

    page.go(&format!("{}#m-{}", room.path(), hit["message_id"]))
        .await;
    page.see_text(".message--found", "heron").await;
    answer(&room).await;
    page.see_text(".jump", "1 new").await;
    page.click(".jump").await;

    page.see_text(".message:last-child", "Hello.").await;
    page.gone(".jump").await;
    page.truth(
        "one is at the newest message",
        "document.activeElement.matches('.message:last-child')",
    )
    .await;
    let shown = places(&page).await;
    assert_whole(&shown);
    assert_eq!(shown.last(), Some(&401));
    page.write(FIELD, "I am.").await;
    page.click(".composer [type=submit]").await;
    page.see_text(".message:last-child[data-state=final]", "I am.")
        .await;
    assert_whole(&places(&page).await);
}

#[tokio::test]
async fn in_ten_thousand_messages_a_jump_is_one_page_and_few_nodes() {
    let test_server = TestServer::open().await;
    let room = long_room(&test_server, 10_000, 17).await;
    let page = room.page().await;
    page.see_text(".message", "Line 10000 ").await;
    let pages = calls("/messages?");
    assert_eq!(page.value(&pages).await, json!(0));
    assert!(page.n(".message").await <= 50);

    jump(&page).await;

    assert_eq!(page.value(&calls("/search?")).await, json!(1));
    assert_eq!(page.value(&pages).await, json!(1));
    assert!(page.n(".message").await <= 100);
    assert!(page.n("*").await < 4_000);
    page.truth(
        "it is in sight",
        "(() => { const it = document.querySelector('.message--found').getBoundingClientRect()
         return it.top >= 0 && it.bottom <= innerHeight })()",
    )
    .await;
}
