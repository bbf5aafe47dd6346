//! A server with a space whose memories a scripted provider embeds.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::database_facts::DatabaseFacts;
use crate::support::embeddings_server::EmbeddingsServer;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;

/// A memory about a dog, without this word.
pub const HOUND: &str = "Ann walks her hound every morning.";
/// A memory about the sea, without this word.
pub const OCEAN: &str = "The ocean was rough last night.";

/// A space whose memories a provider embeds.
pub struct EmbeddingFixture {
    pub app: TestApp,
    pub owner: HttpClient,
    pub server: EmbeddingsServer,
    pub provider: Value,
    pub space: Value,
}

impl EmbeddingFixture {
    /// Starts a server; the provider has no options.
    pub async fn open(backend: TestBackend) -> Self {
        Self::open_with(backend, json!({})).await
    }

    /// `options`: the settings of the provider.
    pub async fn open_with(backend: TestBackend, options: Value) -> Self {
        let app = TestApp::start(backend).await;
        let owner = app.admin().await;
        let server = EmbeddingsServer::start().await;
        let provider = json!({
            "name": "Embeddings",
            "kind": "openai_compatible",
            "base_url": server.url,
            "model": "chat",
            "settings": options,
        });
        let provider = expect(201, owner.post("/api/providers", provider).await);
        let space = owner.create_space("Harbor", json!({})).await;
        let it = Self {
            app,
            owner,
            server,
            provider,
            space,
        };
        it.choose("narrow").await;
        it
    }

    /// The path of the space's memories.
    pub fn path(&self) -> String {
        format!("/api/spaces/{}/memories", id(&self.space))
    }

    pub async fn choose(&self, model: &str) {
        let chosen = json!({"provider_id": id(&self.provider), "model": model});
        self.change_settings(json!({"memory": {"embedding": chosen}}))
            .await;
    }

    pub async fn change_settings(&self, settings: Value) {
        let path = format!("/api/spaces/{}", id(&self.space));
        expect(
            200,
            self.owner.patch(&path, json!({"settings": settings})).await,
        );
    }

    pub async fn change_provider(&self, change: Value) {
        let path = format!("/api/providers/{}", id(&self.provider));
        expect(200, self.owner.patch(&path, change).await);
    }

    pub async fn remember(&self, content: &str) -> Value {
        let body = json!({"content": content, "kind": "event"});
        expect(201, self.owner.post(&self.path(), body).await)
    }

    pub async fn state(&self) -> Value {
        let path = format!("{}/state", self.path());
        expect(200, self.owner.get(&path).await)
    }

    /// Executes the due tasks, and waits until no vector is missing.
    pub async fn embed_all(&self) -> Value {
        self.run_due().await;
        poll::until("all memories are embedded", async || {
            let state = self.state().await;
            (state["tasks"]["queued"] == 0).then_some(state)
        })
        .await
    }

    pub async fn run_due(&self) {
        let done = self.app.app.embedding.run_due().await;
        done.expect("the database answers");
    }

    /// Executes the due tasks, and waits until the attempt has failed.
    pub async fn fail_to_embed(&self) -> Value {
        self.run_due().await;
        poll::until("an attempt fails", async || {
            let state = self.state().await;
            state["embedding"]["error"].is_string().then_some(state)
        })
        .await
    }

    pub async fn search(&self, text: &str) -> Vec<String> {
        let path = format!("{}?q={text}", self.path());
        let found = expect(200, self.owner.get(&path).await);
        let found = found["data"].as_array().expect("a list").iter();
        found
            .map(|it| it["content"].as_str().expect("a text").to_owned())
            .collect()
    }

    pub async fn number(&self, sql: &str) -> i64 {
        let mut facts = DatabaseFacts::open(&self.app.database).await;
        facts.number(sql).await
    }

    pub async fn n_vectors(&self) -> i64 {
        self.number("SELECT CAST(count(*) AS TEXT) FROM memory_vectors")
            .await
    }
}
