//! Tests of Continue in the page: the newest message grows in its place, and the former text stays
//! reachable.

use serde_json::json;
use thirtyfour::Key;

use crate::page::{FIELD, Page, Viewport};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

const TAIL: &str = ".message:last-child .message__body";

/// Waits until the newest message is finished and has this text.
async fn tail_says(page: &Page, text: &str) {
    let says = format!(
        "(() => {{ const last = [...document.querySelectorAll('.message')].at(-1); return last?.dataset.state === 'final' && last.querySelector('.message__body').innerText.trim() === {} }})()",
        json!(text)
    );
    page.truth(&format!("the newest message is {text:?}"), &says)
        .await;
}

/// A space in which Ann has posted and Mina has answered "Once upon", which is cut.
async fn cut_reply(test_server: &TestServer, screen: Viewport) -> (SpaceFixture, Page) {
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Tell me a story.").await;
    let script = ResponseScript::stream().role().text("Once upon");
    test_server.upstream.next(script.finish("length").done());
    let mina = test_space.memberships[0]["id"].as_i64();
    expect(
        202,
        test_space.ann.generate(test_space.conversation, mina).await,
    );
    let page = test_space.page_on(screen).await;
    tail_says(&page, "Once upon").await;
    (test_space, page)
}

#[tokio::test]
async fn a_cut_reply_is_continued_in_its_place_for_every_user() {
    for screen in [Viewport::Desktop, Viewport::Phone] {
        let test_server = TestServer::open().await;
        let (test_space, page) = cut_reply(&test_server, screen).await;
        let other = test_space.page().await;
        test_server.upstream.next(ResponseScript::say(" the sea."));
        let gate = test_server.upstream.gate();

        page.click(TAIL).await;
        page.see(".message__tools button:first-child[aria-label=Continue]")
            .await;
        page.click(".message__tools [aria-label=Continue]").await;
        gate.step();
        gate.step();
        for shown in [&page, &other] {
            shown
                .see_text(".message[data-state=streaming]", "Once upon the")
                .await;
            assert_eq!(shown.n(".message").await, 2, "another bubble appeared");
        }
        gate.open();

        for shown in [&page, &other] {
            tail_says(shown, "Once upon the sea.").await;
            shown.see_text(".swipes__position", "2/2").await;
        }
        page.click(".swipes [aria-label='Previous swipe']").await;
        tail_says(&page, "Once upon").await;
        tail_says(&other, "Once upon").await;
        assert_eq!(test_space.texts().await, ["Tell me a story.", "Once upon"]);
    }
}

#[tokio::test]
async fn a_reload_during_a_continue_shows_the_whole_text() {
    let test_server = TestServer::open().await;
    let (test_space, page) = cut_reply(&test_server, Viewport::Desktop).await;
    test_server.upstream.next(ResponseScript::say(" the sea."));
    let gate = test_server.upstream.gate();
    page.click(TAIL).await;
    page.click(".message__tools [aria-label=Continue]").await;
    gate.step();
    gate.step();
    page.see_text(".message[data-state=streaming]", "Once upon the")
        .await;

    let late = test_space.page().await;
    late.see_text(".message[data-state=streaming]", "Once upon the")
        .await;
    gate.open();

    tail_says(&late, "Once upon the sea.").await;
    tail_says(&page, "Once upon the sea.").await;
}

#[tokio::test]
async fn alt_enter_continues_and_only_the_newest_reply_has_the_action() {
    let test_server = TestServer::open().await;
    let (test_space, page) = cut_reply(&test_server, Viewport::Desktop).await;
    test_server.upstream.next(ResponseScript::say(" the sea."));

    page.write(FIELD, Key::Alt + Key::Enter).await;
    tail_says(&page, "Once upon the sea.").await;

    test_space.post("Go on.").await;
    tail_says(&page, "Go on.").await;
    page.click(".message:nth-last-child(2) .message__body")
        .await;
    page.see(".message__tools [aria-label=Regenerate]").await;
    assert_eq!(page.n(".message__tools [aria-label=Continue]").await, 0);
    page.click(TAIL).await;
    assert_eq!(page.n(".message__tools [aria-label=Continue]").await, 0);
}
