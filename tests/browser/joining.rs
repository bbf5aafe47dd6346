//! Tests of joining a space by an invite link, and of creating links.

use serde_json::{Value, json};

use crate::page::{FIELD, Page, Viewport};
use crate::several_users::page_of;
use crate::support::http_client::{HttpClient, expect};
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Creates an invite of Ann; only this response contains its link.
async fn invite(test_space: &SpaceFixture, body: Value) -> Value {
    let path = format!(
        "/api/spaces/{}/invites",
        test_space.memberships[0]["space_id"]
    );
    expect(201, test_space.ann.post(&path, body).await)
}

/// Returns the part of a link after the address of the server.
fn path_of(test_space: &SpaceFixture, invite: &Value) -> String {
    let url = invite["url"].as_str().expect("the response has a link");
    let path = url.strip_prefix(test_space.ann.base());
    path.expect("the link belongs to this server").to_owned()
}

async fn open(test_space: &SpaceFixture, invite: &Value, screen: Viewport) -> Page {
    let page = Page::open(test_space.ann.base(), screen).await;
    page.go(&path_of(test_space, invite)).await;
    page
}

/// The token is in no address of the browser's history.
const TOKEN_IS_GONE: &str = "location.hash === '' && location.pathname === '/join'";

#[tokio::test]
async fn an_invited_guest_enters_a_name_and_joins() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    for n in 0..30 {
        test_space.post(&format!("Line number {n}.")).await;
    }
    let link = invite(&test_space, json!({"role": "guest"})).await;
    let ann = test_space.page().await;
    ann.see_text(".message", "Line number 29.").await;

    let page = open(&test_space, &link, Viewport::Desktop).await;
    page.see_text("h1", "You are invited to Harbor Lights")
        .await;
    page.see_text(".sign-in__lead", "The owner is ann. 2 members so far")
        .await;
    page.truth("the token has left the address", TOKEN_IS_GONE)
        .await;
    page.reload().await;
    page.see_text("h1", "You are invited to Harbor Lights")
        .await;
    page.write("[name=display_name]", "Cleo").await;
    page.write("[name=persona]", "A cartographer without a boot")
        .await;
    page.click("button[type=submit]").await;

    page.see_text(".message", "Line number 29.").await;
    page.truth(
        "the newest message is in view",
        "[...document.querySelectorAll('.message')].at(-1).getBoundingClientRect().bottom < innerHeight",
    )
    .await;
    page.see("[aria-label='Online: ann']").await;
    page.see_text(".queue", "No reply is queued yet.").await;
    page.truth(
        "one is at the conversation",
        &format!("location.pathname === '{}'", test_space.path()),
    )
    .await;
    page.send_message("Good evening, all.").await;
    ann.see_text(".message", "Good evening, all.").await;
    ann.see_text(".member", "Cleo").await;
    ann.see_text(".member__persona", "A cartographer").await;
    assert_eq!(
        page.value("sessionStorage.getItem('troupe.invitation')")
            .await,
        json!(null)
    );
}

#[tokio::test]
async fn a_guest_joins_on_a_phone() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    test_space.post("The newest word").await;
    let link = invite(&test_space, json!({"role": "guest"})).await;

    let page = open(&test_space, &link, Viewport::Phone).await;
    page.see_text("h1", "You are invited").await;
    assert_eq!(
        page.value("document.documentElement.scrollWidth").await,
        json!(390)
    );
    assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
    page.write("[name=display_name]", "Cleo").await;
    page.click("button[type=submit]").await;

    page.see_text(".message", "The newest word").await;
    assert_eq!(page.value(SMALL_TARGETS).await, json!([]));
}

/// Touch targets that are too small, except links in a text; 0.5 px tolerance for sliding ones.
const SMALL_TARGETS: &str =
    "[...document.querySelectorAll('button, a[href], input, select, textarea')]
    .filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.closest('.prose'))
    .filter((it) => it.getBoundingClientRect().height < 43.5 || it.getBoundingClientRect().width < 43.5)
    .map((it) => it.outerHTML.slice(0, 120))";

#[tokio::test]
async fn invalid_invite_links_explain_why() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let spent = invite(&test_space, json!({"role": "guest", "max_uses": 1})).await;
    let first = open(&test_space, &spent, Viewport::Desktop).await;
    first.write("[name=display_name]", "Cleo").await;
    first.click("button[type=submit]").await;
    first.see(FIELD).await;
    let revoked = invite(&test_space, json!({"role": "guest"})).await;
    expect(
        204,
        test_space
            .ann
            .delete(&format!("/api/invites/{}", revoked["id"]))
            .await,
    );

    let page = open(&test_space, &spent, Viewport::Desktop).await;
    page.see_text("[data-closed=expired] h1", "This invitation has expired")
        .await;
    page.see_text(".sign-in", "Ask the sender").await;
    page.go(&path_of(&test_space, &revoked)).await;
    page.see_text("[data-closed=unknown] h1", "This invitation is not valid")
        .await;
    page.go("/join").await;
    page.see_text("[data-closed=unknown] h1", "is not valid")
        .await;
    page.click_text(".sign-in a", "Sign in").await;

    page.see("[name=username]").await;
}

