//! Ends a task that makes vectors, if there is nothing to do for it any more.

use std::collections::HashSet;

use base::ids::EmbeddingModelId;
use sea_orm::{ConnectionTrait, DbErr};

use crate::memories::embedding::embedded_batch::RefusedMemory;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding::vector_store;
use crate::memories::tasks::{memory_task, task_queue};
use crate::spaces::space;

/// What must still be the case when a task ends.
#[derive(Clone, Debug)]
pub enum FinishCondition {
    /// The space uses only the local model.
    OnlyLocal,
    /// The provider of the space must not be called.
    Paused,
    /// No vector is missing.
    NothingMissing {
        /// The model in the row of the space.
        used: Option<EmbeddingModelId>,
        /// The chosen model; `None` if it has no vectors yet.
        model: Option<EmbeddingModelId>,
        /// Memories that have no vector because the provider refuses them.
        refused: HashSet<RefusedMemory>,
    },
}

/// Ends a held task if the condition is fulfilled. Returns `false` if there is more to do.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn finish(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
    condition: FinishCondition,
) -> Result<bool, DbErr> {
    // A memory that is stored meanwhile waits for this lock, and requests another task.
    let Some(space) = space::lock(tx, task.space_id).await? else {
        return task_queue::finish(tx, task).await;
    };
    let is_fulfilled = match condition {
        FinishCondition::OnlyLocal => space.embedding_model_id.is_none(),
        FinishCondition::Paused => {
            let choice = EmbeddingChoice::load(tx, &space.settings).await?;
            choice.is_some_and(|it| it.is_paused())
        }
        FinishCondition::NothingMissing {
            used,
            model,
            refused,
        } => space.embedding_model_id == used && !is_missing(tx, &space, model, &refused).await?,
    };
    if !is_fulfilled {
        return Ok(false);
    }
    task_queue::finish(tx, task).await
}

/// Returns whether a memory that was not refused has no vector.
async fn is_missing(
    tx: &impl ConnectionTrait,
    space: &space::Model,
    model: Option<EmbeddingModelId>,
    refused: &HashSet<RefusedMemory>,
) -> Result<bool, DbErr> {
    // One of so many rows is not among those that were refused.
    let limit = u64::try_from(refused.len() + 1).unwrap_or(u64::MAX);
    let missing = vector_store::list_unembedded(tx, space.id, model, None, limit).await?;
    let mut missing = missing.iter().map(RefusedMemory::of);
    Ok(missing.any(|it| !refused.contains(&it)))
}
