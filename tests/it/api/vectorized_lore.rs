//! Tests of vectorized lore entries: they are also activated by their similarity to the newest messages.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::embedding_fixture::EmbeddingFixture;
use crate::support::embeddings_server::EmbeddingAnswer;
use crate::support::http_client::{expect, id, root_of};
use crate::support::poll;

/// A content about dogs, without this word.
const HOUND: &str = "A hound guards the gate.";
const OCEAN: &str = "The ocean floods the road.";

/// A space with a speaker and a linked lorebook.
struct VectorizedLore {
    fixture: EmbeddingFixture,
    speaker: i64,
}

fn entry(content: &str, is_vectorized: bool) -> Value {
    json!({"keys": ["canary"], "name": content, "content": content, "extensions": {"vectorized": is_vectorized}})
}

impl VectorizedLore {
    async fn open(backend: TestBackend, entries: Value) -> Self {
        Self::open_with(backend, json!({}), entries).await
    }

    /// `options`: the settings of the provider.
    async fn open_with(backend: TestBackend, options: Value, entries: Value) -> Self {
        let fixture = EmbeddingFixture::open_with(backend, options).await;
        let card = fixture.owner.create_character("Ada", None).await;
        let speaker = id(&fixture.owner.add_character(&fixture.space, &card).await);
        let book = json!({"name": "Harbor", "entries": entries});
        let book = expect(201, fixture.owner.post("/api/lorebooks", book).await);
        let path = format!("/api/spaces/{}/lorebooks", id(&fixture.space));
        let links = json!({"lorebook_ids": [id(&book)]});
        expect(200, fixture.owner.put(&path, links).await);
        let path = format!("/api/spaces/{}", id(&fixture.space));
        let rules = json!({"reply_order": "manual"});
        expect(200, fixture.owner.patch(&path, rules).await);
        Self { fixture, speaker }
    }

    async fn post(&self, text: &str) {
        let posted = self
            .fixture
            .owner
            .post_message(root_of(&self.fixture.space), text, None);
        expect(201, posted.await);
    }

    /// Returns the activated entries of the next prompt as `name: because`.
    async fn activated(&self) -> Vec<String> {
        let path = format!(
            "/api/conversations/{}/prompt?speaker_id={}",
            root_of(&self.fixture.space),
            self.speaker
        );
        let prompt = expect(200, self.fixture.owner.get(&path).await);
        let entries = prompt["lore"].as_array().unwrap().iter();
        let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
        entries
            .map(|it| format!("{}: {}", text(it, "name"), text(it, "because")))
            .collect()
    }

    /// Returns how often a content was sent to the provider of the embedding model.
    fn n_sent(&self, content: &str) -> usize {
        let requests = 0..self.fixture.server.n_requests();
        let texts = requests.flat_map(|n| self.fixture.server.texts(n));
        texts.filter(|it| it == content).count()
    }

    /// Returns how many entries the prompt reports as not embedded.
    async fn n_not_embedded(&self) -> i64 {
        let path = format!(
            "/api/conversations/{}/prompt?speaker_id={}",
            root_of(&self.fixture.space),
            self.speaker
        );
        let prompt = expect(200, self.fixture.owner.get(&path).await);
        let warnings = prompt["warnings_coded"].as_array().unwrap().iter();
        let mut waiting = warnings.filter(|it| it["code"] == "entries_not_embedded");
        waiting
            .next()
            .map_or(0, |it| it["params"]["n"].as_i64().expect("a number"))
    }
}

on_both! {
    async fn a_vectorized_entry_is_activated_by_its_meaning(backend) {
        let entries = json!([entry(HOUND, true), entry(OCEAN, true), entry("A hound without vector.", false)]);
        let lore = VectorizedLore::open(backend, entries).await;
        lore.post("My dog sleeps.").await;

        assert_eq!(lore.activated().await, [format!("{HOUND}: vectorized")]);
        lore.fixture.app.close().await;
    }
}

