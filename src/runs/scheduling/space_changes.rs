//! Applies a change of a space to its conversations: performs a step at once in those with a queued
//! or running run or an active round, and in the background clears the marks `needs_step` of the
//! others, with a step in those that became active.
//!
//! **Invariant:** a mark is removed only under the lock of its conversation, in the transaction
//! that applies the change or finds that no run or round is active. Several nodes may do this at
//! the same time.

use std::collections::HashSet;

use base::ids::{ConversationId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, IntoColumnRef, IntoTableRef, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::conversations::conversation;
use crate::rounds::round;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::scheduler;
use crate::runs::services::RunServices;
use crate::runs::store::run;

/// How many conversations without a run lose their marker in one transaction.
const BATCH: u64 = 100;
/// How many batches one sweep of the reaper applies; the next sweep continues.
const MAX_BATCHES: u32 = 50;

/// Cancels the runs of a conversation that is being deleted. Succeeds if it has none, or no longer
/// exists.
///
/// # Errors
/// Returns `Database` or `TaskEnded`; then its runs may still be active.
pub async fn cancel_for_deletion(
    context: &RunServices,
    conversation: ConversationId,
) -> Result<(), EngineError> {
    let close = Command::SpaceClosed(run::RunCancelReason::Deleted);
    match scheduler::step(context, conversation, close).await {
        Err(error) if error.is_failure() => Err(error),
        _ => Ok(()),
    }
}

/// Applies a change of this space with `command`: immediately to the conversations with a queued or
/// running run or an active round, and in the background to all others.
///
/// # Errors
/// Returns the database's error when it fails. The markers are kept then, and a sweep continues.
pub async fn apply_to_space(
    context: &RunServices,
    space: SpaceId,
    command: &Command,
) -> Result<(), EngineError> {
    base::fail_point!("settings.after_commit", ?);
    for id in list_live(context.db.reader(), space).await? {
        step_ignoring_conflicts(context, id, command).await?;
    }
    let rest = context.clone();
    context.shutdown.spawn(async move {
        if let Err(error) = process_marked(&rest, Some(space)).await {
            tracing::warn!(%error, space.id = %space, "failed to apply changed settings to all conversations of the space; the next sweep continues");
        }
    });
    Ok(())
}

/// Applies what earlier changes have left, on this node or on one that ended.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn process_all(context: &RunServices) -> Result<(), EngineError> {
    process_marked(context, None).await
}

async fn process_marked(context: &RunServices, space: Option<SpaceId>) -> Result<(), EngineError> {
    let mut after = (SpaceId(0), ConversationId(0));
    for _ in 0..MAX_BATCHES {
        let found = list_marked(context.db.reader(), space, after, BATCH).await?;
        let Some(last) = found.last() else {
            return Ok(());
        };
        after = *last;
        let ids = found.into_iter().map(|(_, id)| id).collect();
        for id in unmark_idle(context, ids).await? {
            match step_ignoring_conflicts(context, id, &Command::ApplyChanges).await {
                Ok(()) => {}
                Err(error) if error.is_failure() => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, conversation.id = %id, "failed to apply changed settings to conversation {id}")
                }
            }
        }
        if context.shutdown.stopping.is_cancelled() {
            return Ok(());
        }
    }
    Ok(())
}

async fn step_ignoring_conflicts(
    context: &RunServices,
    id: ConversationId,
    command: &Command,
) -> Result<(), EngineError> {
    match scheduler::step(context, id, command.clone()).await {
        // Ended or deleted in between.
        Ok(_) | Err(EngineError::Conflict | EngineError::Rejected(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the markers of conversations without active run or round, and returns the others that
/// are not locked.
async fn unmark_idle(
    context: &RunServices,
    ids: Vec<ConversationId>,
) -> Result<Vec<ConversationId>, DbErr> {
    context
        .db
        .write(move |tx| {
            Box::pin(async move {
                let locked = conversation::lock_available(tx, ids).await?.into_iter();
                let locked = locked.filter(|(row, _)| row.needs_step);
                let locked: Vec<ConversationId> = locked.map(|(row, _)| row.id).collect();
                // Queried under the locks: a step that was in progress may have queued a run.
                let runs = run::list_active(tx, &locked).await?;
                let rounds = round::list_active(tx, &locked).await?;
                let live: HashSet<ConversationId> = (runs.iter().map(|it| it.conversation_id))
                    .chain(rounds.iter().map(|it| it.conversation_id))
                    .collect();
                let (live, idle): (Vec<_>, Vec<_>) =
                    locked.into_iter().partition(|it| live.contains(it));
                conversation::clear_needs_step(tx, &idle).await?;
                Ok(live)
            })
        })
        .await
}

/// Returns the marked conversations behind `after` with their spaces, in the order of the index.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn list_marked(
    db: &impl ConnectionTrait,
    space: Option<SpaceId>,
    after: (SpaceId, ConversationId),
    limit: u64,
) -> Result<Vec<(SpaceId, ConversationId)>, DbErr> {
    let (after_space, after_id) = after;
    let is_later = conversation::Column::SpaceId.gt(after_space);
    let is_behind = conversation::Column::SpaceId
        .eq(after_space)
        .and(conversation::Column::Id.gt(after_id));
    let mut found = conversation::Entity::find()
        .select_only()
        .columns([conversation::Column::SpaceId, conversation::Column::Id])
        // The literal, so that the partial index applies.
        .filter(Expr::cust("conversations.needs_step"))
        .filter(is_later.or(is_behind));
    if let Some(space) = space {
        found = found.filter(conversation::Column::SpaceId.eq(space));
    }
    found
        .order_by_asc(conversation::Column::SpaceId)
        .order_by_asc(conversation::Column::Id)
        .limit(limit)
        .into_tuple()
        .all(db)
        .await
}

/// Returns the conversations of a space in which a run is queued or running or a round is active.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn list_live(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Vec<ConversationId>, DbErr> {
    let of_run = (run::Entity, run::Column::ConversationId);
    let of_round = (round::Entity, round::Column::ConversationId);
    // A literal for each partial index, so that nothing finished is read.
    let queued = row_exists(run::Entity, of_run, "conversation_runs.status = 'queued'");
    let running = row_exists(run::Entity, of_run, "conversation_runs.status = 'running'");
    let round = row_exists(
        round::Entity,
        of_round,
        "conversation_rounds.status = 'active'",
    );
    conversation::Entity::find()
        .select_only()
        .column(conversation::Column::Id)
        .filter(conversation::Column::SpaceId.eq(space))
        .filter(queued.or(running).or(round))
        .into_tuple()
        .all(db)
        .await
}

fn row_exists<C: IntoColumnRef>(
    table: impl IntoTableRef,
    column: C,
    condition: &'static str,
) -> SimpleExpr {
    let id = (conversation::Entity, conversation::Column::Id);
    let found = Query::select()
        .expr(Expr::value(1))
        .from(table)
        .and_where(Expr::col(column).equals(id))
        .and_where(Expr::cust(condition))
        .to_owned();
    Expr::exists(found)
}
