//! Tests of the embedding models in `GET /v1/models`.

use serde_json::{Value, json};

use super::fixture::V1Fixture;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{expect, id};

const LOCAL: &str = "troupe-ngram-256";

/// The ids of the embedding models, in the order of the list.
async fn list(fixture: &V1Fixture) -> Vec<String> {
    let all = expect(200, fixture.program.get("/models").await);
    let all = all["data"].as_array().expect("a list").iter();
    let all = all.filter(|it| it["kind"] == "embedding");
    let ids = all.map(|it| it["id"].as_str().expect("an id is text").to_owned());
    ids.collect()
}

async fn add(fixture: &V1Fixture, name: &str, settings: Value) -> Value {
    let provider = json!({
        "name": name,
        "kind": "openai_compatible",
        "base_url": "http://127.0.0.1:9/v1",
        "model": "chat",
        "settings": settings,
    });
    expect(201, fixture.admin.post("/api/providers", provider).await)
}

on_sqlite! {
    async fn embedding_models_of_enabled_providers_are_listed(backend) {
        let fixture = V1Fixture::open(backend).await;
        add(&fixture, "First", json!({ "embedding_model": "bge-m3:latest" })).await;
        let second = add(&fixture, "Second", json!({ "embedding_model": "bge-m3:latest" })).await;
        add(&fixture, "Plain", json!({})).await;
        let paused = json!({ "embedding_model": "paused", "embedding_timeout_s": 0 });
        add(&fixture, "Paused", paused).await;

        let listed = list(&fixture).await;
        let path = format!("/api/providers/{}", id(&second));
        expect(200, fixture.admin.patch(&path, json!({ "disabled": true })).await);

        let first = ["bge-m3:latest", "First/bge-m3:latest"];
        assert_eq!(listed, [LOCAL, first[0], first[1], "Second/bge-m3:latest"]);
        assert_eq!(list(&fixture).await, [LOCAL, first[0], first[1]]);
        fixture.close().await;
    }

    async fn a_model_is_found_by_its_escaped_and_its_unescaped_id(backend) {
        let fixture = V1Fixture::open(backend).await;
        add(&fixture, "First", json!({ "embedding_model": "org/bge-m3:latest" })).await;

        for (path, model) in [
            (LOCAL, LOCAL),
            ("org/bge-m3:latest", "org/bge-m3:latest"),
            ("org%2Fbge-m3%3Alatest", "org/bge-m3:latest"),
            ("org%2fbge-m3:latest", "org/bge-m3:latest"),
            ("First/org/bge-m3:latest", "First/org/bge-m3:latest"),
            ("First%2Forg%2Fbge-m3%3Alatest", "First/org/bge-m3:latest"),
        ] {
            let found = expect(200, fixture.program.get(&format!("/models/{path}")).await);

            assert_eq!(found["id"], model, "{path}");
            assert_eq!(found["object"], "model");
            assert_eq!(found["kind"], "embedding");
            assert!(found["created"].as_i64().expect("an integer") > 0);
            let owner = if model == LOCAL { "troupe" } else { "First" };
            assert_eq!(found["owned_by"], owner);
        }
        fixture.close().await;
    }
}
