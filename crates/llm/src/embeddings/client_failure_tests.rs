//! Tests of the client against a server that fails: invalid responses, time limits, retries and the
//! circuit breaker.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::EmbeddingClient;
use crate::embeddings::breaker::BreakerState;
use crate::embeddings::error::EmbeddingError;
use crate::embeddings::options::{CallKind, EmbeddingOptions};
use crate::test_server::{Answer, ScriptedServer, list};

const DEFAULT: EmbeddingOptions = EmbeddingOptions {
    timeout_s: None,
    max_retries: None,
    requested_dimensions: None,
    stored_dimensions: None,
};
const SHORT_TIMEOUT: EmbeddingOptions = EmbeddingOptions {
    timeout_s: Some(0.1),
    ..DEFAULT
};

async fn read(client: &EmbeddingClient, options: EmbeddingOptions) -> Option<EmbeddingError> {
    let result = client.embed(&["a"], CallKind::Read, &options).await;
    result.err()
}

async fn write(client: &EmbeddingClient, options: EmbeddingOptions) -> Option<EmbeddingError> {
    let result = client.embed(&["a"], CallKind::Write, &options).await;
    result.err()
}

fn is_breaker_open(error: &Option<EmbeddingError>) -> bool {
    matches!(error, Some(EmbeddingError::BreakerOpen { .. }))
}

/// Moves the clock. It stands still only here: otherwise time limits would end while a response is
/// on its way.
async fn advance(seconds: f64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs_f64(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_invalid_response_is_an_error_and_nothing_of_it_is_cached() {
    let item = |index: usize, embedding: Value| json!({ "index": index, "embedding": embedding });
    let invalid = [
        (
            json!({ "data": [item(0, json!([1, 2, 3]))] }),
            EmbeddingError::WrongCount {
                n_expected: 2,
                n_received: 1,
            },
        ),
        (
            json!({ "data": [item(0, json!([1, 2, 3])), item(0, json!([1, 2, 3]))] }),
            EmbeddingError::RepeatedIndex { index: 0 },
        ),
        (
            json!({ "data": [item(0, json!([1, 2, 3])), item(1, json!([1, 2]))] }),
            EmbeddingError::WrongDimensions {
                n_expected: 3,
                n_received: 2,
            },
        ),
        (
            json!({ "data": [item(0, json!([1, 2, 3])), item(1, json!([1, null, 3]))] }),
            EmbeddingError::NotFinite,
        ),
    ];
    for (body, expected) in invalid {
        let mut server = ScriptedServer::start(move |nth| match nth {
            0 => Answer::Body(body.clone()),
            _ => Answer::Vectors,
        })
        .await;
        let client = server.client(true);

        let result = client.embed(&["a", "b"], CallKind::Read, &DEFAULT).await;
        assert_eq!(result.unwrap_err(), expected);
        let result = client.embed(&["a", "b"], CallKind::Read, &DEFAULT).await;

        assert!(result.is_ok());
        assert_eq!(server.requests()[1].texts(), ["a", "b"]);
    }
}

#[tokio::test]
async fn a_model_that_changes_its_dimensions_is_usable_at_the_next_call() {
    let server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Vectors,
        1 => Answer::Body(json!({ "data": [{ "index": 0, "embedding": [0, 2] }] })),
        _ => Answer::Body(json!({ "data": [
            { "index": 0, "embedding": [0, 2] },
            { "index": 1, "embedding": [2, 0] },
        ] })),
    })
    .await;
    let client = server.client(true);
    let call = async |texts: &[&str]| client.embed(texts, CallKind::Read, &DEFAULT).await;

    assert!(call(&["a"]).await.is_ok());
    let error = call(&["a", "b"]).await.unwrap_err();
    let vectors = call(&["a", "b"]).await.unwrap();

    assert!(matches!(error, EmbeddingError::WrongDimensions { .. }));
    assert_eq!(*vectors[1], [1.0, 0.0]);
}

#[tokio::test]
async fn vectors_of_a_replaced_model_are_not_mixed_with_new_ones() {
    let mut server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Vectors,
        _ => Answer::Body(json!({ "data": [{ "index": 0, "embedding": [0, 2] }] })),
    })
    .await;
    let client = server.client(true);
    let call = async |texts: &[&str]| client.embed(texts, CallKind::Read, &DEFAULT).await;

    assert!(call(&["a"]).await.is_ok());
    assert!(call(&["b"]).await.is_ok());
    let vectors = call(&["a", "b"]).await.unwrap();

    assert!(vectors.iter().all(|it| **it == [0.0, 1.0]));
    assert_eq!(server.requests()[2].texts(), ["a"]);
}

