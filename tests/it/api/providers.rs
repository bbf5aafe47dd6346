//! Tests of providers: only admins manage them, and a stored key is never returned.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

/// An address at which no server listens.
const NOWHERE: &str = "http://127.0.0.1:1/v1";

const PLANTED: &str = "sk-planted-0123456789";

async fn create_provider(admin: &HttpClient, name: &str) -> Value {
    let body = json!({"name": name, "base_url": NOWHERE, "model": "m", "api_key": PLANTED});
    expect(201, admin.post("/api/providers", body).await)
}

async fn defaults(admin: &HttpClient) -> Vec<String> {
    let list = expect(200, admin.get("/api/providers").await);
    let all = list["data"].as_array().unwrap().iter();
    all.filter(|it| it["is_default"] == true)
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

on_sqlite! {
    async fn only_an_admin_manages_providers(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        create_provider(&users.admin, "Local").await;

        for (who, person) in &users.all_roles()[..5] {
            let body = json!({"name": "Mine", "base_url": NOWHERE, "model": "m"});
            for refused in [
                person.post("/api/providers", body).await,
                person.patch("/api/providers/2", json!({"is_default": true})).await,
                person.delete("/api/providers/2").await,
                person.post("/api/providers/2/test", json!({})).await,
                person.get("/api/providers/2/models").await,
                person.patch("/api/providers/424242", json!({})).await,
            ] {
                assert_eq!(refusal(&refused), (403, "forbidden".to_owned()), "{who}");
            }
            let list = expect(200, person.get("/api/providers").await);
            let keys: Vec<&String> = list["data"][1].as_object().unwrap().keys().collect();
            assert_eq!(keys, ["id", "name", "kind", "model", "is_default", "vision"], "{who}");
        }
        users.app.close().await;
    }

    async fn a_provider_key_is_in_no_response_and_encrypted_in_the_database(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let made = create_provider(&admin, "Local").await;
        let path = format!("/api/providers/{}", id(&made));

        let answers = [
            made.clone(),
            admin.get("/api/providers").await.1,
            admin.patch(&path, json!({"name": "Other"})).await.1,
            admin.post(&format!("{path}/test"), json!({})).await.1,
            admin.get(&format!("{path}/models")).await.1,
        ];

        for answer in &answers {
            assert!(!answer.to_string().contains("planted"), "{answer}");
        }
        assert_eq!(made["has_api_key"], true);
        let mut facts = DatabaseFacts::open(&app.database).await;
        let stored = facts.rows("SELECT api_key FROM llm_providers WHERE api_key IS NOT NULL").await;
        assert_eq!(stored.len(), 1);
        assert!(stored[0][0].as_deref().unwrap().starts_with("v1:"));
        assert!(!format!("{stored:?}").contains("planted"));
        app.close().await;
    }

    async fn additional_headers_are_sent_stored_encrypted_and_never_shown(backend) {
        let upstream = FakeProvider::start().await;
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let provider = |headers: Value| json!({
            "name": "Proxy", "base_url": upstream.base_url(), "model": "m", "settings": {"extra_headers": headers},
        });
        for wrong in [json!({"Authorization": "Bearer x"}), json!({"X-A": "a\nb"}), json!({"a b": "c"})] {
            let refused = admin.post("/api/providers", provider(wrong.clone())).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{wrong}");
        }

        let made = expect(201, admin.post("/api/providers", provider(json!({"X-Team": PLANTED}))).await);

        assert_eq!(made["settings"]["extra_headers"], json!({"X-Team": null}));
        let path = format!("/api/providers/{}", id(&made));
        let mut facts = DatabaseFacts::open(&app.database).await;
        let stored = facts.rows("SELECT settings FROM llm_providers").await;
        assert!(!format!("{stored:?}").contains(PLANTED), "{stored:?}");
        let kept = expect(200, admin.patch(&path, json!({"settings": made["settings"]})).await);
        assert_eq!(kept["settings"], made["settings"]);
        expect(200, admin.post(&format!("{path}/test"), json!({})).await);
        assert_eq!(upstream.seen(0).header("x-team"), Some(PLANTED));
        let moved = expect(200, admin.patch(&path, json!({"base_url": NOWHERE})).await);
        assert_eq!((&moved["settings"]["extra_headers"], &moved["api_key_cleared"]), (&Value::Null, &json!(true)));
        app.close().await;
    }

    async fn a_provider_key_is_cleared_when_the_address_changes(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let path = format!("/api/providers/{}", id(&create_provider(&admin, "Local").await));
        let elsewhere = "http://127.0.0.1:2/v1";

        let same = expect(200, admin.patch(&path, json!({"base_url": NOWHERE, "model": "n"})).await);
        assert_eq!((&same["has_api_key"], &same["api_key_cleared"]), (&json!(true), &json!(false)));

        let moved = expect(200, admin.patch(&path, json!({"base_url": elsewhere})).await);
        assert_eq!((&moved["has_api_key"], &moved["api_key_cleared"]), (&json!(false), &json!(true)));

        let with_key = json!({"base_url": NOWHERE, "api_key": PLANTED});
        let back = expect(200, admin.patch(&path, with_key).await);
        assert_eq!((&back["has_api_key"], &back["api_key_cleared"]), (&json!(true), &json!(false)));

        let dropped = expect(200, admin.patch(&path, json!({"api_key": null})).await);
        assert_eq!(dropped["has_api_key"], false);
        app.close().await;
    }
}

on_both! {
    async fn concurrent_requests_leave_exactly_one_default_provider(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        for n in 0..4 {
            create_provider(&admin, &format!("Model {n}")).await;
        }
        let new_default =
            json!({"name": "New", "base_url": NOWHERE, "model": "m", "is_default": true});

        let browsers = (2..6).map(async |id| {
            let mut statuses = Vec::new();
            for is_default in [true, false, true, true, false, true] {
                let change = json!({ "is_default": is_default });
                statuses.push(admin.patch(&format!("/api/providers/{id}"), change).await.0);
                statuses.push(admin.post("/api/providers", new_default.clone()).await.0);
            }
            statuses
        });
        let mut statuses = join_all(browsers).await.concat();

        statuses.retain(|it| ![200, 201].contains(it));
        assert_eq!(statuses, Vec::<u16>::new());
        assert_eq!(defaults(&admin).await.len(), 1);
        app.close().await;
    }
}

on_sqlite! {
    async fn there_is_one_default_provider_and_the_demo_model_is_the_fallback(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        assert_eq!(defaults(&admin).await, ["Demo"]);
        let one = format!("/api/providers/{}", id(&create_provider(&admin, "One").await));
        let two = format!("/api/providers/{}", id(&create_provider(&admin, "Two").await));
        assert_eq!(defaults(&admin).await, ["Demo"]);

        expect(200, admin.patch(&one, json!({"is_default": true})).await);
        assert_eq!(defaults(&admin).await, ["One"]);
        expect(200, admin.patch(&two, json!({"is_default": true})).await);
        assert_eq!(defaults(&admin).await, ["Two"]);
        expect(200, admin.patch(&two, json!({"disabled": true})).await);
        assert_eq!(defaults(&admin).await, ["Demo"]);
        expect(200, admin.patch(&one, json!({"is_default": true})).await);
        assert_eq!(admin.delete(&one).await.0, 204);

        assert_eq!(defaults(&admin).await, ["Demo"]);
        assert_eq!(admin.delete(&one).await.0, 404);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_test_passes_for_the_demo_model_and_reports_a_dead_address() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let dead = id(&create_provider(&admin, "Dead").await);

    let demo = expect(200, admin.post("/api/providers/1/test", json!({})).await);
    let unreachable = expect(
        200,
        admin
            .post(&format!("/api/providers/{dead}/test"), json!({}))
            .await,
    );

    assert_eq!((&demo["ok"], &demo["error"]), (&json!(true), &Value::Null));
    assert_eq!(unreachable["ok"], false);
    assert_eq!(unreachable["error"]["code"], "upstream_error");
    let models = expect(200, admin.get("/api/providers/1/models").await);
    assert_eq!(
        models["data"],
        json!([{"id": "demo", "vision": false, "context_tokens": null}])
    );
    let models = admin.get(&format!("/api/providers/{dead}/models")).await;
    assert_eq!(refusal(&models), (503, "upstream_error".to_owned()));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_address_must_be_allowed() {
    let app = TestApp::start_with(
        TestBackend::Sqlite,
        &[("TROUPE_ALLOW_PRIVATE_PROVIDERS", "false")],
    )
    .await;
    let admin = app.admin().await;

    for base_url in [
        NOWHERE,
        "http://localhost/v1",
        "http://169.254.169.254/v1",
        "http://[::1]/v1",
        "http://2130706433/v1",
        "ftp://example.com/v1",
        "file:///etc/passwd",
        "no address",
    ] {
        let body = json!({"name": "x", "base_url": base_url, "model": "m"});
        let refused = admin.post("/api/providers", body).await;
        assert_eq!(
            refusal(&refused),
            (422, "invalid_value".to_owned()),
            "{base_url}"
        );
        assert_eq!(refused.1["error"]["param"], "base_url");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_requires_a_name_a_model_and_an_address() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let valid = json!({"name": "x", "base_url": NOWHERE, "model": "m"});

    for field in ["name", "base_url", "model"] {
        let mut body = valid.clone();
        body.as_object_mut().unwrap().remove(field);
        let refused = admin.post("/api/providers", body).await;
        assert_eq!(
            refusal(&refused),
            (400, "missing_field".to_owned()),
            "{field}"
        );
    }
    for (field, value) in [
        ("api_key", "a\nb"),
        ("name", " "),
        ("kind", "magic"),
        ("model", "a\r\nb"),
    ] {
        let mut body = valid.clone();
        body[field] = json!(value);
        let refused = admin.post("/api/providers", body).await;
        assert_eq!(
            refusal(&refused),
            (422, "invalid_value".to_owned()),
            "{field}"
        );
    }
    for (key, reason) in [
        ("a b", "Must be visible ASCII characters without spaces."),
        (
            "k".repeat(4_001).as_str(),
            "Must have at most 4000 characters.",
        ),
    ] {
        let mut body = valid.clone();
        body["api_key"] = json!(key);
        let refused = admin.post("/api/providers", body).await;
        assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
        assert_eq!(refused.1["error"]["message"], reason);
    }
    app.close().await;
}
