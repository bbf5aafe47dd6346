//! Tests of memories in the page: recalled in another conversation and deleted, the list with its filters,
//! the import of a file, and the settings of a space and of a provider.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::provider_requests::{default_settings, open_provider_dialog};
use crate::support::http_client::{expect, id};
use crate::support::poll;
use crate::test_server::{SpaceFixture, TestServer, manual};

const TAB: &str = "#panel-tab-memory";
const ROW: &str = ".memory";
const LAST: &str = ".message:last-child .message__body";

/// What Ann says in the first conversation, and the word that nobody else says.
const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";
const WORD: &str = "Pixel";
const QUESTION: &str = "Do you remember how my dog is called?";
/// The number of further messages with which the fact is learned without a delay.
const N_GREETINGS: usize = 9;

/// Elements that are wider than the window.
const FITS: &str = "document.documentElement.scrollWidth <= innerWidth \
    && [...document.querySelectorAll('.dialog__body, .panel__body')].every((it) => it.scrollWidth <= it.clientWidth)";

impl SpaceFixture {
    fn space(&self) -> i64 {
        self.memberships[0]["space_id"]
            .as_i64()
            .expect("the id is a number")
    }

    fn memories_path(&self) -> String {
        format!("/api/spaces/{}/memories", self.space())
    }

    async fn memories(&self) -> Vec<Value> {
        let list = expect(200, self.ann.get(&self.memories_path()).await);
        list["data"].as_array().expect("a list").clone()
    }

    async fn remember(&self, content: &str, more: Value) {
        let mut body = json!({"content": content, "kind": "event"});
        let more = more.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(more);
        expect(201, self.ann.post(&self.memories_path(), body).await);
    }

    async fn memory_settings(&self) -> Value {
        let path = format!("/api/spaces/{}", self.space());
        expect(200, self.ann.get(&path).await)["settings"]["memory"].clone()
    }
}

/// Stops the server and starts it again.
async fn restart(test_server: &mut TestServer) {
    test_server.server.sigterm();
    test_server.server.wait_exit().await;
    test_server.server.restart().await;
}

/// Asks in a new conversation, and opens the inspector of the reply.
async fn ask_elsewhere(test_space: &SpaceFixture, page: &Page) {
    let path = format!("/api/spaces/{}/conversations", test_space.space());
    let other = expect(
        201,
        test_space
            .ann
            .post(&path, json!({"title": "Elsewhere"}))
            .await,
    );
    page.go(&format!("/c/{}", id(&other))).await;
    page.see(".intro").await;
    page.send_message(QUESTION).await;
    page.see_text(".message[data-state=final] .message__body", QUESTION)
        .await;
    let speaker = test_space.memberships[0]["id"].as_i64();
    expect(202, test_space.ann.generate(id(&other), speaker).await);
    page.answered_by("Mina").await;
    page.click(LAST).await;
    page.click(".message__tools [aria-label='Show prompt']")
        .await;
    page.see("dialog .block").await;
    page.gone("dialog [aria-busy=true]").await;
}

/// Opens the tab of memories, and waits until it shows this many of them.
async fn open_list(page: &Page, n: usize) {
    page.click(TAB).await;
    sees_rows(page, n).await;
}

async fn sees_rows(page: &Page, n: usize) {
    let is_shown = format!(
        "document.querySelectorAll('{ROW}').length === {n} && document.querySelector('.memory-list[aria-busy]') === null"
    );
    page.truth(&format!("{n} memories are shown"), &is_shown)
        .await;
}

/// Chooses the option with this value in the select with this label.
async fn choose(page: &Page, label: &str, value: &str) {
    page.run(&format!(
        "const label = [...document.querySelectorAll('.memories label')].find((it) => it.textContent === {})
         const select = document.getElementById(label.htmlFor)
         select.value = {}
         select.dispatchEvent(new Event('change'))",
        json!(label),
        json!(value)
    ))
    .await;
}

/// Answers the next file dialog of the page with this file.
async fn answer_file_dialog(page: &Page, name: &str, text: &str) {
    page.run(&format!(
        "const click = HTMLInputElement.prototype.click
         HTMLInputElement.prototype.click = function () {{
           if (this.type !== 'file') return click.call(this)
           const transfer = new DataTransfer()
           transfer.items.add(new File([{}], {}))
           this.files = transfer.files
           this.dispatchEvent(new Event('change'))
         }}",
        json!(text),
        json!(name)
    ))
    .await;
}

