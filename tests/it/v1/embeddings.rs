//! Tests of `POST /v1/embeddings`: the vectors of the local embedding, and of the embedding model of
//! a provider.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::fixture::V1Fixture;
use crate::support::backends::{TestBackend, fresh_database, on_sqlite};
use crate::support::embeddings_server::{EmbeddingAnswer, EmbeddingsServer};
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::support::process::Server;
use crate::support::test_space::SHORT_LEASES;
use crate::support::v1_client::{V1Client, error_of};

const LOCAL: &str = "troupe-ngram-256";
/// Texts with different vectors.
const TEXTS: [&str; 3] = ["a zebra", "the sea", "my dog"];

/// A provider with the embedding model `narrow`, whose vectors have three components.
struct RelayFixture {
    fixture: V1Fixture,
    server: EmbeddingsServer,
    provider: Value,
}

impl RelayFixture {
    async fn open(backend: TestBackend) -> Self {
        Self::open_with(backend, "openai_compatible").await
    }

    async fn open_with(backend: TestBackend, kind: &str) -> Self {
        let fixture = V1Fixture::open(backend).await;
        let server = EmbeddingsServer::start().await;
        let provider = json!({
            "name": "Vectors",
            "kind": kind,
            "base_url": server.url,
            "model": "chat",
            "settings": { "embedding_model": "narrow" },
        });
        let provider = expect(201, fixture.admin.post("/api/providers", provider).await);
        Self {
            fixture,
            server,
            provider,
        }
    }

    async fn embed(&self, body: Value) -> Value {
        expect(200, self.fixture.program.post("/embeddings", body).await)
    }

    async fn error(&self, body: Value) -> (u16, String, Value) {
        error_of(&self.fixture.program.post("/embeddings", body).await)
    }

    async fn close(self) {
        self.fixture.close().await;
    }
}

/// The tokens of [`TEXTS`], counted by the server.
fn n_tokens() -> i64 {
    TEXTS.iter().map(|it| llm::tokens::count(it)).sum()
}

fn invalid(code: &str, param: &str) -> (u16, String, Value) {
    (400, code.to_owned(), json!(param))
}

/// The vectors of an answer as numbers, from either encoding.
fn vectors(answer: &Value) -> Vec<Vec<f32>> {
    let items = answer["data"].as_array().expect("`data` is a list").iter();
    let items = items.enumerate().map(|(at, it)| {
        assert_eq!(
            (&it["object"], &it["index"]),
            (&json!("embedding"), &json!(at))
        );
        match &it["embedding"] {
            Value::String(text) => {
                let bytes = STANDARD.decode(text).expect("base64");
                let (numbers, rest) = bytes.as_chunks();
                assert!(rest.is_empty());
                numbers.iter().map(|it| f32::from_le_bytes(*it)).collect()
            }
            numbers => serde_json::from_value(numbers.clone()).expect("a list of numbers"),
        }
    });
    items.collect()
}

