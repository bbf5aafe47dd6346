//! The picture in the README, taken from the running program.

use std::env;
use std::fs;
use std::path::Path;

use crate::house::House;
use crate::support::upstream::server::Upstream;

/// The first eight bytes of every PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

#[tokio::test]
async fn the_picture_of_the_readme_can_be_taken() {
    let house = House::with(Upstream::start().await, &[]).await;
    let page = house.visitor().await;
    page.go("/").await;
    page.write("[name=display_name]", "Ann Lee").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;
    page.see(".message").await;
    page.click_text("[data-card=demo] button", "Not now").await;
    let n_greetings = page.n(".message").await;

    page.say("Good evening. Is there a room left for the night?")
        .await;
    page.truth(
        "somebody has answered",
        &format!(
            "document.querySelectorAll('.message[data-state=final]').length === {}",
            n_greetings + 2
        ),
    )
    .await;
    page.see_text(".queue", "Your turn").await;
    let picture = page.picture().await;

    assert!(picture.starts_with(PNG));
    if env::var("TROUPE_RENEW_SCREENSHOT").is_ok_and(|it| it == "1") {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/screenshot.png");
        fs::write(file, picture).expect("the picture can be kept");
    }
}
