//! Tests of characters' tools in the page: the settings of a space, approvals, and the calls that a
//! message shows.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{HttpClient, expect, token_of};
use crate::support::poll;
use crate::test_server::{TestServer, list};

const ROLL: &[(&str, &str, &str)] = &[("c1", "troupe_dice", "{\"roll\":\"3d1+4\"}")];
const CARD: &str = ".approvals [data-approval]";

#[tokio::test]
async fn a_moderator_approves_a_tool_call_and_the_message_shows_it() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    page.click("#panel-tab-settings").await;
    page.see("[data-section=tools] select").await;
    page.run(
        "const select = document.querySelector('[data-section=tools] select')
         select.value = 'with_approval'
         select.form.requestSubmit()",
    )
    .await;
    page.see_text(".toast", "Saved").await;
    let path = format!("/api/conversations/{}", test_space.conversation);
    let space = expect(200, test_space.ann.get(&path).await)["space_id"]
        .as_i64()
        .unwrap();
    let kept = expect(
        200,
        test_space.ann.get(&format!("/api/spaces/{space}")).await,
    );
    assert_eq!(kept["settings"]["tools"], json!({"dice": "with_approval"}));
    let invite = test_space.ann.invite(space, json!({"role": "guest"})).await;
    let (guest, _) =
        HttpClient::join_by_link(test_space.ann.base(), token_of(&invite), "Bob").await;
    let theirs = Page::open(test_space.ann.base(), Viewport::Phone).await;
    theirs.set_cookie(guest.cookie()).await;
    theirs.go(&format!("/c/{}", test_space.conversation)).await;
    theirs.see(".composer textarea").await;
    test_server.upstream.next(ResponseScript::calls(ROLL));
    test_server.upstream.next(ResponseScript::say("Seven!"));

    page.send_message("Roll, please.").await;

    page.see_text(CARD, "Mina wants to use a tool: Dice").await;
    page.see_text(CARD, "3d1+4").await;
    theirs.see_text(CARD, "Waiting for a moderator.").await;
    assert_eq!(theirs.n(".approvals button").await, 0);
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(theirs.value(fits).await, json!(true));
    page.click_text(".approvals button", "Allow once").await;
    page.see_text(".message[data-state=final]", "Seven!").await;
    page.gone(CARD).await;
    theirs.gone(CARD).await;
    page.see_text(".message [data-tools] summary", "Tools used: Dice")
        .await;
    page.click(".message [data-tools] summary").await;
    page.see_text(".tool-calls", "allowed by").await;
}

#[tokio::test]
async fn an_mcp_server_is_added_in_the_settings_and_removed_again() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(list(), &["Mina"]).await;
    let page = test_space.page().await;
    let servers = async || -> Value {
        let path = format!("/api/conversations/{}", test_space.conversation);
        let at = expect(200, test_space.ann.get(&path).await);
        let space = format!("/api/spaces/{}", at["space_id"]);
        expect(200, test_space.ann.get(&space).await)["settings"]["tool_servers"].clone()
    };
    page.click("#panel-tab-settings").await;
    page.click("[data-section=tools] summary").await;
    page.write("[data-section=tools] details input", "wiki")
        .await;
    page.write("[data-section=tools] input[type=url]", "nowhere")
        .await;
    page.click("[data-section=tools] [type=submit]").await;
    page.see("[data-section=tools] .form__error:not([hidden])")
        .await;
    assert_eq!(servers().await, Value::Null);

    page.rewrite(
        "[data-section=tools] input[type=url]",
        "https://wiki.example/mcp",
    )
    .await;
    page.click("[data-section=tools] [type=submit]").await;
    page.see_text("[data-section=tools] .tool-calls", "wiki")
        .await;
    let one = json!([{"label": "wiki", "url": "https://wiki.example/mcp", "use": "with_approval"}]);
    assert_eq!(servers().await, one);
    page.click("[data-section=tools] .tool-calls button").await;
    page.click("[data-section=tools] [type=submit]").await;
    page.gone("[data-section=tools] .tool-calls__call").await;
    // The toast of the first change may still be shown, so it says nothing about this one.
    poll::until("the server is removed", async || {
        (servers().await == Value::Null).then_some(())
    })
    .await;
}
