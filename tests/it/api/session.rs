//! Tests of signing in and out.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, http_client};
use crate::support::http_response::{Answer, refusal};

const RIGHT: &str = "correct horse battery";

async fn try_sign_in(app: &TestApp, username: &str, password: &str) -> (u16, Value) {
    let body = json!({"username": username, "password": password});
    HttpClient::new(&app.base).post("/api/session", body).await
}

fn without_id(mut answer: (u16, Value)) -> (u16, Value) {
    if let Some(error) = answer.1["error"].as_object_mut() {
        error.remove("request_id");
    }
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_sign_in_gets_the_same_answer() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;

    let wrong_password = without_id(try_sign_in(&app, "admin", "wrong horse").await);

    assert_eq!(
        refusal(&wrong_password),
        (401, "invalid_credentials".to_owned())
    );
    for (username, password) in [("nobody", RIGHT), ("", ""), ("a b", RIGHT), ("ADMIN", "x")] {
        assert_eq!(
            without_id(try_sign_in(&app, username, password).await),
            wrong_password
        );
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_ten_failures_every_sign_in_is_limited_even_with_the_right_password() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;
    for _ in 0..10 {
        assert_eq!(try_sign_in(&app, "admin", "wrong horse").await.0, 401);
    }

    let right = Answer::to(
        http_client()
            .post(format!("{}/api/session", app.base))
            .json(&json!({"username": "admin", "password": RIGHT})),
    )
    .await;

    assert_eq!(right.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(right.header("retry-after"), "180");
    assert_eq!(try_sign_in(&app, "somebody", "else").await.0, 429);
    app.app.clock.advance_ms(179_999);
    assert_eq!(try_sign_in(&app, "Admin", RIGHT).await.0, 429);
    app.app.clock.advance_ms(1);
    assert_eq!(try_sign_in(&app, "Admin", RIGHT).await.0, 200);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_sign_ins_do_not_bypass_the_failure_limit() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;

    let answers = join_all((0..40).map(|_| try_sign_in(&app, "admin", "wrong horse"))).await;

    let n_checked = answers.iter().filter(|it| it.0 == 401).count();
    let n_refused = answers.iter().filter(|it| it.0 == 429).count();
    assert_eq!(n_checked + n_refused, 40);
    // At most four sign-ins are in progress when the tenth failure is counted.
    assert!(
        (10..=14).contains(&n_checked),
        "{n_checked} passwords were checked"
    );
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_cookie_is_http_only_and_same_site() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;
    let sign_in = json!({"username": "admin", "password": RIGHT});
    let request = http_client()
        .post(format!("{}/api/session", app.base))
        .json(&sign_in);

    let plain = Answer::to(request).await;

    let cookie = plain.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_https_the_cookie_is_secure() {
    let public = [("TROUPE_PUBLIC_URL", "https://troupe.example")];
    let app = TestApp::start_with(TestBackend::Sqlite, &public).await;
    let body = json!({"username": "admin", "password": RIGHT, "display_name": "A"});

    let request = http_client()
        .post(format!("{}/api/setup", app.base))
        .json(&body);
    let answer = Answer::to(request).await;

    assert!(answer.header("set-cookie").contains("Secure"));
    app.close().await;
}

on_sqlite! {
    async fn a_signed_out_session_is_invalid(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let elsewhere = HttpClient::sign_in(&app.base, "admin").await;

        assert_eq!(admin.delete("/api/session").await.0, 204);

        let late = admin.get("/api/session").await;
        assert_eq!(refusal(&late), (401, "not_authenticated".to_owned()));
        assert_eq!(elsewhere.get("/api/session").await.0, 200);
        app.close().await;
    }

    async fn users_see_and_end_only_their_own_sessions(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let phone = HttpClient::sign_in(&app.base, "admin").await;
        let ben = app.register("ben").await;

        let mine = expect(200, admin.get("/api/sessions").await);

        let mine = mine["data"].as_array().unwrap().clone();
        assert_eq!(mine.len(), 2);
        assert_eq!(mine.iter().filter(|it| it["current"] == true).count(), 1);
        let other = mine.iter().find(|it| it["current"] == false).unwrap();
        let path = format!("/api/sessions/{}", other["id"]);
        assert_eq!(refusal(&ben.delete(&path).await), (404, "not_found".to_owned()));
        assert_eq!(admin.delete(&path).await.0, 204);
        assert_eq!(phone.get("/api/session").await.0, 401);
        assert_eq!(admin.get("/api/session").await.0, 200);
        app.close().await;
    }

    async fn a_session_expires_after_thirty_days(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;

        app.app.clock.advance_ms(30 * 86_400_000 - 1);
        assert_eq!(admin.get("/api/session").await.0, 200);
        app.app.clock.advance_ms(1);

        assert_eq!(admin.get("/api/session").await.0, 401);
        app.close().await;
    }

    async fn the_database_contains_no_session_token_and_no_password(backend) {
        let default_hashes = [("PASSWORD_HASH_KIB", "")];
        let app = TestApp::start_with(backend, &default_hashes).await;
        let admin = app.admin().await;
        let token = admin.cookie().split_once('=').unwrap().1.to_owned();

        let mut facts = DatabaseFacts::open(&app.database).await;
        let sessions = facts.rows("SELECT token_hash FROM sessions").await;
        let users = facts.rows("SELECT password_hash FROM users").await;

        assert_eq!(sessions.len(), 1);
        assert!(!format!("{sessions:?}").contains(&token));
        assert!(users[0][0].as_deref().unwrap().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(!format!("{users:?}").contains(RIGHT));
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_cookie_is_unauthenticated_and_not_adopted() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;
    let request = http_client()
        .post(format!("{}/api/session", app.base))
        .header("cookie", "troupe_session=mine")
        .json(&json!({"username": "admin", "password": RIGHT}));

    let answer = Answer::to(request).await;

    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("troupe_session=") && !cookie.starts_with("troupe_session=mine"));
    let request = http_client()
        .get(format!("{}/api/session", app.base))
        .header("cookie", "troupe_session=mine");
    assert_eq!(Answer::to(request).await.status, 401);
    app.close().await;
}
