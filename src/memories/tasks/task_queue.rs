//! The queues of table `memory_tasks`: lists due tasks, claims them, renews their leases, ends them and
//! counts them.
//!
//! **Invariant:** each statement names the lease of the worker, so that a worker whose lease expired
//! changes nothing of a task that another one has claimed.
//!
//! **Invariant:** the row of an embedding task is locked after that of its space, and the row of another
//! task after that of its conversation.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{MemoryTaskId, SpaceId};
use leased_jobs::job::RenewedLease;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::db::backend;
use crate::db::backend::StaleAfter;
use crate::db::connect::Db;
use crate::memories::tasks::memory_task::{
    Column, Entity, MemoryTaskKind, MemoryTaskStatus, Model,
};

/// The delay after the first failure; each further one doubles it.
const RETRY_DELAY_MS: i64 = 10_000;
/// The longest delay after a failure.
const MAX_RETRY_DELAY_MS: i64 = 10 * 60 * 1_000;
/// The maximum number of attempts of a task that learns or summarizes. If the model fails, learning stores
/// the messages as they are, so the reason why a learning task fails this often does not disappear by itself.
pub(super) const MAX_LEARNING_ATTEMPTS: i64 = 5;
/// The error of a task whose server stopped during its last attempt.
const ABANDONED: &str = "The server stopped while it executed this task.";

/// The tasks that one job executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskQueue {
    /// Learning and summaries.
    Learning,
    /// Vectors of a provider's model.
    Embedding,
}

impl TaskQueue {
    /// Returns the queue of this kind of task.
    pub fn of(kind: MemoryTaskKind) -> Self {
        match kind {
            MemoryTaskKind::Extract | MemoryTaskKind::Summarize => Self::Learning,
            MemoryTaskKind::Embed | MemoryTaskKind::Refresh => Self::Embedding,
        }
    }

    /// Returns the kinds of its tasks.
    pub fn kinds(self) -> [MemoryTaskKind; 2] {
        match self {
            Self::Learning => [MemoryTaskKind::Extract, MemoryTaskKind::Summarize],
            Self::Embedding => [MemoryTaskKind::Embed, MemoryTaskKind::Refresh],
        }
    }

    /// Returns the maximum number of attempts of a task. Embedding has no limit, because a provider
    /// may be unavailable for days.
    fn max_attempts(self) -> Option<i64> {
        match self {
            Self::Learning => Some(MAX_LEARNING_ATTEMPTS),
            Self::Embedding => None,
        }
    }

    fn is_last_attempt(self, attempt: i64) -> bool {
        self.max_attempts().is_some_and(|max| attempt >= max)
    }
}

/// Returns due tasks of a queue, the oldest first: queued ones, and those whose lease has expired.
/// Leaves out those of the spaces `busy`.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_due(
    db: &impl ConnectionTrait,
    queue: TaskQueue,
    now: Timestamp,
    stale: &StaleAfter,
    busy: impl IntoIterator<Item = SpaceId>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(claimable(queue, now, stale))
        .filter(Column::SpaceId.is_not_in(busy))
        .order_by_asc(Column::RunAfter)
        .limit(limit)
        .all(db)
        .await
}

fn claimable(queue: TaskQueue, now: Timestamp, stale: &StaleAfter) -> Condition {
    let has_status = |status: MemoryTaskStatus| Column::Status.eq(status);
    let is_due = has_status(MemoryTaskStatus::Queued).and(Column::RunAfter.lte(now));
    let is_abandoned =
        has_status(MemoryTaskStatus::Running).and(stale.condition(Column::HeartbeatAt, now));
    let claimable = Condition::all()
        .add(Column::Kind.is_in(queue.kinds()))
        .add(is_due.or(is_abandoned));
    match queue {
        TaskQueue::Learning => claimable.add(is_not_being_summarized(now, stale)),
        TaskQueue::Embedding => claimable,
    }
}

/// Selects all tasks except summary tasks of conversations that another worker is summarizing, because
/// both would write the same texts.
fn is_not_being_summarized(now: Timestamp, stale: &StaleAfter) -> Condition {
    let summarized = Query::select()
        .column(Column::ConversationId)
        .from(Entity)
        .and_where(Expr::col(Column::Kind).eq(MemoryTaskKind::Summarize))
        .and_where(Expr::col(Column::Status).eq(MemoryTaskStatus::Running))
        .and_where(stale.condition(Column::HeartbeatAt, now).not())
        .to_owned();
    Condition::any()
        .add(Column::Kind.ne(MemoryTaskKind::Summarize))
        .add(Column::ConversationId.not_in_subquery(summarized))
}

