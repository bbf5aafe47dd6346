//! Embeds the texts of a program: no text is cached or shortened, no vector is scaled, and the number of
//! tokens is the one that the provider states.

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::embeddings::client::{EmbeddingCall, EmbeddingClient, MAX_TEXTS};
use crate::embeddings::error::EmbeddingError;
use crate::embeddings::options::{CallKind, EmbeddingOptions};
use crate::embeddings::request::{EmbeddingInput, ReceivedVectors};

/// A request of a program.
#[derive(Debug, Clone, Copy)]
pub struct RelayedCall<'a> {
    pub input: EmbeddingInput<'a>,
    /// Sent to the provider, and expected in its response.
    pub dimensions: Option<usize>,
    /// An identifier of the end user for OpenAI.
    pub user: Option<&'a str>,
}

impl EmbeddingClient {
    /// Returns the vectors of texts as the provider sends them, in the order of the texts. They are
    /// requested at most 64 at a time, one request after the other, until `deadline`.
    ///
    /// # Errors
    /// Returns `BreakerOpen` when nothing may be sent, `TimedOut` at the deadline, and otherwise the
    /// error of the last attempt.
    ///
    /// # Cancel safety
    /// When the future is dropped, its connection is closed.
    pub async fn relay(
        &self,
        call: RelayedCall<'_>,
        deadline: Instant,
    ) -> Result<ReceivedVectors, EmbeddingError> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let relayed = timeout_at(deadline, self.relay_all(call, deadline)).await;
        // The deadline says nothing about a single request, so it does not count as a failure.
        relayed.unwrap_or(Err(EmbeddingError::TimedOut { limit }))
    }

    async fn relay_all(
        &self,
        call: RelayedCall<'_>,
        deadline: Instant,
    ) -> Result<ReceivedVectors, EmbeddingError> {
        let kind = CallKind::Relay;
        let requests = EmbeddingCall {
            client: self,
            kind,
            limits: EmbeddingOptions::default().limits(kind),
            requested_dimensions: call.dimensions,
            user: call.user,
            are_scaled: false,
        };
        let mut n_dimensions = call.dimensions;
        let mut all = ReceivedVectors {
            vectors: Vec::with_capacity(call.input.n_texts()),
            n_tokens: Some(0),
        };
        for batch in split(call.input) {
            let mut new = requests.request_with_retries(batch, n_dimensions).await;
            // An error would discard the vectors received so far, and the breaker is open only for seconds.
            while let Err(EmbeddingError::BreakerOpen { until }) = &new
                && !all.vectors.is_empty()
                && *until < deadline
            {
                sleep_until(*until).await;
                new = requests.request_with_retries(batch, n_dimensions).await;
            }
            let new = new?;
            n_dimensions = n_dimensions.or(new.vectors.first().map(Vec::len));
            all.vectors.extend(new.vectors);
            let sum = all.n_tokens.zip(new.n_tokens);
            all.n_tokens = sum.map(|(before, new)| before.saturating_add(new));
        }
        Ok(all)
    }
}

