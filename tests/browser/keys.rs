//! Tests of the page of API keys: creating and revoking keys, and its examples.

use std::path::Path;
use std::{env, fs};

use serde_json::json;
use thirtyfour::Key;
use tokio::process::Command;

use crate::device::SMALL_TARGETS;
use crate::page::{Page, Viewport};
use crate::test_server::{TestServer, manual};

/// The width of the page, including what is scrolled out of view.
const WIDTH: &str = "Math.max(document.documentElement.scrollWidth, \
    document.querySelector('.settings').scrollWidth)";

async fn example(page: &Page) -> String {
    let text = "document.querySelector('.example__code').textContent";
    let text = page.value(text).await;
    text.as_str().expect("an example is text").to_owned()
}

async fn new_key(page: &Page) -> String {
    page.write("[name=name]", "my script").await;
    page.click_text("button", "Create key").await;
    let key = page.see_text(".secret", "trp_").await.text().await;
    key.expect("the key is text")
}

#[tokio::test]
async fn an_api_key_is_shown_once_and_can_be_revoked() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &[]).await;
    let page = test_space.page().await;

    page.go("/settings/keys").await;
    let key = new_key(&page).await;
    page.reload().await;
    page.see_text(".list__item", "my script").await;
    let is_there = page
        .value(&format!(
            "document.body.textContent.includes({})",
            json!(key)
        ))
        .await;
    page.click(".list__item [aria-label='Revoke my script']")
        .await;
    page.click_text("dialog button", "Revoke").await;

    assert_eq!(is_there, json!(false));
    page.see_text("main", "No keys yet").await;
}

#[tokio::test]
async fn the_examples_contain_the_address_the_newest_key_and_a_model_and_run() {
    let test_server = TestServer::open().await;
    test_server.upstream.reply_with("Hello to you.");
    let test_space = test_server.create_space(manual(), &[]).await;
    let page = test_space.page().await;
    page.go("/settings/keys").await;
    page.see_text(".example", "YOUR_API_KEY").await;
    let base = test_space.ann.base();

    let key = new_key(&page).await;
    page.see_text(".example__code", "scripted").await;
    let curl = example(&page).await;
    page.click_text(".example .choice", "Python").await;
    let python = example(&page).await;
    page.click_text(".example .choice", "JavaScript").await;
    page.press(Key::Tab).await;
    let javascript = example(&page).await;
    page.click(".example__copy").await;
    page.see_text(".toast", "Copied").await;

    let has = |text: &str| {
        [key.as_str(), &format!("{base}/v1")]
            .iter()
            .all(|it| text.contains(it))
    };
    assert!(
        has(&curl) && has(&python) && has(&javascript),
        "{curl}{python}{javascript}"
    );
    assert!(python.contains("model=\"scripted\"") && javascript.contains("model: \"scripted\""));
    let ran = Command::new("bash")
        .args(["-eu", "-c", &curl])
        .output()
        .await;
    let printed =
        String::from_utf8(ran.expect("bash is installed").stdout).expect("the output is UTF-8");
    let (whole, stream) = printed
        .split_once("event: response.created")
        .expect("the output has two responses");
    assert!(whole.contains("\"text\":\"Hello to you.\""), "{printed}");
    assert!(stream.contains("event: response.completed"), "{printed}");
}

#[tokio::test]
async fn the_page_of_keys_fits_a_phone_and_a_laptop_in_light_and_dark() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &[]).await;
    for (screen, width) in [(Viewport::Desktop, 1280), (Viewport::Phone, 390)] {
        let page = test_space.page_on(screen).await;
        page.go("/settings/keys").await;
        new_key(&page).await;
        page.see_text(".example__code", "scripted").await;

        for theme in ["light", "dark"] {
            page.run(&format!(
                "document.documentElement.dataset.theme = '{theme}'"
            ))
            .await;
            page.run("document.querySelector('.example').scrollIntoView()")
                .await;
            keep(&page, &format!("keys-{width}-{theme}.png")).await;
        }

        let wide = page.value(WIDTH).await;
        assert_eq!(wide, json!(width));
        if width == 390 {
            assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
        }
    }
}

/// Stores a screenshot if `TROUPE_PICTURES` names a folder.
async fn keep(page: &Page, name: &str) {
    if let Ok(folder) = env::var("TROUPE_KEEP_PICTURES") {
        let picture = page.picture().await;
        fs::write(Path::new(&folder).join(name), picture).expect("write the screenshot");
    }
}
