//! The client of one embedding model of one provider: sends texts, and returns their vectors.
//!
//! **Invariant:** no lock is held while a request is under way, and a call that is dropped or
//! exceeds its time limit closes its connection.
//!
//! **Invariant:** a vector belongs to the text at the same place; if one text of a call has no
//! vector, the call fails.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::task;
use tokio::time::{Instant, sleep, timeout_at};

use crate::embeddings::breaker::{BreakerState, CircuitBreaker};
use crate::embeddings::call_counts::EmbeddingCounts;
use crate::embeddings::error::EmbeddingError;
use crate::embeddings::options::{CallKind, CallLimits, EmbeddingOptions};
use crate::embeddings::request;
use crate::embeddings::request::{
    EmbeddingInput, EmbeddingRequest, ExpectedVectors, ReceivedVectors,
};
use crate::embeddings::vector_cache::{self, TextHash, VectorCache};
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::tokens;

/// Maximum number of texts in a request.
pub(super) const MAX_TEXTS: usize = 64;

/// Maximum length of a text; the rest is cut off. The limit of most models.
const MAX_TOKENS: usize = 8_192;

/// For 64 vectors of 4,096 dimensions with 20 characters each, and three times as much.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Longer responses are read on another thread: at this length it takes about a millisecond.
const LONG_RESPONSE_BYTES: usize = 128 * 1024;

/// How long the first failures open the circuit breaker.
const OPEN_FOR: Duration = Duration::from_secs(3);

/// The waits before retries.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(250))
    .with_max_delay(Duration::from_secs(2))
    .without_max_times()
    .with_jitter();

/// If a provider requests a longer wait than this, the request is not retried.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(2);

/// A client for one model at one address with one key. Its cache and its circuit breaker last as
/// long as the client.
#[derive(Debug)]
pub struct EmbeddingClient {
    endpoint: Endpoint,
    path: &'static str,
    model: String,
    cache: Option<VectorCache>,
    breaker: CircuitBreaker,
    counts: Arc<EmbeddingCounts>,
}

/// What one call needs for each of its requests.
pub(super) struct EmbeddingCall<'a> {
    pub client: &'a EmbeddingClient,
    pub kind: CallKind,
    pub limits: CallLimits,
    pub requested_dimensions: Option<usize>,
    pub user: Option<&'a str>,
    /// Whether the vectors are scaled to the length 1.
    pub are_scaled: bool,
}

impl EmbeddingClient {
    /// Creates a client for `model`, with an empty cache if `has_cache`.
    ///
    /// # Errors
    /// Returns `Unusable` when the provider's API has no embeddings.
    pub fn new(endpoint: Endpoint, model: String, has_cache: bool) -> Result<Self, LlmError> {
        let path = endpoint.dialect().embeddings_path();
        let path = path.ok_or_else(|| LlmError::Unusable {
            message: "The API of this provider has no embeddings.".to_owned(),
        })?;
        Ok(Self {
            endpoint,
            path,
            model,
            cache: has_cache.then(VectorCache::new),
            breaker: CircuitBreaker::new(OPEN_FOR),
            counts: Arc::default(),
        })
    }

    /// Returns the same client, which counts its requests in `counts`.
    pub fn with_counts(self, counts: Arc<EmbeddingCounts>) -> Self {
        Self { counts, ..self }
    }

