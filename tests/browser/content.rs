//! Tests that malicious text in a real page loads nothing and affects only itself.

use serde_json::json;

use crate::support::poll;
use crate::support::trap_server::TrapServer;
use crate::test_server::{TestServer, list};

/// Elements that make a browser load something, except our icons, which are part of the page.
const FETCHING: &str = "document.querySelectorAll('.message__body :is(img, picture, source, video, audio, iframe, object, embed, link, style, script, meta, base, form)').length";

/// Each way in which a text can refer to a picture.
fn pictures(port: u16) -> Vec<String> {
    let all = include_str!("../pictures.md").trim_end().split("\n----\n");
    all.map(|it| it.replace("URL", "http://127.0.0.1:PORT/?q=secret"))
        .map(|it| it.replace("PORT", &port.to_string()))
        .collect()
}

#[tokio::test]
async fn no_image_is_fetched_before_its_link_is_opened() {
    let decoy = TrapServer::start();
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &[]).await;
    let pictures = pictures(decoy.port);
    for text in &pictures {
        test_space.post(text).await;
    }

    let page = test_space.page().await;

    let n = format!(
        "document.querySelectorAll('.message').length === {}",
        pictures.len()
    );
    page.truth("every message is shown", &n).await;
    // After the load event the page has sent every request that it would send.
    page.truth("the page has loaded", "document.readyState === 'complete'")
        .await;
    let elsewhere = "performance.getEntriesByType('resource').map((it) => it.name).filter((it) => !it.startsWith(location.origin) && !it.startsWith('data:'))";
    assert_eq!(page.value(elsewhere).await, json!([]));
    assert_eq!(page.value(FETCHING).await, json!(0));
    eprintln!(
        "{} pictures: {} connections",
        pictures.len(),
        decoy.n_came()
    );
    assert_eq!(decoy.n_came(), 0);

    page.run("document.querySelector('.message__body a.external-image').click()")
        .await;

    poll::until("a click on a link connects to its server", async || {
        (decoy.n_came() > 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_link_that_changes_the_text_direction_affects_only_itself() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &[]).await;
    test_space
        .post("[\u{202e}evil](https://a.example) behind and `\u{202e}code` then")
        .await;

    let page = test_space.page().await;

    page.see(".message__body a").await;
    let edge = |css: &str, side: &str| {
        format!("document.querySelector('.message__body {css}').getBoundingClientRect().{side}")
    };
    // The text after the link is to its right, as without the mark inside the link.
    let behind = "(() => { const range = document.createRange(); const text = document.querySelector('.message__body a').nextSibling; range.setStart(text, 1); range.setEnd(text, 7); return range.getBoundingClientRect() })()";
    let is_right = format!("{behind}.left >= {}", edge("a", "right"));
    assert_eq!(page.value(&is_right).await, json!(true));
    let is_right = format!("{} >= {behind}.right", edge("code", "left"));
    assert_eq!(page.value(&is_right).await, json!(true));
}
