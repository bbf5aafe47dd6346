//! Tests of the timeline in the page: long conversations, scrolling, grouping.

use serde_json::json;

use crate::test_server::{SpaceFixture, TestServer, manual};

async fn fill(test_space: &SpaceFixture, n: usize) {
    for i in 0..n {
        test_space
            .post(&format!(
                "Line number {i}, and a few more words to fill it."
            ))
            .await;
    }
}

#[tokio::test]
async fn a_long_conversation_keeps_few_nodes_and_a_stable_place() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    fill(&test_space, 400).await;
    let page = test_space.page().await;
    page.see_text(".message", "Line number 399").await;

    for target in [340, 280, 220, 160, 100, 40] {
        let oldest = "Number(document.querySelector('.message').dataset.seq)";
        page.truth(
            "older messages are loaded",
            &format!("(document.querySelector('.timeline').scrollTop = 300, {oldest} <= {target})"),
        )
        .await;
        assert!(page.n(".message").await <= 320);
    }
    let shift = page.run(MEASURE_SHIFT).await;

    assert!(
        shift.as_f64().is_some_and(|px| px.abs() < 2.0),
        "shifted by {shift} px"
    );
    page.truth(
        "the first message is reached",
        "(document.querySelector('.timeline').scrollTop = 0, document.querySelector('.message').dataset.seq === '1')",
    )
    .await;
}

/// Loads older messages and returns by how many pixels the message in view moved.
const MEASURE_SHIFT: &str = "
    const timeline = document.querySelector('.timeline')
    const oldest = () => Number(document.querySelector('.message').dataset.seq)
    timeline.scrollTop = timeline.scrollHeight
    const top = timeline.getBoundingClientRect().top
    timeline.scrollTop = 400
    const read = [...document.querySelectorAll('.message')].find((it) => it.getBoundingClientRect().bottom > top)
    const before = read.getBoundingClientRect().top
    const first = oldest()
    return new Promise((resolve) => {
        const look = () => {
            if (oldest() < first || first === 1) resolve(read.getBoundingClientRect().top - before)
            else requestAnimationFrame(look)
        }
        look()
    })
";

#[tokio::test]
async fn a_reader_further_up_is_notified_and_not_scrolled() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    fill(&test_space, 60).await;
    let page = test_space.page().await;
    page.see_text(".message", "Line number 59").await;
    page.run("document.querySelector('.timeline').scrollTop -= 900")
        .await;
    page.see_text(".jump", "Latest").await;
    let place = "document.querySelector('.timeline').scrollTop";
    let before = page.value(place).await;

    let speaker = test_space.memberships[0]["id"].as_i64();
    test_space
        .ann
        .generate(test_space.conversation, speaker)
        .await;
    page.see_text(".jump", "1 new").await;
    let after = page.value(place).await;
    page.click(".jump").await;

    assert_eq!(after, before);
    page.see_text(".message", "Hello.").await;
    page.gone(".jump").await;
}

#[tokio::test]
async fn messages_of_one_author_are_grouped_and_days_are_separated() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    fill(&test_space, 3).await;
    let page = test_space.page().await;
    page.see_text(".message", "Line number 2").await;

    let names = "[...document.querySelectorAll('.message__head')].filter((it) => it.checkVisibility()).length";
    assert_eq!(page.value(names).await, json!(1));
    assert_eq!(page.texts(".divider").await, ["Today"]);
}
