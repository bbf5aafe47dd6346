//! Tests of the header `Idempotency-Key`: a repeated request returns what the first one has created.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::fixture::{V1Fixture, id};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::v1_client::{V1Client, error_of};

/// Sends a request with this key.
async fn post(client: &V1Client, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let request = client.request(Method::POST, path).json(body);
    let answer = request.header("idempotency-key", key).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

fn hello() -> Value {
    json!({ "model": "scripted", "input": "Hello?" })
}

on_both! {
    async fn the_same_key_returns_the_same_response_with_one_model_call(backend) {
        let fixture = V1Fixture::open(backend).await;
        let program = &fixture.program;

        let first = post(program, "/responses", "a", &hello()).await;
        let again = post(program, "/responses", "a", &hello()).await;

        assert_eq!(first.0, 200, "{first:?}");
        assert_eq!(again, first);
        assert_eq!(fixture.upstream.n_requests(), 1);
        assert_eq!(fixture.n_rows("responses").await, 1);
        let other = json!({ "model": "scripted", "input": "Hello!" });
        let refused = error_of(&post(program, "/responses", "a", &other).await);
        assert_eq!(refused, (400, "idempotency_key_reused".into(), json!("Idempotency-Key")));
        let next = post(program, "/responses", "b", &hello()).await;
        assert_ne!(next.1["id"], first.1["id"]);
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let of_ben = post(&ben, "/responses", "a", &hello()).await;
        assert_eq!(of_ben.0, 200);
        assert_ne!(of_ben.1["id"], first.1["id"], "a key of another user was found");
        fixture.close().await;
    }

    async fn concurrent_requests_with_the_same_key_create_one_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        let body = json!({ "model": "scripted", "input": "Hello?", "background": true });

        let all = (0..8).map(|_| post(&fixture.program, "/responses", "a", &body));
        let all = futures::future::join_all(all).await;

        assert_eq!(fixture.n_rows("responses").await, 1);
        let created: Vec<&Value> = all.iter().filter(|it| it.0 == 200).map(|it| &it.1["id"]).collect();
        assert!(!created.is_empty() && created.iter().all(|it| *it == created[0]), "{all:?}");
        for refused in all.iter().filter(|it| it.0 != 200) {
            assert_eq!(error_of(refused).1, "idempotency_key_in_use");
        }
        fixture.close().await;
    }

    async fn a_key_is_valid_for_a_day(backend) {
        let fixture = V1Fixture::open(backend).await;
        let made = post(&fixture.program, "/conversations", "a", &json!({})).await;
        let same = post(&fixture.program, "/conversations", "a", &json!({})).await;
        assert_eq!((made.0, &same), (200, &made));
        let services = fixture.app.app.responses.services();
        let day_ms = 24 * 60 * 60 * 1_000;
        let mut facts = crate::support::database_facts::DatabaseFacts::open(&fixture.app.database).await;
        let row = facts.number("SELECT CAST(count(*) AS TEXT) FROM idempotency_keys").await;
        assert_eq!(row, 1);
        troupe::responses::store::idempotency_key::purge_expired(&services.db, services.clock.now()).await.unwrap();
        assert_eq!(fixture.n_rows("idempotency_keys").await, 1, "a valid key was deleted");
        let later = services.clock.now().plus_ms(day_ms);

        troupe::responses::store::idempotency_key::purge_expired(&services.db, later).await.unwrap();

        assert_eq!(fixture.n_rows("idempotency_keys").await, 0);
        let next = post(&fixture.program, "/conversations", "a", &json!({})).await;
        assert_ne!(next.1["id"], made.1["id"]);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_repeated_stream_has_the_finished_answer(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut body = hello();
        body["stream"] = json!(true);

        let (_, first) = post(&fixture.program, "/responses", "a", &body).await;
        let (status, again) = post(&fixture.program, "/responses", "a", &body).await;

        assert_eq!(status, 200);
        let last = |stream: &Value| {
            let text = stream.as_str().unwrap();
            let frame = text.split("event: response.completed\ndata: ").nth(1).unwrap();
            let event: Value = serde_json::from_str(frame.split('\n').next().unwrap()).unwrap();
            event["response"].clone()
        };
        assert_eq!(last(&first), last(&again));
        assert!(again.as_str().unwrap().ends_with("data: [DONE]\n\n"));
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn a_repeated_stream_is_refused_while_the_first_one_runs(backend) {
        let fixture = V1Fixture::open(backend).await;
        let gate = fixture.upstream.gate();
        let mut body = hello();
        body["stream"] = json!(true);
        let request = fixture.program.request(Method::POST, "/responses").json(&body);
        let running = request.header("idempotency-key", "a").send().await.unwrap();

        let refused = error_of(&post(&fixture.program, "/responses", "a", &body).await);

        assert_eq!((refused.0, refused.1.as_str()), (409, "idempotency_key_in_use"));
        gate.open();
        tokio::time::timeout(Duration::from_secs(20), running.text()).await.unwrap().unwrap();
        fixture.close().await;
    }

    async fn a_key_without_storage_has_no_effect_and_is_named(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut unstored = hello();
        unstored["store"] = json!(false);
        let chat = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Hi." }] });
        let embedding = json!({ "model": "troupe-ngram-256", "input": "Hi." });

        for (path, body) in [("/responses", unstored), ("/chat/completions", chat), ("/embeddings", embedding)] {
            for _ in 0..2 {
                let request = fixture.program.request(Method::POST, path).json(&body);
                let answer = request.header("idempotency-key", "a").send().await.unwrap();
                assert_eq!(answer.status(), 200, "{path}");
                assert_eq!(answer.headers()["troupe-ignored"], "Idempotency-Key", "{path}");
            }
        }
        assert_eq!(fixture.n_rows("idempotency_keys").await, 0);
        fixture.close().await;
    }

    async fn an_invalid_key_is_rejected_and_a_deleted_response_is_not_created_again(backend) {
        let fixture = V1Fixture::open(backend).await;
        for key in ["", &"k".repeat(256)] {
            let refused = error_of(&post(&fixture.program, "/responses", key, &hello()).await);
            assert_eq!((refused.0, refused.1.as_str()), (400, "invalid_value"));
        }
        let (_, made) = post(&fixture.program, "/responses", "a", &hello()).await;
        fixture.program.delete(&format!("/responses/{}", id(&made))).await;

        assert_eq!(post(&fixture.program, "/responses", "a", &hello()).await.0, 404);
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }
}
