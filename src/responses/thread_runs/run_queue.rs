//! Writes the state transitions of runs (insert, claim, wait, end, requeue), and queries expired ones. The
//! only file that writes `thread_runs.status`. `leased_table` has the statements about their queue and
//! leases.
//!
//! **Invariant:** every transition names the status and the lease it expects. A caller that gets
//! `false` has lost the run: it must stop and publish nothing.

use base::clock::Timestamp;
use responses_api::threads::run_state::RunState;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::sea_query::{Expr, ExprTrait, Func, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect, UpdateMany,
};

use crate::db::backend;
use crate::db::backend::Backend;
use crate::responses::store::leased_table;
use crate::responses::store::leased_table::LeasedTable;
use crate::responses::threads::thread_run;
use crate::responses::threads::thread_run::{Column, Entity};

impl LeasedTable for Entity {
    const ID: Column = Column::Id;
    const USER_ID: Column = Column::UserId;
    const CREATED_AT: Column = Column::CreatedAt;
    const WORKER_ID: Column = Column::WorkerId;
    const LEASE: Column = Column::Lease;
    const HEARTBEAT_AT: Column = Column::HeartbeatAt;
    const CANCEL_REQUESTED_AT: Column = Column::CancelRequestedAt;
    const IS_RUNNING: &'static str = "(status = 'in_progress' OR status = 'cancelling')";
}

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
pub async fn store_task_result(
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
pub async fn set_state_without_task(
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

/// Returns runs that have not ended by the time at which they expire, at most 500.
pub async fn list_expired(
    db: &impl ConnectionTrait,
    now: Timestamp,
) -> Result<Vec<thread_run::Model>, DbErr> {
    Entity::find()
        .filter(thread_run::is_active())
        .filter(Column::ExpiresAt.lte(now))
        .limit(leased_table::BATCH)
        .all(db)
        .await
}

fn is_running() -> SimpleExpr {
    Expr::cust(Entity::IS_RUNNING)
}

fn update_in_status(id: &str, from: ThreadRunStatus) -> UpdateMany<Entity> {
    Entity::update_many()
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(from))
}
