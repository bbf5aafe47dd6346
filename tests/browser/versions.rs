//! Tests of swipes and branches in the page.

use serde_json::json;
use thirtyfour::Key;

use crate::page::{Page, Viewport};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{expect, root_of};
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Waits until the newest message is finished and has this text.
async fn tail_says(page: &Page, text: &str) {
    let says = format!(
        "(() => {{ const last = [...document.querySelectorAll('.message')].at(-1); return last?.dataset.state === 'final' && last.querySelector('.message__body').innerText.trim() === {} }})()",
        json!(text)
    );
    page.truth(&format!("the newest message is {text:?}"), &says)
        .await;
}

/// A space in which Ann has posted and Mina has answered "Hello."
async fn answered(test_server: &TestServer, screen: Viewport) -> (SpaceFixture, Page) {
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Good evening.").await;
    let mina = test_space.memberships[0]["id"].as_i64();
    expect(
        202,
        test_space.ann.generate(test_space.conversation, mina).await,
    );
    let page = test_space.page_on(screen).await;
    tail_says(&page, "Hello.").await;
    (test_space, page)
}

async fn press_tool(page: &Page, css: &str, label: &str) {
    page.click(css).await;
    page.click(&format!(".message__tools [aria-label='{label}']"))
        .await;
}

const TAIL: &str = ".message:last-child .message__body";

#[tokio::test]
async fn the_newest_message_gets_a_swipe_and_every_user_sees_the_selection() {
    let test_server = TestServer::open().await;
    let (test_space, page) = answered(&test_server, Viewport::Desktop).await;
    let other = test_space.page().await;
    test_server
        .upstream
        .next(ResponseScript::say("Good day to you."));
    let gate = test_server.upstream.gate();

    press_tool(&page, TAIL, "Regenerate").await;
    gate.step();
    page.see_text(".message[data-state=streaming]", "Good")
        .await;
    let n_messages = page.n(".message").await;
    gate.open();
    tail_says(&page, "Good day to you.").await;
    page.see_text(".swipes__position", "2/2").await;
    tail_says(&other, "Good day to you.").await;

    assert_eq!(n_messages, 2, "the swipe was added as a message of its own");
    page.click(".swipes [aria-label='Previous swipe']").await;
    tail_says(&page, "Hello.").await;
    tail_says(&other, "Hello.").await;
    other.see_text(".swipes__position", "1/2").await;
    assert_eq!(
        page.focus().await,
        "Next swipe",
        "the next arrow lost the focus"
    );
    page.click(".swipes [aria-label='Next swipe']").await;
    tail_says(&other, "Good day to you.").await;
    test_server
        .upstream
        .next(ResponseScript::say("And a third."));
    page.click(".swipes [aria-label='New swipe']").await;
    tail_says(&other, "And a third.").await;
    page.see_text(".swipes__position", "3/3").await;
    assert_eq!(test_space.texts().await, ["Good evening.", "And a third."]);
}

#[tokio::test]
async fn a_touch_gesture_moves_between_swipes() {
    let test_server = TestServer::open().await;
    let (_test_space, page) = answered(&test_server, Viewport::Phone).await;
    test_server
        .upstream
        .next(ResponseScript::say("Good day to you."));

    draw(&page, -160).await;
    tail_says(&page, "Good day to you.").await;
    page.see_text(".swipes__position", "2/2").await;
    draw(&page, 160).await;

    tail_says(&page, "Hello.").await;
    page.see_text(".swipes__position", "1/2").await;
    assert_eq!(
        page.n(".message__tools").await,
        0,
        "the gesture counted as a tap"
    );
}

/// Drags the newest message horizontally by this many pixels.
async fn draw(page: &Page, by: i64) {
    let place = "(() => { const it = [...document.querySelectorAll('.message__body')].at(-1).getBoundingClientRect(); return [200, Math.round(it.top + it.height / 2)] })()";
    let place = page.value(place).await;
    let (x, y) = (
        place[0].as_i64().expect("the position is a number"),
        place[1].as_i64().expect("the position is a number"),
    );
    let touch = async |kind: &str, points: serde_json::Value| {
        let event = json!({"type": kind, "touchPoints": points});
        page.cdp("Input.dispatchTouchEvent", event).await;
    };
    touch("touchStart", json!([{"x": x, "y": y}])).await;
    for part in 1..=4 {
        touch("touchMove", json!([{"x": x + by * part / 4, "y": y}])).await;
    }
    touch("touchEnd", json!([])).await;
}

