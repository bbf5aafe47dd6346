//! Tests of memories that a model of a provider embeds: new ones, changed ones, and changes of the
//! model.

use serde_json::{Value, json};

use crate::support::backends::on_both;
use crate::support::embedding_fixture::{EmbeddingFixture, HOUND, OCEAN};
use crate::support::embeddings_server::EmbeddingAnswer;
use crate::support::http_client::{expect, id};

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

    async fn a_memory_that_the_provider_refuses_does_not_block_the_others(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.change_settings(json!({})).await;
        let long = |subject: &str| format!("{subject} {}", "and so on ".repeat(100).trim());
        it.remember(HOUND).await;
        for subject in ["harbor", "lantern", "bridge"] {
            it.remember(&long(subject)).await;
        }
        it.remember(OCEAN).await;
        it.server.answer(EmbeddingAnswer::RefuseLonger(200));

        it.choose("narrow").await;
        let state = it.embed_all().await;

        let embedding = &state["embedding"];
        assert_eq!((&embedding["embedded"], &embedding["total"]), (&json!(2), &json!(5)));
        assert_eq!((&embedding["degraded"], &embedding["error"]), (&json!(false), &Value::Null));
        assert_eq!(it.search("dog").await, [HOUND]);
        assert_eq!(it.search("lantern").await, [long("lantern")]);
        it.server.answer(EmbeddingAnswer::Vectors);
        it.change_provider(json!({"settings": {}})).await;
        assert_eq!(it.embed_all().await["embedding"]["embedded"], 5);
        it.app.close().await;
    }

    async fn memories_are_complete_when_only_refused_ones_are_left(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::RefuseLonger(HOUND.len()));
        let long = "and so on ".repeat(10);
        it.remember(&long).await;
        let state = it.embed_all().await;
        assert_eq!((&state["embedding"]["embedded"], &state["embedding"]["error"]), (&json!(0), &Value::Null));

        it.remember(HOUND).await;

        assert_eq!(it.embed_all().await["embedding"]["embedded"], 1);
        assert_eq!(it.search("dog").await, [HOUND]);
        it.app.close().await;
    }

    async fn a_refused_memory_is_not_sent_again_with_the_next_task(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::RefuseLonger(HOUND.len()));
        it.remember(&"and so on ".repeat(10)).await;
        it.embed_all().await;
        let n_before = it.server.n_requests();

        it.remember(HOUND).await;
        it.embed_all().await;

        assert_eq!(it.server.n_requests(), n_before + 1);
        assert_eq!(it.server.texts(n_before), [HOUND]);
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
