//! Takes the screenshot of the README from the running program.

use std::path::Path;
use std::{env, fs};

use serde_json::json;

use crate::support::fake_provider::script::ResponseScript;
use crate::test_server::TestServer;

/// The first eight bytes of every PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

const MARLO: &str = "*He looks at the boots first, then at the face above them.* \"One room, under the roof. \
    It has a bed, a draft, and opinions.\"\n\n*A key lands beside the bowl.* \"The rest can wait until the \
    soup is gone.\"";

const WREN: &str = "*She turns the sheet around and taps an empty corner.* \"Here. Everything up to the **old \
    ferry** I have walked myself, twice, and it agreed with me both times. Past it the paper is only \
    guessing.\"";

#[tokio::test]
async fn the_screenshot_of_the_readme_can_be_taken() {
    let test_server = TestServer::open().await;
    test_server.upstream.next(ResponseScript::say(MARLO));
    let page = test_server.visitor().await;
    page.go("/").await;
    page.write("[name=display_name]", "Ann Lee").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;
    page.see(".message").await;

    page.send_message("Marlo, is there a room left for the night? I have walked since the ford.")
        .await;
    page.answered_by("Marlo").await;
    test_server.upstream.reply_with(WREN);
    let gate = test_server.upstream.gate();
    page.send_message("Wren, what does your map say about the road ahead?")
        .await;
    for _ in 0..18 {
        gate.step();
    }
    page.see_text(".message[data-state=streaming]", "old ferry")
        .await;
    // Without the pointer on a message its toolbar is hidden.
    let aside = json!({"type": "mouseMoved", "x": 120, "y": 500});
    page.cdp("Input.dispatchMouseEvent", aside).await;
    page.gone(".message__tools").await;
    let picture = page.picture().await;

    assert!(picture.starts_with(PNG));
    if env::var("TROUPE_RENEW_SCREENSHOT").is_ok_and(|it| it == "1") {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/screenshot.png");
        fs::write(file, picture).expect("write the screenshot");
    }
    gate.open();
    page.answered_by("Wren").await;
}