on_sqlite! {
    async fn all_entries_are_compared_and_a_turn_with_known_vectors_embeds_only_the_query(backend) {
        let others = (1..5_000).map(|n| entry(&format!("Stone {n} of the quay."), true));
        let entries: Vec<Value> = others.chain([entry(HOUND, true)]).collect();
        let lore = VectorizedLore::open(backend, json!(entries)).await;
        lore.post("My dog sleeps.").await;

        let first = lore.n_not_embedded().await;
        poll::until("all entries are embedded", async || (lore.n_not_embedded().await == 0).then_some(())).await;
        lore.post("The dog wakes.").await;
        let n_requests = lore.fixture.server.n_requests();
        let activated = lore.activated().await;

        assert!((1..5_000).contains(&first), "{first}");
        assert_eq!(activated, [format!("{HOUND}: vectorized")]);
        assert_eq!(lore.fixture.server.n_requests() - n_requests, 1);
        assert_eq!(lore.fixture.server.texts(n_requests).len(), 1);
        assert_eq!(lore.n_sent(HOUND), 1);
        lore.fixture.app.close().await;
    }

    async fn of_a_content_that_the_model_refuses_the_beginning_is_compared(backend) {
        let long = format!("{HOUND} {}", "It barks. ".repeat(400));
        let lore = VectorizedLore::open(backend, json!([entry(&long, true)])).await;
        lore.fixture.server.answer(EmbeddingAnswer::RefuseLonger(2_500));
        lore.post("My dog sleeps.").await;

        assert_eq!(lore.activated().await.len(), 1);

        assert_eq!((lore.n_sent(long.trim()), lore.n_sent(&long[..2_000])), (1, 1));
        assert_eq!(lore.n_not_embedded().await, 0);
        lore.fixture.app.close().await;
    }

    async fn the_content_of_an_entry_is_embedded_once(backend) {
        let lore = VectorizedLore::open_with(backend, json!({"embedding_cache": false}), json!([entry(HOUND, true)])).await;
        lore.post("My dog sleeps.").await;
        assert_eq!(lore.activated().await.len(), 1);

        lore.post("The dog wakes.").await;

        assert_eq!(lore.activated().await.len(), 1);
        assert_eq!(lore.n_sent(HOUND), 1);
        lore.fixture.app.close().await;
    }

    async fn without_an_embedding_model_the_keys_alone_count(backend) {
        let lore = VectorizedLore::open(backend, json!([entry(HOUND, true)])).await;
        lore.fixture.change_settings(json!({})).await;
        lore.post("My dog sleeps.").await;

        assert_eq!(lore.activated().await, Vec::<String>::new());
        lore.post("A canary sings.").await;
        assert_eq!(lore.activated().await, [format!("{HOUND}: key: canary")]);
        assert_eq!(lore.fixture.server.n_requests(), 0);
        lore.fixture.app.close().await;
    }

    async fn a_failure_of_the_embedding_model_leaves_the_keys(backend) {
        let lore = VectorizedLore::open(backend, json!([entry(HOUND, true), entry("A kennel.", false)])).await;
        lore.fixture.server.answer(EmbeddingAnswer::Status(500));
        lore.post("My dog and a canary.").await;

        let mut activated = lore.activated().await;

        activated.sort();
        assert_eq!(activated, [format!("{HOUND}: key: canary"), "A kennel.: key: canary".to_owned()]);
        lore.fixture.app.close().await;
    }

    async fn a_model_that_does_not_answer_leaves_the_keys(backend) {
        let lore = VectorizedLore::open(backend, json!([entry(HOUND, true)])).await;
        lore.fixture.server.answer(EmbeddingAnswer::Hang);
        lore.post("My dog and a canary.").await;

        assert_eq!(lore.activated().await, [format!("{HOUND}: key: canary")]);
        lore.fixture.app.close().await;
    }

    async fn a_content_that_the_model_refuses_does_not_affect_others(backend) {
        let long = format!("{HOUND} {}", "It barks. ".repeat(20));
        let lore = VectorizedLore::open(backend, json!([entry(&long, true), entry(HOUND, true)])).await;
        lore.fixture.server.answer(EmbeddingAnswer::RefuseLonger(100));
        lore.post("My dog sleeps.").await;
        assert_eq!(lore.activated().await, [format!("{HOUND}: vectorized")]);
        let n_sent = lore.n_sent(long.trim());

        lore.post("The dog wakes.").await;

        assert_eq!(lore.activated().await, [format!("{HOUND}: vectorized")]);
        assert_eq!(lore.n_sent(long.trim()), n_sent, "a refused content was sent again");
        assert!(n_sent > 0);
        lore.fixture.app.close().await;
    }

    async fn at_most_five_entries_are_activated_by_their_meaning(backend) {
        let contents = (1..=7).map(|n| format!("The hound number {n}."));
        let entries: Vec<Value> = contents.map(|it| entry(&it, true)).collect();
        let lore = VectorizedLore::open(backend, json!(entries)).await;
        lore.post("My dog sleeps.").await;

        assert_eq!(lore.activated().await.len(), 5);
        lore.fixture.app.close().await;
    }

    async fn the_threshold_of_the_memory_applies_to_entries(backend) {
        let lore = VectorizedLore::open(backend, json!([entry(HOUND, true)])).await;
        let chosen = json!({"provider_id": id(&lore.fixture.provider), "model": "narrow"});
        lore.fixture.change_settings(json!({"memory": {"embedding": chosen, "threshold": 1.0}})).await;
        lore.post("My dog watches the sea.").await;

        assert_eq!(lore.activated().await, Vec::<String>::new());
        lore.fixture.app.close().await;
    }

    async fn a_test_of_a_lorebook_in_a_conversation_shows_vectorized_entries(backend) {
        let lore = VectorizedLore::open(backend, json!([])).await;
        let book = json!({"name": "New", "entries": [entry(HOUND, true), entry(OCEAN, true)]});
        let book = expect(201, lore.fixture.owner.post("/api/lorebooks", book).await);
        let request = json!({"text": "My dog sleeps.", "conversation_id": root_of(&lore.fixture.space), "speaker_id": lore.speaker});

        let result = expect(200, lore.fixture.owner.post(&format!("/api/lorebooks/{}/test", id(&book)), request).await);

        assert_eq!(result["fired"][0]["because"], "vectorized");
        assert_eq!(result["not_fired"][0]["name"], OCEAN);
        lore.fixture.app.close().await;
    }
}
