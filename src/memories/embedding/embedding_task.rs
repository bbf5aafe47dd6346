//! The embedding tasks of table `memory_tasks`: one for each space that may have memories without a
//! vector of its provider's model. Inserts, claims and ends them.
//!
//! A task `embed` makes missing vectors; `refresh` also deletes those of models that the space no
//! longer uses. A task is never given up: it is tried again every ten minutes at most, and deleted when
//! nothing is missing except what the provider refuses, or when the provider must not be called.
//!
//! **Invariant:** locks are taken in the order space, task.

use base::clock::Timestamp;
use base::ids::SpaceId;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::db::backend;
use crate::db::backend::StaleAfter;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::learning::memory_task::{
    ActiveModel, Column, EMBEDDING_KINDS, Entity, MemoryTaskKind, MemoryTaskStatus, Model,
};
use crate::spaces::space;

/// The delay after the first failure; each further one doubles it.
const RETRY_DELAY_MS: i64 = 10_000;
/// The longest delay after a failure.
const MAX_RETRY_DELAY_MS: i64 = 10 * 60 * 1_000;

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

/// Requests that the memories of these spaces are embedded again where necessary, at once. A worker
/// that executes a task of one of them notices it before the task ends.
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
        .filter(Column::Kind.is_in(EMBEDDING_KINDS))
        .exec(tx)
        .await?;
    insert(tx, MemoryTaskKind::Refresh, spaces.iter().copied(), now).await
}

/// Makes all queued tasks due, because the settings of a provider have changed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn hasten_all(tx: &impl ConnectionTrait, now: Timestamp) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Attempt, Expr::value(0))
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(Column::Kind.is_in(EMBEDDING_KINDS))
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
    let tasks = spaces.into_iter().map(|space| ActiveModel {
        id: NotSet,
        kind: Set(kind),
        space_id: Set(space),
        conversation_id: Set(None),
        from_seq: Set(None),
        to_seq: Set(None),
        status: Set(MemoryTaskStatus::Queued),
        attempt: Set(0),
        run_after: Set(now),
        worker_id: Set(None),
        lease: Set(0),
        heartbeat_at: Set(None),
        error: Set(None),
        created_at: Set(now),
    });
    Entity::insert_many(tasks)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Returns due tasks, the oldest first: queued ones, and those whose lease has expired.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_due(
    db: &impl ConnectionTrait,
    now: Timestamp,
    stale: &StaleAfter,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(claimable(now, stale))
        .order_by_asc(Column::RunAfter)
        .limit(limit)
        .all(db)
        .await
}

fn claimable(now: Timestamp, stale: &StaleAfter) -> Condition {
    let has_status = |status: MemoryTaskStatus| Column::Status.eq(status);
    let is_due = has_status(MemoryTaskStatus::Queued).and(Column::RunAfter.lte(now));
    let is_abandoned =
        has_status(MemoryTaskStatus::Running).and(stale.condition(Column::HeartbeatAt, now));
    Condition::all()
        .add(Column::Kind.is_in(EMBEDDING_KINDS))
        .add(is_due.or(is_abandoned))
}

/// Claims a task. Returns `None` if another worker was faster.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn claim(
    tx: &impl ConnectionTrait,
    task: &Model,
    worker: &str,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<Option<Model>, DbErr> {
    let claimed = Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Running))
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Attempt, Expr::col(Column::Attempt).add(1))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::HeartbeatAt, backend::lease_time(stale.backend, now))
        .filter(Column::Id.eq(task.id))
        .filter(Column::Lease.eq(task.lease))
        .filter(claimable(now, stale))
        .exec_with_returning(tx)
        .await?;
    Ok(claimed.into_iter().next())
}

/// Locks a claimed task and returns whether its worker still holds it.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn is_held(tx: &impl ConnectionTrait, task: &Model) -> Result<bool, DbErr> {
    let held = Entity::find()
        .filter(is_lease_of(task))
        .lock_exclusive()
        .one(tx)
        .await?;
    Ok(held.is_some())
}

fn is_lease_of(task: &Model) -> Condition {
    Condition::all()
        .add(Column::Id.eq(task.id))
        .add(Column::Lease.eq(task.lease))
        .add(Column::Status.eq(MemoryTaskStatus::Running))
}

/// Records that the vectors of old models must be deleted at the end of a task.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn require_cleanup(tx: &impl ConnectionTrait, task: &Model) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Kind, Expr::value(MemoryTaskKind::Refresh))
        .filter(is_lease_of(task))
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes a completed task. Returns `false` if it was requested again, extended or claimed by another
/// worker in the meantime.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn finish(tx: &impl ConnectionTrait, task: &Model) -> Result<bool, DbErr> {
    let deleted = Entity::delete_many()
        .filter(is_lease_of(task))
        .filter(Column::Attempt.eq(task.attempt))
        .filter(Column::Kind.eq(task.kind))
        .exec(tx)
        .await?;
    Ok(deleted.rows_affected == 1)
}

/// Returns a claimed task to the queue, behind the other due tasks, without counting a failure.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn release(tx: &impl ConnectionTrait, task: &Model, now: Timestamp) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Queued))
        .col_expr(Column::Attempt, Expr::value(0))
        .col_expr(Column::RunAfter, Expr::value(now))
        .col_expr(Column::Error, Expr::value(Option::<String>::None))
        .filter(is_lease_of(task))
        .exec(tx)
        .await
        .map(drop)
}

/// Ends an attempt that failed: the task is retried later, or at once if it was requested again
/// in the meantime.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn fail(
    tx: &impl ConnectionTrait,
    task: &Model,
    error: &str,
    now: Timestamp,
) -> Result<(), DbErr> {
    let delayed = Expr::case(Column::Attempt.eq(0), Expr::col(Column::RunAfter))
        .finally(Expr::value(now.0 + retry_delay_ms(task.attempt)));
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Queued))
        .col_expr(Column::Error, Expr::value(error))
        .col_expr(Column::RunAfter, delayed.into())
        .filter(is_lease_of(task))
        .exec(tx)
        .await
        .map(drop)
}

/// Returns the delay after this attempt, counted from 1.
fn retry_delay_ms(attempt: i64) -> i64 {
    // Six doublings exceed the longest delay.
    let n_doubled = (attempt - 1).clamp(0, 6);
    std::cmp::min(RETRY_DELAY_MS << n_doubled, MAX_RETRY_DELAY_MS)
}

/// The tasks of a space.
#[derive(Clone, Debug, Default)]
pub struct TaskCounts {
    /// Queued ones and running ones, of every kind.
    pub queued: u64,
    /// Those that are not retried.
    pub failed: u64,
    /// Why the last attempt to embed memories failed.
    pub embedding_error: Option<String>,
}

/// Counts the tasks of a space.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<TaskCounts, DbErr> {
    // A space has few tasks: one for each conversation with new messages.
    let tasks = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .all(db)
        .await?;
    let mut counts = TaskCounts::default();
    for task in tasks {
        match task.status {
            MemoryTaskStatus::Failed => counts.failed += 1,
            MemoryTaskStatus::Queued | MemoryTaskStatus::Running => counts.queued += 1,
        }
        if EMBEDDING_KINDS.contains(&task.kind) {
            counts.embedding_error = task.error;
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::retry_delay_ms;

    #[test]
    fn each_failure_doubles_the_delay_up_to_ten_minutes() {
        let delays: Vec<i64> = [1, 2, 3, 7, 8, 1_000].map(retry_delay_ms).to_vec();

        assert_eq!(delays, [10_000, 20_000, 40_000, 600_000, 600_000, 600_000]);
    }
}
