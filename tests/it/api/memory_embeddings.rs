//! Tests of memories that a model of a provider embeds: new ones, failures, changes of the model, and
//! searches.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::embeddings_server::{EmbeddingAnswer, EmbeddingsServer};
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::poll;

const HOUND: &str = "Ann walks her hound every morning.";
const OCEAN: &str = "The ocean was rough last night.";

/// A space whose memories a provider embeds.
struct EmbeddingFixture {
    app: TestApp,
    owner: HttpClient,
    server: EmbeddingsServer,
    provider: Value,
    space: Value,
}

impl EmbeddingFixture {
    async fn open(backend: TestBackend) -> Self {
        Self::open_with(backend, json!({})).await
    }

    /// `options`: the settings of the provider.
    async fn open_with(backend: TestBackend, options: Value) -> Self {
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

    fn path(&self) -> String {
        format!("/api/spaces/{}/memories", id(&self.space))
    }

    async fn choose(&self, model: &str) {
        let chosen = json!({"provider_id": id(&self.provider), "model": model});
        self.change_settings(json!({"memory": {"embedding": chosen}}))
            .await;
    }

    async fn change_settings(&self, settings: Value) {
        let path = format!("/api/spaces/{}", id(&self.space));
        expect(
            200,
            self.owner.patch(&path, json!({"settings": settings})).await,
        );
    }

    async fn change_provider(&self, change: Value) {
        let path = format!("/api/providers/{}", id(&self.provider));
        expect(200, self.owner.patch(&path, change).await);
    }

    async fn remember(&self, content: &str) -> Value {
        let body = json!({"content": content, "kind": "event"});
        expect(201, self.owner.post(&self.path(), body).await)
    }

    async fn state(&self) -> Value {
        let path = format!("{}/state", self.path());
        expect(200, self.owner.get(&path).await)
    }

    /// Runs what is due, and waits until nothing is left to do.
    async fn embed_all(&self) -> Value {
        self.run_due().await;
        poll::until("all memories are embedded", async || {
            let state = self.state().await;
            (state["tasks"]["queued"] == 0).then_some(state)
        })
        .await
    }

    async fn run_due(&self) {
        let done = self.app.app.embedding.run_due().await;
        done.expect("the database answers");
    }

    /// Runs what is due, and waits until the attempt has failed.
    async fn fail_to_embed(&self) -> Value {
        self.run_due().await;
        poll::until("an attempt fails", async || {
            let state = self.state().await;
            state["embedding"]["error"].is_string().then_some(state)
        })
        .await
    }

    async fn search(&self, text: &str) -> Vec<String> {
        let path = format!("{}?q={text}", self.path());
        let found = expect(200, self.owner.get(&path).await);
        let found = found["data"].as_array().expect("a list").iter();
        found
            .map(|it| it["content"].as_str().expect("a text").to_owned())
            .collect()
    }

    async fn number(&self, sql: &str) -> i64 {
        let mut facts = DatabaseFacts::open(&self.app.database).await;
        facts.number(sql).await
    }

    async fn n_vectors(&self) -> i64 {
        self.number("SELECT CAST(count(*) AS TEXT) FROM memory_vectors")
            .await
    }
}

on_both! {
    async fn new_memories_are_embedded_and_found_by_their_meaning(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Reversed);
        it.remember(HOUND).await;
        it.remember(OCEAN).await;

        let state = it.embed_all().await;

        let embedding = &state["embedding"];
        assert_eq!((&embedding["embedded"], &embedding["total"]), (&json!(2), &json!(2)));
        assert_eq!((&embedding["model"], &embedding["dimensions"]), (&json!("narrow"), &json!(3)));
        assert_eq!((&embedding["degraded"], &embedding["breaker_until"]), (&json!(false), &Value::Null));
        assert_eq!(it.search("dog").await, [HOUND]);
        assert_eq!(it.search("sea").await, [OCEAN]);
        it.app.close().await;
    }

