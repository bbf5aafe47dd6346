//! Tests of API keys: use, revocation and storage.

use serde_json::json;

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{expect, http_client, id};
use crate::support::http_response::{Answer, refusal};

async fn with_key(app: &TestApp, key: &str) -> u16 {
    let request = http_client()
        .get(format!("{}/api/session", app.base))
        .header("authorization", format!("Bearer {key}"));
    Answer::to(request).await.status
}

on_sqlite! {
    async fn an_api_key_is_valid_until_it_is_revoked(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let ben = app.register("ben").await;

        let made = expect(201, admin.post("/api/api_keys", json!({"name": " bot "})).await);

        let key = made["key"].as_str().unwrap();
        assert!(key.starts_with("trp_") && key.len() == 47);
        assert_eq!(made["prefix"], key[..8]);
        assert_eq!(made["name"], "bot");
        assert_eq!(with_key(&app, key).await, 200);
        assert_eq!(with_key(&app, &format!("{key}x")).await, 401);
        let path = format!("/api/api_keys/{}", id(&made));
        assert_eq!(refusal(&ben.delete(&path).await), (404, "not_found".to_owned()));
        assert_eq!(admin.delete(&path).await.0, 204);
        assert_eq!(with_key(&app, key).await, 401);
        assert_eq!(admin.delete(&path).await.0, 404);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_shown_once_and_stored_as_a_hash() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let made = expect(
        201,
        admin.post("/api/api_keys", json!({"name": "bot"})).await,
    );
    let key = made["key"].as_str().unwrap();

    let listed = expect(200, admin.get("/api/api_keys").await);

    assert_eq!(listed["data"][0]["id"], made["id"]);
    assert!(!listed.to_string().contains(key));
    let mut facts = DatabaseFacts::open(&app.database).await;
    let stored = facts.rows("SELECT key_hash FROM api_keys").await;
    assert!(!format!("{stored:?}").contains(key));
    app.close().await;
}
