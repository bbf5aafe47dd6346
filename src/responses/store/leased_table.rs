//! Statements about queues and leases that are the same for every table of jobs of programs: responses and
//! runs of threads. The transitions of a status are in the queue of each table.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::UserId;
use leased_jobs::job::RenewedLease;
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QueryResult,
    QuerySelect,
};

use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};

/// The maximum number of times that a job is started without output, including retries after a node was lost.
pub const MAX_ATTEMPTS: i64 = 2;

/// The maximum number of rows that one query returns.
pub const BATCH: u64 = 500;

/// Matches queued jobs; spelled as in the indexes, because SQLite compares the text.
pub const IS_QUEUED: &str = "status = 'queued'";

/// A table whose rows are queued for their users, and claimed by nodes under a lease.
pub trait LeasedTable: EntityTrait {
    const ID: Self::Column;
    const USER_ID: Self::Column;
    const CREATED_AT: Self::Column;
    const WORKER_ID: Self::Column;
    const LEASE: Self::Column;
    const HEARTBEAT_AT: Self::Column;
    const CANCEL_REQUESTED_AT: Self::Column;
    /// Matches jobs that a task executes; spelled as in the indexes.
    const IS_RUNNING: &'static str;
}

/// Renews the heartbeats of a node's jobs. A job that is missing in the result is no longer owned by this
/// node. Reads only the needed columns, because the rows may be large.
pub async fn heartbeat<T: LeasedTable>(
    db: &impl ConnectionTrait,
    worker: &str,
    ids: &[String],
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<RenewedLease<String>>, DbErr> {
    let update = Query::update()
        .table(T::default())
        .value(T::HEARTBEAT_AT, backend::lease_time(backend, now))
        .and_where(T::ID.is_in(ids))
        .and_where(T::WORKER_ID.eq(worker))
        .and_where(Expr::cust(T::IS_RUNNING))
        .returning(Query::returning().columns([T::ID, T::LEASE, T::CANCEL_REQUESTED_AT]))
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

/// Returns the users with queued jobs, longest waiting first, at most [`BATCH`].
pub async fn queued_user_ids<T: LeasedTable>(
    db: &impl ConnectionTrait,
) -> Result<Vec<UserId>, DbErr> {
    T::find()
        .select_only()
        .column(T::USER_ID)
        .filter(Expr::cust(IS_QUEUED))
        .group_by(T::USER_ID)
        .order_by_asc(T::CREATED_AT.min())
        .limit(BATCH)
        .into_tuple()
        .all(db)
        .await
}

/// Returns the oldest queued job of a user.
pub async fn next_for_user<T: LeasedTable>(
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<Option<String>, DbErr> {
    T::find()
        .select_only()
        .column(T::ID)
        .filter(Expr::cust(IS_QUEUED))
        .filter(T::USER_ID.eq(user))
        .order_by_asc(T::CREATED_AT)
        .order_by_asc(T::ID)
        .into_tuple()
        .one(db)
        .await
}

/// Returns the jobs of a node whose cancellation was requested, with their leases.
pub async fn cancellations<T: LeasedTable>(
    db: &impl ConnectionTrait,
    worker: &str,
) -> Result<Vec<(String, i64)>, DbErr> {
    T::find()
        .select_only()
        .columns([T::ID, T::LEASE])
        .filter(Expr::cust(T::IS_RUNNING))
        .filter(T::WORKER_ID.eq(worker))
        .filter(T::CANCEL_REQUESTED_AT.is_not_null())
        .into_tuple()
        .all(db)
        .await
}

/// Returns running jobs without a heartbeat for at least `after`, at most [`BATCH`]; `None` returns all
/// running ones.
pub async fn list_lost<T: LeasedTable>(
    db: &impl ConnectionTrait,
    now: Timestamp,
    after: Option<Duration>,
    backend: Backend,
) -> Result<Vec<T::Model>, DbErr> {
    let running = T::find().filter(Expr::cust(T::IS_RUNNING));
    let lost = match after {
        Some(after) => {
            let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            let is_stale = StaleAfter { after_ms, backend };
            running.filter(is_stale.condition(T::HEARTBEAT_AT, now))
        }
        None => running,
    };
    lost.limit(BATCH).all(db).await
}
