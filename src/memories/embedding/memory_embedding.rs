//! Embeds the memories of one space: requests their vectors from the provider in batches, the newest
//! memories first, and stores each batch.

use std::sync::Arc;

use base::clock::Clock;
use base::ids::{EmbeddingModelId, MemoryId};
use base::shutdown::Shutdown;
use llm::embeddings::error::EmbeddingError;
use llm::embeddings::options::CallKind;
use llm::error::LlmError;
use sea_orm::DbErr;

use crate::db::connect::Db;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::vector_store::{NewVector, UnembeddedMemory};
use crate::memories::embedding::{embedding_task, vector_store};
use crate::memories::learning::memory_task;
use crate::memories::{embedding_model, memory_vector};
use crate::providers::provider_factory::{ProviderError, ProviderFactory};
use crate::spaces::space;

/// The maximum number of texts in one request.
const BATCH: u64 = 64;
/// The maximum number of batches before the task returns to the queue, so that a large space does not
/// delay the others.
const MAX_BATCHES: usize = 16;

/// Why the memories of a space could not be embedded. Each text is a sentence for users.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingTaskError {
    #[error(transparent)]
    Database(#[from] DbErr),
    #[error("The provider is disabled.")]
    ProviderDisabled,
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
}

impl EmbeddingTaskError {
    /// Returns the text for logs and members. The provider's own message is left out, because it may
    /// repeat the content of a memory.
    pub fn to_public_text(&self) -> String {
        match self {
            Self::Embedding(EmbeddingError::Call(error)) => match error {
                LlmError::Status { status, .. } => {
                    format!("The provider returned the HTTP status {status}.")
                }
                LlmError::ContextOverflow { .. } | LlmError::Upstream { .. } => {
                    "The provider returned an error.".to_owned()
                }
                LlmError::Unreachable { .. }
                | LlmError::Disconnected { .. }
                | LlmError::Unusable { .. } => error.to_string(),
            },
            other => other.to_string(),
        }
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// It was deleted, or another worker has it.
    Ended,
    /// Vectors are still missing.
    Continues,
}

/// Embeds the memories of spaces. Cheap to clone.
#[derive(Clone)]
pub struct MemoryEmbedder {
    pub db: Db,
    pub clock: Clock,
    pub models: ProviderFactory,
    pub shutdown: Shutdown,
}

/// The vectors of a batch and their dimensions.
struct EmbeddedBatch {
    vectors: Vec<NewVector>,
    dimensions: usize,
}

impl MemoryEmbedder {
    /// Adds the missing vectors for a claimed task, and ends the task when none is missing.
    ///
    /// # Errors
    /// Returns the error of the database or of the provider. Vectors stored before the error are kept.
    pub async fn run(&self, task: &memory_task::Model) -> Result<TaskEnd, EmbeddingTaskError> {
        let mut before = None;
        for _ in 0..MAX_BATCHES {
            // The settings may change between two batches.
            let Some(space) = space::find_visible(self.db.reader(), task.space_id).await? else {
                return self.delete_task(task).await;
            };
            let choice = EmbeddingChoice::load(self.db.reader(), &space.settings).await?;
            let Some(choice) = choice else {
                return self.use_local_model(task, &space).await;
            };
            let model = self.find_model(&space, &choice).await?;
            let missing = self.list_missing(task, model, before).await?;
            if missing.is_empty() {
                if before.take().is_some() {
                    // Newer memories may have been stored in the meantime.
                    continue;
                }
                return self.delete_and_finish(task, space.embedding_model_id).await;
            }
            before = missing.last().map(|it| it.id);
            let Some(batch) = self.embed(&choice, missing).await? else {
                return Ok(TaskEnd::Continues);
            };
            let Some(stored) = self.store(task, choice, batch).await? else {
                return Ok(TaskEnd::Ended);
            };
            if Some(stored.id) != model {
                // These are the first vectors of this model; all other memories lack one.
                before = None;
            }
        }
        Ok(TaskEnd::Continues)
    }

    /// Returns the model of the space's vectors, if that is the chosen one.
    async fn find_model(
        &self,
        space: &space::Model,
        choice: &EmbeddingChoice,
    ) -> Result<Option<EmbeddingModelId>, DbErr> {
        let Some(id) = space.embedding_model_id else {
            return Ok(None);
        };
        let row = embedding_model::find(self.db.reader(), id).await?;
        Ok(row.filter(|it| choice.fits(it)).map(|it| it.id))
    }

    async fn list_missing(
        &self,
        task: &memory_task::Model,
        model: Option<EmbeddingModelId>,
        before: Option<MemoryId>,
    ) -> Result<Vec<UnembeddedMemory>, DbErr> {
        let db = self.db.reader();
        vector_store::list_unembedded(db, task.space_id, model, before, BATCH).await
    }

