//! Requests tasks of table `memory_tasks` that learn from messages of a conversation.
//!
//! A conversation has at most one queued task that was never claimed; the row of the conversation stores the
//! first message that was not learned from, so most messages write nothing here.

use base::clock::Timestamp;
use base::ids::ConversationId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter,
};

use crate::conversations::conversation;
use crate::memories::tasks::memory_task::{
    ActiveModel, Column, Entity, MemoryTaskKind, MemoryTaskStatus,
};
use crate::memories::tasks::task_queue::MAX_LEARNING_ATTEMPTS;

/// How long messages wait for more before the server learns from them.
const WAIT_MS: i64 = 30_000;
/// If at least this many messages wait, the task is due at once.
const FULL_BATCH: i64 = 10;

/// Requests to learn from the messages of a locked conversation from `seq` on. The caller saves the
/// row of the conversation, whose `last_seq` includes all messages.
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
            insert(tx, row, None, run_after, now).await
        }
        Some(from) => {
            let was_full = n_waiting(from, seq - 1) >= FULL_BATCH;
            match is_full(from) && !was_full {
                true => make_due(tx, row.id, now).await,
                false => Ok(()),
            }
        }
    }
}

/// Requests to learn again from the messages of this range of `seq`, because one of them has changed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_learning_again(
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
    insert(tx, row, Some(seqs), run_after, now).await
}

/// Queues the failed tasks of a conversation again, because it has new messages to learn from. The reason of
/// a failure may be the messages of the task, so each task gets only one attempt.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn retry_failed(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    now: Timestamp,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Queued))
        .col_expr(Column::Attempt, Expr::value(MAX_LEARNING_ATTEMPTS - 1))
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Kind.eq(MemoryTaskKind::Extract))
        .filter(Column::Status.eq(MemoryTaskStatus::Failed))
        .exec(tx)
        .await
        .map(drop)
}

/// Inserts a task for all messages that were not learned from, or for `only_seqs`.
pub(super) async fn insert(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    only_seqs: Option<(i64, i64)>,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<(), DbErr> {
    let task = ActiveModel {
        conversation_id: Set(Some(row.id)),
        from_seq: Set(only_seqs.map(|it| it.0)),
        to_seq: Set(only_seqs.map(|it| it.1)),
        ..ActiveModel::queued(MemoryTaskKind::Extract, row.space_id, run_after, now)
    };
    task.insert(tx).await.map(drop)
}

async fn make_due(
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