/// Returns the selector of the field with this label in a part of the page.
async fn field_of(page: &Page, part: &str, label: &str) -> String {
    page.see_text(&format!("{part} label"), label).await;
    let found = page
        .value(&format!(
            "[...document.querySelectorAll({})].find((it) => it.textContent === {}).htmlFor",
            json!(format!("{part} label")),
            json!(label)
        ))
        .await;
    format!("#{}", found.as_str().expect("a field has an id"))
}

/// Waits until a field has this value.
async fn has_value(page: &Page, css: &str, value: &str) {
    let is_there = format!(
        "document.querySelector({})?.value === {}",
        json!(css),
        json!(value)
    );
    page.truth(&format!("{css} is {value:?}"), &is_there).await;
}

#[tokio::test]
async fn a_fact_is_recalled_elsewhere_after_a_restart_until_it_is_deleted() {
    let mut test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post(FACT).await;
    for _ in 0..N_GREETINGS {
        test_space.post("Good night.").await;
    }
    poll::until("the fact is learned", async || {
        (test_space.memories().await.len() == 1).then_some(())
    })
    .await;
    // The questions are not learned from.
    let space = format!("/api/spaces/{}", test_space.space());
    let off = json!({"settings": {"memory": {"learn": false}}});
    expect(200, test_space.ann.patch(&space, off).await);
    restart(&mut test_server).await;
    let page = test_space.page().await;

    ask_elsewhere(&test_space, &page).await;
    page.see_text("dialog .memory__content", WORD).await;
    page.see_text("dialog .memory__facts", "matched: dog").await;
    page.see_text("dialog .memory__source", "Message").await;
    page.click("dialog .memory__source").await;
    page.see_text(".message__body", FACT).await;

    poll::until("the recall is counted", async || {
        (test_space.memories().await[0]["recall_count"] == 1).then_some(())
    })
    .await;
    open_list(&page, 1).await;
    page.see_text(ROW, "by Mina").await;
    page.click("[data-act=recall]").await;
    page.see_text("dialog .memory__content", WORD).await;
    page.see_text("dialog .memory__facts", "matched: dog").await;
    page.press(thirtyfour::Key::Escape).await;
    page.gone("dialog").await;
    page.click("[data-act=remove]").await;
    page.click_text("dialog button", "Delete").await;
    page.gone("dialog").await;
    sees_rows(&page, 0).await;
    restart(&mut test_server).await;
    ask_elsewhere(&test_space, &page).await;
    page.see_text("dialog", "No memory was recalled.").await;
    let text = page
        .value("document.querySelector('dialog').textContent")
        .await;
    assert!(!text.to_string().contains(WORD), "{text}");
}

#[tokio::test]
async fn the_list_is_filtered_edited_and_shown_for_a_message_on_a_phone() {
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let mina = test_space.memberships[0]["id"].clone();
    test_space
        .remember("The ferry leaves at dawn.", json!({"pinned": true}))
        .await;
    test_space
        .remember(
            "Mina fears the sea.",
            json!({"about_membership_id": mina, "kind": "preference"}),
        )
        .await;
    test_space.post("Good night.").await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.click(".message__body").await;
    page.click(".message__tools [aria-label='What was learned from this message']")
        .await;
    page.see_text(
        "dialog [role=status]",
        "Nothing was learned from this message.",
    )
    .await;
    page.press(thirtyfour::Key::Escape).await;
    page.gone("dialog").await;
    page.click("[aria-label='Cast, prompt and settings']").await;
    open_list(&page, 2).await;
    page.see_text("[data-part=memory-state]", "2 of 2 embedded")
        .await;

    page.click(".memories details summary").await;
    choose(&page, "Pinned", "true").await;
    sees_rows(&page, 1).await;
    page.see_text(ROW, "ferry").await;
    choose(&page, "Pinned", "").await;
    choose(&page, "About", &mina.to_string()).await;
    sees_rows(&page, 1).await;
    page.see_text(ROW, "fears").await;
    choose(&page, "Origin", "tool").await;
    sees_rows(&page, 0).await;
    choose(&page, "Origin", "person").await;
    sees_rows(&page, 1).await;
    assert_eq!(page.value(FITS).await, json!(true));

    page.click("[data-act=edit]").await;
    page.rewrite("dialog textarea", "Mina loves the sea.").await;
    page.click("dialog [type=submit]").await;
    page.gone("dialog").await;
    page.see_text(ROW, "Mina loves the sea.").await;
    page.see_text(ROW, "edited").await;
    let stored = test_space.memories().await;
    assert_eq!(stored[0]["content"], "Mina loves the sea.");
}

