//! Tests of the dialog "Summaries" of a conversation: edits, pinned facts, older versions, and two
//! people who change the summary at the same time.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::several_users::page_of;
use crate::support::http_client::{HttpClient, expect, token_of};
use crate::support::poll;
use crate::test_server::{SpaceFixture, TestServer};

const TEXT: &str = "dialog textarea";
const SUMMARY: &str = "Ann waits at the harbor.";

/// A space whose conversation has a summary that covers everything that can be summarized now.
async fn summarized_space(test_server: &TestServer) -> SpaceFixture {
    let summaries = json!({"chunk_messages": 10});
    let columns =
        json!({"reply_order": "manual", "settings": {"memory": {"summaries": summaries}}});
    let test_space = test_server.create_space(columns, &["Mina"]).await;
    let answer = json!({ "summary": SUMMARY });
    test_server.upstream.reply_with(&answer.to_string());
    for i in 0..40 {
        test_space
            .post(&format!("Line {i} is about the tide."))
            .await;
    }
    summarize(&test_space).await;
    test_space
}

/// Summarizes everything that can be summarized now.
async fn summarize(test_space: &SpaceFixture) {
    let path = format!("/api/conversations/{}/summaries", test_space.conversation);
    poll::until("all that is due is summarized", async || {
        let (status, answer) = test_space.ann.post(&path, json!({})).await;
        let is_done = status == 409 && answer["error"]["code"] == "nothing_to_summarize";
        (is_done && running(test_space).await.is_some()).then_some(())
    })
    .await;
}

/// Returns the running summary in use.
async fn running(test_space: &SpaceFixture) -> Option<Value> {
    let path = format!("/api/conversations/{}/summaries", test_space.conversation);
    let found = expect(200, test_space.ann.get(&path).await)["data"][0].clone();
    (found["level"] == 1).then_some(found)
}

/// Changes the running summary without a browser, as another window of Ann does. Returns its version.
async fn change(test_space: &SpaceFixture, content: &str) -> i64 {
    let summary = running(test_space).await.expect("there is a summary");
    let body = json!({"content": content, "expected_version": summary["version"]});
    let path = format!("/api/summaries/{}", summary["id"]);
    let changed = expect(200, test_space.ann.patch(&path, body).await);
    changed["version"]
        .as_i64()
        .expect("the version is a number")
}

/// Opens the dialog from the menu of the conversation.
async fn open_dialog(page: &Page) {
    page.click(".main__head [aria-label='Conversation menu']")
        .await;
    page.click_text(".menu__item", "Summaries").await;
    page.see("dialog [data-section=summary]").await;
}

/// Waits until the text field has this text.
async fn sees_text(page: &Page, text: &str) {
    let has_text = format!("document.querySelector('{TEXT}').value === {}", json!(text));
    page.truth(&format!("the summary is {text:?}"), &has_text)
        .await;
}

/// Waits until the running summary in use has this text.
async fn is_stored(test_space: &SpaceFixture, content: &str) -> Value {
    poll::until("the text is in use", async || {
        running(test_space)
            .await
            .filter(|it| it["content"] == content)
    })
    .await
}

#[tokio::test]
async fn a_member_edits_the_summary_and_pins_a_fact_and_a_guest_only_reads_it() {
    let test_server = TestServer::open().await;
    let test_space = summarized_space(&test_server).await;
    let space = test_space.memberships[0]["space_id"].as_i64().unwrap();
    let invite = test_space.ann.invite(space, json!({"role": "guest"})).await;
    let (guest, _) =
        HttpClient::join_by_link(test_space.ann.base(), token_of(&invite), "Bob").await;
    let page = test_space.page().await;
    open_dialog(&page).await;
    sees_text(&page, SUMMARY).await;
    page.see_text("dialog .summary__state", "Up to date").await;
    page.see_text("dialog [data-section=parts] summary", "Messages 1–10")
        .await;

    page.rewrite(TEXT, "Ann and Mina wait at the harbor.").await;
    page.click_text("dialog button", "Add fact").await;
    page.write("[aria-label='Pinned fact 1']", "Mina has a boat.")
        .await;
    page.click_text("dialog [type=submit]", "Save").await;

    page.see_text("dialog .summary__facts", "edited by").await;
    let stored = is_stored(&test_space, "Ann and Mina wait at the harbor.").await;
    assert_eq!(stored["pinned_facts"], json!(["Mina has a boat."]));
    assert_eq!(stored["origin"], "person");
    let theirs = page_of(&guest, &test_space.path()).await;
    open_dialog(&theirs).await;
    sees_text(&theirs, "Ann and Mina wait at the harbor.").await;
    theirs.gone("dialog [type=submit]").await;
    assert_eq!(
        theirs
            .value(&format!("document.querySelector('{TEXT}').readOnly"))
            .await,
        json!(true)
    );
}

