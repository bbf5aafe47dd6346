//! Deletes rows of assistants and threads that are no longer needed: those that a user deleted, and
//! threads that have not changed within the retention time.

use std::time::Duration;

use base::clock::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ColumnTrait, Condition, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::db::connect::Db;
use crate::responses::threads::{assistant, thread, thread_message, thread_run};

/// How long a deleted assistant or message can be the cursor of the next page, in milliseconds: clients
/// delete what is on a page before they request the next one.
const CURSOR_RETENTION_MS: i64 = 60 * 60 * 1_000;

/// Rows per read, and small rows per transaction, so that a cleanup does not block other writers for
/// long.
const BATCH: usize = 100;

/// Batches per cleanup; the next one continues with the rest.
const MAX_BATCHES: u32 = 100;

/// Deletes what users deleted, except the cursors of recent pages. A thread is kept until its run has
/// ended.
///
/// # Errors
/// Returns the error of the database.
pub async fn purge_deleted(db: &Db, now: Timestamp) -> Result<(), DbErr> {
    let before = now.plus_ms(-CURSOR_RETENTION_MS);
    let is_old = Condition::all().add(assistant::Column::DeletedAt.lt(before));
    purge::<assistant::Entity>(db, assistant::Column::Id, is_old, BATCH).await?;
    let is_old = Condition::all().add(thread_message::Column::DeletedAt.lt(before));
    purge::<thread_message::Entity>(db, thread_message::Column::Id, is_old, BATCH).await?;
    purge_threads(db, thread::Column::DeletedAt.is_not_null()).await
}

/// Deletes threads whose last change was before the retention time.
///
/// # Errors
/// Returns the error of the database.
pub async fn purge_expired(db: &Db, now: Timestamp, retention: Duration) -> Result<(), DbErr> {
    let kept_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    purge_threads(db, thread::Column::UpdatedAt.lt(now.plus_ms(-kept_ms))).await
}

/// Deletes threads without an active run, with their messages and runs, each in its own transaction.
async fn purge_threads(db: &Db, condition: Expr) -> Result<(), DbErr> {
    let condition = Condition::all()
        .add(condition)
        .add(Expr::exists(active_runs()).not());
    purge::<thread::Entity>(db, thread::Column::Id, condition, 1).await
}

fn active_runs() -> SelectStatement {
    let own = (thread_run::Entity, thread_run::Column::ThreadId);
    Query::select()
        .expr(Expr::val(1))
        .from(thread_run::Entity)
        .and_where(Expr::col(own).eq(Expr::col((thread::Entity, thread::Column::Id))))
        .and_where(thread_run::is_active())
        .to_owned()
}

/// Deletes the rows that fulfill a condition, at most `n_per_transaction` at once.
async fn purge<E: EntityTrait>(
    db: &Db,
    id: E::Column,
    condition: Condition,
    n_per_transaction: usize,
) -> Result<(), DbErr> {
    for _ in 0..MAX_BATCHES {
        let ids: Vec<String> = E::find()
            .select_only()
            .column(id)
            .filter(condition.clone())
            .limit(BATCH as u64)
            .into_tuple()
            .all(db.reader())
            .await?;
        for ids in ids.chunks(n_per_transaction) {
            // The condition is checked again: the rows may have changed in the meantime.
            let delete = E::delete_many()
                .filter(id.is_in(ids.iter().map(String::as_str)))
                .filter(condition.clone());
            db.write(move |tx| Box::pin(async move { delete.exec(tx).await }))
                .await?;
        }
        if ids.len() < BATCH {
            return Ok(());
        }
    }
    Ok(())
}