#[tokio::test]
async fn an_invited_member_registers_and_joins() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let link = invite(&test_space, json!({"role": "member"})).await;

    let page = open(&test_space, &link, Viewport::Desktop).await;
    page.see_text(".sign-in__lead", "You will join as a member")
        .await;
    assert_eq!(page.n("[data-way=guest]").await, 0);
    page.write("[name=display_name]", "Dora Vale").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;

    page.see_text("#panel", "You · Member").await;
    page.see(".queue [aria-label='Trigger Mina']").await;
    HttpClient::sign_in(test_space.ann.base(), "dora.vale").await;
}

#[tokio::test]
async fn a_user_with_an_account_signs_in_and_joins() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let first = invite(&test_space, json!({"role": "member", "max_uses": 1})).await;
    let page = open(&test_space, &first, Viewport::Desktop).await;
    page.write("[name=display_name]", "Dora").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;
    page.see(FIELD).await;
    let space = test_space.ann.create_space("The Old Mill", manual()).await;
    let path = format!("/api/spaces/{}/invites", space["id"]);
    let second = expect(
        201,
        test_space
            .ann
            .post(&path, json!({"role": "moderator"}))
            .await,
    );

    let elsewhere = open(&test_space, &second, Viewport::Desktop).await;
    elsewhere.click_text(".choice", "Sign in").await;
    elsewhere.write("[name=username]", "dora").await;
    elsewhere.write("[name=password]", "not my password").await;
    elsewhere.click("button[type=submit]").await;
    elsewhere
        .see_text("[role=alert]", "Wrong username or password")
        .await;
    elsewhere
        .write("[name=password]", "correct horse battery")
        .await;
    elsewhere.click("button[type=submit]").await;

    elsewhere.see_text(".main__space", "The Old Mill").await;
    elsewhere.see_text("#panel", "You · Moderator").await;
    page.go(&path_of(&test_space, &second)).await;
    page.see_text("h1", "You are already in The Old Mill").await;
    page.click("button[type=submit]").await;
    page.see_text(".main__space", "The Old Mill").await;
}

#[tokio::test]
async fn a_signed_in_user_joins_with_one_click() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let way = invite(&test_space, json!({"role": "member"})).await;
    let dora = register(&test_space, &way, "dora").await;
    let space = test_space.ann.create_space("The Old Mill", manual()).await;
    let path = format!("/api/spaces/{}/invites", space["id"]);
    let link = expect(
        201,
        test_space.ann.post(&path, json!({"role": "guest"})).await,
    );

    let page = page_of(&dora, &test_space.path()).await;
    page.go(&path_of(&test_space, &link)).await;
    page.click_text("button", "Join as dora").await;

    page.see_text(".main__space", "The Old Mill").await;
    page.see_text("#panel", "You · Guest").await;
}

/// A user with an account, created through an invitation.
async fn register(test_space: &SpaceFixture, invite: &Value, name: &str) -> HttpClient {
    let body = json!({"username": name, "password": "correct horse battery", "display_name": name, "invite_token": invite["token"]});
    expect(
        201,
        HttpClient::new(test_space.ann.base())
            .post("/api/users", body)
            .await,
    );
    HttpClient::sign_in(test_space.ann.base(), name).await
}

#[tokio::test]
async fn a_new_link_replaces_the_old_one_and_its_qr_code() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.click_text("#panel button", "Invite people").await;
    page.click_text("dialog button", "Create link").await;
    let first = link_in(&page, "").await;

    page.click_text("dialog button", "Replace link").await;
    let second = link_in(&page, &first).await;

    let alt = "document.querySelector('.invite__picture').alt";
    assert_eq!(page.value(alt).await, json!(second));
    page.truth(
        "the picture is drawn",
        "document.querySelector('.invite__picture').naturalWidth > 100",
    )
    .await;
    page.truth(
        "one link is out",
        "document.querySelectorAll('.invite__list li').length === 1",
    )
    .await;
    let stranger = HttpClient::new(test_space.ann.base());
    let status_of = async |url: &str| {
        let token = url.split('#').next_back().expect("the link has a token");
        stranger.get(&format!("/api/join/{token}")).await.0
    };
    assert_eq!(
        (status_of(&first).await, status_of(&second).await),
        (404, 200)
    );
    page.click(".invite__list [aria-label^='Revoke this link']")
        .await;
    page.gone(".invite__list li").await;
    page.gone(".invite__picture").await;
    assert_eq!(status_of(&second).await, 404);
}

/// Waits until the dialog shows a link other than `before`, and returns it.
async fn link_in(page: &Page, before: &str) -> String {
    let shown = "document.querySelector('.invite input')?.value";
    page.truth(
        "a link is shown",
        &format!(
            "({shown} ?? '').includes('/join#') && {shown} !== {}",
            json!(before)
        ),
    )
    .await;
    page.value(shown)
        .await
        .as_str()
        .expect("the response has a link")
        .to_owned()
}

#[tokio::test]
async fn the_list_of_links_shows_how_often_each_was_used() {
    let test_server = TestServer::open().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let link = invite(&test_space, json!({"role": "member", "max_uses": 5})).await;
    register(&test_space, &link, "dora").await;
    let page = test_space.page().await;

    page.click(".main__head [aria-label='Conversation menu']")
        .await;
    page.click_text(".menu__item", "Invite people").await;

    page.see_text(".invite__list li", "used 1 of 5 times").await;
    page.see_text(".invite__list li", "Member").await;
}
