//! Tests of the setup: the first admin and the sample characters.

use futures::future::join_all;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, root_of};
use crate::support::http_response::refusal;

on_both! {
    async fn fifty_concurrent_setups_create_one_admin(backend) {
        let app = TestApp::start_with(backend, &[("LIMIT_REGISTRATIONS_PER_HOUR", "1")]).await;

        let answers = join_all((0..50).map(|n| {
            let visitor = HttpClient::new(&app.base);
            let body = json!({"username": format!("admin{n}"), "password": "correct horse", "display_name": "A"});
            async move { visitor.post("/api/setup", body).await }
        }))
        .await;

        let n_made = answers.iter().filter(|it| it.0 == 201).count();
        let n_late = answers.iter().filter(|it| it.0 == 409).count();
        assert_eq!((n_made, n_late), (1, 49));
        let mut facts = DatabaseFacts::open(&app.database).await;
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM users").await, 1);
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM spaces").await, 1);
        app.close().await;
    }
}

on_sqlite! {
    async fn after_the_setup_two_characters_have_posted_their_greeting(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;

        let spaces = expect(200, admin.get("/api/spaces").await);
        let space = &spaces["data"][0];
        let messages = admin.messages(root_of(space)).await;

        assert_eq!(space["my_role"], "owner");
        assert_eq!(messages.len(), 2);
        for message in &messages {
            let text = message["content"].as_str().unwrap();
            assert!(text.contains("admin") && !text.contains("{{"), "{text}");
        }
        app.close().await;
    }

    async fn the_demo_provider_exists_and_is_the_default(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;

        let providers = expect(200, admin.get("/api/providers").await);

        assert_eq!(providers["data"].as_array().unwrap().len(), 1);
        assert_eq!(providers["data"][0]["name"], "Demo");
        assert_eq!(providers["data"][0]["is_default"], true);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_can_be_set_up_only_once() {
    let app = TestApp::start(crate::support::backends::TestBackend::Sqlite).await;
    let visitor = HttpClient::new(&app.base);
    assert_eq!(
        visitor.get("/api/setup").await,
        (200, json!({"needed": true}))
    );

    let admin = app.admin().await;

    assert_eq!(
        visitor.get("/api/setup").await,
        (200, json!({"needed": false}))
    );
    let body = json!({"username": "other", "password": "correct horse", "display_name": "O"});
    let again = visitor.post("/api/setup", body).await;
    assert_eq!(refusal(&again), (409, "already_set_up".to_owned()));
    let me = expect(200, admin.get("/api/session").await);
    assert_eq!(me["user"]["role"], "admin");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_sample_space_is_not_created_again() {
    let app = TestApp::start(crate::support::backends::TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let spaces = expect(200, admin.get("/api/spaces").await);

    let path = format!("/api/spaces/{}", spaces["data"][0]["id"]);
    assert_eq!(admin.delete(&path).await.0, 204);

    let spaces = expect(200, admin.get("/api/spaces").await);
    assert_eq!(
        spaces,
        json!({"data": [], "has_more": false, "cursor": null})
    );
    assert_eq!(
        refusal(&admin.get(&path).await),
        (404, "not_found".to_owned())
    );
    app.close().await;
}
