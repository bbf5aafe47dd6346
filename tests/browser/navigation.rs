//! Tests of what a user does while a conversation or a part of the client is still loading: writes,
//! clicks twice, or goes to another page.

use serde_json::{Value, json};

use crate::page::{FIELD, Page};
use crate::several_users::{SeveralUsers, page_of};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Lets requests whose path contains `window.held` wait for `release()`.
const HOLD_REQUESTS: &str = "
    const request = window.fetch
    const waiting = []
    window.held = null
    window.nHeld = 0
    window.fetch = async (path, ...rest) => {
        if (window.held === null || !path.includes(window.held)) return request(path, ...rest)
        window.nHeld += 1
        await new Promise((resolve) => waiting.push(resolve))
        try {
            return await request(path, ...rest)
        } finally {
            window.nHeld -= 1
        }
    }
    window.release = () => {
        window.held = null
        for (const resolve of waiting.splice(0)) resolve()
    }";

/// Follows a link to a path within the page, like the links of the page do.
const FOLLOW: &str = "window.follow = (href) => {
        const link = document.createElement('a')
        link.href = href
        document.body.append(link)
        link.click()
        link.remove()
    }";

/// Ann's page in Harbor Lights, with an unsent text.
struct Draft {
    test_server: TestServer,
    harbor: SpaceFixture,
    page: Page,
}

const DRAFT: &str = "half a thought";

impl Draft {
    async fn write() -> Draft {
        let test_server = TestServer::open().await;
        let harbor = test_server.create_space(manual(), &["Mina"]).await;
        harbor.post("The lamps are lit.").await;
        let page = page_with_holds(&harbor.ann, &harbor.path()).await;
        page.see_text(".message", "The lamps are lit.").await;
        page.write(FIELD, DRAFT).await;
        Draft {
            test_server,
            harbor,
            page,
        }
    }

    /// Goes back to Harbor Lights, where the text must still be.
    async fn is_kept(&self) {
        self.page.run(&follow(&self.harbor.path())).await;
        self.page.see_text(".message", "The lamps are lit.").await;
        self.page
            .truth("the draft is kept", &format!("{FIELD_VALUE} === '{DRAFT}'"))
            .await;
    }
}

const FIELD_VALUE: &str = "document.querySelector('.composer__field')?.value";

async fn page_with_holds(person: &HttpClient, path: &str) -> Page {
    let page = page_of(person, "/").await;
    for source in [HOLD_REQUESTS, FOLLOW] {
        let script = json!({"source": source});
        page.cdp("Page.addScriptToEvaluateOnNewDocument", script)
            .await;
    }
    page.go(path).await;
    page.see(FIELD).await;
    page
}

/// Creates another space of this user, and loads the page again, so that the space is in its list;
/// returns the space.
async fn create_inn(person: &HttpClient, page: &Page) -> Value {
    let inn = person.create_space("The Lantern Inn", manual()).await;
    page.reload().await;
    page.see(FIELD).await;
    page.see(&format!("#sidebar a[href='/c/{}']", root_of(&inn)))
        .await;
    inn
}

/// The request for the members of a space, without which its conversations are not shown.
fn members_of(space: &Value) -> String {
    format!("/api/spaces/{}/memberships", space["id"])
}

fn follow(path: &str) -> String {
    format!("follow({})", json!(path))
}

async fn hold(page: &Page, path: &str) {
    page.run(&format!("window.held = {}", json!(path))).await;
}

async fn release(page: &Page) {
    page.run("release()").await;
    page.truth("the request has ended", "window.nHeld === 0")
        .await;
}

async fn block(page: &Page, files: &[&str]) {
    page.cdp("Network.enable", json!({})).await;
    page.cdp("Network.setBlockedURLs", json!({"urls": files}))
        .await;
}

async fn texts_of(person: &HttpClient, conversation: i64) -> Vec<Value> {
    let messages = person.messages(conversation).await;
    messages.iter().map(|it| it["content"].clone()).collect()
}

/// Sends what is in the composer, if it is there.
const SUBMIT: &str = "document.querySelector('.composer')?.requestSubmit()";

// Conversations

