//! Tests of the first steps: set-up, sign-in, connecting a model, creating a space.

use serde_json::json;

use crate::page::FIELD;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::HttpClient;
use crate::test_server::{TestServer, manual};

#[tokio::test]
async fn the_first_visit_shows_the_setup_page() {
    let test_server = TestServer::demo().await;
    let page = test_server.visitor().await;

    page.go("/").await;
    page.see_text("h1", "Welcome to Troupe").await;
    page.write("[name=display_name]", "Ann Lee").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;

    page.see(".message").await;
    page.truth(
        "one can write at once",
        "document.activeElement.matches('.composer__field')",
    )
    .await;
    page.reload().await;
    page.see(".message").await;
    let again =
        json!({"username": "eve", "password": "correct horse battery", "display_name": "Eve"});
    let (status, answer) = HttpClient::new(&test_server.server.url())
        .post("/api/setup", again)
        .await;
    assert_eq!(status, 409, "{answer}");
}

#[tokio::test]
async fn from_the_first_page_to_the_first_reply_in_five_steps() {
    let test_server = TestServer::demo().await;
    let page = test_server.visitor().await;

    page.go("/").await;
    page.write("[name=display_name]", "Ann").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;
    page.see(".message").await;
    let n_greetings = page.n(".message").await;
    page.send_message("Good evening.").await;

    page.truth(
        "a character has answered",
        &format!(
            "document.querySelectorAll('.message[data-state=final]').length >= {}",
            n_greetings + 2
        ),
    )
    .await;
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_can_be_retried() {
    let test_server = TestServer::demo().await;
    HttpClient::set_up(&test_server.server.url(), "ann").await;
    let page = test_server.visitor().await;

    page.go("/").await;
    page.see_text("h1", "Welcome back").await;
    page.write("[name=username]", "ann").await;
    page.write("[name=password]", "not my password").await;
    page.click("button[type=submit]").await;

    page.see_text("[role=alert]", "Wrong username or password")
        .await;
    page.truth(
        "the password has the focus",
        "document.activeElement.name === 'password'",
    )
    .await;
    let name = page
        .value("document.querySelector('[name=username]').value")
        .await;
    assert_eq!(name, json!("ann"));
}

#[tokio::test]
async fn too_many_sign_in_attempts_must_wait() {
    let test_server = TestServer::with(
        FakeProvider::start().await,
        &[("LIMIT_LOGIN_FAILURES", "10")],
    )
    .await;
    HttpClient::set_up(&test_server.server.url(), "ann").await;
    let stranger = HttpClient::new(&test_server.server.url());
    for _ in 0..10 {
        let guess = json!({"username": "ann", "password": "a wrong guess"});
        stranger.post("/api/session", guess).await;
    }
    let page = test_server.visitor().await;

    page.go("/").await;
    page.write("[name=username]", "ann").await;
    page.write("[name=password]", "correct horse battery").await;
    page.click("button[type=submit]").await;

    page.see_text("[role=alert]", "Too many requests").await;
}

#[tokio::test]
async fn without_a_model_a_notice_is_shown_and_posting_works() {
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;

    page.see_text("[data-card=demo]", "demo model").await;
    page.send_message("Anybody here?").await;
    page.see_text(".message[data-state=final]", "Anybody here?")
        .await;

    assert_eq!(test_space.texts().await, ["Anybody here?"]);
    page.click_text("[data-card=demo] button", "Connect a model")
        .await;
    page.see("dialog [name=base_url]").await;
}

#[tokio::test]
async fn a_model_test_is_explained_and_its_key_is_never_returned() {
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.click_text("[data-card=demo] button", "Connect a model")
        .await;

    page.write("dialog [name=base_url]", "http://127.0.0.1:9/v1")
        .await;
    page.write("dialog [name=api_key]", "sk-very-secret-key")
        .await;
    page.write("dialog [name=model]", "scripted").await;
    page.click_text("dialog button", "Test").await;
    page.see(".outcome--bad").await;
    page.rewrite("dialog [name=base_url]", &test_server.upstream.base_url())
        .await;
    page.click_text("dialog button", "Test").await;
    page.see_text(".outcome--good", "It works").await;

    let providers = test_space.ann.get("/api/providers").await.1.to_string();
    assert!(!providers.contains("sk-very-secret-key"), "{providers}");
    let is_in_page = "document.documentElement.outerHTML.includes('sk-very-secret-key') || [...document.querySelectorAll('input')].some((it) => it.value.includes('sk-very-secret-key'))";
    assert_eq!(page.value(is_in_page).await, json!(false));
    page.click_text("dialog button", "Use this model").await;
    page.gone("dialog").await;
    page.gone("[data-card=demo]").await;
}

#[tokio::test]
async fn a_key_that_was_typed_for_one_provider_kind_is_not_sent_to_another() {
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &["Mina"]).await;
    let page = test_space.page().await;
    page.click_text("[data-card=demo] button", "Connect a model")
        .await;
    page.write("dialog [name=base_url]", test_server.upstream.base_url())
        .await;
    page.write("dialog [name=api_key]", "sk-very-secret-key")
        .await;
    page.write("dialog [name=model]", "scripted").await;
    page.click_text("dialog button", "Test").await;
    page.see_text(".outcome--good", "It works").await;

    page.run("const kind = document.querySelector('dialog [name=kind]'); kind.value = 'anthropic'; kind.dispatchEvent(new Event('change'))")
        .await;
    page.click_text("dialog button", "Test").await;
    test_server.upstream.wait_for_requests(2).await;

    let (first, second) = (test_server.upstream.seen(0), test_server.upstream.seen(1));
    let has_key = |headers: &[(String, String)]| headers.iter().any(|it| it.1.contains("secret"));
    assert!(has_key(&first.headers));
    assert_eq!(second.path, "/v1/messages");
    assert!(!has_key(&second.headers), "{:?}", second.headers);
}

#[tokio::test]
async fn a_space_is_three_interactions_away() {
    let test_server = TestServer::demo().await;
    let test_space = test_server.create_space(manual(), &[]).await;
    let page = test_space.page().await;

    page.click("#sidebar [aria-label='New space']").await;
    page.press("The Lantern Inn").await;
    page.press(thirtyfour::Key::Enter).await;

    page.see_text(".main__space", "The Lantern Inn").await;
    page.truth(
        "one can write at once",
        &format!("document.activeElement.matches('{FIELD}')"),
    )
    .await;
    page.see_text(".intro", "No characters here yet").await;
}