    /// Returns the state of the circuit breaker.
    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state()
    }

    /// Returns how long no request is sent because of earlier failures; `None` if requests are sent.
    /// Zero means that the next request is a probe, or that a probe is in progress.
    pub fn breaker_open_for(&self) -> Option<Duration> {
        match self.breaker.state() {
            BreakerState::Closed => None,
            BreakerState::Open { until } => Some(until.saturating_duration_since(Instant::now())),
            BreakerState::Probing => Some(Duration::ZERO),
        }
    }

    /// Returns the vectors of texts, in their order and with the length 1. Each distinct text is
    /// sent once, in requests of at most 64, unless its vector is cached.
    ///
    /// # Errors
    /// Returns `Disabled` when the time limit is zero, `BreakerOpen` when nothing may be sent, and
    /// otherwise the error of the last attempt.
    ///
    /// # Cancel safety
    /// When the future is dropped, its connection is closed. The vectors of finished requests stay
    /// in the cache.
    pub async fn embed(
        &self,
        texts: &[&str],
        kind: CallKind,
        options: &EmbeddingOptions,
    ) -> Result<Vec<Arc<[f32]>>, EmbeddingError> {
        let limits = options.limits(kind);
        if limits.timeout.is_zero() {
            return Err(EmbeddingError::Disabled);
        }
        let call = EmbeddingCall {
            client: self,
            kind,
            limits,
            requested_dimensions: options.requested_dimensions,
            user: None,
            are_scaled: true,
        };
        let texts = self.cut_texts(texts).await;
        let hashes: Vec<TextHash> = texts.iter().map(|it| vector_cache::hash_text(it)).collect();
        let mut n_dimensions = options.expected_dimensions();
        let mut vectors = self.find_cached(&hashes, n_dimensions);
        let missing = missing_texts(&texts, &hashes, &vectors);
        if self.cache.is_some() {
            self.counts.record_cached(vectors.len(), missing.len());
        }
        n_dimensions = n_dimensions.or(vectors.values().next().map(|it| it.len()));
        for batch in missing.chunks(MAX_TEXTS) {
            let sent: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
            let input = EmbeddingInput::Texts(&sent);
            let new = call.request_with_retries(input, n_dimensions).await;
            let new = new.inspect_err(|error| self.forget_other_dimensions(error))?;
            let new = new.vectors.into_iter().map(Arc::<[f32]>::from);
            let new: Vec<_> = batch.iter().map(|(hash, _)| *hash).zip(new).collect();
            n_dimensions = n_dimensions.or(new.first().map(|(_, it)| it.len()));
            if let Some(cache) = &self.cache {
                cache.insert(&new);
            }
            vectors.extend(new);
        }
        let ordered = hashes.iter().filter_map(|it| vectors.get(it).cloned());
        Ok(ordered.collect())
    }

    /// Cuts texts at [`MAX_TOKENS`].
    async fn cut_texts<'a>(&self, texts: &[&'a str]) -> Vec<&'a str> {
        let mut all = Vec::with_capacity(texts.len());
        for text in texts.iter().copied() {
            let cut = cut_text(text).await;
            if cut.len() < text.len() {
                tracing::debug!(
                    llm.model = self.model,
                    n_bytes = text.len(),
                    n_sent_bytes = cut.len(),
                    "text is too long for an embedding; its end was cut off"
                );
            }
            all.push(cut);
        }
        all
    }

    /// Returns the cached vectors, without those of other dimensions.
    fn find_cached(
        &self,
        hashes: &[TextHash],
        n_dimensions: Option<usize>,
    ) -> HashMap<TextHash, Arc<[f32]>> {
        let Some(cache) = &self.cache else {
            return HashMap::new();
        };
        let cached = hashes.iter().filter_map(|it| Some((*it, cache.find(it)?)));
        cached
            .filter(|(_, vector)| n_dimensions.is_none_or(|it| it == vector.len()))
            .collect()
    }

    /// Empties the cache if the provider returned other dimensions than those of the cached vectors
    /// of a call. Otherwise each further call with these texts would fail.
    fn forget_other_dimensions(&self, error: &EmbeddingError) {
        if let (EmbeddingError::WrongDimensions { .. }, Some(cache)) = (error, &self.cache) {
            cache.clear();
        }
    }
}

