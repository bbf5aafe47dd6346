//! Embeds the memories of one space: requests their vectors from the provider in batches, the newest
//! memories first, and stores each batch.

use std::collections::HashSet;

use base::clock::Clock;
use base::ids::{EmbeddingModelId, MemoryId};
use base::shutdown::Shutdown;
use sea_orm::DbErr;

use crate::db::connect::Db;
use crate::memories::embedding::embedded_batch::{EmbeddedBatch, RefusedMemory};
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::refused_texts::RefusedTexts;
use crate::memories::embedding::task_error::EmbeddingTaskError;
use crate::memories::embedding::task_finish::FinishCondition;
use crate::memories::embedding::vector_store::UnembeddedMemory;
use crate::memories::embedding::{embedded_batch, task_finish, vector_store};
use crate::memories::embedding_model;
use crate::memories::events::memory_announcer::MemoryAnnouncer;
use crate::memories::tasks::{embedding_task, memory_task, task_queue};
use crate::providers::provider_factory::ProviderFactory;
use crate::spaces::space;

/// The maximum number of texts in one request.
const BATCH: u64 = 64;
/// So many batches are stored before the task returns to the queue, so that a large space does not delay
/// the others.
const MAX_BATCHES: usize = 16;

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
    /// Announces the state of the background work to open pages.
    pub events: MemoryAnnouncer,
    pub refused: RefusedTexts,
}

/// How far one attempt has come.
#[derive(Default)]
struct Progress {
    /// Older memories are next; `None`: begin with the newest one.
    before: Option<MemoryId>,
    /// Whether something was sent since the newest memory.
    has_sent: bool,
    n_stored: usize,
    /// Memories that the provider refused, in this attempt or earlier. They are not sent again.
    refused: HashSet<RefusedMemory>,
}

impl MemoryEmbedder {
    /// Adds the missing vectors for a claimed task, and ends the task when none is missing.
    ///
    /// # Errors
    /// Returns the error of the database or of the provider. Vectors stored before the error are kept.
    pub async fn run(&self, task: &memory_task::Model) -> Result<TaskEnd, EmbeddingTaskError> {
        let mut progress = Progress::default();
        // Batches of which nothing was stored do not count: the next attempt would send them again, and
        // come no further.
        while progress.n_stored < MAX_BATCHES {
            // The settings may change between two batches.
            let Some(space) = space::find_visible(self.db.reader(), task.space_id).await? else {
                return self.delete_task(task).await;
            };
            let choice = EmbeddingChoice::load(self.db.reader(), &space.settings).await?;
            let Some(choice) = choice else {
                return self.use_local_model(task, &space).await;
            };
            if choice.is_paused() {
                return self.delete_and_finish(task, FinishCondition::Paused).await;
            }
            let model = self.find_model(&space, &choice).await?;
            let listed = self.list_missing(task, model, progress.before).await?;
            let Some(last) = listed.last() else {
                if progress.begin_again() {
                    // Newer memories may have been stored meanwhile.
                    continue;
                }
                let condition = FinishCondition::NothingMissing {
                    used: space.embedding_model_id,
                    model,
                    refused: progress.refused,
                };
                return self.delete_and_finish(task, condition).await;
            };
            progress.before = Some(last.id);
            progress.refused.extend(self.refused.find(&choice, &listed));
            let missing = progress.without_refused(listed);
            if missing.is_empty() {
                continue;
            }
            let Some(batch) = self.embed(&choice, missing).await? else {
                return Ok(TaskEnd::Continues);
            };
            self.refused.add(&choice, &batch.refused);
            progress.note(&batch);
            if batch.vectors.is_empty() {
                continue;
            }
            let Some(stored) = self.store(task, choice, batch).await? else {
                return Ok(TaskEnd::Ended);
            };
            if Some(stored.id) != model {
                // The first vectors of this model: it lacks those of all other memories.
                progress.before = None;
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
        let request = embedded_batch::embed(choice, &self.models, missing);
        tokio::select! {
            embedded = request => Ok(Some(embedded?)),
            () = self.shutdown.draining.cancelled() => Ok(None),
        }
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
            refused: _,
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
            None => {
                self.delete_and_finish(task, FinishCondition::OnlyLocal)
                    .await
            }
        }
    }

    async fn delete_and_finish(
        &self,
        task: &memory_task::Model,
        condition: FinishCondition,
    ) -> Result<TaskEnd, EmbeddingTaskError> {
        if task.kind == memory_task::MemoryTaskKind::Refresh {
            self.delete_unused(task).await?;
        }
        self.finish(task, condition).await
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
        condition: FinishCondition,
    ) -> Result<TaskEnd, EmbeddingTaskError> {
        let task = task.clone();
        let work = self.db.write(move |tx| {
            Box::pin(async move { task_finish::finish(tx, &task, condition).await })
        });
        let is_finished: Result<bool, DbErr> = work.await;
        Ok(task_end(is_finished?))
    }

    /// Deletes the task of a space that is being deleted.
    async fn delete_task(&self, task: &memory_task::Model) -> Result<TaskEnd, EmbeddingTaskError> {
        let task = task.clone();
        let work = self
            .db
            .write(move |tx| Box::pin(async move { task_queue::finish(tx, &task).await }));
        let is_finished: Result<bool, DbErr> = work.await;
        Ok(task_end(is_finished?))
    }
}

impl Progress {
    /// Returns to the newest memory. Returns `false` if nothing was sent since the last time.
    fn begin_again(&mut self) -> bool {
        self.before = None;
        std::mem::take(&mut self.has_sent)
    }

    fn without_refused(&self, listed: Vec<UnembeddedMemory>) -> Vec<UnembeddedMemory> {
        let is_new = |it: &UnembeddedMemory| !self.refused.contains(&RefusedMemory::of(it));
        listed.into_iter().filter(is_new).collect()
    }

    fn note(&mut self, batch: &EmbeddedBatch) {
        self.has_sent = true;
        self.refused.extend(batch.refused.iter().cloned());
        if !batch.vectors.is_empty() {
            self.n_stored += 1;
        }
    }
}

fn task_end(is_finished: bool) -> TaskEnd {
    match is_finished {
        true => TaskEnd::Ended,
        false => TaskEnd::Continues,
    }
}
