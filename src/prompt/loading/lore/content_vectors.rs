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
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::query_embedding::QueryEmbedder;
use crate::memory_limited_cache::memory_limited_cache;

/// The maximum number of contents that one task embeds; the tasks of later prompts embed the others.
const MAX_TEXTS: usize = 256;
/// The maximum number of contents in one request. It is low, because contents are long and models on a CPU
/// are slow.
const BATCH: usize = 16;
/// The length of the beginning of a content that is embedded, in characters, the same as for a query.
const MAX_CHARS: usize = 2_000;
/// The approximate maximum memory of all vectors: enough for 5,000 entries with 1,536 dimensions.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The hash of a model and a content.
pub type VectorKey = [u8; 32];

/// Embeds contents, and keeps their vectors. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ContentVectors {
    /// Embeds the texts with which contents are compared.
    pub embedder: QueryEmbedder,
    /// A content that the provider refuses has an empty vector.
    vectors: Cache<VectorKey, Arc<[f32]>>,
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
        let n_bytes = |key: &VectorKey, vector: &Arc<[f32]>| key.len() + size_of_val(&**vector);
        Self {
            embedder,
            vectors: memory_limited_cache(MAX_BYTES, n_bytes),
            running: Arc::default(),
        }
    }

    /// Returns the keys of these contents with this model, in their order.
    pub fn keys(&self, choice: &EmbeddingChoice, contents: &[&str]) -> Vec<VectorKey> {
        let model = model_key(choice);
        let contents = contents.iter();
        contents.map(|it| content_key(&model, it)).collect()
    }

    /// Returns the vector of a content, if it is known.
    pub fn get(&self, key: &VectorKey) -> Option<Arc<[f32]>> {
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
        let missing = missing.map(|(key, content)| (*key, first_chars(content).to_owned()));
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
        for batch in missing.chunks(BATCH) {
            match self.embed(client, options, batch).await {
                Err(error) if error.is_refusal() => self.embed_each(client, options, batch).await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// Embeds each content on its own, because the provider refuses at least one of the batch.
    async fn embed_each(
        &self,
        client: &EmbeddingClient,
        options: &EmbeddingOptions,
        batch: &[(VectorKey, String)],
    ) -> Result<(), EmbeddingError> {
        for content in batch {
            match self
                .embed(client, options, std::slice::from_ref(content))
                .await
            {
                Err(error) if error.is_refusal() => self.vectors.insert(content.0, Arc::new([])),
                result => result?,
            }
        }
        Ok(())
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
            self.vectors.insert(*key, vector);
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

fn first_chars(content: &str) -> &str {
    match content.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => &content[..end],
        None => content,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHARS, content_key, first_chars};

    #[test]
    fn a_vector_belongs_to_one_model_and_one_content() {
        let key = |model: u8, content| content_key(&[model; 32], content);

        assert_eq!(key(1, "a"), key(1, "a"));
        assert_ne!(key(1, "a"), key(1, "b"));
        assert_ne!(key(1, "a"), key(2, "a"));
    }

    #[test]
    fn the_beginning_of_a_long_content_is_embedded() {
        let long = "é".repeat(MAX_CHARS) + "!";

        assert_eq!(first_chars(&long), "é".repeat(MAX_CHARS));
        assert_eq!(first_chars("short"), "short");
    }
}