impl EmbeddingCall<'_> {
    /// Requests the vectors of at most [`MAX_TEXTS`] texts.
    pub(super) async fn request_with_retries(
        &self,
        input: EmbeddingInput<'_>,
        n_dimensions: Option<usize>,
    ) -> Result<ReceivedVectors, EmbeddingError> {
        let mut waits = WAITS.build();
        let mut n_retries = 0;
        let mut result = self.request(input, n_dimensions).await;
        while let Err(error) = &result {
            let requested = error.retry_after().unwrap_or_default();
            let may_retry = n_retries < self.limits.max_retries
                && error.is_retryable()
                && requested <= MAX_RETRY_AFTER;
            let Some(wait) = waits.next().filter(|_| may_retry) else {
                break;
            };
            sleep(wait.max(requested)).await;
            n_retries += 1;
            match self.request(input, n_dimensions).await {
                // The error that opened the breaker says more.
                Err(EmbeddingError::BreakerOpen { .. }) => break,
                next => result = next,
            }
        }
        result
    }

    /// Makes one attempt, if the circuit breaker permits it.
    async fn request(
        &self,
        input: EmbeddingInput<'_>,
        n_dimensions: Option<usize>,
    ) -> Result<ReceivedVectors, EmbeddingError> {
        let permit = self.client.breaker.permit(Instant::now());
        let permit = permit.map_err(|until| EmbeddingError::BreakerOpen { until })?;
        let limit = self.limits.timeout;
        let until = Instant::now() + limit;
        let mut result = timeout_at(until, self.send(input, n_dimensions))
            .await
            .unwrap_or(Err(EmbeddingError::TimedOut { limit }));
        // The time for connecting may end in the same millisecond.
        if result.is_err() && Instant::now() >= until {
            result = Err(EmbeddingError::TimedOut { limit });
        }
        self.client.counts.record_request(self.kind, &result);
        match &result {
            Ok(_) => permit.succeed(),
            // All programs share the breaker, and a program can cause an error answer or a timeout with
            // its texts. So only missing answers of the provider count as failures.
            Err(error) if self.kind == CallKind::Relay => match error.is_no_answer() {
                true => permit.fail(false, Instant::now()),
                false => permit.succeed(),
            },
            // It says nothing about requests with other texts.
            Err(error) if error.is_refusal() => drop(permit),
            Err(error) => permit.fail(error.is_timeout(), Instant::now()),
        }
        result
    }

    async fn send(
        &self,
        input: EmbeddingInput<'_>,
        n_dimensions: Option<usize>,
    ) -> Result<ReceivedVectors, EmbeddingError> {
        let body = EmbeddingRequest {
            model: &self.client.model,
            input,
            dimensions: self.requested_dimensions,
            user: self.user,
        };
        let expected = ExpectedVectors {
            n_texts: input.n_texts(),
            n_dimensions,
            are_scaled: self.are_scaled,
        };
        let endpoint = &self.client.endpoint;
        let response = endpoint.post(self.client.path, &body, MAX_RESPONSE_BYTES);
        let response = response.await?;
        if response.len() < LONG_RESPONSE_BYTES {
            return request::read_response(&response, expected);
        }
        task::spawn_blocking(move || request::read_response(&response, expected))
            .await
            .unwrap_or(Err(EmbeddingError::NoEmbeddingList))
    }
}

/// Returns the distinct texts without a vector, in the order of their first occurrence.
fn missing_texts<'a>(
    texts: &[&'a str],
    hashes: &[TextHash],
    vectors: &HashMap<TextHash, Arc<[f32]>>,
) -> Vec<(TextHash, &'a str)> {
    let mut seen = HashSet::new();
    let all = hashes.iter().copied().zip(texts.iter().copied());
    all.filter(|(hash, _)| !vectors.contains_key(hash) && seen.insert(*hash))
        .collect()
}

/// Returns the beginning of a text that a model accepts. The tokens of a long text are counted on
/// another thread.
async fn cut_text(text: &str) -> &str {
    // A token has at least one byte.
    if text.len() <= MAX_TOKENS {
        return text;
    }
    let owned = text.to_owned();
    let counting = task::spawn_blocking(move || tokens::cut(&owned, MAX_TOKENS).len());
    let n_bytes = counting.await.unwrap_or(MAX_TOKENS);
    &text[..text.floor_char_boundary(n_bytes)]
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "client_failure_tests.rs"]
mod failure_tests;