#[tokio::test]
async fn a_text_is_not_sent_to_the_conversation_that_is_loading() {
    let draft = Draft::write().await;
    let (page, ann) = (&draft.page, &draft.harbor.ann);
    let inn = create_inn(ann, page).await;
    let path = format!("/c/{}", root_of(&inn));

    hold(page, &members_of(&inn)).await;
    page.run(&follow(&path)).await;
    page.truth("the request waits", "window.nHeld === 1").await;
    page.run(SUBMIT).await;
    page.see("main [aria-busy=true]").await;
    page.gone(".panel__empty").await;
    release(page).await;
    page.see(".panel__empty").await;
    page.see_text(".main__space", "The Lantern Inn").await;
    page.send_message("Good evening.").await;

    page.see_text(".message[data-state=final]", "Good evening.")
        .await;
    assert_eq!(texts_of(ann, root_of(&inn)).await, ["Good evening."]);
    draft.is_kept().await;
}

#[tokio::test]
async fn a_second_click_on_a_conversation_that_is_loading_does_not_stop_it() {
    let draft = Draft::write().await;
    let (page, ann) = (&draft.page, &draft.harbor.ann);
    let inn = create_inn(ann, page).await;
    let path = format!("/c/{}", root_of(&inn));

    hold(page, &members_of(&inn)).await;
    for _ in 0..2 {
        page.run(&follow(&path)).await;
    }
    page.truth("a request waits", "window.nHeld > 0").await;
    release(page).await;

    page.gone(".message").await;
    page.see_text(".main__space", "The Lantern Inn").await;
    page.truth("the composer is empty", &format!("{FIELD_VALUE} === ''"))
        .await;
}

