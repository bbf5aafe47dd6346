//! Moves a response from one state to the next: the only file that writes `responses.status`.
//!
//! **Invariant:** every move names the state it expects to find, and who ends a response that runs
//! names the lease. Who is told `false` has lost the response: stop, and tell nobody.

use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait, Query, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QueryResult, QuerySelect, UpdateMany,
};

use crate::clock::Timestamp;
use crate::db::backend;
use crate::db::connect::Backend;
use crate::ids::UserId;
use crate::responses::response;
use crate::responses::response::{Column, Entity, ResponseStatus};
use crate::responses::response_document::ResponseState;

/// How often a background response is begun, before and after its node is lost.
pub const MAX_ATTEMPTS: i64 = 2;

/// Writes a new response down, queued or in progress.
///
/// # Errors
/// A broken unique rule: its conversation has another one that is not over.
pub async fn insert(tx: &impl ConnectionTrait, row: response::Model) -> Result<(), DbErr> {
    row.into_active_model().insert(tx).await.map(|_| ())
}

/// Takes a queued response for this node. `None`: somebody else was faster.
pub async fn claim(
    tx: &impl ConnectionTrait,
    id: &str,
    worker: &str,
    now: Timestamp,
    dialect: Backend,
) -> Result<Option<response::Model>, DbErr> {
    let mut rows = update_in_status(id, ResponseStatus::Queued)
        .col_expr(Column::Status, Expr::value(ResponseStatus::InProgress))
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::Attempt, Expr::col(Column::Attempt).add(1))
        .col_expr(Column::StartedAt, Expr::value(now))
        .col_expr(Column::HeartbeatAt, backend::lease_time(dialect, now))
        .exec_with_returning(tx)
        .await?;
    Ok(rows.pop())
}

/// What a heartbeat tells of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRow {
    pub id: String,
    pub lease: i64,
    pub is_cancel_requested: bool,
}

/// Renews the heartbeats of what a node works on, and tells what became of it. A response that is
/// not in the answer is no longer ours. The rest of the rows, long as they may be, is not read.
pub async fn heartbeat(
    db: &impl ConnectionTrait,
    worker: &str,
    ids: &[String],
    now: Timestamp,
    dialect: Backend,
) -> Result<Vec<HeartbeatRow>, DbErr> {
    let beat = Query::update()
        .table(Entity)
        .value(Column::HeartbeatAt, backend::lease_time(dialect, now))
        .and_where(Column::Id.is_in(ids))
        .and_where(Column::WorkerId.eq(worker))
        .and_where(Column::Status.eq(ResponseStatus::InProgress))
        .returning(Query::returning().columns([
            Column::Id,
            Column::Lease,
            Column::CancelRequestedAt,
        ]))
        .to_owned();
    let rows = db.query_all(&beat).await?;
    let read = |row: &QueryResult| {
        let cancel_requested_at: Option<Timestamp> = row.try_get("", "cancel_requested_at")?;
        Ok(HeartbeatRow {
            id: row.try_get("", "id")?,
            lease: row.try_get("", "lease")?,
            is_cancel_requested: cancel_requested_at.is_some(),
        })
    };
    rows.iter().map(read).collect()
}

/// Whether a response is still ours; held until the end of the transaction.
pub async fn lock_lease(tx: &impl ConnectionTrait, id: &str, lease: i64) -> Result<bool, DbErr> {
    lock_in_state(tx, id, (ResponseStatus::InProgress, lease)).await
}

/// Whether a response still stands where it was seen; held until the end of the transaction.
pub async fn lock_in_state(
    tx: &impl ConnectionTrait,
    id: &str,
    (from, lease): (ResponseStatus, i64),
) -> Result<bool, DbErr> {
    // An update that changes nothing: it takes the row on both databases.
    let res = update_in_status(id, from)
        .col_expr(Column::Lease, Expr::value(lease))
        .filter(Column::Lease.eq(lease))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Ends a response that is still ours. `false`: a cancel, the sweep or a newer claim was faster.
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
        .filter(Column::Lease.eq(lease)) // the fence: a revived worker holds an older one
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("a document of ours is plain data and always encodes")
}

/// Gives a background response back that put nothing out yet.
pub async fn requeue(tx: &impl ConnectionTrait, id: &str, lease: i64) -> Result<bool, DbErr> {
    let nothing: Option<i64> = None;
    let res = update_in_status(id, ResponseStatus::InProgress)
        .filter(Column::Lease.eq(lease))
        .col_expr(Column::Status, Expr::value(ResponseStatus::Queued))
        .col_expr(Column::WorkerId, Expr::value(Option::<String>::None))
        .col_expr(Column::StartedAt, Expr::value(nothing))
        .col_expr(Column::HeartbeatAt, Expr::value(nothing))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Asks whoever works on a response to end it.
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

/// Nobody is shown a response from now on. `false`: nobody was any more.
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

/// The owners of queued responses.
pub async fn queued_user_ids(db: &impl ConnectionTrait) -> Result<Vec<UserId>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::UserId)
        .filter(Expr::cust("status = 'queued'"))
        .group_by(Column::UserId)
        .order_by_asc(Column::CreatedAt.min())
        .limit(500)
        .into_tuple()
        .all(db)
        .await
}

/// The oldest queued response of an owner.
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

/// Queued responses that were made before this instant.
pub async fn queued_before(
    db: &impl ConnectionTrait,
    before: Timestamp,
) -> Result<Vec<response::Model>, DbErr> {
    Entity::find()
        .filter(Expr::cust("status = 'queued'"))
        .filter(Column::CreatedAt.lte(before))
        .limit(500)
        .all(db)
        .await
}

/// Responses whose node has not been heard of for so long; `None`: however short.
pub async fn expired_leases(
    db: &impl ConnectionTrait,
    now: Timestamp,
    after: Option<Duration>,
    dialect: Backend,
) -> Result<Vec<response::Model>, DbErr> {
    Entity::find()
        .filter(Expr::cust("status = 'in_progress'"))
        .filter(match after {
            Some(after) => lease_expired(now, after, dialect),
            None => Expr::cust("1 = 1"),
        })
        .limit(500)
        .all(db)
        .await
}

fn lease_expired(now: Timestamp, after: Duration, dialect: Backend) -> SimpleExpr {
    let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
    let clock = backend::lease_time(dialect, now);
    Expr::col(Column::HeartbeatAt).lte(clock.sub(after_ms))
}

fn update_in_status(id: &str, from: ResponseStatus) -> UpdateMany<Entity> {
    Entity::update_many()
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(from))
}
