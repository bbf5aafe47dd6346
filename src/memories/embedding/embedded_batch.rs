//! Requests the vectors of some memories. If the provider refuses them together, for example because one
//! of them is longer than the input of the model, finds those that it refuses.

use std::sync::Arc;

use base::ids::MemoryId;
use llm::embeddings::client::EmbeddingClient;
use llm::embeddings::error::EmbeddingError;
use llm::embeddings::options::{CallKind, EmbeddingOptions};

use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::task_error::EmbeddingTaskError;
use crate::memories::embedding::vector_store::{NewVector, UnembeddedMemory};
use crate::memories::memory_vector;
use crate::providers::provider_factory::ProviderFactory;

/// A text that each embedding model accepts. If it is refused, too, then the reason is not the texts.
const SHORT_TEXT: &str = "Hello.";

/// The vectors of a batch.
#[derive(Debug, Default)]
pub struct EmbeddedBatch {
    pub vectors: Vec<NewVector>,
    /// Zero without vectors.
    pub dimensions: usize,
    pub refused: Vec<RefusedMemory>,
}

/// A memory that the provider refused when its content had this hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RefusedMemory {
    memory: MemoryId,
    pub content_hash: String,
}

impl RefusedMemory {
    /// Returns what identifies the present content of a memory.
    pub fn of(memory: &UnembeddedMemory) -> Self {
        Self {
            memory: memory.id,
            content_hash: memory.content_hash.clone(),
        }
    }
}

/// Requests the vectors of memories. If the provider refuses several together, each half is requested
/// on its own; one that is refused alone has no vector.
///
/// # Errors
/// Returns why the provider could not be called or returned no vectors, also if it refuses every text.
pub async fn embed(
    choice: &EmbeddingChoice,
    models: &ProviderFactory,
    memories: Vec<UnembeddedMemory>,
) -> Result<EmbeddedBatch, EmbeddingTaskError> {
    let client = choice.client(models)?;
    let mut batch = EmbeddedBatch::default();
    let mut is_tested = false;
    let mut pending = vec![memories];
    while let Some(mut part) = pending.pop() {
        let error = match request(&client, batch.options(choice), &part).await {
            Ok(vectors) => {
                batch.add(part, &vectors);
                continue;
            }
            Err(error) => error,
        };
        if !error.is_refusal() {
            return Err(error.into());
        }
        if !is_tested {
            test(choice, models).await?;
            is_tested = true;
        }
        if part.len() > 1 {
            let older = part.split_off(part.len() / 2);
            pending.extend([older, part]);
            continue;
        }
        for memory in &part {
            tracing::debug!(memory.id = %memory.id, "the provider refused to embed a memory");
            batch.refused.push(RefusedMemory::of(memory));
        }
    }
    Ok(batch)
}

async fn request(
    client: &EmbeddingClient,
    options: EmbeddingOptions,
    memories: &[UnembeddedMemory],
) -> Result<Vec<Arc<[f32]>>, EmbeddingError> {
    let texts: Vec<&str> = memories.iter().map(|it| it.content.as_str()).collect();
    client.embed(&texts, CallKind::Write, &options).await
}

/// Returns the error if the provider refuses a short text, too, for example because it does not know the
/// model.
async fn test(
    choice: &EmbeddingChoice,
    models: &ProviderFactory,
) -> Result<(), EmbeddingTaskError> {
    // The vector of an earlier test must not be found in the cache.
    let client = choice.new_client(models)?;
    let options = choice.write_options();
    client
        .embed(&[SHORT_TEXT], CallKind::Write, &options)
        .await?;
    Ok(())
}

impl EmbeddedBatch {
    /// Returns the options of the next request, whose vectors must have the dimensions of the others.
    fn options(&self, choice: &EmbeddingChoice) -> EmbeddingOptions {
        EmbeddingOptions {
            stored_dimensions: (self.dimensions > 0).then_some(self.dimensions),
            ..choice.write_options()
        }
    }

    fn add(&mut self, memories: Vec<UnembeddedMemory>, vectors: &[Arc<[f32]>]) {
        self.dimensions = vectors.first().map_or(self.dimensions, |it| it.len());
        let new = memories.into_iter().zip(vectors);
        self.vectors.extend(new.map(|(memory, vector)| NewVector {
            memory: memory.id,
            content_hash: memory.content_hash,
            embedding: memory_vector::to_bytes(vector),
        }));
    }
}