#[tokio::test]
async fn a_conversation_that_arrives_late_does_not_replace_the_one_that_was_opened_after_it() {
    let users = SeveralUsers::with("member").await;
    let ann = &users.test_space.ann;
    let bobs = users.bob.create_space("The Attic", manual()).await;
    let page = page_with_holds(ann, &users.test_space.path()).await;
    let inn = create_inn(ann, &page).await;

    hold(&page, &format!("/api/conversations/{}", root_of(&bobs))).await;
    page.run(&follow(&format!("/c/{}", root_of(&bobs)))).await;
    page.truth("the request waits", "window.nHeld === 1").await;
    page.run(&follow(&format!("/c/{}", root_of(&inn)))).await;
    page.see_text(".main__space", "The Lantern Inn").await;
    release(&page).await;
    page.see_text("#sidebar", "The Attic").await;
    page.send_message("Good evening.").await;

    page.see_text(".message[data-state=final]", "Good evening.")
        .await;
    assert_eq!(texts_of(ann, root_of(&inn)).await, ["Good evening."]);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_loaded_is_loaded_by_retry() {
    let users = SeveralUsers::with("member").await;
    let bobs = users.bob.create_space("The Attic", manual()).await;
    let page = page_with_holds(&users.test_space.ann, &users.test_space.path()).await;

    block(&page, &["*/api/conversations/*"]).await;
    page.run(&follow(&format!("/c/{}", root_of(&bobs)))).await;
    page.see_text(".empty-state", "could not be loaded").await;
    block(&page, &[]).await;
    page.click_text(".empty-state button", "Retry").await;

    page.see_text(".main__space", "The Attic").await;
}

#[tokio::test]
async fn a_space_that_is_deleted_while_its_conversation_loads_shows_a_notice() {
    let draft = Draft::write().await;
    let (page, ann) = (&draft.page, &draft.harbor.ann);
    let inn = create_inn(ann, page).await;

    hold(page, &members_of(&inn)).await;
    page.run(&follow(&format!("/c/{}", root_of(&inn)))).await;
    page.truth("the request waits", "window.nHeld === 1").await;
    let (status, answer) = ann.delete(&format!("/api/spaces/{}", id(&inn))).await;
    assert!([202, 204].contains(&status), "{answer}");
    page.see("[data-removed=space_deleted]").await;
    release(page).await;

    page.see("[data-removed=space_deleted]").await;
    assert_eq!(page.n(FIELD).await, 0);
    assert_eq!(page.texts(".toast").await, [""; 0]);
}

// Pages

#[tokio::test]
async fn a_draft_survives_enter_while_the_settings_load() {
    let draft = Draft::write().await;

    // In one task, so that the module cannot have been loaded.
    let script = format!("{}; {SUBMIT}", follow("/settings/profile"));
    draft.page.run(&script).await;

    draft.page.see(".settings").await;
    assert_eq!(draft.harbor.texts().await, ["The lamps are lit."]);
    draft.is_kept().await;
}

#[tokio::test]
async fn a_page_that_cannot_be_loaded_offers_to_reload() {
    let draft = Draft::write().await;
    let page = &draft.page;
    for (path, file) in [
        ("/settings/profile", "*/index-settings-settings.js"),
        ("/admin/overview", "*/index-admin-page.js"),
    ] {
        block(page, &[file]).await;

        page.run(&follow(path)).await;

        page.see_text(".empty-state", "could not be loaded").await;
        block(page, &[]).await;
        page.click_text(".empty-state button", "Reload").await;
        page.see(".settings").await;
    }
    draft.is_kept().await;
}

#[tokio::test]
async fn an_invitation_page_that_cannot_be_loaded_offers_to_reload() {
    let draft = Draft::write().await;
    let invites = format!(
        "/api/spaces/{}/invites",
        draft.harbor.memberships[0]["space_id"]
    );
    let made = expect(
        201,
        draft
            .harbor
            .ann
            .post(&invites, json!({"role": "guest"}))
            .await,
    );
    let url = made["url"].as_str().expect("the response has a link");
    let path = url.strip_prefix(draft.harbor.ann.base());
    let page = draft.test_server.visitor().await;

    block(&page, &["*/index-sign_in-join.js"]).await;
    page.go(path.expect("the link belongs to this server"))
        .await;

    page.see_text("main", "could not be loaded").await;
    block(&page, &[]).await;
    page.click_text("main a", "Reload").await;
    page.see_text("h1", "You are invited to Harbor Lights")
        .await;
}

// Parts of a page

#[tokio::test]
async fn a_double_click_on_a_member_opens_it_while_its_module_loads() {
    let draft = Draft::write().await;

    // In one task, so that the module cannot have been loaded.
    let member = "document.querySelector('.member__button[aria-expanded]')";
    draft
        .page
        .run(&format!("{member}.click(); {member}.click()"))
        .await;

    draft.page.see(".member__details").await;
}

#[tokio::test]
async fn a_tab_that_cannot_be_loaded_says_so() {
    let draft = Draft::write().await;
    let page = &draft.page;

    block(page, &["*/index-lorebooks-lorebook_tab.js"]).await;
    page.click("#panel-tab-lore").await;

    page.see_text("#panel-body", "could not be loaded").await;
    block(page, &[]).await;
    page.click_text("#panel-body button", "Reload").await;
    page.see("#panel-body [data-lore]").await;
}

/// The button that opens the search, whose module is loaded when it is first used.
const SEARCH: &str = "document.querySelector('.sidebar__head [aria-label^=Search]')";

#[tokio::test]
async fn a_double_click_opens_one_dialog() {
    let draft = Draft::write().await;

    draft
        .page
        .run(&format!("{SEARCH}.click(); {SEARCH}.click()"))
        .await;

    draft.page.see("dialog").await;
    assert_eq!(draft.page.n("dialog").await, 1);
}

#[tokio::test]
async fn a_dialog_that_arrives_after_the_user_left_is_not_opened() {
    let draft = Draft::write().await;
    let page = &draft.page;

    page.run(&format!(
        "{SEARCH}.click(); {}",
        follow("/settings/profile")
    ))
    .await;
    page.see(".settings").await;
    page.click(".sidebar__head [aria-label^=Search]").await;

    // Both clicks wait for the same module.
    page.see("dialog").await;
    assert_eq!(page.n("dialog").await, 1);
}

#[tokio::test]
async fn the_notice_about_a_failed_part_stays_until_it_is_closed_or_replaced() {
    let draft = Draft::write().await;
    let page = &draft.page;
    let hurry = "const setTimer = window.setTimeout
        window.setTimeout = (act, ms, ...rest) => setTimer(act, ms / 100, ...rest)";

    block(page, &["*/index-conversation-search_dialog.js"]).await;
    page.run(hurry).await;
    for _ in 0..2 {
        page.click(".sidebar__head [aria-label^=Search]").await;
        page.see_text(".toast", "could not be loaded").await;
        page.run("window.isOver = false; setTimeout(() => { window.isOver = true }, 60_000)")
            .await;
        page.truth("a minute of the page has passed", "window.isOver")
            .await;
    }

    assert_eq!(page.n(".toast").await, 1);
    page.click(".toast [aria-label=Close]").await;
    page.gone(".toast").await;
}
