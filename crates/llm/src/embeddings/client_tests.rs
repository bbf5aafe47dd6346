//! Tests of the client against a server that works: order, duplicates, batches and the cache.

use serde_json::json;

use super::EmbeddingClient;
use crate::embeddings::clients::EmbeddingClients;
use crate::embeddings::options::{CallKind, EmbeddingOptions};
use crate::test_server::{Answer, ScriptedServer, list, vector_of};
use crate::tokens;

/// Embeds texts with the default options.
async fn embed(client: &EmbeddingClient, texts: &[&str]) -> Vec<Vec<f32>> {
    let options = EmbeddingOptions::default();
    let vectors = client.embed(texts, CallKind::Write, &options).await;
    vectors.unwrap().iter().map(|it| it.to_vec()).collect()
}

fn vectors_of(texts: &[&str]) -> Vec<Vec<f32>> {
    texts.iter().map(|it| vector_of(it)).collect()
}

#[tokio::test]
async fn vectors_are_assigned_by_index_and_not_by_order() {
    let server = ScriptedServer::start(|_| {
        let mut list = list(&["a", "b", "c"]);
        list["data"].as_array_mut().unwrap().reverse();
        Answer::Body(list)
    })
    .await;

    let vectors = embed(&server.client(true), &["a", "b", "c"]).await;

    assert_eq!(vectors, vectors_of(&["a", "b", "c"]));
}

#[tokio::test]
async fn equal_texts_of_a_call_are_sent_once() {
    for has_cache in [true, false] {
        let mut server = ScriptedServer::start(|_| Answer::Vectors).await;

        let vectors = embed(&server.client(has_cache), &["a", "b", "a", "a"]).await;

        assert_eq!(vectors, vectors_of(&["a", "b", "a", "a"]));
        let request = server.next_request().await;
        assert_eq!(request.texts(), ["a", "b"]);
        assert_eq!(server.n_requests(), 0);
    }
}

#[tokio::test]
async fn a_request_contains_the_model_the_key_and_the_requested_dimensions() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let client = server.client(false);
    let options = EmbeddingOptions {
        requested_dimensions: Some(3),
        ..EmbeddingOptions::default()
    };

    embed(&client, &["a"]).await;
    let result = client.embed(&["a"], CallKind::Read, &options).await;

    assert!(result.is_ok());
    let request = server.next_request().await;
    assert!(request.head.starts_with("post /v1/embeddings http/1.1\r\n"));
    assert!(
        request
            .head
            .contains("\r\nauthorization: bearer planted-key\r\n")
    );
    assert_eq!(request.body, json!({ "model": "m", "input": ["a"] }));
    let request = server.next_request().await;
    assert_eq!(request.body["dimensions"], 3);
}

#[tokio::test]
async fn many_texts_are_sent_in_requests_of_64() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let texts: Vec<String> = (0..130).map(|it| it.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();

    let vectors = embed(&server.client(true), &texts).await;

    assert_eq!(vectors, vectors_of(&texts));
    let requests = server.requests();
    let sizes: Vec<usize> = requests.iter().map(|it| it.texts().len()).collect();
    assert_eq!(sizes, [64, 64, 2]);
}

#[tokio::test]
async fn no_request_is_sent_without_texts() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;

    assert!(embed(&server.client(true), &[]).await.is_empty());
    assert_eq!(server.n_requests(), 0);
}

#[tokio::test]
async fn a_long_text_is_cut_at_8192_tokens() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let text = "The keeper lights the lamp. ".repeat(2_000);

    embed(&server.client(true), &[&text]).await;

    let request = server.next_request().await;
    let sent = request.texts()[0];
    assert!(text.starts_with(sent));
    assert!(matches!(tokens::count(sent), 8_180..=8_192));
}

#[tokio::test]
async fn a_cached_text_is_not_sent_again() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let client = server.client(true);

    embed(&client, &["a", "b"]).await;
    let vectors = embed(&client, &["c", "a"]).await;

    assert_eq!(vectors, vectors_of(&["c", "a"]));
    assert_eq!(server.next_request().await.texts(), ["a", "b"]);
    assert_eq!(server.next_request().await.texts(), ["c"]);
    embed(&client, &["a"]).await;
    assert_eq!(server.n_requests(), 0);
}

#[tokio::test]
async fn every_call_is_sent_without_a_cache() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let client = server.client(false);

    embed(&client, &["a"]).await;
    embed(&client, &["a"]).await;

    assert_eq!(server.n_requests(), 2);
}

#[tokio::test]
async fn the_cache_keeps_the_last_1024_texts() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let client = server.client(true);
    let texts: Vec<String> = (0..1_025).map(|it| it.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();

    embed(&client, &texts[..1_024]).await;
    embed(&client, &["0"]).await;
    assert_eq!(server.n_requests(), 16, "all 1,024 are cached");
    embed(&client, &texts[1_024..]).await;
    server.requests();
    embed(&client, &["0", "1024"]).await;
    assert_eq!(server.n_requests(), 0, "these were used last");
    embed(&client, &["1"]).await;

    assert_eq!(server.n_requests(), 1, "this was not used for the longest");
}

#[tokio::test]
async fn cached_vectors_of_other_dimensions_are_not_returned() {
    let mut server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Vectors,
        _ => Answer::Body(json!({ "data": [{ "index": 0, "embedding": [0, 2] }] })),
    })
    .await;
    let client = server.client(true);
    let options = EmbeddingOptions {
        stored_dimensions: Some(2),
        ..EmbeddingOptions::default()
    };

    embed(&client, &["a"]).await;
    let vectors = client.embed(&["a"], CallKind::Read, &options).await;

    assert_eq!(*vectors.unwrap()[0], [0.0, 1.0]);
    assert_eq!(server.n_requests(), 2);
}

#[tokio::test]
async fn debug_output_contains_neither_the_key_nor_a_text() {
    let server = ScriptedServer::start(|_| Answer::Vectors).await;
    let client = server.client(true);

    embed(&client, &["a planted text"]).await;

    assert!(!format!("{client:?}").contains("planted"));
}

#[test]
fn clients_and_their_calls_can_be_used_by_several_threads() {
    fn check<T: Send + Sync>() {}
    fn check_future<T: Send>(_: impl Fn(&'static EmbeddingClient) -> T) {}

    check::<EmbeddingClient>();
    check::<EmbeddingClients>();
    check_future(|client| async {
        let options = EmbeddingOptions::default();
        client.embed(&["a"], CallKind::Read, &options).await
    });
}
