//! Tests of a provider that fails or must not be called while memories are embedded or searched, and of
//! the choice of a model.

use serde_json::{Value, json};

use crate::support::backends::on_sqlite;
use crate::support::embedding_fixture::{EmbeddingFixture, HOUND, OCEAN};
use crate::support::embeddings_server::EmbeddingAnswer;
use crate::support::http_client::{expect, id};
use crate::support::http_response::refusal;
use crate::support::poll;

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
        assert!(state["embedding"]["breaker_until"].is_string(), "{state}");

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

    async fn a_paused_provider_is_not_called_until_its_settings_change(backend) {
        for (paused, resumed) in [
            (json!({"settings": {"embedding_timeout_s": 0}}), json!({"settings": {}})),
            (json!({"disabled": true}), json!({"disabled": false})),
        ] {
            let it = EmbeddingFixture::open(backend).await;
            it.remember(HOUND).await;
            it.embed_all().await;
            let n_before = it.server.n_requests();

            it.change_provider(paused).await;
            it.remember(OCEAN).await;
            let state = it.state().await;

            assert_eq!(state["tasks"]["queued"], 0, "a task was requested");
            assert_eq!((&state["embedding"]["degraded"], &state["embedding"]["embedded"]), (&json!(true), &json!(1)));
            assert_eq!(it.search("hound").await, [HOUND]);
            assert_eq!(it.server.n_requests(), n_before);
            it.change_provider(resumed).await;
            assert_eq!(it.embed_all().await["embedding"]["embedded"], 2);
            it.app.close().await;
        }
    }

    async fn a_task_ends_without_a_request_if_its_provider_is_paused_meanwhile(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Status(500));
        it.remember(HOUND).await;
        it.fail_to_embed().await;
        let n_before = it.server.n_requests();

        it.change_provider(json!({"disabled": true})).await;
        let state = it.embed_all().await;

        assert_eq!((&state["embedding"]["embedded"], &state["embedding"]["error"]), (&json!(0), &Value::Null));
        assert_eq!(it.server.n_requests(), n_before);
        it.server.answer(EmbeddingAnswer::Vectors);
        it.change_provider(json!({"disabled": false})).await;
        it.choose("wide").await;
        assert_eq!(it.embed_all().await["embedding"]["embedded"], 1);
        it.app.close().await;
    }

    async fn a_provider_that_refuses_every_text_is_tried_again_later(backend) {
        let it = EmbeddingFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Status(400));
        it.remember(HOUND).await;

        let state = it.fail_to_embed().await;

        assert_eq!(state["tasks"]["queued"], 1);
        assert_eq!(it.server.n_requests(), 2, "the memory, and a short text");
        it.server.answer(EmbeddingAnswer::Vectors);
        it.app.app.clock.advance_ms(10_000);
        assert_eq!(it.embed_all().await["embedding"]["embedded"], 1);
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
