//! Requests embedding tasks of table `memory_tasks`: one for each space that may have memories
//! without a vector of its provider's model.
//!
//! A task `embed` makes missing vectors; `refresh` also deletes the vectors of models that the space no
//! longer uses. A failed task is retried without limit, with a delay of at most ten minutes. A task is
//! deleted when no vector is missing except those of refused texts, or when the provider must not be called.

use base::clock::Timestamp;
use base::ids::SpaceId;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::tasks::memory_task::{
    ActiveModel, Column, Entity, MemoryTaskKind, MemoryTaskStatus, Model,
};
use crate::memories::tasks::task_queue;
use crate::memories::tasks::task_queue::TaskQueue;
use crate::spaces::space;

/// Requests vectors for memories that were stored in this transaction, which has locked the space.
/// Does nothing if the space uses only the local model, or if its provider must not be called.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request(
    tx: &impl ConnectionTrait,
    space: &space::Model,
    now: Timestamp,
) -> Result<(), DbErr> {
    let choice = EmbeddingChoice::load(tx, &space.settings).await?;
    if choice.is_none_or(|it| it.is_paused()) {
        return Ok(());
    }
    insert(tx, MemoryTaskKind::Embed, [space.id], now).await
}

/// Requests at once to embed the memories of these spaces again where necessary. A worker that
/// executes a task of one of these spaces sees the request before it ends the task.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_again(
    tx: &impl ConnectionTrait,
    spaces: &[SpaceId],
    now: Timestamp,
) -> Result<(), DbErr> {
    if spaces.is_empty() {
        return Ok(());
    }
    Entity::update_many()
        .col_expr(Column::Kind, Expr::value(MemoryTaskKind::Refresh))
        .col_expr(Column::Attempt, Expr::value(0))
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(Column::SpaceId.is_in(spaces.iter().copied()))
        .filter(Column::Kind.is_in(TaskQueue::Embedding.kinds()))
        .exec(tx)
        .await?;
    insert(tx, MemoryTaskKind::Refresh, spaces.iter().copied(), now).await
}

/// Makes all queued tasks due, because the settings of a provider have changed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn make_all_due(tx: &impl ConnectionTrait, now: Timestamp) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Attempt, Expr::value(0))
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(Column::Kind.is_in(TaskQueue::Embedding.kinds()))
        .filter(Column::Status.eq(MemoryTaskStatus::Queued))
        .exec(tx)
        .await
        .map(drop)
}

/// Inserts tasks for spaces that have none.
async fn insert(
    tx: &impl ConnectionTrait,
    kind: MemoryTaskKind,
    spaces: impl IntoIterator<Item = SpaceId>,
    now: Timestamp,
) -> Result<(), DbErr> {
    let tasks = spaces.into_iter();
    let tasks = tasks.map(|space| ActiveModel::queued(kind, space, now, now));
    Entity::insert_many(tasks)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Records that the vectors of old models must be deleted at the end of a task.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn require_cleanup(tx: &impl ConnectionTrait, task: &Model) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Kind, Expr::value(MemoryTaskKind::Refresh))
        .filter(task_queue::is_lease_of(task))
        .exec(tx)
        .await
        .map(drop)
}