#[tokio::test]
async fn the_old_text_returns_when_a_swipe_fails_or_is_stopped() {
    let test_server = TestServer::open().await;
    let (test_space, page) = answered(&test_server, Viewport::Desktop).await;
    test_server.upstream.next(ResponseScript::status(400));

    press_tool(&page, TAIL, "Regenerate").await;
    page.see("[data-card=failed]").await;
    tail_says(&page, "Hello.").await;
    test_server
        .upstream
        .next(ResponseScript::say("Good day to you."));
    let gate = test_server.upstream.gate();
    page.click_text("[data-card=failed] button", "Retry").await;
    page.see(".message[data-state=streaming]").await;
    // Before the first word there is no text to keep.
    page.click("[aria-label=Stop]").await;

    tail_says(&page, "Hello.").await;
    gate.open();
    assert_eq!(test_space.texts().await, ["Good evening.", "Hello."]);
}

#[tokio::test]
async fn an_earlier_message_is_regenerated_in_a_branch() {
    let test_server = TestServer::open().await;
    let (test_space, page) = answered(&test_server, Viewport::Desktop).await;
    page.send_message("And then?").await;
    tail_says(&page, "And then?").await;
    test_server
        .upstream
        .next(ResponseScript::say("Good day to you."));

    press_tool(&page, ".message[data-seq='2'] .message__body", "Regenerate").await;
    page.see_text("dialog", "in a branch").await;
    page.press(Key::Escape).await;
    page.gone("dialog").await;
    assert_eq!(
        test_server.upstream.n_requests(),
        1,
        "the question caused a request"
    );
    press_tool(&page, ".message[data-seq='2'] .message__body", "Regenerate").await;
    page.click_text("dialog button", "Create branch").await;

    tail_says(&page, "Good day to you.").await;
    page.see_text(".main__title", "Branch").await;
    assert_eq!(page.n(".message").await, 2);
    assert_eq!(
        test_space.texts().await,
        ["Good evening.", "Hello.", "And then?"]
    );
}

#[tokio::test]
async fn the_greetings_of_a_character_rotate_without_generating() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &[]).await;
    let card = json!({"name": "Mina", "first_mes": "Welcome.", "alternate_greetings": ["Come in.", "Who is there?"]});
    let mina = expect(201, test_space.ann.post("/api/characters", card).await);
    let spaces = expect(200, test_space.ann.get("/api/spaces").await);
    let spaces = spaces["data"].as_array().expect("the response has a list");
    let space = spaces
        .iter()
        .find(|it| root_of(it) == test_space.conversation);
    test_space
        .ann
        .add_character(space.expect("the test space is listed"), &mina)
        .await;
    let page = test_space.page().await;
    tail_says(&page, "Welcome.").await;

    page.see_text(".swipes__position", "1/3").await;
    page.click(".swipes [aria-label='Previous swipe']").await;
    tail_says(&page, "Who is there?").await;
    page.click(".swipes [aria-label='Next swipe']").await;
    tail_says(&page, "Welcome.").await;
    page.click(".swipes [aria-label='Next swipe']").await;

    tail_says(&page, "Come in.").await;
    page.see_text(".swipes__position", "2/3").await;
    assert_eq!(test_server.upstream.n_requests(), 0);
}

#[tokio::test]
async fn a_branch_has_the_same_beginning_and_a_way_back() {
    let test_server = TestServer::open().await;
    let (test_space, page) = answered(&test_server, Viewport::Desktop).await;

    press_tool(&page, TAIL, "Create branch").await;
    page.see_text(".main__title", "Branch").await;
    page.see_text(".main__parent", "Main").await;
    tail_says(&page, "Hello.").await;
    page.send_message("Only here.").await;
    tail_says(&page, "Only here.").await;
    page.see_text(".sidebar-item[data-depth='1']", "Branch")
        .await;
    page.click(".main__parent").await;

    page.see_text(".main__title", "Main").await;
    tail_says(&page, "Hello.").await;
    assert_eq!(test_space.texts().await, ["Good evening.", "Hello."]);
    press_tool(&page, TAIL, "Edit").await;
    page.rewrite(".message__edit textarea", "Else.").await;
    page.write(".message__edit textarea", Key::Enter).await;
    tail_says(&page, "Else.").await;
    assert_eq!(test_space.texts().await, ["Good evening.", "Else."]);
    page.click(".sidebar-item[data-depth='1']").await;
    page.see_text(".main__title", "Branch").await;
    page.see_text(".message[data-seq='2']", "Hello.").await;
}
