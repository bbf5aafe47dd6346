//! Tests of the admin pages: figures, users and runs, and that only admins can open them.

use serde_json::json;
use thirtyfour::Key;

use crate::device::SMALL_TARGETS;
use crate::page::{Page, Viewport};
use crate::several_users::SeveralUsers;
use crate::support::http_client::expect;

/// Ann's browser, on a page of the server.
async fn page_of(users: &SeveralUsers, screen: Viewport, path: &str) -> Page {
    let ann = &users.test_space.ann;
    let page = Page::open(ann.base(), screen).await;
    page.set_cookie(ann.cookie()).await;
    page.go(path).await;
    page
}

#[tokio::test]
async fn an_admin_opens_the_statistics_and_disables_a_user() {
    let users = SeveralUsers::with("member").await;
    let bobs = users.bobs_page().await;
    let page = users.test_space.page().await;

    page.click(".sidebar__me").await;
    page.click_text("[role=menuitem]", "Manage server").await;
    page.see_text("[data-figure=users]", "2").await;
    page.see_text(".table", "Failed").await;
    page.click_text(".settings__link", "Users").await;
    page.see_text(".people", "@ann").await;
    page.write("[type=search]", "bob").await;
    page.truth(
        "only Bob is shown",
        "document.querySelectorAll('.people .list__item').length === 1",
    )
    .await;
    page.click("[aria-label^='Actions for']").await;
    // From the keyboard: the first item has the focus, the last one is Disable.
    page.press(Key::End).await;
    page.press(Key::Enter).await;
    page.click_text("dialog button", "Disable").await;

    page.see_text(".people .tag", "Disabled").await;
    bobs.see_text("dialog", "Please sign in again").await;
    page.click("[aria-label^='Actions for']").await;
    page.click_text("[role=menuitem]", "Enable").await;
    page.gone(".people .tag").await;
    let bob = expect(200, users.test_space.ann.get("/api/admin/users/2").await);
    assert_eq!(bob["status"], "active");
}

#[tokio::test]
async fn a_running_reply_is_followed_and_stopped_by_an_admin() {
    let users = SeveralUsers::with("member").await;
    users
        .test_server
        .upstream
        .reply_with("One two three four five.");
    let gate = users.test_server.upstream.gate();
    let page = page_of(&users, Viewport::Desktop, "/admin/runs").await;
    page.see_text(".panel__empty", "No runs found").await;
    users
        .test_space
        .ann
        .generate(
            users.test_space.conversation,
            users.test_space.memberships[0]["id"].as_i64(),
        )
        .await;
    gate.step();
    gate.step();

    page.see_text(".run--running", "7 characters so far").await;
    page.click(".run__summary").await;
    page.see_text(".run__facts", "triggered reply").await;
    page.see_text(".run__facts", "Last heartbeat").await;
    page.click_text(".run__facts button", "Stop").await;
    page.see_text(".run--canceled", "canceled").await;
    page.click_text(".run__facts button", "Only this space")
        .await;
    page.see_text(".chip", "Harbor Lights").await;
    page.see(".run--canceled").await;
    page.click_text("button", "Recover stuck runs").await;

    page.see_text(".outcome", "No stuck runs found.").await;
    assert!(!page.texts("main").await[0].contains("One two"));
    gate.open();
}

#[tokio::test]
async fn the_pages_of_the_server_fit_a_phone() {
    let users = SeveralUsers::with("member").await;
    users.test_server.upstream.reply_with("Yes.");
    users.test_space.post("Hello?").await;
    for (path, sign) in [
        ("/admin", ".figure"),
        ("/admin/people", ".people .list__item"),
        ("/admin/models", ".list__item"),
        ("/admin/runs", ".settings__card"),
    ] {
        let page = page_of(&users, Viewport::Phone, path).await;
        page.see(sign).await;

        let width = page.value("document.documentElement.scrollWidth").await;
        assert_eq!(width, json!(390), "{path}");
        let inner = "(({ scrollWidth, clientWidth }) => scrollWidth === clientWidth)(document.querySelector('.settings'))";
        assert_eq!(page.value(inner).await, json!(true), "{path}");
        assert_eq!(page.value(SMALL_TARGETS).await, json!([]), "{path}");
    }
}

#[tokio::test]
async fn other_users_cannot_open_the_admin_pages() {
    let users = SeveralUsers::with("member").await;
    let page = users.bobs_page().await;

    page.click(".sidebar__me").await;
    page.see_text("[role=menuitem]", "Sign out").await;
    assert!(
        !page
            .texts("[role=menuitem]")
            .await
            .concat()
            .contains("server")
    );
    page.go("/admin/people").await;

    page.see_text("h1", "Page not found").await;
}
