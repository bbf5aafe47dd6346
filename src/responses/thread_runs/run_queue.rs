//! Writes the state transitions of runs (insert, claim, wait, end, requeue) and their heartbeats, and
//! queries queued, lost and expired ones. The only file that writes `thread_runs.status`.
//!
//! **Invariant:** every transition names the status and the lease it expects. A caller that gets
//! `false` has lost the run: it must stop and publish nothing.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::UserId;
use leased_jobs::job::RenewedLease;
use responses_api::threads::run_state::RunState;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::sea_query::{Expr, ExprTrait, Func, Query, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QueryResult, QuerySelect, UpdateMany,
};

use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};
use crate::responses::threads::thread_run;
use crate::responses::threads::thread_run::{Column, Entity};

/// The maximum number of times that a run is started without output, including retries after a node was lost.
pub const MAX_ATTEMPTS: i64 = 2;

/// Rows per read of runs that must be ended.
const BATCH: u64 = 500;

/// Inserts a queued run.
///
/// # Errors
/// Returns a unique violation when another run of its thread has not ended.
pub async fn insert(tx: &impl ConnectionTrait, row: thread_run::Model) -> Result<(), DbErr> {
    row.into_active_model().insert(tx).await.map(|_| ())
}

/// Claims a queued run for this node. Returns `None` if another node claimed it first.
pub async fn claim(
    tx: &impl ConnectionTrait,
    id: &str,
    worker: &str,
    now: Timestamp,
    backend: Backend,
) -> Result<Option<thread_run::Model>, DbErr> {
    let started_at = Func::coalesce([Expr::col(Column::StartedAt), Expr::value(now)]);
    let mut rows = update_in_status(id, ThreadRunStatus::Queued)
        .col_expr(Column::Status, Expr::value(ThreadRunStatus::InProgress))
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::Attempt, Expr::col(Column::Attempt).add(1))
        .col_expr(Column::StartedAt, started_at.into())
        .col_expr(Column::ExpiresAt, Expr::col(Column::WorkLeftMs).add(now.0))
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .exec_with_returning(tx)
        .await?;
    Ok(rows.pop())
}

