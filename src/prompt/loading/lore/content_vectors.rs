//! The vectors of the contents of vectorized lore entries, and the task that embeds missing ones.
//!
//! **Invariant:** a vector is found by the hash of its model and its content, so a changed entry never has
//! the vector of its old content. The cache is only in memory and holds no text.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use llm::embeddings::client::EmbeddingClient;
use llm::embeddings::error::EmbeddingError;
use llm::embeddings::options::{CallKind, EmbeddingOptions};
use moka::sync::Cache;
use parking_lot::Mutex;
use recall::content::MAX_CONTENT_CHARS;
use recall::quantized_vector::QuantizedVector;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::query_embedding::QueryEmbedder;
use crate::memory_limited_cache::memory_limited_cache;

/// The maximum number of contents that one task embeds; the tasks of later prompts embed the others.
const MAX_TEXTS: usize = 1_024;
/// The maximum number of contents of a request. Contents are long, and models on a CPU are slow.
const BATCH: usize = 16;
/// The maximum length of all contents of a request that has several, in bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// The maximum length of what is sent of a content, in characters. The client cuts it at the limit of most
/// models, which is hardly ever longer.
const MAX_CHARS: usize = 65_536;
/// The maximum length of what is sent of a content that the provider has refused, in characters: a memory of
/// this length is accepted.
const SHORT_CHARS: usize = MAX_CONTENT_CHARS;
/// The approximate memory of all vectors: those of 80,000 entries with 1,536 dimensions.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// The approximate memory of an entry of the cache besides the components of its vector, in bytes.
const ENTRY_BYTES: usize = 128;
/// The contents whose keys are computed before other tasks of the thread continue.
const YIELD_AFTER: usize = 500;

/// The hash of a model and a content.
pub type VectorKey = [u8; 32];

/// Embeds contents, and keeps their vectors. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ContentVectors {
    /// Embeds the texts with which contents are compared.
    pub embedder: QueryEmbedder,
    /// A content that the provider refuses has an empty vector.
    vectors: Cache<VectorKey, Arc<QuantizedVector>>,
    /// The models for which a task is running, so that concurrent prompts embed a content once.
    running: Arc<Mutex<HashSet<VectorKey>>>,
}

/// Removes a model from those for which a task is running when it is dropped.
struct RunningTask {
    running: Arc<Mutex<HashSet<VectorKey>>>,
    model: VectorKey,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.running.lock().remove(&self.model);
    }
}

impl ContentVectors {
    /// Creates an empty cache.
    pub fn new(embedder: QueryEmbedder) -> Self {
        let n_bytes = |_: &VectorKey, vector: &Arc<QuantizedVector>| n_bytes(vector.dimensions());
        Self {
            embedder,
            vectors: memory_limited_cache(MAX_BYTES as u64, n_bytes),
            running: Arc::default(),
        }
    }

    /// Returns how many vectors with these dimensions fit into memory. A prompt that needed more would embed
    /// some of them again and again.
    pub fn capacity(dimensions: usize) -> usize {
        MAX_BYTES / n_bytes(dimensions)
    }

    /// Returns the keys of these contents with this model, in their order.
    pub async fn keys(&self, choice: &EmbeddingChoice, contents: &[&str]) -> Vec<VectorKey> {
        let model = model_key(choice);
        let mut keys = Vec::with_capacity(contents.len());
        for part in contents.chunks(YIELD_AFTER) {
            keys.extend(part.iter().map(|it| content_key(&model, it)));
            tokio::task::yield_now().await;
        }
        keys
    }

    /// Returns the vector of a content, if it is known.
    pub fn get(&self, key: &VectorKey) -> Option<Arc<QuantizedVector>> {
        self.vectors.get(key)
    }

    /// Starts a task that embeds the contents without a vector, and waits for it at most `limit`. Returns at
    /// once if such a task is already running for the model.
    pub async fn embed_missing(
        &self,
        choice: &EmbeddingChoice,
        keys: &[VectorKey],
        contents: &[&str],
        limit: Duration,
    ) {
        let mut seen = HashSet::new();
        let missing = keys.iter().zip(contents);
        let missing = missing.filter(|(key, _)| !self.vectors.contains_key(*key));
        let missing = missing.filter(|(key, _)| seen.insert(**key));
        let missing =
            missing.map(|(key, content)| (*key, first_chars(content, MAX_CHARS).to_owned()));
        let missing: Vec<(VectorKey, String)> = missing.take(MAX_TEXTS).collect();
        if missing.is_empty() {
            return;
        }
        let model = model_key(choice);
        if !self.running.lock().insert(model) {
            return;
        }
        let running = RunningTask {
            running: self.running.clone(),
            model,
        };
        let Ok(client) = choice.client(&self.embedder.models) else {
            return;
        };
        let (vectors, options) = (self.clone(), choice.write_options());
        let stopping = self.embedder.shutdown.stopping.clone();
        let task = self.embedder.shutdown.spawn(async move {
            let _running = running;
            let embedding = vectors.embed_all(&client, &options, &missing);
            if let Some(Err(error)) = stopping.run_until_cancelled(embedding).await {
                tracing::debug!(%error, "failed to embed the contents of lore entries: {error}");
            }
        });
        // Vectors that arrive later are used by the next prompts.
        let _ = timeout(limit, task).await;
    }

