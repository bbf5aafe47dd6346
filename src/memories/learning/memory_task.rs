//! Table `memory_tasks`: what the memory has still to do, as a queue: to learn from the messages of a
//! conversation. Inserts, claims, renews and ends the tasks.
//!
//! **Invariant:** a task is inserted in the transaction that appends the messages, and deleted in the
//! one that stores what was learned, under the lease of its worker. So messages are learned from
//! once, whatever happens in between.
//!
//! A conversation has at most one queued task that was never claimed; the row of the conversation has
//! the first message that is not learned from, so that most messages write nothing here.

use base::clock::Timestamp;
use base::ids::{ConversationId, MemoryTaskId, SpaceId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{Condition, PaginatorTrait, QueryOrder, QuerySelect};

use crate::conversations::conversation;
use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};
use crate::db::string_enum::string_enum;

/// How long messages wait for more before the server learns from them.
const WAIT_MS: i64 = 30_000;
/// So many messages do not wait.
const FULL_BATCH: i64 = 10;
/// A task that failed this often is not tried again.
pub const MAX_ATTEMPTS: i64 = 5;
/// The delay after the first failure; each further one doubles it.
const RETRY_DELAY_MS: i64 = 10_000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_tasks")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: MemoryTaskId,
    pub kind: MemoryTaskKind,
    pub space_id: SpaceId,
    pub conversation_id: Option<ConversationId>,
    /// The first and the last message: set when it is claimed for the first time, or when it is
    /// inserted because one of these messages has changed.
    pub from_seq: Option<i64>,
    pub to_seq: Option<i64>,
    pub status: MemoryTaskStatus,
    pub attempt: i64,
    pub run_after: Timestamp,
    pub worker_id: Option<String>,
    /// The fencing number, which grows with each claim.
    pub lease: i64,
    pub heartbeat_at: Option<Timestamp>,
    pub error: Option<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What a task does.
    MemoryTaskKind { Extract, Embed, Summarize, Refresh }
    /// A task that ended has no row.
    MemoryTaskStatus { Queued, Running, Failed }
}

/// The kinds of embedding tasks, whose queue is in `embedding/embedding_task.rs`.
pub const EMBEDDING_KINDS: [MemoryTaskKind; 2] = [MemoryTaskKind::Embed, MemoryTaskKind::Refresh];

/// Requests to learn from the messages of a locked conversation from `seq` on. The caller saves the
/// row of the conversation, which has all messages counted.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_learning(
    tx: &impl ConnectionTrait,
    row: &mut conversation::Model,
    seq: i64,
    now: Timestamp,
) -> Result<(), DbErr> {
    let n_waiting = |from: i64, last: i64| last - from + 1;
    let is_full = |from: i64| n_waiting(from, row.last_seq) >= FULL_BATCH;
    match row.unlearned_from_seq {
        None => {
            let run_after = match is_full(seq) {
                true => now,
                false => Timestamp(now.0 + WAIT_MS),
            };
            row.unlearned_from_seq = Some(seq);
            insert(tx, row, MemoryTaskKind::Extract, None, run_after, now).await
        }
        Some(from) => {
            let was_full = n_waiting(from, seq - 1) >= FULL_BATCH;
            match is_full(from) && !was_full {
                true => hasten(tx, row.id, now).await,
                false => Ok(()),
            }
        }
    }
}

/// Requests to learn again from the messages of this range of `seq`, because one of them has changed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_relearning(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    seqs: (i64, i64),
    now: Timestamp,
) -> Result<(), DbErr> {
    // A queued task may include them already, for example while someone looks through swipes.
    let includes = Entity::find()
        .filter(Column::ConversationId.eq(row.id))
        .filter(Column::Kind.eq(MemoryTaskKind::Extract))
        .filter(Column::Status.eq(MemoryTaskStatus::Queued))
        .filter(Column::FromSeq.lte(seqs.0))
        .filter(Column::ToSeq.gte(seqs.1));
    let is_unlearned = row.unlearned_from_seq.is_some_and(|from| seqs.0 >= from);
    if is_unlearned || includes.count(tx).await? > 0 {
        return Ok(());
    }
    let run_after = Timestamp(now.0 + WAIT_MS);
    insert(tx, row, MemoryTaskKind::Extract, Some(seqs), run_after, now).await
}

