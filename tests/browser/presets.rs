//! Tests of presets in the page: a file is shown before it is imported, its order changed by keyboard, a
//! space uses it, and the prompt follows.

use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::{Page, Viewport};
use crate::support::http_client::expect;
use crate::test_server::{SpaceFixture, TestServer, manual};

const FILE: &str = r#"{
  "temperature": 0.8,
  "prompts": [
    { "identifier": "main", "name": "Main", "role": "system", "content": "Tell a story of the sea." },
    { "identifier": "chatHistory", "name": "So far", "marker": true }
  ],
  "prompt_order": [
    { "character_id": 100001, "order": [
      { "identifier": "worldInfoBefore", "enabled": false },
      { "identifier": "personaDescription", "enabled": false },
      { "identifier": "charDescription", "enabled": false },
      { "identifier": "charPersonality", "enabled": false },
      { "identifier": "scenario", "enabled": false },
      { "identifier": "worldInfoAfter", "enabled": false },
      { "identifier": "dialogueExamples", "enabled": false },
      { "identifier": "main", "enabled": true },
      { "identifier": "chatHistory", "enabled": true }
    ] }
  ]
}"#;

/// The positions of the main prompt and of the posted message in the prompt.
async fn places(test_space: &SpaceFixture) -> (Option<usize>, Option<usize>) {
    let path = format!("/api/conversations/{}/prompt", test_space.conversation);
    let prompt = expect(200, test_space.ann.get(&path).await);
    let messages: Vec<Value> = prompt["messages"]
        .as_array()
        .expect("the prompt has messages")
        .clone();
    let of = |text: &str| {
        let says = |it: &Value| it["content"].as_str().is_some_and(|it| it.contains(text));
        messages.iter().position(says)
    };
    (of("Tell a story of the sea."), of("Good evening."))
}

async fn choose(page: &Page, label: &str) {
    page.click("#panel-tab-settings").await;
    let select = "#panel .panel__section select";
    page.see_text(select, label).await;
    page.truth(
        "the preset can be selected",
        &format!("!document.querySelector('{select}').disabled"),
    )
    .await;
    page.run(&format!(
        "const select = document.querySelector('{select}')
         select.value = [...select.options].find((it) => it.text === '{label}').value
         select.dispatchEvent(new Event('change', {{ bubbles: true }}))"
    ))
    .await;
    page.see("#panel [data-act=preset]:not([hidden])").await;
}

#[tokio::test]
async fn a_dropped_preset_is_shown_with_its_scripts_before_it_is_stored() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let mut file: Value = serde_json::from_str(FILE).expect("the file is JSON");
    file["extensions"] = json!({"regex_scripts": [{
        "scriptName": "Loud", "findRegex": "/rain/g", "replaceString": "storm", "placement": [2],
    }]});
    let n_stored = async || {
        let list = expect(200, test_space.ann.get("/api/presets").await);
        list["data"].as_array().map(Vec::len)
    };
    let page = test_space.page_on(Viewport::Phone).await;

    page.drop_file("Sea.json", file.to_string().as_bytes())
        .await;
    page.see_text("dialog .card-preview__name", "Sea").await;
    page.see_text("dialog .import-warnings", "1 regex script is off")
        .await;
    page.click_text("dialog .regex-scripts summary", "Loud")
        .await;
    for text in ["/rain/g", "storm", "AI Output"] {
        page.see_text("dialog .regex-script", text).await;
    }
    assert_eq!(n_stored().await, Some(0), "stored before it was confirmed");
    page.press(Key::Escape).await;
    page.gone("dialog").await;
    assert_eq!(n_stored().await, Some(0), "stored although it was canceled");
    page.drop_file("Sea.json", file.to_string().as_bytes())
        .await;
    page.click("dialog button[type=submit]").await;

    page.see(".preset__entries [data-key=main]").await;
    assert_eq!(n_stored().await, Some(1));
}

#[tokio::test]
async fn a_preset_is_dropped_rearranged_and_chosen_and_the_prompt_follows() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("Good evening.").await;
    let page = test_space.page().await;

    page.drop_file("Sea.json", FILE.as_bytes()).await;
    page.click("dialog button[type=submit]").await;
    page.see(".preset__entries [data-key=main]").await;
    page.press(Key::Escape).await;
    page.gone("dialog").await;
    choose(&page, "Sea").await;
    let before = places(&test_space).await;
    page.click("#panel [data-act=preset]").await;
    let main = ".preset__entries [data-key=main] [data-act=open]";
    page.see(main).await;
    page.run(&format!("document.querySelector('{main}').focus()"))
        .await;
    page.press(Key::Alt + Key::Down).await;
    page.truth(
        "the main prompt is the last entry",
        "document.querySelector('.preset__entries').lastElementChild.dataset.key === 'main'",
    )
    .await;
    page.click("dialog button[type=submit]").await;
    page.gone("dialog").await;

    assert_eq!(before, (Some(0), Some(1)));
    let (main, chat) = places(&test_space).await;
    assert!(main > chat && chat.is_some(), "{main:?} {chat:?}");
}
