//! Tests of messages in the language of their reader.

use serde_json::json;

use crate::page::Viewport;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{expect, id};
use crate::test_server::{SpaceFixture, TestServer, manual};

const GERMAN: &str = "Guten *Morgen*!";

/// A space that translates into German, with the reader's language set to it.
async fn create_space(test_server: &TestServer, translator: &FakeProvider) -> SpaceFixture {
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let user = &test_space.ann;
    let provider = json!({"name": "Translator", "base_url": translator.base_url(), "model": "m"});
    let provider = id(&expect(201, user.post("/api/providers", provider).await));
    let space = user.conversation(test_space.conversation).await["space_id"].clone();
    let path = format!("/api/spaces/{space}");
    let body = json!({"translation_provider_id": provider});
    expect(200, user.patch(&path, body).await);
    let settings = json!({"settings": {"language": "de"}});
    expect(200, user.patch("/api/users/me", settings).await);
    test_space
}

#[tokio::test]
async fn a_message_is_translated_on_demand_and_back() {
    let (test_server, translator) = (TestServer::open().await, FakeProvider::start().await);
    translator.reply_with(GERMAN);
    let test_space = create_space(&test_server, &translator).await;
    test_space.post("Good *morning*!").await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.see_text(".message em", "morning").await;

    page.click(".message").await;
    page.click(".message__tools [aria-label=Translate]").await;

    page.see_text(".message__body[lang=de] em", "Morgen").await;
    page.see_text(".message__note", "Translated").await;
    page.click_text(".message__foot button", "Show original")
        .await;
    page.see_text(".message__body:not([lang=de]) em", "morning")
        .await;
    page.click_text(".message__foot button", "Show translation")
        .await;
    page.see_text(".message__body[lang=de] em", "Morgen").await;
    assert_eq!(translator.n_requests(), 1);
}

#[tokio::test]
async fn a_failure_shows_the_original_with_its_reason_until_it_is_tried_again() {
    let (test_server, translator) = (TestServer::open().await, FakeProvider::start().await);
    translator.reply_with(GERMAN);
    translator.next(ResponseScript::status(400));
    let test_space = create_space(&test_server, &translator).await;
    test_space.post("Good *morning*!").await;
    let page = test_space.page().await;
    page.see_text(".message em", "morning").await;
    page.click(".message").await;
    page.click(".message__tools [aria-label=Translate]").await;

    page.see_text(
        ".message__note",
        "Not translated. The model did not answer.",
    )
    .await;
    page.see_text(".message em", "morning").await;
    page.click_text(".message__foot button", "Retry").await;

    page.see_text(".message__body[lang=de] em", "Morgen").await;
}

#[tokio::test]
async fn all_messages_of_others_are_translated_for_those_who_choose_it() {
    let (test_server, translator) = (TestServer::open().await, FakeProvider::start().await);
    translator.reply_with(GERMAN);
    let test_space = create_space(&test_server, &translator).await;
    test_server.upstream.reply_with("Good *evening*!");
    test_space.post("My own words").await;
    let page = test_space.page().await;
    page.see_text(".message", "My own words").await;
    page.click_text(".member__button", "ann").await;
    page.click_text(".member__details button", "Edit name and persona")
        .await;
    page.see("dialog select").await;
    page.run("document.querySelector('dialog select').value = 'always'")
        .await;
    page.click_text("dialog button", "Save").await;
    page.gone("dialog[open]").await;

    let answered = test_space.ann.generate(test_space.conversation, None).await;
    expect(202, answered);

    page.see_text(".message__body[lang=de] em", "Morgen").await;
    page.see_text(".message__body", "My own words").await;
    assert_eq!(page.n(".message__body[lang=de]").await, 1);
    assert_eq!(translator.n_requests(), 1);
}
