//! Tests of prompts whose memories are found by a model of a provider, and of workers that stop while
//! they embed.

use std::time::Duration;

use llm::registry::ProviderKind;
use serde_json::json;
use troupe::db::backend::StaleAfter;
use troupe::memories::embedding::embedding_job::EmbeddingJob;
use troupe::memories::embedding::memory_embedding::MemoryEmbedder;
use troupe::memories::embedding::refused_texts::RefusedTexts;
use troupe::memories::memory::{MemoryKind, MemoryOrigin};
use troupe::memories::memory_store;
use troupe::memories::memory_store::NewMemory;
use troupe::memories::tasks::task_queue::TaskQueue;
use troupe::memories::tasks::{memory_task, task_queue};
use troupe::providers::provider;
use troupe::providers::provider::NewProvider;

use crate::support::backends::on_both;
use crate::support::embeddings_server::{EmbeddingAnswer, EmbeddingsServer};
use crate::support::engine_test::EngineTest;
use crate::support::fixtures;

const MEMORY: &str = "Eve walks her hound Pixel every morning.";
const QUESTION: &str = "Whose dog barks there?";
const STALE_AFTER: Duration = Duration::from_secs(30);

impl EngineTest {
    /// Makes a provider at this server embed the memories of the space.
    async fn embed_by(&self, server: &EmbeddingsServer) {
        let context = self.engine.context();
        let new = NewProvider {
            name: "Embeddings".to_owned(),
            kind: ProviderKind::OpenaiCompatible,
            base_url: Some(server.url.clone()),
            api_key: None,
            model: "chat".to_owned(),
            is_default: false,
            disabled: false,
            settings: json!({}),
        };
        let made = provider::create(&self.db, &context.models.cipher, new, self.clock.now());
        let id = made.await.expect("the database answers").id;
        let chosen = json!({"provider_id": id, "model": "narrow"});
        fixtures::change_space(&self.db, self.space, |it| {
            it.settings = json!({"memory": {"embedding": chosen}});
        })
        .await;
    }

    async fn remember(&self, content: &str) {
        let memory = NewMemory {
            owner: None,
            about: None,
            source: None,
            kind: MemoryKind::Event,
            origin: MemoryOrigin::Person,
            content: content.to_owned(),
            importance: 0.5,
            is_pinned: false,
            created_by: None,
        };
        let stored = memory_store::insert_one(&self.db, self.space, memory, self.clock.now());
        assert!(stored.await.expect("the database answers").is_some());
    }

    fn embedding(&self) -> EmbeddingJob {
        let context = self.engine.context();
        let embedder = MemoryEmbedder {
            db: self.db.clone(),
            clock: self.clock.clone(),
            models: context.models.clone(),
            shutdown: context.shutdown.clone(),
            events: context.memory_events.clone(),
            refused: RefusedTexts::default(),
        };
        EmbeddingJob::new(
            embedder,
            "node-embedding".into(),
            (Duration::from_secs(5), STALE_AFTER),
        )
    }

    /// Asks, and returns whether the prompt contains the memory.
    async fn recalls_memory(&self, question: &str) -> bool {
        let conversation = self.another_conversation().await;
        let n_before = self.upstream.n_requests();
        self.user_in_conversation(&self.engine, conversation)
            .post(question)
            .await;
        self.upstream.wait_for_requests(n_before + 1).await;
        self.wait_until_idle().await;
        let sent = self.upstream.body(n_before).to_string();
        assert!(sent.contains(question), "{sent}");
        sent.contains("Pixel")
    }
}

on_both! {
    async fn a_prompt_recalls_what_only_the_providers_model_finds(backend) {
        let app = EngineTest::builder(backend).open().await;
        let server = EmbeddingsServer::start().await;
        app.embed_by(&server).await;
        app.remember(MEMORY).await;
        assert!(!app.recalls_memory(QUESTION).await, "it was found before it was embedded");

        assert_eq!(app.embedding().run_due().await.unwrap(), 1);

        assert!(app.recalls_memory(QUESTION).await);
        assert!(!app.recalls_memory("How rough is the sea?").await);
        app.close_without_events().await;
    }

    async fn a_prompt_is_sent_without_vectors_when_the_provider_fails_or_hangs(backend) {
        let app = EngineTest::builder(backend).open().await;
        let server = EmbeddingsServer::start().await;
        app.embed_by(&server).await;
        app.remember(MEMORY).await;
        app.embedding().run_due().await.unwrap();
        server.answer(EmbeddingAnswer::Hang);

        assert!(!app.recalls_memory(QUESTION).await);
        server.wait_for_closed(1).await;
        assert!(app.recalls_memory("Eve walks her hound every morning").await, "its words fit");

        assert_eq!(server.n_requests(), 2, "one for the memory, one for the first query");
        app.close_without_events().await;
    }

    async fn the_vectors_of_a_dead_worker_are_made_by_another_one(backend) {
        let app = EngineTest::builder(backend).open().await;
        let server = EmbeddingsServer::start().await;
        app.embed_by(&server).await;
        app.remember(MEMORY).await;
        let stale = StaleAfter {
            after_ms: i64::try_from(STALE_AFTER.as_millis()).unwrap(),
            backend: app.db.backend(),
        };
        let (db, queue) = (app.db.reader(), TaskQueue::Embedding);
        let due = task_queue::list_due(db, queue, app.clock.now(), &stale, [], 1).await;
        let (task, now) = (due.unwrap().remove(0), app.clock.now());
        let claimed = app.db.write(move |tx| {
            Box::pin(async move { task_queue::claim(tx, &task, None, "dead", now, &stale).await })
        });
        let claimed: Result<Option<memory_task::Model>, sea_orm::DbErr> = claimed.await;
        assert!(claimed.unwrap().is_some());
        assert_eq!(app.embedding().run_due().await.unwrap(), 0, "its lease is valid");

        app.facts().await.execute("UPDATE memory_tasks SET heartbeat_at = 0").await;

        assert_eq!(app.embedding().run_due().await.unwrap(), 1);
        assert!(app.recalls_memory(QUESTION).await);
        assert_eq!(app.embedding().run_due().await.unwrap(), 0, "a task was left");
        app.close_without_events().await;
    }
}