    async fn embed_all(
        &self,
        client: &EmbeddingClient,
        options: &EmbeddingOptions,
        missing: &[(VectorKey, String)],
    ) -> Result<(), EmbeddingError> {
        for batch in batches(missing) {
            match self.embed(client, options, batch).await {
                Err(error) if error.is_refusal() => self.embed_each(client, options, batch).await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// Embeds contents of which the provider refuses at least one, each on its own; of one that it refuses as
    /// a whole, the beginning.
    async fn embed_each(
        &self,
        client: &EmbeddingClient,
        options: &EmbeddingOptions,
        batch: &[(VectorKey, String)],
    ) -> Result<(), EmbeddingError> {
        for (key, text) in batch {
            let mut lengths = vec![text.as_str(), first_chars(text, SHORT_CHARS)];
            lengths.dedup();
            if batch.len() == 1 {
                // It was refused just now.
                lengths.remove(0);
            }
            if !self.embed_accepted(client, options, *key, &lengths).await? {
                let none = QuantizedVector::new(&[]);
                self.vectors.insert(*key, Arc::new(none));
            }
        }
        Ok(())
    }

    /// Embeds the first of these texts that the provider accepts. Returns `false` if it refuses all.
    async fn embed_accepted(
        &self,
        client: &EmbeddingClient,
        options: &EmbeddingOptions,
        key: VectorKey,
        texts: &[&str],
    ) -> Result<bool, EmbeddingError> {
        for text in texts {
            let content = [(key, (*text).to_owned())];
            match self.embed(client, options, &content).await {
                Err(error) if error.is_refusal() => {}
                result => return result.map(|()| true),
            }
        }
        Ok(false)
    }

    async fn embed(
        &self,
        client: &EmbeddingClient,
        options: &EmbeddingOptions,
        batch: &[(VectorKey, String)],
    ) -> Result<(), EmbeddingError> {
        let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = client.embed(&texts, CallKind::Write, options).await?;
        for ((key, _), vector) in batch.iter().zip(vectors) {
            let vector = QuantizedVector::new(&vector);
            self.vectors.insert(*key, Arc::new(vector));
        }
        Ok(())
    }
}

fn model_key(choice: &EmbeddingChoice) -> VectorKey {
    let address = choice.base_url_hash();
    Sha256::digest(format!("{address} {}", choice.model)).into()
}

fn content_key(model: &VectorKey, content: &str) -> VectorKey {
    let mut hash = Sha256::new();
    hash.update(model);
    hash.update(content);
    hash.finalize().into()
}

fn n_bytes(dimensions: usize) -> usize {
    dimensions + ENTRY_BYTES
}

/// Divides contents into those of each request.
fn batches(missing: &[(VectorKey, String)]) -> impl Iterator<Item = &[(VectorKey, String)]> {
    let mut rest = missing;
    std::iter::from_fn(move || {
        let mut n_bytes = 0;
        let fitting = rest.iter().take(BATCH).take_while(|(_, text)| {
            n_bytes += text.len();
            n_bytes <= BATCH_BYTES
        });
        let n = fitting.count().max(1).min(rest.len());
        let (batch, others) = rest.split_at(n);
        rest = others;
        (!batch.is_empty()).then_some(batch)
    })
}

fn first_chars(content: &str, n: usize) -> &str {
    match content.char_indices().nth(n) {
        Some((end, _)) => &content[..end],
        None => content,
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, BATCH_BYTES, ContentVectors, batches, content_key, first_chars};

    #[test]
    fn a_vector_belongs_to_one_model_and_one_content() {
        let key = |model: u8, content| content_key(&[model; 32], content);

        assert_eq!(key(1, "a"), key(1, "a"));
        assert_ne!(key(1, "a"), key(1, "b"));
        assert_ne!(key(1, "a"), key(2, "a"));
    }

    #[test]
    fn the_beginning_of_a_long_content_is_embedded() {
        let long = "é".repeat(9) + "!";

        assert_eq!(first_chars(&long, 9), "é".repeat(9));
        assert_eq!(first_chars("short", 9), "short");
    }

    #[test]
    fn a_request_is_limited_by_the_number_and_the_length_of_its_contents() {
        let of_lengths = |lengths: &[usize]| -> Vec<usize> {
            let contents: Vec<_> = lengths
                .iter()
                .map(|it| ([0; 32], "x".repeat(*it)))
                .collect();
            batches(&contents).map(<[_]>::len).collect()
        };

        assert_eq!(of_lengths(&[1; BATCH + 1]), [BATCH, 1]);
        assert_eq!(of_lengths(&[BATCH_BYTES + 1, 1, BATCH_BYTES]), [1, 1, 1]);
        assert_eq!(of_lengths(&[]), [] as [usize; 0]);
    }

    #[test]
    fn the_entries_of_several_full_lorebooks_fit_into_memory() {
        assert!(ContentVectors::capacity(1_536) > 80_000);
        assert!(ContentVectors::capacity(3_072) > 8 * 5_000);
    }
}