#[tokio::test]
async fn a_failed_task_is_shown_with_its_error_and_tried_again() {
    const PART: &str = "[data-part=failed-tasks]";
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post(FACT).await;
    let change = "UPDATE memory_tasks SET status = 'failed', attempt = 5, error = 'It broke.'";
    test_server.facts().await.execute(change).await;
    let page = test_space.page_on(Viewport::Phone).await;
    page.click("[aria-label='Cast, prompt and settings']").await;
    open_list(&page, 0).await;
    page.see_text(PART, "1 task has failed.").await;
    page.see_text(PART, "It broke.").await;
    page.see(&format!("{PART} a")).await;
    assert_eq!(page.value(FITS).await, json!(true));

    page.click("[data-act=retry]").await;

    sees_rows(&page, 1).await;
    page.gone(PART).await;
}

#[tokio::test]
async fn a_file_with_a_broken_line_is_imported_and_reported() {
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    open_list(&page, 0).await;
    let file = "{\"content\": \"The mill burned down.\"}\nnoise\n{\"content\": \"It rained.\", \"about\": \"Nobody here\"}\n";
    answer_file_dialog(&page, "memories.jsonl", file).await;

    page.click_text(".memories button", "Import").await;

    page.see_text("dialog .import__text", "2 memories imported.")
        .await;
    page.see_text("dialog .import__note", "1 line was skipped.")
        .await;
    page.see_text(
        "dialog .import__note",
        "1 memory is about someone who is not in this space",
    )
    .await;
    page.click("dialog details summary").await;
    page.see_text("dialog li", "No. 2").await;
    page.click_text("dialog .form__actions button", "Close")
        .await;
    page.gone("dialog").await;
    sees_rows(&page, 2).await;
}

#[tokio::test]
async fn each_memory_setting_is_saved_and_shown_again_and_a_wrong_value_is_not() {
    const PART: &str = "[data-section=memory]";
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.click("#panel-tab-settings").await;
    let numbers = [
        ("Max Entries", "7", "21"),
        ("Score threshold", "0.45", "2"),
        ("Budget Cap", "0", "5000"),
        ("Maximum number of memories", "900", "0"),
    ];
    for (label, _, wrong) in numbers {
        let field = field_of(&page, PART, label).await;
        let value = format!("document.querySelector('{field}').value");
        let before = page.value(&value).await;
        let before = before.as_str().expect("a text");
        page.rewrite(&field, wrong).await;
        page.click(&format!("{PART} [type=submit]")).await;
        page.see_text(&format!("{field}-error"), "Must be between")
            .await;
        page.rewrite(&field, before).await;
    }
    assert_eq!(test_space.memory_settings().await, Value::Null);

    for (label, value, _) in numbers {
        page.rewrite(&field_of(&page, PART, label).await, value)
            .await;
    }
    page.click_text(&format!("{PART} .check"), "Learn from messages")
        .await;
    page.click(&format!("{PART} [type=submit]")).await;
    page.see_text(".toast", "Saved").await;

    let expected = json!({"learn": false, "top_k": 7, "threshold": 0.45, "token_budget": 0, "max_memories": 900});
    poll::until("the settings are stored", async || {
        (test_space.memory_settings().await == expected).then_some(())
    })
    .await;
    page.reload().await;
    for (label, value, _) in numbers {
        let field = field_of(&page, PART, label).await;
        has_value(&page, &field, value).await;
    }
}

#[tokio::test]
async fn the_embedding_options_of_a_provider_are_stored_and_0_is_a_value() {
    const PART: &str = "dialog details:has([name=embedding_model])";
    let test_server = TestServer::demo().await;
    let (test_space, page) = open_provider_dialog(&test_server).await;
    page.click(&format!("{PART} summary")).await;
    let options = [
        ("Embedding model", "vectors"),
        ("Dimensions", "256"),
        ("Time limit (seconds)", "0"),
        ("Retries", "0"),
    ];
    for (label, value) in options {
        page.rewrite(&field_of(&page, PART, label).await, value)
            .await;
    }
    let retries = field_of(&page, PART, "Retries").await;
    page.rewrite(&retries, "11").await;
    page.click_text("dialog [type=submit]", "Use this model")
        .await;
    page.see_text(&format!("{retries}-error"), "Must be between 0 and 10.")
        .await;
    assert_eq!(page.value(FITS).await, json!(true));
    page.rewrite(&retries, "0").await;
    page.click_text("dialog [type=submit]", "Use this model")
        .await;
    page.gone("dialog").await;

    let expected = json!({"embedding_model": "vectors", "embedding_dimensions": 256, "embedding_timeout_s": 0, "embedding_max_retries": 0});
    assert_eq!(default_settings(&test_space).await, expected);
    page.click_text("button", "Change").await;
    for (label, value) in options {
        let field = field_of(&page, PART, label).await;
        has_value(&page, &field, value).await;
    }
}