#[tokio::test]
async fn an_older_version_is_compared_and_restored_on_a_phone() {
    let test_server = TestServer::open().await;
    let test_space = summarized_space(&test_server).await;
    change(&test_space, "Ann sails from the harbor.").await;
    let page = test_space.page_on(Viewport::Phone).await;
    open_dialog(&page).await;
    sees_text(&page, "Ann sails from the harbor.").await;

    page.click("dialog [data-section=versions] summary").await;
    page.see_text("dialog [data-section=versions] del", "waits at")
        .await;
    page.see_text("dialog [data-section=versions] ins", "sails from")
        .await;
    let fits = "document.documentElement.scrollWidth <= innerWidth \
        && [...document.querySelectorAll('.dialog__body')].every((it) => it.scrollWidth <= it.clientWidth)";
    assert_eq!(page.value(fits).await, json!(true));
    page.click_text("dialog [data-section=versions] button", "Restore")
        .await;

    sees_text(&page, SUMMARY).await;
    is_stored(&test_space, SUMMARY).await;
}

#[tokio::test]
async fn a_summary_that_two_people_change_keeps_both_texts_until_one_is_chosen() {
    let test_server = TestServer::open().await;
    let test_space = summarized_space(&test_server).await;
    let page = test_space.page().await;
    open_dialog(&page).await;
    sees_text(&page, SUMMARY).await;
    page.rewrite(TEXT, "Mine.").await;

    let version = change(&test_space, "Theirs.").await;

    page.see_text(".message__conflict-text", "Theirs.").await;
    sees_text(&page, "Mine.").await;
    page.click_text("dialog [type=submit]", "Keep mine").await;
    page.gone(".message__conflict").await;
    let stored = is_stored(&test_space, "Mine.").await;
    assert_eq!(stored["version"], json!(version + 1));
}

#[tokio::test]
async fn a_line_shows_where_the_summary_ends_and_opens_it_without_moving_the_messages() {
    let test_server = TestServer::open().await;
    let test_space = summarized_space(&test_server).await;
    let page = test_space.page().await;
    page.see_text(".divider--summary", "Summarized up to here")
        .await;
    let is_at_end = "(({ scrollTop, clientHeight, scrollHeight }) => scrollHeight - clientHeight - scrollTop < 2)(document.querySelector('.timeline'))";
    page.truth("the end is shown", is_at_end).await;
    is_between_lines(&page, 19, 20).await;
    page.run("document.querySelector('.divider--summary').scrollIntoView({ block: 'center' })")
        .await;
    for i in 40..50 {
        test_space
            .post(&format!("Line {i} is about the tide."))
            .await;
    }
    let position = "[...document.querySelectorAll('.message')].find((it) => it.textContent.includes('Line 18 ')).getBoundingClientRect().top";
    let before = page.value(position).await.as_f64().expect("a position");

    summarize(&test_space).await;

    is_between_lines(&page, 29, 30).await;
    let after = page.value(position).await.as_f64().expect("a position");
    assert!((after - before).abs() < 1.0, "{before} to {after}");
    page.run("document.querySelector('.divider--summary').scrollIntoView({ block: 'center' })")
        .await;
    page.click_text(".divider--summary button", "Summarized up to here")
        .await;
    page.see("dialog [data-section=summary]").await;
}

/// Waits until the end of the summary is shown between these two lines.
async fn is_between_lines(page: &Page, last: usize, next: usize) {
    let has = |side: &str, n: usize| {
        format!(
            "document.querySelector('.divider--summary')?.{side}?.textContent.includes('Line {n} ')"
        )
    };
    let is_there = format!(
        "{} && {}",
        has("previousElementSibling", last),
        has("nextElementSibling", next)
    );
    page.truth("the end of the summary", &is_there).await;
}
