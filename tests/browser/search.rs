//! Tests of the search in the page, and of the jump to a message, however old it is.

use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::support::file_uploads::bring;
use crate::support::http_client::{expect, id};
use crate::support::poll;
use crate::test_server::{SpaceFixture, TestServer, manual};

/// A space with an imported chat of `n` lines, of which line `found` is about a heron.
async fn long_space(test_server: &TestServer, n: usize, found: usize) -> SpaceFixture {
    let mut test_space = test_server.create_space(manual(), &["Ada"]).await;
    let line = |i: usize| {
        let about = if i == found { "a heron" } else { "the tide" };
        let text = format!("Line {i} is about {about}, and a few more words to fill it.");
        let name = if i.is_multiple_of(2) { "Ada" } else { "Kai" };
        json!({"name": name, "is_user": i % 2 == 1, "mes": text}).to_string()
    };
    let head =
        json!({"user_name": "Kai", "character_name": "Ada", "chat_metadata": {}}).to_string();
    let file: Vec<_> = std::iter::once(head).chain((1..=n).map(line)).collect();
    let import_path = format!(
        "/api/spaces/{}/import",
        test_space.memberships[0]["space_id"]
    );
    let file = file.join("\n").into_bytes();
    let begun = expect(
        202,
        bring(&test_space.ann, &import_path, "tides.jsonl", &file).await,
    );
    let path = format!("/api/imports/{}", id(&begun));
    let minute = Duration::from_secs(60);
    test_space.conversation = poll::until_within(minute, "the chat is imported", async || {
        expect(200, test_space.ann.get(&path).await)["conversation_id"].as_i64()
    })
    .await;
    test_space
}

/// Ada posts a reply.
async fn answer(test_space: &SpaceFixture) {
    let ada = test_space.memberships[0]["id"].as_i64();
    expect(
        202,
        test_space.ann.generate(test_space.conversation, ada).await,
    );
}

/// Searches for the heron and jumps to the message, by keyboard only.
async fn jump(page: &Page) {
    page.press(Key::Control + "k").await;
    page.write(".search input[type=search]", "heron").await;
    page.see_text(".search__hit[aria-selected=true]", "heron")
        .await;
    page.press(Key::Enter).await;
    page.see_text(".message--found", "heron").await;
    page.truth(
        "the found message is focused",
        "document.activeElement.matches('.message--found')",
    )
    .await;
}

/// The sequence numbers of the messages on the page, in order.
async fn places(page: &Page) -> Vec<i64> {
    let seqs = "[...document.querySelectorAll('.message')].map((it) => Number(it.dataset.seq))";
    let seqs = page.value(seqs).await;
    let seqs = seqs.as_array().expect("the result is a list").iter();
    seqs.filter_map(Value::as_i64).collect()
}

/// Asserts that no number is missing or repeated.
fn assert_whole(places: &[i64]) {
    let pairs = places.windows(2);
    let wrong: Vec<_> = pairs.filter(|it| it[1] != it[0] + 1).collect();
    assert!(wrong.is_empty(), "{wrong:?} in {places:?}");
}

/// An expression for the number of requests whose address contains `part`.
fn calls(part: &str) -> String {
    format!(
        "performance.getEntriesByType('resource').filter((it) => it.name.includes({})).length",
        json!(part)
    )
}

#[tokio::test]
async fn after_a_jump_back_scrolling_reaches_the_newest_without_a_gap() {
    let test_server = TestServer::open().await;
    let test_space = long_space(&test_server, 400, 60).await;
    let page = test_space.page().await;
    page.see_text(".message", "Line 400 ").await;

    jump(&page).await;
    let there = places(&page).await;
    assert!(there.contains(&60) && !there.contains(&300), "{there:?}");
    assert_whole(&there);
    page.see_text(".jump", "Latest").await;
    answer(&test_space).await;
    page.see_text(".jump", "1 new").await;
    assert_eq!(places(&page).await, there);

    for target in [160, 220, 280, 340, 401] {
        let newest = "Number([...document.querySelectorAll('.message')].at(-1).dataset.seq)";
        page.truth(
            "newer messages are loaded",
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
        "the newest message is reached",
        "(document.querySelector('.timeline').scrollTop += 1500, document.querySelector('.jump').hidden)",
    )
    .await;
    test_space.post("It is me again.").await;
    page.see_text(".message:last-child", "It is me again.")
        .await;
    assert_whole(&places(&page).await);
}

#[tokio::test]
async fn one_button_returns_from_a_jump_and_shows_new_messages_once() {
    let test_server = TestServer::open().await;
    let test_space = long_space(&test_server, 400, 60).await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.go(&test_space.path()).await;
    page.see_text(".message", "Line 400 ").await;
    let hit = expect(200, test_space.ann.get("/api/search?q=heron").await)["data"][0].clone();

    page.go(&format!("{}#m-{}", test_space.path(), hit["message_id"]))
        .await;
    page.see_text(".message--found", "heron").await;
    answer(&test_space).await;
    page.see_text(".jump", "1 new").await;
    page.click(".jump").await;

    page.see_text(".message:last-child", "Hello.").await;
    page.gone(".jump").await;
    page.truth(
        "the newest message is in view",
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
    let test_space = long_space(&test_server, 10_000, 17).await;
    let page = test_space.page().await;
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
        "the found message is in view",
        "(() => { const it = document.querySelector('.message--found').getBoundingClientRect()
         return it.top >= 0 && it.bottom <= innerHeight })()",
    )
    .await;
}
