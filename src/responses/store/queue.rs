//! Writes the state transitions of responses (insert, claim, end, requeue). The only file that writes
//! `responses.status`. `leased_table` has the statements about their queue and leases.
//!
//! **Invariant:** every transition names the state it expects, and ending a running response also
//! names its lease. A caller that gets `false` has lost the response: it must stop and publish
//! nothing.

use base::clock::Timestamp;
use responses_api::response::ResponseState;
use responses_api::status::ResponseStatus;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, Iterable,
    QueryFilter, QuerySelect, UpdateMany,
};

use crate::db::backend;
use crate::db::backend::Backend;
use crate::responses::store::leased_table::LeasedTable;
use crate::responses::store::response::{Column, Entity};
use crate::responses::store::{leased_table, response};

impl LeasedTable for Entity {
    const ID: Column = Column::Id;
    const USER_ID: Column = Column::UserId;
    const CREATED_AT: Column = Column::CreatedAt;
    const WORKER_ID: Column = Column::WorkerId;
    const LEASE: Column = Column::Lease;
    const HEARTBEAT_AT: Column = Column::HeartbeatAt;
    const CANCEL_REQUESTED_AT: Column = Column::CancelRequestedAt;
    const IS_RUNNING: &'static str = "status = 'in_progress'";
}

/// Inserts a new response.
///
/// # Errors
/// Returns a unique violation when another response of its conversation has not ended.
pub async fn insert(tx: &impl ConnectionTrait, row: response::Model) -> Result<(), DbErr> {
    row.into_active_model().insert(tx).await.map(|_| ())
}

/// Inserts a new response that this node runs at once, with its first lease. Returns the row;
/// its `heartbeat_at` is not the stored one, which PostgreSQL computes.
///
/// # Errors
/// As [`insert`].
pub async fn insert_claimed(
    tx: &impl ConnectionTrait,
    row: response::Model,
    worker: &str,
    now: Timestamp,
    backend: Backend,
) -> Result<response::Model, DbErr> {
    let row = response::Model {
        status: ResponseStatus::InProgress,
        worker_id: Some(worker.to_owned()),
        lease: 1,
        attempt: 1,
        started_at: Some(now),
        ..row
    };
    let stored = row.clone().into_active_model();
    let value_of = |column: Column| match column {
        // See `lease_time`.
        Column::HeartbeatAt => Some(backend::lease_time(backend, now)),
        column => stored
            .get(column)
            .into_value()
            .map(|it| column.save_as(Expr::val(it))),
    };
    let columns = Column::iter().filter_map(|it| Some((it, value_of(it)?)));
    let (columns, values): (Vec<Column>, Vec<SimpleExpr>) = columns.unzip();
    let mut insert = Query::insert();
    insert
        .into_table(Entity)
        .columns(columns)
        .values_panic(values);
    tx.execute(&insert).await?;
    Ok(row)
}

/// Claims a queued response for this node. Returns `None` if another node was faster.
pub async fn claim(
    tx: &impl ConnectionTrait,
    id: &str,
    worker: &str,
    now: Timestamp,
    backend: Backend,
) -> Result<Option<response::Model>, DbErr> {
    let mut rows = update_in_status(id, ResponseStatus::Queued)
        .col_expr(Column::Status, Expr::value(ResponseStatus::InProgress))
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::Attempt, Expr::col(Column::Attempt).add(1))
        // The deadline of a second attempt is that of the first one.
        .col_expr(
            Column::StartedAt,
            Expr::col(Column::StartedAt).if_null(Expr::value(now)),
        )
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .exec_with_returning(tx)
        .await?;
    Ok(rows.pop())
}

/// Locks the row until the end of the transaction, if the lease is still valid.
pub async fn lock_lease(tx: &impl ConnectionTrait, id: &str, lease: i64) -> Result<bool, DbErr> {
    lock_in_state(tx, id, (ResponseStatus::InProgress, lease)).await
}

/// Locks the row until the end of the transaction, if its state and lease are unchanged.
pub async fn lock_in_state(
    tx: &impl ConnectionTrait,
    id: &str,
    (from, lease): (ResponseStatus, i64),
) -> Result<bool, DbErr> {
    // An update without a change locks the row on both databases.
    let res = update_in_status(id, from)
        .col_expr(Column::Lease, Expr::value(lease))
        .filter(Column::Lease.eq(lease))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Ends a response. Returns `false` if a cancellation, the recovery or a newer claim was faster.
pub async fn finish(
    tx: &impl ConnectionTrait,
    id: &str,
    (from, lease): (ResponseStatus, i64),
    state: &ResponseState,
) -> Result<bool, DbErr> {
    let res = update_in_status(id, from)
        .col_expr(Column::Status, Expr::value(state.status))
        .col_expr(Column::Error, Expr::value(state.error.as_ref().map(json)))
        .col_expr(
            Column::IncompleteReason,
            Expr::value(state.incomplete_reason.clone()),
        )
        .col_expr(Column::Usage, Expr::value(state.usage.as_ref().map(json)))
        .col_expr(Column::CompletedAt, Expr::value(state.ended_at))
        .col_expr(Column::SealedSecrets, Expr::value(Option::<String>::None))
        .filter(Column::Lease.eq(lease)) // fencing: a revived worker holds an older lease
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("errors and usage are plain data and always serialize")
}

/// Returns a background response without output to the queue.
pub async fn requeue(tx: &impl ConnectionTrait, id: &str, lease: i64) -> Result<bool, DbErr> {
    let nothing: Option<i64> = None;
    let res = update_in_status(id, ResponseStatus::InProgress)
        .filter(Column::Lease.eq(lease))
        .col_expr(Column::Status, Expr::value(ResponseStatus::Queued))
        .col_expr(Column::WorkerId, Expr::value(Option::<String>::None))
        .col_expr(Column::HeartbeatAt, Expr::value(nothing))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Requests the cancellation of a running response.
pub async fn request_cancel(
    tx: &impl ConnectionTrait,
    id: &str,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let res = update_in_status(id, ResponseStatus::InProgress)
        .col_expr(Column::CancelRequestedAt, Expr::value(now))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Hides a response from its owner. Returns `false` if it was already hidden.
pub async fn soft_delete(
    tx: &impl ConnectionTrait,
    id: &str,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let res = Entity::update_many()
        .col_expr(Column::DeletedAt, Expr::value(now))
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null())
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Returns queued responses that were created at or before this instant, at most 500.
pub async fn queued_before(
    db: &impl ConnectionTrait,
    before: Timestamp,
) -> Result<Vec<response::Model>, DbErr> {
    Entity::find()
        .filter(Expr::cust(leased_table::IS_QUEUED))
        .filter(Column::CreatedAt.lte(before))
        .limit(leased_table::BATCH)
        .all(db)
        .await
}

fn update_in_status(id: &str, from: ResponseStatus) -> UpdateMany<Entity> {
    Entity::update_many()
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(from))
}
