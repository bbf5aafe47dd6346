//! Writes the state transitions of runs (queue, claim, end, release) and their heartbeats. The only
//! file that writes `conversation_runs.status`.
//!
//! **Invariant:** every transition names the state it expects and returns whether it changed a row.
//! A caller that gets `false` has lost the run: it must stop and publish nothing.

use base::clock::Timestamp;
use base::ids::{ConversationId, RunId};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect, UpdateMany,
};

use crate::conversations::conversation;
use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};
use crate::db::id_list::padded;
use crate::runs::store::run;
use crate::runs::store::run::{Column, RunStatus};

/// How a running run ends.
#[derive(Clone, Debug)]
pub enum RunEnd {
    Succeeded,
    Failed(run::RunError),
    Canceled,
}

impl RunEnd {
    /// Returns the final status.
    pub fn status(&self) -> RunStatus {
        match self {
            Self::Succeeded => RunStatus::Succeeded,
            Self::Failed(_) => RunStatus::Failed,
            Self::Canceled => RunStatus::Canceled,
        }
    }
}

/// Queues a run. If the conversation has a queued run, the new plan overwrites it and the row keeps
/// its id. Returns the row as it is now.
pub async fn enqueue(tx: &impl ConnectionTrait, plan: run::Model) -> Result<run::Model, DbErr> {
    let mut conflict = OnConflict::column(Column::ConversationId);
    conflict
        // Must be the literal: a bound parameter does not match the partial index, immediately on
        // SQLite and from the sixth execution on PostgreSQL.
        .target_and_where(Expr::cust("status = 'queued'"))
        .update_columns([
            Column::RunSeq,
            Column::RoundId,
            Column::SlotPosition,
            Column::Kind,
            Column::Reason,
            Column::SpeakerSpaceMembershipId,
            Column::Audience,
            Column::RunAfter,
            Column::BurstStartedAt,
            Column::Attempt,
            Column::Debug,
        ]);
    run::Entity::insert(plan.into_active_model())
        .on_conflict(conflict)
        .exec_with_returning(tx)
        .await
}

/// Inserts runs that ended in another installation, in their order, as the newest ones. Unfinished
/// runs are left out: an import must not start runs.
pub async fn restore(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    mut ended: Vec<run::Model>,
) -> Result<(), DbErr> {
    ended.retain(|run| run.status.is_final());
    if ended.is_empty() {
        return Ok(());
    }
    let first = conversation::allocate_run_numbers(tx, conversation, ended.len() as i64).await?;
    let numbered = (first..).zip(ended);
    let rows = numbered.map(|(run_seq, run)| run::Model { run_seq, ..run }.into_active_model());
    run::Entity::insert_many(rows)
        .exec_without_returning(tx)
        .await
        .map(|_| ())
}

/// Claims one run like [`claim_all`]. Returns `None` if another claim was faster.
pub async fn claim(
    tx: &impl ConnectionTrait,
    id: RunId,
    worker: &str,
    now: Timestamp,
    backend: Backend,
) -> Result<Option<run::Model>, DbErr> {
    let mut claimed = claim_all(tx, &[id], worker, now, backend).await?;
    Ok(claimed.pop())
}

/// Claims due runs of different conversations for `worker`, each under a new lease, and stores the
/// newest message that each will see. Omits the runs for which another claim was faster, which is
/// not an error.
///
/// **Invariant:** the conversations are locked. Without the lock, a message that is posted at the
/// same time would be planned into this run but be missing in its prompt.
pub async fn claim_all(
    tx: &impl ConnectionTrait,
    ids: &[RunId],
    worker: &str,
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<run::Model>, DbErr> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let newest = Query::select()
        .column(conversation::Column::LastSeq)
        .from(conversation::Entity)
        .and_where(
            Expr::col((conversation::Entity, conversation::Column::Id))
                .equals((run::Entity, Column::ConversationId)),
        )
        .to_owned();
    let claimed = run::Entity::update_many()
        .col_expr(Column::Status, Expr::value(RunStatus::Running))
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::StartedAt, Expr::value(now))
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .col_expr(
            Column::CutoffSeq,
            SimpleExpr::SubQuery(None, Box::new(newest.into())),
        )
        .filter(Column::Id.is_in(padded(ids.iter().copied())))
        .filter(Column::Status.eq(RunStatus::Queued))
        .exec_with_returning(tx)
        .await;
    match claimed {
        // Another run of a conversation is running. On PostgreSQL the violation aborts this
        // transaction; the conversation's lock prevents that this is reached.
        Err(error) if backend::is_unique_violation(&error) => Ok(Vec::new()),
        claimed => claimed,
    }
}

