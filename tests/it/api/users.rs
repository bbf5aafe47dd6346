//! Tests of accounts: registration and changes to one's own account.

use futures::future::join_all;
use serde_json::json;

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::http_client::{HttpClient, expect};
use crate::support::http_response::refusal;
use crate::support::v1_client::V1Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registration_is_closed_unless_it_is_opened() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;
    let body = json!({"username": "ben", "password": "correct horse", "display_name": "Ben"});

    let closed = HttpClient::new(&app.base).post("/api/users", body).await;

    assert_eq!(refusal(&closed), (403, "registration_closed".to_owned()));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registration_is_closed_before_setup() {
    let app = TestApp::start_with(TestBackend::Sqlite, OPEN_REGISTRATION).await;
    let body = json!({"username": "ben", "password": "correct horse", "display_name": "Ben"});

    let early = HttpClient::new(&app.base).post("/api/users", body).await;

    assert_eq!(refusal(&early), (403, "registration_closed".to_owned()));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_invite_creates_no_account() {
    let app = TestApp::start_with(TestBackend::Sqlite, OPEN_REGISTRATION).await;
    app.admin().await;
    let body = json!({"username": "ben", "password": "correct horse", "display_name": "Ben", "invite_token": "x"});

    let refused = HttpClient::new(&app.base).post("/api/users", body).await;

    assert_eq!(refusal(&refused), (404, "not_found".to_owned()));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registrations_per_hour_are_limited_and_failed_ones_do_not_count() {
    let env = [OPEN_REGISTRATION, &[("LIMIT_REGISTRATIONS_PER_HOUR", "2")]].concat();
    let app = TestApp::start_with(TestBackend::Sqlite, &env).await;
    app.admin().await;
    let register = async |username: &str| {
        let body =
            json!({"username": username, "password": "correct horse", "display_name": "Ben"});
        HttpClient::new(&app.base).post("/api/users", body).await.0
    };

    assert_eq!(register("ben").await, 201);
    assert_eq!(register("BEN").await, 409);
    assert_eq!(register("x").await, 422);
    assert_eq!(register("cat").await, 201);
    assert_eq!(register("dan").await, 429);
    app.app.clock.advance_ms(3_600_000);
    assert_eq!(register("dan").await, 201);
    app.close().await;
}

on_both! {
    async fn usernames_are_unique_regardless_of_case(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        app.admin().await;
        app.register("Ben.B").await;

        for username in ["ben.b", "BEN.B", "ｂｅｎ.ｂ"] {
            let body = json!({"username": username, "password": "correct horse", "display_name": "Ben"});
            let taken = HttpClient::new(&app.base).post("/api/users", body).await;
            assert_eq!(refusal(&taken), (409, "username_taken".to_owned()), "{username}");
        }
        app.close().await;
    }
}

on_sqlite! {
    async fn a_new_name_is_visible_in_every_space(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;

        let me = expect(200, admin.patch("/api/users/me", json!({"display_name": " Ada "})).await);

        assert_eq!(me["display_name"], "Ada");
        let memberships = expect(200, admin.get("/api/spaces/1/memberships").await);
        assert_eq!(memberships["data"][0]["display_name"], "Ada");
        app.close().await;
    }
}

on_both! {
    async fn concurrent_name_changes_do_not_deadlock(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        for n in 0..30 {
            admin.create_space(&format!("Room {n}"), json!({})).await;
        }

        let rounds = (0..8).map(async |browser| {
            let mut statuses = Vec::new();
            for n in 0..12 {
                let name = json!({"display_name": format!("Ann {browser} {n}")});
                statuses.push(admin.patch("/api/users/me", name).await.0);
            }
            statuses
        });
        let mut statuses = join_all(rounds).await.concat();

        statuses.retain(|it| *it != 200);
        assert_eq!(statuses, Vec::<u16>::new());
        app.close().await;
    }
}

on_sqlite! {
    async fn a_new_password_ends_every_other_session(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let phone = HttpClient::sign_in(&app.base, "admin").await;
        let change = |current: &str| json!({"password": "another horse", "current_password": current});

        let wrong = admin.patch("/api/users/me", change("wrong")).await;
        assert_eq!(refusal(&wrong), (422, "invalid_value".to_owned()));
        let none = admin.patch("/api/users/me", json!({"password": "another horse"})).await;
        assert_eq!(refusal(&none), (400, "missing_field".to_owned()));
        assert_eq!(phone.get("/api/session").await.0, 200);

        assert_eq!(admin.patch("/api/users/me", change("correct horse battery")).await.0, 200);

        assert_eq!(phone.get("/api/session").await.0, 401);
        let body = json!({"username": "admin", "password": "another horse"});
        assert_eq!(HttpClient::new(&app.base).post("/api/session", body).await.0, 200);
        app.close().await;
    }

    async fn a_new_password_reports_the_api_keys_and_revokes_them_when_asked(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (admin, other) = (app.admin().await, app.register("ben").await);
        let (first, second) = (V1Client::new(&admin).await, V1Client::new(&admin).await);
        let of_other = V1Client::new(&other).await;
        let change = |password: &str, current: &str| json!({"password": password, "current_password": current});
        let is_valid = async |it: &V1Client| it.get("/models").await.0 == 200;

        let body = change("another horse", "correct horse battery");
        let (kept, cookie) = admin.patch_with_cookie("/api/users/me", &body).await;
        assert_eq!(kept["api_keys_active"], 2);
        assert!(is_valid(&first).await && is_valid(&second).await);

        let mut body = change("a third horse", "wrong horse");
        body["revoke_api_keys"] = json!(true);
        let admin = admin.with_cookie(cookie.expect("the response sets a new cookie"));
        let refused = admin.patch("/api/users/me", body.clone()).await;
        assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
        assert!(is_valid(&first).await, "a rejected change revoked a key");

        body["current_password"] = json!("another horse");
        let revoked = expect(200, admin.patch("/api/users/me", body).await);
        assert_eq!(revoked["api_keys_active"], 0);
        assert!(!is_valid(&first).await && !is_valid(&second).await);
        assert_eq!(first.get("/models").await.0, 401);
        assert!(is_valid(&of_other).await, "a key of another user was revoked");
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_cannot_raise_their_own_role() {
    let app = TestApp::start_with(TestBackend::Sqlite, OPEN_REGISTRATION).await;
    app.admin().await;
    let ben = app.register("ben").await;

    for field in ["role", "status", "id", "password_hash", "created_at"] {
        let refused = ben.patch("/api/users/me", json!({field: "admin"})).await;
        assert_eq!(
            refusal(&refused),
            (400, "unknown_field".to_owned()),
            "{field}"
        );
    }

    let me = expect(200, ben.get("/api/session").await);
    assert_eq!(me["user"]["role"], "user");
    app.close().await;
}
