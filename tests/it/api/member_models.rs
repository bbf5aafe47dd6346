//! Tests of memberships with their own provider and model, and of the model of a space's memory.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;

/// Creates a provider with the address of this fake provider.
async fn provider(
    admin: &HttpClient,
    upstream: &FakeProvider,
    model: &str,
    is_default: bool,
) -> i64 {
    let body = json!({
        "name": model, "base_url": upstream.base_url(), "model": model, "is_default": is_default,
    });
    id(&expect(201, admin.post("/api/providers", body).await))
}

/// Triggers a reply; returns the model that was requested.
async fn requested_model(admin: &HttpClient, conversation: i64, upstream: &FakeProvider) -> Value {
    let nth = upstream.n_requests();
    let posted = admin.post_message(conversation, "Hello?", None).await;
    expect(201, posted);
    upstream.wait_for_requests(nth + 1).await;
    poll::until("the conversation is idle", async || {
        (admin.conversation(conversation).await["state"] == "idle").then_some(())
    })
    .await;
    upstream.body(nth)["model"].clone()
}

on_sqlite! {
    async fn a_membership_uses_its_own_provider_and_model(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let (usual, own) = (FakeProvider::start().await, FakeProvider::start().await);
        provider(&admin, &usual, "usual", true).await;
        let other = provider(&admin, &own, "other", false).await;
        let space = admin.create_space("Room", json!({"user_turn_debounce_ms": 0})).await;
        let membership = admin
            .add_character(&space, &admin.create_character("Ada", None).await)
            .await;
        let (membership, conversation) = (
            format!("/api/memberships/{}", id(&membership)),
            root_of(&space),
        );

        assert_eq!(requested_model(&admin, conversation, &usual).await, "usual");
        expect(200, admin.patch(&membership, json!({"llm_provider_id": other})).await);
        assert_eq!(requested_model(&admin, conversation, &own).await, "other");
        expect(200, admin.patch(&membership, json!({"settings": {"model": " special "}})).await);
        assert_eq!(requested_model(&admin, conversation, &own).await, "special");

        let runs = admin.runs(conversation).await;
        assert!(runs.iter().any(|it| it["prompt"]["model"] == "special"), "{runs:?}");
        // The model name has no meaning for a different provider.
        expect(200, admin.patch(&format!("/api/providers/{other}"), json!({"disabled": true})).await);
        assert_eq!(requested_model(&admin, conversation, &usual).await, "usual");
        let refused = admin.patch(&membership, json!({"settings": {"model": "a\nb"}})).await;
        assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
        app.close().await;
    }
    async fn a_space_names_an_existing_provider_for_its_memory(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let upstream = FakeProvider::start().await;
        let chosen = provider(&admin, &upstream, "small", false).await;
        let space = admin.create_space("Room", json!({})).await;
        let path = format!("/api/spaces/{}", id(&space));
        let memory = |provider: i64| json!({"memory": {"model": {"provider_id": provider, "model": "tiny"}}});

        let stored = expect(200, admin.patch(&path, json!({"settings": memory(chosen)})).await);
        let unknown = admin.patch(&path, json!({"settings": memory(chosen + 1)})).await;
        let new = json!({"name": "Other", "settings": memory(chosen + 1)});
        let in_new = admin.post("/api/spaces", new).await;

        assert_eq!(stored["settings"], memory(chosen));
        for refused in [unknown, in_new] {
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], "settings.memory.model.provider_id");
        }
        // A provider that was deleted since must not prevent other changes.
        expect(204, admin.delete(&format!("/api/providers/{chosen}")).await);
        let mut others = memory(chosen);
        others["scenario_override"] = json!("The sea.");
        expect(200, admin.patch(&path, json!({"settings": others})).await);
        app.close().await;
    }
}
