//! Requests, on behalf of people, to learn from messages of a conversation now.

use base::clock::Timestamp;
use base::ids::ConversationId;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter,
};

use crate::conversations::conversation;
use crate::db::connect::Db;
use crate::memories::learning::message_learning;
use crate::memories::tasks::learning_task;
use crate::memories::tasks::memory_task::{Column, Entity, MemoryTaskKind, MemoryTaskStatus};

/// Which messages to learn from, as a range of `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedMessages {
    /// Those that were not learned from; the newest messages if there are none.
    Unlearned,
    Range(i64, i64),
}

/// Requests to learn from messages at once. Messages that are already queued are not queued again, and failed
/// tasks for these messages are replaced. Returns `false` if there are no such messages, or if they are no
/// longer learned from because people forgot them.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request_now(
    db: &Db,
    conversation: ConversationId,
    requested: RequestedMessages,
    now: Timestamp,
) -> Result<bool, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let Some(row) = conversation::lock(tx, conversation).await? else {
                return Ok(false);
            };
            match requested {
                RequestedMessages::Unlearned => request_unlearned(tx, &row, now).await,
                RequestedMessages::Range(from, to) => {
                    // Forgotten messages are before `summary_from_seq`, because they are not
                    // summarized either.
                    let range = (from.max(row.summary_from_seq), to.min(row.last_seq));
                    request_range(tx, &row, range, now).await
                }
            }
        })
    })
    .await
}

async fn request_unlearned(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let waiting = Condition::any()
        .add(Column::Status.eq(MemoryTaskStatus::Queued))
        .add(Column::Status.eq(MemoryTaskStatus::Failed));
    if make_due(tx, row.id, waiting, now).await? {
        return Ok(true);
    }
    let running = of_conversation(row.id).add(Column::Status.eq(MemoryTaskStatus::Running));
    if Entity::find().filter(running).count(tx).await? > 0 {
        return Ok(true);
    }
    let all = (row.summary_from_seq, row.last_seq);
    if all.0 > all.1 {
        return Ok(false);
    }
    // Those before are not left out by this task: they were learned from already.
    let from = message_learning::find_start_of_newest(tx, row.id, all).await?;
    learning_task::insert(tx, row, Some((from, all.1)), now, now).await?;
    Ok(true)
}

async fn request_range(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    (from, to): (i64, i64),
    now: Timestamp,
) -> Result<bool, DbErr> {
    if from > to {
        return Ok(false);
    }
    let is_queued = || Column::Status.eq(MemoryTaskStatus::Queued);
    let unlearned = row.unlearned_from_seq.unwrap_or(i64::MAX);
    if to >= unlearned {
        // The claim of this task chooses its messages: all that were not learned from.
        let new = Condition::all()
            .add(is_queued())
            .add(Column::FromSeq.is_null());
        make_due(tx, row.id, new, now).await?;
    }
    let to = to.min(unlearned - 1);
    if from > to {
        return Ok(true);
    }
    let includes = Condition::all()
        .add(is_queued())
        .add(Column::FromSeq.lte(from))
        .add(Column::ToSeq.gte(to));
    if make_due(tx, row.id, includes, now).await? {
        return Ok(true);
    }
    let included = of_conversation(row.id)
        .add(Column::Status.ne(MemoryTaskStatus::Running))
        .add(Column::FromSeq.gte(from))
        .add(Column::ToSeq.lte(to));
    Entity::delete_many().filter(included).exec(tx).await?;
    learning_task::insert(tx, row, Some((from, to)), now, now).await?;
    Ok(true)
}

fn of_conversation(id: ConversationId) -> Condition {
    Condition::all()
        .add(Column::ConversationId.eq(id))
        .add(Column::Kind.eq(MemoryTaskKind::Extract))
}

/// Makes these tasks of a conversation due, and resets their attempts. Returns whether there are
/// any.
async fn make_due(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    tasks: Condition,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let made_due = Entity::update_many()
        .col_expr(Column::Status, Expr::value(MemoryTaskStatus::Queued))
        .col_expr(Column::Attempt, Expr::value(0))
        .col_expr(Column::RunAfter, Expr::value(now))
        .filter(of_conversation(conversation))
        .filter(tasks)
        .exec(tx)
        .await?;
    Ok(made_due.rows_affected > 0)
}