/// Splits an input into parts that a provider accepts.
fn split(input: EmbeddingInput<'_>) -> Vec<EmbeddingInput<'_>> {
    match input {
        EmbeddingInput::Texts(all) => all.chunks(MAX_TEXTS).map(EmbeddingInput::Texts).collect(),
        EmbeddingInput::TokenIds(all) => {
            let parts = all.chunks(MAX_TEXTS).map(EmbeddingInput::TokenIds);
            parts.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::sync::Notify;
    use tokio::time::Instant;

    use super::RelayedCall;
    use crate::embeddings::breaker::BreakerState;
    use crate::embeddings::error::EmbeddingError;
    use crate::embeddings::options::{CallKind, EmbeddingOptions};
    use crate::embeddings::request::{EmbeddingInput, ReceivedVectors};
    use crate::test_server::{Answer, ScriptedServer};

    fn call<'a>(input: EmbeddingInput<'a>) -> RelayedCall<'a> {
        RelayedCall {
            input,
            dimensions: None,
            user: None,
        }
    }

    /// Longer than every test.
    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn answer(vectors: &[[f32; 2]], usage: Value) -> Answer {
        let items = vectors.iter().enumerate();
        let items = items.map(|(index, it)| json!({ "index": index, "embedding": it }));
        Answer::Body(json!({ "data": items.collect::<Vec<_>>(), "usage": usage }))
    }

    #[tokio::test]
    async fn a_relay_sends_equal_texts_again_and_keeps_the_length_of_the_vectors() {
        let mut server =
            ScriptedServer::start(|_| answer(&[[3.0, 4.0]; 2], json!({ "total_tokens": 2 }))).await;
        let client = server.client(false);

        for _ in 0..2 {
            let received = client
                .relay(call(EmbeddingInput::Texts(&["a", "a"])), later())
                .await;

            let expected = ReceivedVectors {
                vectors: vec![vec![3.0, 4.0]; 2],
                n_tokens: Some(2),
            };
            assert_eq!(received, Ok(expected));
            assert_eq!(server.next_request().await.texts(), ["a", "a"]);
        }
    }

    #[tokio::test]
    async fn token_ids_dimensions_and_user_are_sent() {
        let mut server = ScriptedServer::start(|_| answer(&[[1.0, 0.0]], json!(null))).await;
        let token_ids = [vec![1, 2]];
        let request = RelayedCall {
            dimensions: Some(2),
            user: Some("u"),
            ..call(EmbeddingInput::TokenIds(&token_ids))
        };

        let received = server.client(false).relay(request, later()).await;

        assert_eq!(received.unwrap().n_tokens, None);
        let sent = server.next_request().await.body;
        assert_eq!(
            sent,
            json!({ "model": "m", "input": [[1, 2]], "dimensions": 2, "user": "u" })
        );
    }

    #[tokio::test]
    async fn a_large_input_is_split_and_its_tokens_are_added() {
        let mut server = ScriptedServer::start(|n| {
            let n_texts = if n == 0 { 64 } else { 1 };
            let vectors: Vec<[f32; 2]> =
                (0..n_texts).map(|it| [n as f32, it as f32 + 1.0]).collect();
            answer(&vectors, json!({ "prompt_tokens": n_texts }))
        })
        .await;
        let texts: Vec<String> = (0..65).map(|it| it.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();

        let input = EmbeddingInput::Texts(&texts);
        let received = server
            .client(false)
            .relay(call(input), later())
            .await
            .unwrap();

        assert_eq!(received.n_tokens, Some(65));
        assert_eq!(received.vectors[63], [0.0, 64.0]);
        assert_eq!(received.vectors[64], [1.0, 1.0]);
        assert_eq!(server.next_request().await.texts(), texts[..64]);
        assert_eq!(server.next_request().await.texts(), ["64"]);
    }

    #[tokio::test]
    async fn dimensions_that_the_model_does_not_have_open_no_circuit_breaker() {
        let server = ScriptedServer::start(|_| answer(&[[1.0, 0.0]], json!(null))).await;
        let client = server.client(false);
        let input = EmbeddingInput::Texts(&["a"]);
        let other = RelayedCall {
            dimensions: Some(3),
            ..call(input)
        };

        for _ in 0..3 {
            let expected = EmbeddingError::WrongDimensions {
                n_expected: 3,
                n_received: 2,
            };
            assert_eq!(client.relay(other, later()).await, Err(expected));
        }

        assert!(client.relay(call(input), later()).await.is_ok());
    }

    #[tokio::test]
    async fn answers_with_an_error_do_not_open_the_circuit_breaker() {
        let answers: [fn(usize) -> Answer; 3] = [
            |_| Answer::Status(500),
            |_| Answer::Status(401),
            |_| Answer::Body(json!({})),
        ];
        for answer in answers {
            let client = ScriptedServer::start(answer).await.client(false);
            let call = call(EmbeddingInput::Texts(&["a"]));

            for _ in 0..2 {
                let received = client.relay(call, later()).await;
                assert!(!matches!(
                    received,
                    Ok(_) | Err(EmbeddingError::BreakerOpen { .. })
                ));
            }

            assert_eq!(client.breaker_state(), BreakerState::Closed);
        }
    }

    #[tokio::test]
    async fn a_relay_that_began_waits_until_an_open_breaker_permits_a_request() {
        let is_permitted = Arc::new(Notify::new());
        let permitted = is_permitted.clone();
        let mut server = ScriptedServer::start(move |n| match n {
            0 => Answer::WhenNotified(
                permitted.clone(),
                Box::new(answer(&[[1.0, 0.0]; 64], json!(null))),
            ),
            1 => Answer::Hang,
            _ => answer(&[[0.0, 1.0]], json!(null)),
        })
        .await;
        let client = server.client(false);
        let texts: Vec<String> = (0..65).map(|it| it.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let fail_meanwhile = async {
            server.next_request().await;
            let options = EmbeddingOptions {
                timeout_s: Some(0.1),
                ..EmbeddingOptions::default()
            };
            let failed = client.embed(&["b"], CallKind::Read, &options).await;
            assert!(failed.is_err() && client.breaker_state() != BreakerState::Closed);
            // The breaker is open for three seconds.
            tokio::time::pause();
            tokio::time::advance(Duration::from_millis(2_900)).await;
            tokio::time::resume();
            is_permitted.notify_one();
        };

        let relaying = client.relay(call(EmbeddingInput::Texts(&texts)), later());
        let (received, ()) = tokio::join!(relaying, fail_meanwhile);

        assert_eq!(received.unwrap().vectors.len(), 65);
        assert_eq!(client.breaker_state(), BreakerState::Closed);
    }

    #[tokio::test]
    async fn a_relay_ends_at_its_deadline_and_opens_no_breaker() {
        let mut server = ScriptedServer::start(|_| Answer::Hang).await;
        let client = server.client(false);
        for _ in 0..3 {
            let limit = Duration::from_millis(100);
            let deadline = Instant::now() + limit;

            let received = client
                .relay(call(EmbeddingInput::Texts(&["a"])), deadline)
                .await;

            assert!(received.is_err_and(|it| it.is_timeout()));
            server.wait_for_close().await;
        }

        assert_eq!(client.breaker_state(), BreakerState::Closed);
    }

    #[tokio::test]
    async fn a_relay_is_tried_twice() {
        let mut server = ScriptedServer::start(|_| answer(&[], json!(null))).await;

        let received = server
            .client(false)
            .relay(call(EmbeddingInput::Texts(&["a"])), later())
            .await;

        let expected = EmbeddingError::WrongCount {
            n_expected: 1,
            n_received: 0,
        };
        assert_eq!(received, Err(expected));
        assert_eq!(server.n_requests(), 2);
    }
}