/// Requests a task of this kind for a locked conversation, unless one is already queued. A failed task
/// is replaced.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_once(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    kind: MemoryTaskKind,
    now: Timestamp,
) -> Result<(), DbErr> {
    let has_status = |status: MemoryTaskStatus| {
        Condition::all()
            .add(Column::ConversationId.eq(row.id))
            .add(Column::Kind.eq(kind))
            .add(Column::Status.eq(status))
    };
    let waiting = Entity::find().filter(has_status(MemoryTaskStatus::Queued));
    if waiting.count(tx).await? > 0 {
        return Ok(());
    }
    let failed = Entity::delete_many().filter(has_status(MemoryTaskStatus::Failed));
    failed.exec(tx).await?;
    insert(tx, row, kind, None, now, now).await
}

/// Inserts a task for all messages that are not learned from, or for some of them.
async fn insert(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    kind: MemoryTaskKind,
    only_seqs: Option<(i64, i64)>,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<(), DbErr> {
    let task = ActiveModel {
        id: NotSet,
        kind: Set(kind),
        space_id: Set(row.space_id),
        conversation_id: Set(Some(row.id)),
        from_seq: Set(only_seqs.map(|it| it.0)),
        to_seq: Set(only_seqs.map(|it| it.1)),
        status: Set(MemoryTaskStatus::Queued),
        attempt: Set(0),
        run_after: Set(run_after),
        worker_id: Set(None),
        lease: Set(0),
        heartbeat_at: Set(None),
        error: Set(None),
        created_at: Set(now),
    };
    task.insert(tx).await.map(drop)
}

async fn hasten(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    now: Timestamp,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Kind.eq(MemoryTaskKind::Extract))
        .filter(Column::Status.eq(MemoryTaskStatus::Queued))
        .filter(Column::FromSeq.is_null())
        .filter(Column::RunAfter.gt(now))
        .exec(tx)
        .await?;
    Ok(())
}

/// Deletes the tasks of a space, or of one of its conversations, except embedding tasks, because their rows
/// are locked after the space. What was said so far is no longer learned from.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_all(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    only: Option<ConversationId>,
) -> Result<(), DbErr> {
    let mut conversations = conversation::Entity::update_many()
        .col_expr(
            conversation::Column::UnlearnedFromSeq,
            Expr::value(Option::<i64>::None),
        )
        .filter(conversation::Column::SpaceId.eq(space))
        .filter(conversation::Column::UnlearnedFromSeq.is_not_null());
    let mut tasks = Entity::delete_many()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::Kind.is_not_in(EMBEDDING_KINDS));
    if let Some(id) = only {
        conversations = conversations.filter(conversation::Column::Id.eq(id));
        tasks = tasks.filter(Column::ConversationId.eq(id));
    }
    // The tasks first: a step that commits in between leaves a task without messages, which is deleted
    // when it is claimed, and never messages without a task.
    tasks.exec(tx).await?;
    conversations.exec(tx).await.map(drop)
}

/// Returns due tasks except embedding tasks, the oldest first: queued ones, and those whose lease has
/// expired. Leaves out those of the spaces `busy`.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_due(
    db: &impl ConnectionTrait,
    now: Timestamp,
    stale: &StaleAfter,
    busy: impl IntoIterator<Item = SpaceId>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(claimable(now, stale))
        .filter(Column::SpaceId.is_not_in(busy))
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
    // A task that ends its process is not tried forever.
    let is_abandoned = is_abandoned.and(Column::Attempt.lt(MAX_ATTEMPTS));
    Condition::all()
        .add(Column::Kind.is_not_in(EMBEDDING_KINDS))
        .add(Condition::any().add(is_due).add(is_abandoned))
        .add(is_summarized_by_nobody(now, stale))
}