    async fn memories_with_the_same_content_are_sent_once(backend) {
        let it = EmbeddingFixture::open(backend).await;
        let roster = format!("/api/spaces/{}/memberships", id(&it.space));
        let roster = expect(200, it.owner.get(&roster).await);
        let own = json!({"content": HOUND, "kind": "event", "membership_id": roster["data"][0]["id"]});
        it.change_settings(json!({})).await;
        it.remember(HOUND).await;
        it.remember(OCEAN).await;
        expect(201, it.owner.post(&it.path(), own).await);

        it.choose("narrow").await;
        let state = it.embed_all().await;

        assert_eq!(state["embedding"]["embedded"], 3);
        assert_eq!(it.server.texts(0), [HOUND, OCEAN], "the newest first, each once");
        assert_eq!(it.search("dog").await.len(), 2);
        it.app.close().await;
    }

    async fn a_memory_with_another_content_gets_another_vector(backend) {
        let it = EmbeddingFixture::open(backend).await;
        let made = it.remember(HOUND).await;
        it.embed_all().await;

        let path = format!("{}/{}", it.path(), id(&made));
        expect(200, it.owner.patch(&path, json!({"content": OCEAN, "expected_version": 1})).await);
        it.embed_all().await;

        assert_eq!(it.search("sea").await, [OCEAN]);
        assert_eq!(it.search("dog").await, Vec::<String>::new());
        it.app.close().await;
    }

    async fn another_model_embeds_all_memories_again_and_the_old_vectors_are_deleted(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.remember(HOUND).await;
        it.remember(OCEAN).await;
        it.embed_all().await;
        assert_eq!(it.search("dog").await, [HOUND]);

        it.choose("wide").await;
        let state = it.embed_all().await;

        let embedding = &state["embedding"];
        assert_eq!((&embedding["embedded"], &embedding["dimensions"]), (&json!(2), &json!(4)));
        assert_eq!(it.search("sea").await, [OCEAN]);
        assert_eq!(it.n_vectors().await, 4, "a local vector and one of the new model for each memory");

        it.change_settings(json!({})).await;
        let state = it.embed_all().await;
        assert_eq!(state["embedding"]["model"], "troupe-ngram-256");
        assert_eq!(it.n_vectors().await, 2);
        let n_before = it.server.n_requests();
        assert_eq!(it.search("sea").await, Vec::<String>::new());
        assert_eq!(it.server.n_requests(), n_before, "the provider was called");
        it.app.close().await;
    }

    async fn until_memories_are_embedded_again_no_query_is_compared_with_old_vectors(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.remember(HOUND).await;
        it.embed_all().await;
        it.server.answer(EmbeddingAnswer::Status(500));

        it.choose("wide").await;
        let state = it.fail_to_embed().await;

        assert_eq!((&state["embedding"]["embedded"], &state["embedding"]["total"]), (&json!(0), &json!(1)));
        let n_before = it.server.n_requests();
        assert_eq!(it.search("dog").await, Vec::<String>::new());
        assert_eq!(it.search("hound").await, [HOUND]);
        assert_eq!(it.server.n_requests(), n_before, "a query was embedded");
        it.app.close().await;
    }

    async fn a_wrong_number_of_vectors_stores_nothing_and_is_tried_again(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::TooFew);
        it.remember(HOUND).await;
        it.remember(OCEAN).await;

        let state = it.fail_to_embed().await;