on_sqlite! {
    async fn the_local_model_needs_no_provider(backend) {
        let fixture = V1Fixture::open(backend).await;
        let body = json!({ "model": LOCAL, "input": TEXTS, "dimensions": 256 });

        let answer = expect(200, fixture.program.post("/embeddings", body).await);

        assert_eq!(answer["object"], "list");
        assert_eq!(answer["model"], LOCAL);
        assert_eq!(vectors(&answer), TEXTS.map(local_embedding::embed));
        let usage = json!({ "prompt_tokens": n_tokens(), "total_tokens": n_tokens() });
        assert_eq!(answer["usage"], usage);
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }

    async fn base64_and_float_are_the_same_vectors_in_the_order_of_the_texts(backend) {
        let it = RelayFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Reversed);

        for model in ["narrow", "Vectors/narrow", LOCAL] {
            let body = |encoding: &str| json!({ "model": model, "input": TEXTS, "encoding_format": encoding });
            let as_float = it.embed(body("float")).await;
            let as_base64 = it.embed(body("base64")).await;

            assert!(as_float["data"][0]["embedding"].is_array());
            assert!(as_base64["data"][0]["embedding"].is_string());
            assert_eq!(vectors(&as_float), vectors(&as_base64));
            assert_eq!(as_float["model"], model);
            if model != LOCAL {
                let expected = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
                assert_eq!(vectors(&as_float), expected);
                // Counted here, because the provider states none.
                assert_eq!(as_float["usage"]["total_tokens"], n_tokens());
            }
        }
        assert_eq!(it.server.n_requests(), 4, "nothing is cached");
        assert_eq!(it.server.request(0)["model"], "narrow");
        it.close().await;
    }

    async fn many_texts_are_sent_in_batches_of_64(backend) {
        let it = RelayFixture::open(backend).await;
        let texts: Vec<&str> = (0..130).map(|at| TEXTS[at % 3]).collect();

        let answer = it.embed(json!({ "model": "narrow", "input": texts })).await;

        let vectors = vectors(&answer);
        assert_eq!(vectors.len(), 130);
        assert_eq!(vectors[129], [0.0, 0.0, 1.0]);
        assert_eq!(vectors[64], [0.0, 1.0, 0.0]);
        let sizes = [0, 1, 2].map(|nth| it.server.texts(nth).len());
        assert_eq!(sizes, [64, 64, 2]);
        it.close().await;
    }

    async fn one_vector_too_few_is_an_upstream_error_after_one_retry(backend) {
        let it = RelayFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::TooFew);

        let error = it.error(json!({ "model": "narrow", "input": TEXTS })).await;

        assert_eq!(error, (502, "upstream_error".to_owned(), json!(null)));
        assert_eq!(it.server.n_requests(), 2);
        it.close().await;
    }

    async fn a_failing_provider_is_an_upstream_error_and_its_limit_is_429(backend) {
        for (status, expected, code, n_requests) in [
            (500, 502, "upstream_error", 2),
            (401, 502, "upstream_error", 1),
            (429, 429, "rate_limit_exceeded", 2),
        ] {
            let it = RelayFixture::open(backend).await;
            it.server.answer(EmbeddingAnswer::Status(status));

            let error = it.error(json!({ "model": "narrow", "input": "a" })).await;

            assert_eq!(error, (expected, code.to_owned(), json!(null)), "{status}");
            assert_eq!(it.server.n_requests(), n_requests, "{status}");
            it.close().await;
        }
    }

    async fn a_refusal_of_the_provider_is_400_and_not_tried_again(backend) {
        let it = RelayFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Status(400));

        let plain = it.error(json!({ "model": "narrow", "input": "a" })).await;
        let sized = it.error(json!({ "model": "narrow", "input": "a", "dimensions": 2 })).await;

        assert_eq!(plain, invalid("invalid_value", "input"));
        assert_eq!(sized, invalid("invalid_value", "dimensions"));
        assert_eq!(it.server.n_requests(), 2);
        it.close().await;
    }

    async fn dimensions_are_forwarded_and_other_ones_are_an_upstream_error(backend) {
        let it = RelayFixture::open(backend).await;

        it.embed(json!({ "model": "narrow", "input": "a", "dimensions": 3 })).await;
        let other = it.error(json!({ "model": "narrow", "input": "a", "dimensions": 2 })).await;

        assert_eq!(it.server.request(0)["dimensions"], 3);
        assert_eq!(other.0, 502);
        it.close().await;
    }

    async fn an_invalid_request_names_its_parameter(backend) {
        let it = RelayFixture::open(backend).await;
        let long = " a".repeat(8_193);

        for (body, code, param) in [
            (json!({ "input": "a" }), "missing_required_parameter", "model"),
            (json!({ "model": "narrow" }), "missing_required_parameter", "input"),
            (json!({ "model": "narrow", "input": [] }), "invalid_value", "input"),
            (json!({ "model": "narrow", "input": ["a", ""] }), "invalid_value", "input[1]"),
            (json!({ "model": "narrow", "input": vec!["a"; 2_049] }), "invalid_value", "input"),
            (json!({ "model": "narrow", "input": ["a", long] }), "invalid_value", "input[1]"),
            (json!({ "model": LOCAL, "input": [long] }), "invalid_value", "input[0]"),
            (json!({ "model": "narrow", "input": vec![" a".repeat(8_000); 38] }), "invalid_value", "input"),
            (json!({ "model": "narrow", "input": [1, 2] }), "invalid_value", "input"),
            (json!({ "model": LOCAL, "input": [[1, 2]] }), "invalid_value", "input"),
            (json!({ "model": LOCAL, "input": "a", "dimensions": 128 }), "invalid_value", "dimensions"),
            (json!({ "model": "narrow", "input": "a", "wobble": 1 }), "unknown_parameter", "wobble"),
        ] {
            assert_eq!(it.error(body).await, invalid(code, param));
        }
        let (status, body) = it.fixture.program.get("/embeddings").await;
        assert_eq!((status, &body["error"]["code"]), (405, &json!("method_not_allowed")));
        assert_eq!(it.server.n_requests(), 0);
        it.close().await;
    }

    async fn token_ids_and_the_user_are_forwarded_to_openai_only(backend) {
        let openai = RelayFixture::open_with(backend, "openai").await;

        let body = json!({ "model": "narrow", "input": [[1, 2], [3]], "user": "u" });
        let answer = openai.embed(body).await;

        assert_eq!(vectors(&answer).len(), 2);
        assert_eq!(answer["usage"]["prompt_tokens"], 3);
        let sent = openai.server.request(0);
        assert_eq!(sent, json!({ "model": "narrow", "input": [[1, 2], [3]], "user": "u" }));
        openai.close().await;

        let other = RelayFixture::open(backend).await;
        other.embed(json!({ "model": "narrow", "input": "a", "user": "u" })).await;
        assert_eq!(other.server.request(0), json!({ "model": "narrow", "input": ["a"] }));
        other.close().await;
    }

    async fn only_embedding_models_of_enabled_providers_can_embed(backend) {
        let it = RelayFixture::open(backend).await;
        let person = it.fixture.app.register("bob").await;
        let bob = V1Client::new(&person).await;
        let embed = async |model: &str| {
            let body = json!({ "model": model, "input": "a" });
            bob.post("/embeddings", body).await
        };

        expect(200, embed("narrow").await);
        expect(200, embed(LOCAL).await);
        for model in ["chat", "scripted", "wide", "character:1"] {
            let error = error_of(&embed(model).await);
            assert_eq!(error, (404, "model_not_found".to_owned(), json!("model")), "{model}");
        }
        let path = format!("/api/providers/{}", id(&it.provider));
        let change = json!({ "disabled": true });
        expect(200, it.fixture.admin.patch(&path, change).await);
        assert_eq!(embed("narrow").await.0, 404);
        expect(200, embed(LOCAL).await);
        let mut without_key = bob.clone();
        without_key.key = "trp_none".to_owned();
        let body = json!({ "model": LOCAL, "input": "a" });
        assert_eq!(error_of(&without_key.post("/embeddings", body).await).0, 401);
        it.close().await;
    }

    async fn a_client_that_disconnects_ends_the_request_to_the_provider(backend) {
        let it = RelayFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Hang);
        let program = it.fixture.program.clone();
        let waiting = tokio::spawn(async move {
            let body = json!({ "model": "narrow", "input": "a" });
            program.post("/embeddings", body).await
        });
        it.server.wait_for_requests(1).await;

        waiting.abort();

        it.server.wait_for_closed(1).await;
        it.close().await;
    }

    async fn many_requests_of_one_user_wait_while_those_of_others_are_executed(backend) {
        let it = RelayFixture::open(backend).await;
        it.server.answer(EmbeddingAnswer::Hang);
        let start = |_| {
            let program = it.fixture.program.clone();
            let body = json!({ "model": "narrow", "input": "a" });
            tokio::spawn(async move { program.post("/embeddings", body).await })
        };
        let waiting: Vec<_> = (0..20).map(start).collect();
        // Three quarters of the sixteen permits.
        it.server.wait_for_requests(12).await;
        let bob = V1Client::new(&it.fixture.app.register("bob").await).await;

        expect(200, bob.post("/embeddings", json!({ "model": LOCAL, "input": "a" })).await);

        for one in waiting {
            assert!(!one.is_finished(), "a request of the other user was refused");
            one.abort();
        }
        it.close().await;
    }

    async fn the_log_has_one_line_without_the_texts(backend) {
        let database = fresh_database(&backend).await;
        let env = [SHORT_LEASES, &[("LOG_FORMAT", "json")]].concat();
        let server = Server::start(&database, &env).await;
        let person = HttpClient::set_up(&server.url(), "ann").await;
        let program = V1Client::new(&person).await;
        let body = json!({ "model": LOCAL, "input": ["canary of the input", "b"] });

        expect(200, program.post("/embeddings", body).await);

        let lines = || {
            let output = server.output();
            let lines = output.lines().filter_map(|it| serde_json::from_str(it).ok());
            let lines = lines.filter(|it: &Value| it["surface"] == "embeddings");
            lines.collect::<Vec<Value>>()
        };
        let line = poll::until("the line", async || lines().pop()).await;
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["status"], "completed");
        assert_eq!(line["model"], LOCAL);
        assert_eq!(line["provider"], "local");
        assert_eq!(line["client_left"], false);
        assert_eq!(lines().len(), 1);
        assert!(!server.output().contains("canary"));
    }
}