    /// Requests the vectors of a batch. Returns `None` if the node shuts down before the response.
    async fn embed(
        &self,
        choice: &EmbeddingChoice,
        missing: Vec<UnembeddedMemory>,
    ) -> Result<Option<EmbeddedBatch>, EmbeddingTaskError> {
        if choice.provider.disabled {
            return Err(EmbeddingTaskError::ProviderDisabled);
        }
        let client = choice.client(&self.models)?;
        let texts: Vec<&str> = missing.iter().map(|it| it.content.as_str()).collect();
        let options = choice.write_options();
        let embedding = client.embed(&texts, CallKind::Write, &options);
        let vectors: Vec<Arc<[f32]>> = tokio::select! {
            embedded = embedding => embedded?,
            () = self.shutdown.draining.cancelled() => return Ok(None),
        };
        let dimensions = vectors.first().map_or(0, |it| it.len());
        let vectors = missing.into_iter().zip(&vectors);
        let vectors = vectors.map(|(memory, vector)| NewVector {
            memory: memory.id,
            content_hash: memory.content_hash,
            embedding: memory_vector::to_bytes(vector),
        });
        Ok(Some(EmbeddedBatch {
            vectors: vectors.collect(),
            dimensions,
        }))
    }

    async fn store(
        &self,
        task: &memory_task::Model,
        choice: EmbeddingChoice,
        batch: EmbeddedBatch,
    ) -> Result<Option<embedding_model::Model>, DbErr> {
        let EmbeddedBatch {
            vectors,
            dimensions,
        } = batch;
        let (task, now) = (task.clone(), self.clock.now());
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    vector_store::store(tx, &task, (&choice, dimensions), vectors, now).await
                })
            })
            .await
    }

    /// Records that the space has only local vectors, and ends the task.
    async fn use_local_model(
        &self,
        task: &memory_task::Model,
        space: &space::Model,
    ) -> Result<TaskEnd, EmbeddingTaskError> {
        if space.embedding_model_id.is_some() {
            let (task, id) = (task.clone(), space.id);
            let work = self.db.write(move |tx| {
                Box::pin(async move {
                    space::set_embedding_model(tx, id, None).await?;
                    embedding_task::require_cleanup(tx, &task).await
                })
            });
            let done: Result<(), DbErr> = work.await;
            done?;
        }
        // The next claim deletes its vectors.
        match space.embedding_model_id {
            Some(_) => Ok(TaskEnd::Continues),
            None => self.delete_and_finish(task, None).await,
        }
    }

    async fn delete_and_finish(
        &self,
        task: &memory_task::Model,
        model: Option<EmbeddingModelId>,
    ) -> Result<TaskEnd, EmbeddingTaskError> {
        if task.kind == memory_task::MemoryTaskKind::Refresh {
            self.delete_unused(task).await?;
        }
        self.finish(task, model).await
    }

    async fn delete_unused(&self, task: &memory_task::Model) -> Result<(), DbErr> {
        let id = task.space_id;
        loop {
            let deleted = self.db.write(move |tx| {
                Box::pin(async move { vector_store::delete_unused(tx, id).await })
            });
            let deleted: Result<u64, DbErr> = deleted.await;
            if deleted? == 0 {
                return Ok(());
            }
        }
    }

    async fn finish(
        &self,
        task: &memory_task::Model,
        model: Option<EmbeddingModelId>,
    ) -> Result<TaskEnd, EmbeddingTaskError> {
        let task = task.clone();
        let work = self
            .db
            .write(move |tx| Box::pin(async move { vector_store::finish(tx, &task, model).await }));
        let is_finished: Result<bool, DbErr> = work.await;
        Ok(task_end(is_finished?))
    }

    /// Deletes the task of a space that is being deleted.
    async fn delete_task(&self, task: &memory_task::Model) -> Result<TaskEnd, EmbeddingTaskError> {
        let task = task.clone();
        let work = self
            .db
            .write(move |tx| Box::pin(async move { embedding_task::finish(tx, &task).await }));
        let is_finished: Result<bool, DbErr> = work.await;
        Ok(task_end(is_finished?))
    }
}

fn task_end(is_finished: bool) -> TaskEnd {
    match is_finished {
        true => TaskEnd::Ended,
        false => TaskEnd::Continues,
    }
}

#[cfg(test)]
mod tests {
    use llm::embeddings::error::EmbeddingError;
    use llm::error::LlmError;

    use super::EmbeddingTaskError;

    #[test]
    fn the_message_of_a_provider_is_not_shown() {
        let error = LlmError::Status {
            status: 400,
            message: "planted".to_owned(),
            retry_after: None,
        };
        let error = EmbeddingTaskError::Embedding(EmbeddingError::Call(error));

        let text = error.to_public_text();

        assert_eq!(text, "The provider returned the HTTP status 400.");
    }
}