/// Claims a task. A task whose messages are not chosen yet gets the range `seqs`. Returns `None` if another
/// worker was faster, or if the server stopped during the last attempt. In the second case the task has
/// failed, because a task that stops the server must not be retried forever.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn claim(
    tx: &impl ConnectionTrait,
    task: &Model,
    seqs: Option<(i64, i64)>,
    worker: &str,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<Option<Model>, DbErr> {
    let is_abandoned = task.status == MemoryTaskStatus::Running;
    if is_abandoned && TaskQueue::of(task.kind).is_last_attempt(task.attempt) {
        fail_abandoned(tx, task, now, stale).await?;
        return Ok(None);
    }
    let mut claim = Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Running))
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Attempt, Expr::col(Column::Attempt).add(1))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::HeartbeatAt, backend::lease_time(stale.backend, now));
    if let Some((from_seq, to_seq)) = seqs {
        claim = claim
            .col_expr(Column::FromSeq, Expr::value(from_seq))
            .col_expr(Column::ToSeq, Expr::value(to_seq));
    }
    let claimed = claim
        .filter(Column::Id.eq(task.id))
        .filter(Column::Lease.eq(task.lease))
        .filter(claimable(TaskQueue::of(task.kind), now, stale))
        .exec_with_returning(tx)
        .await?;
    Ok(claimed.into_iter().next())
}

/// Marks a task as failed if the heartbeat of its last attempt is still stale.
async fn fail_abandoned(
    tx: &impl ConnectionTrait,
    task: &Model,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<(), DbErr> {
    let failed = Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Failed))
        .col_expr(Column::Error, Expr::value(ABANDONED))
        .filter(is_lease_of(task))
        .filter(stale.condition(Column::HeartbeatAt, now))
        .exec(tx)
        .await?;
    if failed.rows_affected > 0 {
        tracing::warn!(
            task.id = %task.id, space.id = %task.space_id, attempt = task.attempt,
            "a memory task failed: the server stopped during its last attempt"
        );
    }
    Ok(())
}

/// Renews the leases of the tasks that a worker holds, and returns those that are still its own.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn renew(
    db: &Db,
    worker: &Arc<str>,
    held: &[MemoryTaskId],
    now: Timestamp,
) -> Result<Vec<RenewedLease<MemoryTaskId>>, DbErr> {
    let (held, worker, backend) = (held.to_vec(), worker.clone(), db.backend());
    let renewed = db.write(move |tx| {
        let renewal = Entity::update_many()
            .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
            .filter(Column::Id.is_in(held.iter().copied()))
            .filter(Column::WorkerId.eq(&*worker))
            .filter(Column::Status.eq(MemoryTaskStatus::Running));
        Box::pin(async move { renewal.exec_with_returning(tx).await })
    });
    let renewed: Result<Vec<Model>, DbErr> = renewed.await;
    let renewed = renewed?.into_iter().map(|task| RenewedLease {
        id: task.id,
        number: task.lease,
        is_cancel_requested: false,
    });
    Ok(renewed.collect())
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

/// Selects a task if its worker still holds it.
pub(super) fn is_lease_of(task: &Model) -> Condition {
    Condition::all()
        .add(Column::Id.eq(task.id))
        .add(Column::Lease.eq(task.lease))
        .add(Column::Status.eq(MemoryTaskStatus::Running))
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

/// Deletes a task that is done. Returns `false` if it was requested again, extended or claimed by
/// another worker in the meantime; then nothing of it must be stored.
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

/// Ends an attempt that failed: the task is tried again later, or at once if it was requested again in the
/// meantime. After the last attempt, the task has failed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn fail(
    tx: &impl ConnectionTrait,
    task: &Model,
    error: &str,
    now: Timestamp,
) -> Result<(), DbErr> {
    let status = match TaskQueue::of(task.kind).is_last_attempt(task.attempt) {
        true => MemoryTaskStatus::Failed,
        false => MemoryTaskStatus::Queued,
    };
    let delayed = Expr::case(Column::Attempt.eq(0), Expr::col(Column::RunAfter))
        .finally(Expr::value(now.0 + retry_delay_ms(task.attempt)));
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
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
    /// Queued and running tasks of every kind.
    pub queued: u64,
    /// Tasks that are not retried.
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
        if TaskQueue::of(task.kind) == TaskQueue::Embedding {
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
