//! Tests of the options of a provider for its requests, in the dialog "Connect a model".

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

const PART: &str = "dialog details:has([name=extra_body])";

/// Opens the dialog of a provider on a phone.
pub async fn open_provider_dialog(test_server: &TestServer) -> (SpaceFixture, Page) {
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let provider =
        json!({"name": "Own", "base_url": test_server.upstream.base_url(), "model": "scripted"});
    expect(201, test_space.ann.post("/api/providers", provider).await);
    let page = test_space.page_on(Viewport::Phone).await;
    page.go("/settings/models").await;
    page.click_text("button", "Change").await;
    (test_space, page)
}

/// Returns the settings of the default provider.
pub async fn default_settings(test_space: &SpaceFixture) -> Value {
    let providers = expect(200, test_space.ann.get("/api/providers").await);
    let mut all = providers["data"].as_array().expect("a list").iter();
    let default = all.find(|it| it["is_default"] == true);
    default.expect("a default")["settings"].clone()
}

#[tokio::test]
async fn additional_fields_and_role_handling_are_stored_and_a_wrong_text_says_why() {
    let test_server = TestServer::demo().await;
    let (test_space, page) = open_provider_dialog(&test_server).await;
    page.click(&format!("{PART} summary")).await;

    page.run(&format!(
        "document.querySelector('{PART} select:has([value=strict_alternation])').value = 'strict_alternation'"
    ))
    .await;
    let use_it = async || {
        page.click_text("dialog [type=submit]", "Use this model")
            .await
    };
    page.rewrite("[name=extra_body]", r#"{"stream": true}"#)
        .await;
    use_it().await;
    page.see_text(PART, "“stream” cannot be set").await;
    page.rewrite("[name=extra_body]", r#"{"transforms": []}"#)
        .await;
    use_it().await;
    page.gone("dialog").await;

    let expected = json!({"role_handling": "strict_alternation", "extra_body": {"transforms": []}});
    assert_eq!(default_settings(&test_space).await, expected);
    page.click_text("button", "Change").await;
    page.see(&format!("{PART}[open]")).await;
    let width = page.value("document.documentElement.scrollWidth").await;
    assert_eq!(width, json!(390));
}