        assert_eq!(it.n_vectors().await, 2, "the local ones");
        assert_eq!((&state["tasks"]["queued"], &state["embedding"]["embedded"]), (&json!(1), &json!(0)));
        assert_eq!(it.search("hound").await, [HOUND]);
        it.server.answer(EmbeddingAnswer::Vectors);
        it.app.app.clock.advance_ms(10_000);
        let state = it.embed_all().await;
        assert_eq!((&state["embedding"]["embedded"], &state["embedding"]["error"]), (&json!(2), &Value::Null));
        it.app.close().await;
    }

    async fn a_space_without_a_choice_uses_the_model_of_the_default_provider(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.change_settings(json!({})).await;
        it.remember(HOUND).await;
        assert_eq!(it.embed_all().await["embedding"]["provider_id"], Value::Null);

        it.change_provider(json!({"is_default": true, "settings": {"embedding_model": "wide"}})).await;
        let state = it.embed_all().await;
        assert_eq!((&state["embedding"]["model"], &state["embedding"]["embedded"]), (&json!("wide"), &json!(1)));
        assert_eq!(it.search("dog").await, [HOUND]);

        let path = format!("/api/providers/{}", id(&it.provider));
        it.owner.delete(&path).await;
        it.embed_all().await;
        assert_eq!(it.n_vectors().await, 1);
        it.app.close().await;
    }
}

