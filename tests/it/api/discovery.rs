//! Tests of the discovery of model servers on the server's own machine.

use std::net::TcpListener;
use std::sync::Arc;

use llm::discovery::ServerAddress;
use llm::registry::ProviderKind;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::expect;
use crate::support::http_response::refusal;
use crate::support::trap_server::TrapServer;

const PATH: &str = "/api/providers/discover";

async fn app_with(env: &[(&str, &str)], addresses: Vec<ServerAddress>) -> TestApp {
    TestApp::start_changed(TestBackend::Sqlite, env, |app| {
        app.server_addresses = Arc::new(addresses)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_responding_server_is_discovered_with_its_models_and_can_be_added() {
    let (ollama, studio) = (FakeProvider::start().await, FakeProvider::start().await);
    ollama.models(&["llama3.2:latest", "qwen3"]);
    let addresses = vec![
        ServerAddress::new("Ollama", ProviderKind::Ollama, ollama.port()),
        ServerAddress::new("LM Studio", ProviderKind::OpenaiCompatible, studio.port()),
        ServerAddress::new("llama.cpp", ProviderKind::OpenaiCompatible, 1),
    ];
    let app = app_with(&[], addresses).await;
    let admin = app.admin().await;

    let found = expect(200, admin.post(PATH, json!({})).await);

    assert_eq!(
        found["data"],
        json!([
            {
                "name": "Ollama",
                "kind": "ollama",
                "base_url": ollama.origin(),
                "models": [{ "id": "llama3.2:latest", "vision": null, "context_tokens": null }, { "id": "qwen3", "vision": null, "context_tokens": null }],
            },
            {
                "name": "LM Studio",
                "kind": "openai_compatible",
                "base_url": studio.base_url(),
                "models": [{ "id": "scripted", "vision": null, "context_tokens": null }],
            },
        ])
    );
    for server in found["data"].as_array().unwrap() {
        let provider = json!({
            "name": server["name"], "kind": server["kind"], "base_url": server["base_url"],
            "model": server["models"][0]["id"],
        });
        expect(201, admin.post("/api/providers", provider).await);
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_listener_does_not_delay_discovery() {
    // The operating system accepts the connection, but no process responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let upstream = FakeProvider::start().await;
    let addresses = vec![
        ServerAddress::new("KoboldCpp", ProviderKind::OpenaiCompatible, port),
        ServerAddress::new("Ollama", ProviderKind::Ollama, upstream.port()),
    ];
    let app = app_with(&[], addresses).await;
    let admin = app.admin().await;

    let found = expect(200, admin.post(PATH, json!({})).await);

    assert_eq!(found["data"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["data"][0]["name"], "Ollama");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_private_access_no_address_is_called() {
    let trap = TrapServer::start();
    let addresses = vec![ServerAddress::new(
        "Ollama",
        ProviderKind::Ollama,
        trap.port,
    )];
    let closed = [("TROUPE_ALLOW_PRIVATE_PROVIDERS", "false")];
    let app = app_with(&closed, addresses).await;
    let admin = app.admin().await;

    let refused = admin.post(PATH, json!({})).await;

    assert_eq!(refusal(&refused), (403, "forbidden".to_owned()));
    assert!(
        refused
            .1
            .to_string()
            .contains("TROUPE_ALLOW_PRIVATE_PROVIDERS")
    );
    assert_eq!(trap.n_came(), 0);
    app.close().await;
}