/// Renews the heartbeats of the runs that a node executes, and returns their rows. A run that is
/// missing in the result is no longer ours. `held` excludes runs whose claim committed without the
/// node knowing it, because no executor writes them; recovery ends them.
pub async fn heartbeat(
    db: &impl ConnectionTrait,
    worker: &str,
    held: &[RunId],
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<run::Model>, DbErr> {
    run::Entity::update_many()
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .filter(Column::Id.is_in(held.iter().copied()))
        .filter(Column::WorkerId.eq(worker))
        .filter(Column::Status.eq(RunStatus::Running))
        .exec_with_returning(db)
        .await
}

/// Requests the executing node to end a run and keep its text.
pub async fn request_cancel(
    tx: &impl ConnectionTrait,
    id: RunId,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let res = update_in_status(id, RunStatus::Running)
        .col_expr(Column::CancelRequestedAt, Expr::value(now))
        .col_expr(Column::KeepPartial, Expr::value(true))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Ends a run that is still ours, and returns its row. Returns `None` if a cancellation, the reaper
/// or a newer claim was faster.
pub async fn finish(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    lease: i64,
    end: &RunEnd,
    now: Timestamp,
) -> Result<Option<run::Model>, DbErr> {
    let mut update = update_ended(run, end.status(), now)
        .filter(Column::Status.eq(RunStatus::Running))
        .filter(Column::Lease.eq(lease)); // fencing: a revived worker holds an older lease
    if let RunEnd::Failed(error) = end {
        update = update.col_expr(Column::Error, Expr::value(to_json(error)));
    }
    if matches!(end, RunEnd::Canceled) {
        update = update.col_expr(
            Column::CancelRequestedAt,
            Expr::value(run.cancel_requested_at.unwrap_or(now)),
        );
    }
    Ok(update.exec_with_returning(tx).await?.pop())
}

/// Stores the speaker of a running run of ours that has none, with the reason and the usage so far, and
/// returns its row. Returns `None` if it is no longer ours or has a speaker.
pub async fn set_speaker(
    tx: &impl ConnectionTrait,
    run: &run::Model,
) -> Result<Option<run::Model>, DbErr> {
    let speaker = run.speaker_space_membership_id;
    let chosen = update_in_status(run.id, RunStatus::Running)
        .filter(Column::Lease.eq(run.lease))
        .filter(Column::SpeakerSpaceMembershipId.is_null())
        .col_expr(Column::SpeakerSpaceMembershipId, Expr::value(speaker))
        .col_expr(Column::Debug, Expr::value(to_json(&run.debug)))
        .col_expr(Column::Usage, Expr::value(run.usage.as_ref().map(to_json)));
    Ok(chosen.exec_with_returning(tx).await?.pop())
}

/// Stores what a running run of ours waits for. Returns `false` if it is no longer ours.
pub async fn set_waiting_for(
    tx: &impl ConnectionTrait,
    (id, lease): (RunId, i64),
    what: Option<run::WaitingFor>,
) -> Result<bool, DbErr> {
    let res = update_in_status(id, RunStatus::Running)
        .filter(Column::Lease.eq(lease))
        .col_expr(Column::WaitingFor, Expr::value(what))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Stores prompt and usage of a run that was canceled before its executor could report them. `before`
/// is its usage when it was claimed. Returns `false` if it was not canceled under this lease or already
/// has them.
pub async fn set_late_usage(
    tx: &impl ConnectionTrait,
    (id, lease): (RunId, i64),
    sent: Option<&run::PromptStats>,
    (before, usage): (Option<run::RunUsage>, Option<run::RunUsage>),
) -> Result<bool, DbErr> {
    let canceled = run::Entity::find_by_id(id)
        .filter(Column::Status.eq(RunStatus::Canceled))
        .filter(Column::Lease.eq(lease))
        .one(tx)
        .await?;
    let is_missing = |it: &run::Model| match sent {
        Some(_) => it.debug.prompt.is_none(),
        None => it.usage == before,
    };
    let Some(run) = canceled.filter(is_missing) else {
        return Ok(false);
    };
    let usage = run::RunUsage::sum(run.usage, usage);
    let mut debug = run.debug;
    debug.prompt = sent.cloned();
    let noted = run::Entity::update_many()
        .col_expr(Column::Debug, Expr::value(to_json(&debug)))
        .col_expr(Column::Usage, Expr::value(usage.as_ref().map(to_json)))
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(RunStatus::Canceled))
        .filter(Column::Lease.eq(lease));
    Ok(noted.exec(tx).await?.rows_affected == 1)
}

/// Ends a run whose heartbeat is stale, if it still has the given lease: a node that resumed its
/// heartbeat in between keeps the run.
pub async fn expire(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    lease: i64,
    end: &RunEnd,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<bool, DbErr> {
    let mut update = update_ended(run, end.status(), now)
        .filter(Column::Status.eq(RunStatus::Running))
        .filter(Column::Lease.eq(lease))
        .filter(stale.condition(Column::HeartbeatAt, now));
    if let RunEnd::Failed(error) = end {
        update = update.col_expr(Column::Error, Expr::value(to_json(error)));
    }
    Ok(update.exec(tx).await?.rows_affected == 1)
}

/// Queues a running run again, for another node or the next start to claim.
pub async fn release(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    lease: i64,
) -> Result<bool, DbErr> {
    let nothing: Option<i64> = None;
    let res = update_in_status(run.id, RunStatus::Running)
        .filter(Column::Lease.eq(lease))
        .col_expr(Column::Usage, Expr::value(run.usage.as_ref().map(to_json)))
        .col_expr(Column::Status, Expr::value(RunStatus::Queued))
        .col_expr(Column::WorkerId, Expr::value(Option::<String>::None))
        .col_expr(Column::WaitingFor, Expr::value(Option::<String>::None))
        .col_expr(Column::StartedAt, Expr::value(nothing))
        .col_expr(Column::HeartbeatAt, Expr::value(nothing))
        .col_expr(Column::CutoffSeq, Expr::value(nothing))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Cancels a queued run.
pub async fn cancel_queued(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    now: Timestamp,
) -> Result<bool, DbErr> {
    end_queued(tx, run, RunStatus::Canceled, now, None).await
}

/// Skips a queued run that is no longer valid; its `debug` has the reason.
pub async fn skip(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    now: Timestamp,
) -> Result<bool, DbErr> {
    end_queued(tx, run, RunStatus::Skipped, now, None).await
}

/// Stores the tail that a queued run expects; it is in the run's `debug`.
pub async fn set_expected_tail(tx: &impl ConnectionTrait, run: &run::Model) -> Result<bool, DbErr> {
    let update = update_in_status(run.id, RunStatus::Queued)
        .col_expr(Column::Debug, Expr::value(to_json(&run.debug)));
    Ok(update.exec(tx).await?.rows_affected == 1)
}

/// Fails a queued run before a model was called.
pub async fn fail_queued(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    error: &run::RunError,
    now: Timestamp,
) -> Result<bool, DbErr> {
    end_queued(tx, run, RunStatus::Failed, now, Some(error)).await
}

async fn end_queued(
    tx: &impl ConnectionTrait,
    run: &run::Model,
    to: RunStatus,
    now: Timestamp,
    error: Option<&run::RunError>,
) -> Result<bool, DbErr> {
    let mut update = update_ended(run, to, now).filter(Column::Status.eq(RunStatus::Queued));
    if let Some(error) = error {
        update = update.col_expr(Column::Error, Expr::value(to_json(error)));
    }
    Ok(update.exec(tx).await?.rows_affected == 1)
}

fn update_in_status(id: RunId, from: RunStatus) -> UpdateMany<run::Entity> {
    run::Entity::update_many()
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(from))
}

/// Sets what every end writes: status, time, usage and debug data.
fn update_ended(run: &run::Model, to: RunStatus, now: Timestamp) -> UpdateMany<run::Entity> {
    run::Entity::update_many()
        .col_expr(Column::Status, Expr::value(to))
        .col_expr(Column::FinishedAt, Expr::value(now))
        .col_expr(Column::WaitingFor, Expr::value(Option::<String>::None))
        .col_expr(Column::CutoffSeq, Expr::value(run.cutoff_seq))
        .col_expr(Column::Usage, Expr::value(run.usage.as_ref().map(to_json)))
        .col_expr(Column::Debug, Expr::value(to_json(&run.debug)))
        .col_expr(Column::CanceledBecause, Expr::value(run.canceled_because))
        .col_expr(
            Column::SupersededByMessageId,
            Expr::value(run.superseded_by_message_id),
        )
        .filter(Column::Id.eq(run.id))
}

fn to_json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("our documents are plain data, which always serializes")
}

/// Returns the running runs whose heartbeat is stale, oldest first.
pub async fn list_expired(
    db: &impl ConnectionTrait,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<Vec<run::Model>, DbErr> {
    run::Entity::find()
        .filter(Expr::cust("status = 'running'"))
        .filter(stale.condition(Column::HeartbeatAt, now))
        .order_by_asc(Column::HeartbeatAt)
        .limit(500)
        .all(db)
        .await
}