on_sqlite! {
    async fn a_provider_that_fails_costs_only_its_vectors_and_is_soon_not_called(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.remember(HOUND).await;
        it.embed_all().await;
        let n_before = it.server.n_requests();
        it.server.answer(EmbeddingAnswer::Status(500));

        for text in ["hound%201", "hound%202", "hound%203"] {
            assert_eq!(it.search(text).await, [HOUND]);
        }
        assert_eq!(it.server.n_requests() - n_before, 3, "one request for each query");
        assert_eq!(it.search("hound%204").await, [HOUND]);
        assert_eq!(it.server.n_requests() - n_before, 3, "the provider was called");
        let state = it.state().await;
        assert_eq!(state["embedding"]["degraded"], true);
        assert!(state["embedding"]["breaker_until"].is_i64(), "{state}");

        it.server.answer(EmbeddingAnswer::Vectors);
        poll::until("a probe succeeds", async || {
            (it.search("dog").await == [HOUND]).then_some(())
        })
        .await;
        assert_eq!(it.state().await["embedding"]["degraded"], false);
        it.app.close().await;
    }

    async fn a_provider_that_hangs_is_given_up_after_its_time_limit(backend) {
        let it = EmbeddingFixture::open_with(backend, json!({"embedding_timeout_s": 0.5})).await;
        it.remember(HOUND).await;
        it.embed_all().await;
        let n_before = it.server.n_requests();
        it.server.answer(EmbeddingAnswer::Hang);

        assert_eq!(it.search("hound").await, [HOUND]);

        it.server.wait_for_closed(1).await;
        assert_eq!(it.search("hound%202").await, [HOUND]);
        assert_eq!(it.server.n_requests() - n_before, 1, "one timeout stops further calls");
        it.app.close().await;
    }

    async fn a_slow_provider_does_not_delay_a_search_in_another_space(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.remember(HOUND).await;
        it.embed_all().await;
        let n_before = it.server.n_requests();
        let other = it.owner.create_space("Elsewhere", json!({})).await;
        let other = format!("/api/spaces/{}/memories", id(&other));
        let body = json!({"content": OCEAN, "kind": "event"});
        expect(201, it.owner.post(&other, body).await);
        it.server.answer(EmbeddingAnswer::Hang);

        let slow = it.search("dog");
        let fast = async {
            it.server.wait_for_requests(n_before + 1).await;
            let found = expect(200, it.owner.get(&format!("{other}?q=ocean")).await);
            (found["data"][0]["content"].clone(), it.server.n_closed())
        };
        let (_, (found, n_closed)) = tokio::join!(slow, fast);

        assert_eq!((found, n_closed), (json!(OCEAN), 0), "it was found while the provider hung");
        it.app.close().await;
    }

    async fn a_failed_write_is_repeated_once_or_as_often_as_the_option_says(backend) {
        for (options, n_expected) in [
            (json!({}), 2),
            (json!({"embedding_max_retries": 0}), 1),
        ] {
            let it = EmbeddingFixture::open_with(backend, options).await;
            it.server.answer(EmbeddingAnswer::Status(500));
            it.remember(HOUND).await;

            let state = it.fail_to_embed().await;

            assert_eq!(it.server.n_requests(), n_expected);
            assert_eq!(state["tasks"], json!({"queued": 1, "failed": 0}));
            it.run_due().await;
            assert_eq!(it.server.n_requests(), n_expected, "it was tried again at once");
            it.app.close().await;
        }
    }

    async fn a_time_limit_of_zero_means_that_the_provider_is_not_called(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.remember(HOUND).await;
        it.embed_all().await;
        let n_before = it.server.n_requests();

        it.change_provider(json!({"settings": {"embedding_timeout_s": 0}})).await;
        it.remember(OCEAN).await;
        let state = it.fail_to_embed().await;

        assert_eq!((&state["embedding"]["degraded"], &state["embedding"]["embedded"]), (&json!(true), &json!(1)));
        assert_eq!(it.search("hound").await, [HOUND]);
        assert_eq!(it.server.n_requests(), n_before);
        it.change_provider(json!({"settings": {}})).await;
        assert_eq!(it.embed_all().await["embedding"]["embedded"], 2);
        it.app.close().await;
    }

    async fn the_vectors_of_the_last_texts_are_cached_unless_an_option_forbids_it(backend) {
        for (options, n_expected) in [(json!({}), 1), (json!({"embedding_cache": false}), 2)] {
            let it = EmbeddingFixture::open_with(backend, options).await;
            it.remember(HOUND).await;
            it.embed_all().await;
            let n_before = it.server.n_requests();

            assert_eq!(it.search("dog").await, [HOUND]);
            assert_eq!(it.search("dog").await, [HOUND]);

            assert_eq!(it.server.n_requests() - n_before, n_expected);
            it.app.close().await;
        }
    }

    async fn an_empty_space_calls_no_provider(backend) {
        let it = EmbeddingFixture::open(backend).await;

        assert_eq!(it.search("dog").await, Vec::<String>::new());
        it.run_due().await;

        assert_eq!((it.server.n_requests(), &it.state().await["embedding"]["total"]), (0, &json!(0)));
        it.app.close().await;
    }

    async fn a_model_can_be_tested_before_it_is_chosen(backend) {
        let it = EmbeddingFixture::open(backend).await;
        let path = format!("{}/test_embedding", it.path());
        let test = async |body: Value| it.owner.post(&path, body).await;
        let provider = id(&it.provider);

        let tested = expect(200, test(json!({"provider_id": provider, "model": "wide"})).await);
        assert_eq!(tested, json!({"dimensions": 4}));
        it.server.answer(EmbeddingAnswer::Status(401));
        let refused = test(json!({"provider_id": provider, "model": "wide"})).await;
        assert_eq!(refusal(&refused), (503, "upstream_error".to_owned()));
        assert_eq!(it.server.n_requests(), 2, "it was repeated");
        let unknown = test(json!({"provider_id": 999, "model": "wide"})).await;
        assert_eq!(refusal(&unknown), (422, "invalid_value".to_owned()));
        it.app.close().await;
    }

    async fn a_space_can_choose_only_a_provider_that_has_embeddings(backend) {
        let it = EmbeddingFixture::open(backend).await;
        let demo = json!({"name": "D", "kind": "demo", "model": "demo"});
        let demo = expect(201, it.owner.post("/api/providers", demo).await);
        let path = format!("/api/spaces/{}", id(&it.space));

        for provider in [999, id(&demo)] {
            let chosen = json!({"provider_id": provider, "model": "m"});
            let body = json!({"settings": {"memory": {"embedding": chosen}}});
            let refused = it.owner.patch(&path, body).await;

            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], "settings.memory.embedding.provider_id");
        }
        it.app.close().await;
    }
}