/// Renews the heartbeats of a node's runs. A run that is missing in the result is no longer owned by
/// this node.
pub async fn heartbeat(
    db: &impl ConnectionTrait,
    worker: &str,
    ids: &[String],
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<RenewedLease<String>>, DbErr> {
    let update = Query::update()
        .table(Entity)
        .value(Column::HeartbeatAt, backend::lease_time(backend, now))
        .and_where(Column::Id.is_in(ids))
        .and_where(Column::WorkerId.eq(worker))
        .and_where(is_running())
        .returning(Query::returning().columns([
            Column::Id,
            Column::Lease,
            Column::CancelRequestedAt,
        ]))
        .to_owned();
    let rows = db.query_all(&update).await?;
    let read = |row: &QueryResult| {
        let cancel_requested_at: Option<Timestamp> = row.try_get("", "cancel_requested_at")?;
        Ok(RenewedLease {
            id: row.try_get("", "id")?,
            number: row.try_get("", "lease")?,
            is_cancel_requested: cancel_requested_at.is_some(),
        })
    };
    rows.iter().map(read).collect()
}

/// Locks the row until the end of the transaction, if the lease is still valid.
pub async fn lock_lease(tx: &impl ConnectionTrait, id: &str, lease: i64) -> Result<bool, DbErr> {
    // An update without a change locks the row on both databases.
    let res = Entity::update_many()
        .col_expr(Column::Lease, Expr::value(lease))
        .filter(Column::Id.eq(id))
        .filter(Column::Lease.eq(lease))
        .filter(is_running())
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Locks the row until the end of the transaction, if its status and lease are unchanged.
pub async fn lock_in_state(
    tx: &impl ConnectionTrait,
    id: &str,
    (from, lease): (ThreadRunStatus, i64),
) -> Result<bool, DbErr> {
    let res = update_in_status(id, from)
        .col_expr(Column::Lease, Expr::value(lease))
        .filter(Column::Lease.eq(lease))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Writes the state in which a task leaves its run: ended, or waiting for the client. A run whose
/// cancellation was requested can only be cancelled.
pub async fn leave(
    tx: &impl ConnectionTrait,
    id: &str,
    lease: i64,
    state: &RunState,
) -> Result<bool, DbErr> {
    let from = match state.status {
        ThreadRunStatus::Cancelled => is_running(),
        _ => Column::Status.eq(ThreadRunStatus::InProgress),
    };
    let update = Entity::update_many().filter(Column::Id.eq(id)).filter(from);
    write_state(tx, update, lease, state).await
}

/// Writes the next state of a run that no task executes, or whose task is lost.
pub async fn change(
    tx: &impl ConnectionTrait,
    id: &str,
    (from, lease): (ThreadRunStatus, i64),
    state: &RunState,
) -> Result<bool, DbErr> {
    write_state(tx, update_in_status(id, from), lease, state).await
}

async fn write_state(
    tx: &impl ConnectionTrait,
    update: UpdateMany<Entity>,
    lease: i64,
    state: &RunState,
) -> Result<bool, DbErr> {
    let nothing: Option<i64> = None;
    let res = update
        .filter(Column::Lease.eq(lease)) // fencing: a revived worker holds an older lease
        .col_expr(Column::Status, Expr::value(state.status))
        .col_expr(
            Column::RequiredAction,
            Expr::value(state.required_action.as_ref().map(json)),
        )
        .col_expr(
            Column::LastError,
            Expr::value(state.last_error.as_ref().map(json)),
        )
        .col_expr(
            Column::IncompleteReason,
            Expr::value(state.incomplete_reason.clone()),
        )
        .col_expr(Column::Usage, Expr::value(state.usage.as_ref().map(json)))
        .col_expr(
            Column::NModelCalls,
            Expr::value(i64::from(state.n_model_calls)),
        )
        .col_expr(
            Column::NServerCalls,
            Expr::value(i64::from(state.n_server_calls)),
        )
        .col_expr(Column::WorkLeftMs, Expr::value(state.work_left_ms))
        .col_expr(Column::ExpiresAt, Expr::value(state.expires_at))
        .col_expr(Column::CompletedAt, Expr::value(state.completed_at))
        .col_expr(Column::CancelledAt, Expr::value(state.cancelled_at))
        .col_expr(Column::FailedAt, Expr::value(state.failed_at))
        .col_expr(Column::WorkerId, Expr::value(Option::<String>::None))
        .col_expr(Column::HeartbeatAt, Expr::value(nothing))
        // The next execution counts its attempts from zero.
        .col_expr(Column::Attempt, Expr::value(0))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("actions, errors and usage are plain data")
}

/// Returns a run without new output to the queue.
pub async fn requeue(
    tx: &impl ConnectionTrait,
    id: &str,
    lease: i64,
    expires_at: Timestamp,
) -> Result<bool, DbErr> {
    let nothing: Option<i64> = None;
    let res = update_in_status(id, ThreadRunStatus::InProgress)
        .filter(Column::Lease.eq(lease))
        .col_expr(Column::Status, Expr::value(ThreadRunStatus::Queued))
        .col_expr(Column::ExpiresAt, Expr::value(expires_at))
        .col_expr(Column::WorkerId, Expr::value(Option::<String>::None))
        .col_expr(Column::HeartbeatAt, Expr::value(nothing))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Requests the cancellation of a running run.
pub async fn request_cancel(
    tx: &impl ConnectionTrait,
    id: &str,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let res = update_in_status(id, ThreadRunStatus::InProgress)
        .col_expr(Column::Status, Expr::value(ThreadRunStatus::Cancelling))
        .col_expr(Column::CancelRequestedAt, Expr::value(now))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Returns the users with queued runs, longest waiting first, at most 500.
pub async fn queued_user_ids(db: &impl ConnectionTrait) -> Result<Vec<UserId>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::UserId)
        .filter(Expr::cust("status = 'queued'"))
        .group_by(Column::UserId)
        .order_by_asc(Column::CreatedAt.min())
        .limit(BATCH)
        .into_tuple()
        .all(db)
        .await
}

/// Returns the oldest queued run of a user.
pub async fn next_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<Option<String>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Expr::cust("status = 'queued'"))
        .filter(Column::UserId.eq(user))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .into_tuple()
        .one(db)
        .await
}

/// Returns running runs without a heartbeat for at least `after`, at most 500; `None` returns all
/// running ones.
pub async fn expired_leases(
    db: &impl ConnectionTrait,
    now: Timestamp,
    after: Option<Duration>,
    backend: Backend,
) -> Result<Vec<thread_run::Model>, DbErr> {
    let is_stale = match after {
        Some(after) => {
            let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            StaleAfter { after_ms, backend }.condition(Column::HeartbeatAt, now)
        }
        None => Expr::cust("1 = 1"),
    };
    Entity::find()
        .filter(is_running())
        .filter(is_stale)
        .limit(BATCH)
        .all(db)
        .await
}

/// Returns runs that have not ended by the time at which they expire, at most 500.
pub async fn expired(
    db: &impl ConnectionTrait,
    now: Timestamp,
) -> Result<Vec<thread_run::Model>, DbErr> {
    Entity::find()
        .filter(thread_run::is_active())
        .filter(Column::ExpiresAt.lte(now))
        .limit(BATCH)
        .all(db)
        .await
}

/// Returns the runs of a node whose cancellation was requested, with their leases.
pub async fn cancellations(
    db: &impl ConnectionTrait,
    worker: &str,
) -> Result<Vec<(String, i64)>, DbErr> {
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::Lease])
        .filter(is_running())
        .filter(Column::WorkerId.eq(worker))
        .filter(Column::CancelRequestedAt.is_not_null())
        .into_tuple()
        .all(db)
        .await
}

/// Matches runs that a task executes; spelled as in the index, because SQLite compares the text.
fn is_running() -> SimpleExpr {
    Expr::cust("(status = 'in_progress' OR status = 'cancelling')")
}

fn update_in_status(id: &str, from: ThreadRunStatus) -> UpdateMany<Entity> {
    Entity::update_many()
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(from))
}
