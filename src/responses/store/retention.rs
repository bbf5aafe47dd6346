//! Deletes rows that are no longer needed: a response that a user deleted, with predecessors that
//! were kept only for it, and in batches old event logs, responses older than the retention time,
//! and deleted conversations without responses.

use std::time::Duration;

use base::clock::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect,
};

use crate::db::connect::Db;
use crate::responses::store::response::Column;
use crate::responses::store::{api_conversation, event, response};

/// How long the event log of an ended response is kept, in milliseconds.
const LOG_RETENTION_MS: i64 = 60 * 60 * 1_000;

/// Rows per read, so that a cleanup does not block other writers for long.
const BATCH: u64 = 100;

/// Batches per cleanup; the next one continues with the rest.
const MAX_BATCHES: u32 = 100;

/// Removes a deleted response that has no successor, and then its predecessors that were only kept
/// for it.
pub async fn purge_deleted(tx: &impl ConnectionTrait, id: &str) -> Result<(), DbErr> {
    let mut next = Some(id.to_owned());
    while let Some(id) = next {
        lock(tx, &id).await?;
        let Some(row) = response::Entity::find_by_id(&id).one(tx).await? else {
            return Ok(());
        };
        let followers = response::Entity::find().filter(Column::PreviousResponseId.eq(&id));
        if row.deleted_at.is_none() || !row.status.is_final() || followers.count(tx).await? > 0 {
            return Ok(());
        }
        response::Entity::delete_by_id(&id).exec(tx).await?;
        next = row.previous_response_id;
    }
    Ok(())
}

/// Locks the row until the end of the transaction: if two successors are deleted concurrently, the
/// second transaction sees that the first one is gone.
async fn lock(tx: &impl ConnectionTrait, id: &str) -> Result<(), DbErr> {
    response::Entity::update_many()
        .col_expr(Column::Lease, Expr::col(Column::Lease))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await
        .map(|_| ())
}

/// Deletes expired event logs.
///
/// # Errors
/// Returns the error of the database.
pub async fn purge_event_logs(db: &Db, now: Timestamp) -> Result<(), DbErr> {
    for _ in 0..MAX_BATCHES {
        let over = Query::select()
            .column(Column::Id)
            .from(response::Entity)
            .and_where(Column::CompletedAt.lt(now.plus_ms(-LOG_RETENTION_MS)))
            .and_where(Expr::exists(own_events()))
            .limit(BATCH)
            .to_owned();
        let rows = db.reader().query_all(&over).await?;
        for row in &rows {
            let id: String = row.try_get("", "id")?;
            db.write(move |tx| Box::pin(async move { event::delete_all(tx, &id).await }))
                .await?;
        }
        if rows.len() < BATCH as usize {
            return Ok(());
        }
    }
    Ok(())
}

fn own_events() -> SelectStatement {
    let own = (event::Entity, event::Column::ResponseId);
    Query::select()
        .expr(Expr::val(1))
        .from(event::Entity)
        .and_where(Expr::col(own).eq(Expr::col((response::Entity, Column::Id))))
        .to_owned()
}

/// Deletes responses that ended before the retention time, newest of a chain first: a response is
/// kept as long as it has a successor.
///
/// # Errors
/// Returns the error of the database.
pub async fn purge_expired(db: &Db, now: Timestamp, retention: Duration) -> Result<(), DbErr> {
    let kept_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let old = Column::CompletedAt.lt(now.plus_ms(-kept_ms));
    for _ in 0..MAX_BATCHES {
        let ids: Vec<String> = response::Entity::find()
            .select_only()
            .column(Column::Id)
            .filter(old.clone())
            .filter(Expr::exists(successors()).not())
            .limit(BATCH)
            .into_tuple()
            .all(db.reader())
            .await?;
        let is_last = ids.len() < BATCH as usize;
        for id in ids {
            delete_chain_end(db, id).await?;
        }
        if is_last {
            return Ok(());
        }
    }
    Ok(())
}

fn successors() -> SelectStatement {
    let after = "after_it";
    Query::select()
        .expr(Expr::val(1))
        .from_as(response::Entity, after)
        .and_where(
            Expr::col((after, Column::PreviousResponseId))
                .eq(Expr::col((response::Entity, Column::Id))),
        )
        .to_owned()
}

/// Deletes the last response of a chain; the next batch finds its predecessor.
async fn delete_chain_end(db: &Db, id: String) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            lock(tx, &id).await?;
            let followers = response::Entity::find().filter(Column::PreviousResponseId.eq(&id));
            // A new response may have continued from it in the meantime.
            if followers.count(tx).await? == 0 {
                response::Entity::delete_by_id(&id).exec(tx).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Removes deleted conversations that no response refers to.
///
/// # Errors
/// Returns the error of the database.
pub async fn purge_orphaned_conversations(db: &Db) -> Result<(), DbErr> {
    let own = (response::Entity, Column::ApiConversationId);
    let responses = Query::select()
        .expr(Expr::val(1))
        .from(response::Entity)
        .and_where(Expr::col(own).eq(Expr::col((
            api_conversation::Entity,
            api_conversation::Column::Id,
        ))))
        .to_owned();
    let ids: Vec<String> = api_conversation::Entity::find()
        .select_only()
        .column(api_conversation::Column::Id)
        .filter(api_conversation::Column::DeletedAt.is_not_null())
        .filter(Expr::exists(responses).not())
        .limit(BATCH)
        .into_tuple()
        .all(db.reader())
        .await?;
    if ids.is_empty() {
        return Ok(());
    }
    // No new response can refer to a deleted conversation.
    db.write(move |tx| {
        Box::pin(async move {
            api_conversation::Entity::delete_many()
                .filter(api_conversation::Column::Id.is_in(ids))
                .exec(tx)
                .await
                .map(|_| ())
        })
    })
    .await
}