/// Selects all tasks except summary tasks of conversations that another worker is summarizing, because
/// both would write the same texts.
fn is_summarized_by_nobody(now: Timestamp, stale: &StaleAfter) -> Condition {
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

/// Claims a task for the messages from `from_seq` to `to_seq`. Returns `None` if another worker was
/// faster.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn claim(
    tx: &impl ConnectionTrait,
    task: &Model,
    (from_seq, to_seq): (i64, i64),
    worker: &str,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<Option<Model>, DbErr> {
    let claimed = Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Running))
        .col_expr(Column::FromSeq, Expr::value(from_seq))
        .col_expr(Column::ToSeq, Expr::value(to_seq))
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

/// Renews the leases of the tasks that a worker holds, and returns those that are still its own.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn heartbeat(
    tx: &impl ConnectionTrait,
    worker: &str,
    held: &[MemoryTaskId],
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<Model>, DbErr> {
    Entity::update_many()
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .filter(Column::Id.is_in(held.iter().copied()))
        .filter(Column::WorkerId.eq(worker))
        .filter(Column::Status.eq(MemoryTaskStatus::Running))
        .exec_with_returning(tx)
        .await
}

/// Returns whether a worker still holds its task.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn is_held(tx: &impl ConnectionTrait, task: &Model) -> Result<bool, DbErr> {
    let held = Entity::find_by_id(task.id)
        .filter(Column::Lease.eq(task.lease))
        .filter(Column::Status.eq(MemoryTaskStatus::Running));
    Ok(held.count(tx).await? > 0)
}

/// Returns a claimed task to the queue without a failure.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn release(tx: &impl ConnectionTrait, task: &Model, now: Timestamp) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Queued))
        .col_expr(Column::Attempt, Expr::value(0))
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(Column::Id.eq(task.id))
        .filter(Column::Lease.eq(task.lease))
        .filter(Column::Status.eq(MemoryTaskStatus::Running))
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes a task that is done. Returns `false` if it was claimed again; then nothing of it must be
/// stored.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn finish(tx: &impl ConnectionTrait, task: &Model) -> Result<bool, DbErr> {
    let deleted = Entity::delete_many()
        .filter(Column::Id.eq(task.id))
        .filter(Column::Lease.eq(task.lease))
        .filter(Column::Status.eq(MemoryTaskStatus::Running))
        .exec(tx)
        .await?;
    Ok(deleted.rows_affected == 1)
}

/// Ends an attempt that failed: the task is tried again later, unless this was the last attempt.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn fail(
    tx: &impl ConnectionTrait,
    task: &Model,
    error: &str,
    now: Timestamp,
) -> Result<(), DbErr> {
    let delay = retry_delay_ms(task.attempt);
    let status = match task.attempt >= MAX_ATTEMPTS {
        true => MemoryTaskStatus::Failed,
        false => MemoryTaskStatus::Queued,
    };
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::Error, Expr::value(error))
        .col_expr(Column::RunAfter, Expr::value(now.0 + delay))
        .filter(Column::Id.eq(task.id))
        .filter(Column::Lease.eq(task.lease))
        .filter(Column::Status.eq(MemoryTaskStatus::Running))
        .exec(tx)
        .await?;
    Ok(())
}

/// Returns the delay after this attempt, counted from 1: the first one, doubled for each further.
fn retry_delay_ms(attempt: i64) -> i64 {
    let n_doubled = attempt.clamp(1, MAX_ATTEMPTS) - 1;
    (0..n_doubled).fold(RETRY_DELAY_MS, |delay, _| 2 * delay)
}