#[tokio::test]
async fn a_call_ends_at_its_time_limit_and_closes_its_connection() {
    for kind in [CallKind::Read, CallKind::Write] {
        let mut server = ScriptedServer::start(|_| Answer::Hang).await;
        let client = server.client(true);

        let error = client.embed(&["a"], kind, &SHORT_TIMEOUT).await;

        let error = error.unwrap_err();
        assert!(error.is_timeout());
        let limit = Duration::from_millis(100);
        assert_eq!(error, EmbeddingError::TimedOut { limit });
        server.wait_for_close().await;
        assert_eq!(server.n_requests(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let mut server = ScriptedServer::start(|_| Answer::Hang).await;
    let client = Arc::new(server.client(true));
    let call = tokio::spawn({
        let client = Arc::clone(&client);
        async move { read(&client, DEFAULT).await }
    });

    server.next_request().await;
    call.abort();

    server.wait_for_close().await;
    assert_eq!(client.breaker_state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_failing_provider_gets_one_request_per_read_and_two_per_write() {
    let mut server = ScriptedServer::start(|_| Answer::Status(500)).await;

    let error = read(&server.client(true), DEFAULT).await;
    assert!(matches!(error, Some(EmbeddingError::Call(_))));
    assert_eq!(server.n_requests(), 1);
    let error = write(&server.client(true), DEFAULT).await;
    assert!(matches!(error, Some(EmbeddingError::Call(_))));
    assert_eq!(server.n_requests(), 2);
}

#[tokio::test]
async fn the_number_of_retries_is_an_option_and_zero_means_none() {
    let mut server = ScriptedServer::start(|_| Answer::Status(500)).await;
    let with_retries = |max_retries| EmbeddingOptions {
        max_retries: Some(max_retries),
        ..DEFAULT
    };

    write(&server.client(true), with_retries(0)).await;
    assert_eq!(server.n_requests(), 1);
    read(&server.client(true), with_retries(1)).await;
    assert_eq!(server.n_requests(), 2);
}

#[tokio::test]
async fn a_write_succeeds_if_its_retry_does() {
    let server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Status(503),
        _ => Answer::Vectors,
    })
    .await;

    assert_eq!(write(&server.client(true), DEFAULT).await, None);
}

#[tokio::test]
async fn a_rejected_request_is_not_retried() {
    let mut server = ScriptedServer::start(|_| Answer::Status(401)).await;

    write(&server.client(true), DEFAULT).await;

    assert_eq!(server.n_requests(), 1);
}

#[tokio::test]
async fn a_provider_without_time_is_never_called() {
    let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
    let client = server.client(true);
    let options = EmbeddingOptions {
        timeout_s: Some(0.0),
        ..DEFAULT
    };

    assert_eq!(read(&client, options).await, Some(EmbeddingError::Disabled));
    assert_eq!(
        write(&client, options).await,
        Some(EmbeddingError::Disabled)
    );
    assert_eq!(server.n_requests(), 0);
    assert_eq!(client.breaker_state(), BreakerState::Closed);
}

#[tokio::test]
async fn nothing_is_sent_after_three_failures_until_a_probe_succeeds() {
    let mut server = ScriptedServer::start(|nth| match nth {
        0..3 => Answer::Status(500),
        _ => Answer::Vectors,
    })
    .await;
    let client = server.client(false);

    for _ in 0..3 {
        read(&client, DEFAULT).await;
    }
    assert!(is_breaker_open(&read(&client, DEFAULT).await));
    assert!(is_breaker_open(&write(&client, DEFAULT).await));
    assert_eq!(server.n_requests(), 3);
    advance(3.0).await;
    assert_eq!(read(&client, DEFAULT).await, None);
    assert_eq!(server.n_requests(), 1);

    assert_eq!(client.breaker_state(), BreakerState::Closed);
}

#[tokio::test]
async fn retries_count_as_failures() {
    let mut server = ScriptedServer::start(|_| Answer::Status(500)).await;
    let client = server.client(true);

    write(&client, DEFAULT).await;
    let error = write(&client, DEFAULT).await;

    assert!(matches!(error, Some(EmbeddingError::Call(_))));
    assert_eq!(server.n_requests(), 3);
    assert!(is_breaker_open(&read(&client, DEFAULT).await));
}

#[tokio::test]
async fn nothing_is_sent_after_one_timeout() {
    let mut server = ScriptedServer::start(|_| Answer::Hang).await;
    let client = server.client(true);

    read(&client, SHORT_TIMEOUT).await;
    assert!(is_breaker_open(&read(&client, SHORT_TIMEOUT).await));
    assert_eq!(server.n_requests(), 1);
}

#[tokio::test]
async fn cached_texts_are_found_while_the_breaker_is_open() {
    let server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Vectors,
        _ => Answer::Hang,
    })
    .await;
    let client = server.client(true);

    read(&client, DEFAULT).await;
    let hanging = client.embed(&["b"], CallKind::Read, &SHORT_TIMEOUT).await;

    assert!(hanging.is_err());
    assert!(is_breaker_open(
        &client
            .embed(&["a", "b"], CallKind::Read, &DEFAULT)
            .await
            .err()
    ));
    assert_eq!(read(&client, DEFAULT).await, None);
}

#[tokio::test]
async fn only_one_probe_is_sent_and_a_dropped_one_permits_the_next() {
    let mut server = ScriptedServer::start(|nth| match nth {
        0 | 1 => Answer::Hang,
        _ => Answer::Vectors,
    })
    .await;
    let client = Arc::new(server.client(true));
    read(&client, SHORT_TIMEOUT).await;
    server.next_request().await;
    advance(3.0).await;

    let probe = tokio::spawn({
        let client = Arc::clone(&client);
        async move { read(&client, DEFAULT).await }
    });
    server.next_request().await;
    assert!(is_breaker_open(&read(&client, DEFAULT).await));
    probe.abort();
    assert!(probe.await.unwrap_err().is_cancelled());

    assert_eq!(read(&client, DEFAULT).await, None);
    assert_eq!(server.n_requests(), 1);
    assert_eq!(client.breaker_state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_batch_that_fails_fails_the_call() {
    let server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Vectors,
        _ => Answer::Body(list(&[])),
    })
    .await;
    let texts: Vec<String> = (0..65).map(|it| it.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();

    let client = server.client(true);
    let result = client.embed(&texts, CallKind::Read, &DEFAULT).await;

    assert!(result.is_err());
}

#[tokio::test]
async fn a_refused_text_does_not_open_the_breaker() {
    let server = ScriptedServer::start(|_| Answer::Status(413)).await;
    let client = server.client(true);

    for _ in 0..4 {
        let error = write(&client, DEFAULT).await;
        assert!(error.is_some_and(|it| it.is_refusal()));
    }

    assert_eq!(client.breaker_state(), BreakerState::Closed);
}
