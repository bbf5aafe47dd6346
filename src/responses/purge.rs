//! Takes away what nobody can see any more: deleted responses that nobody goes on from, streams that
//! are over for long, and, after the time that the house keeps them, all the others.

use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::responses::event;
use crate::responses::response;
use crate::responses::response::Column;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::PaginatorTrait;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::sea_query::Query;
use std::time::Duration;

/// How long the stream of an ended response can be had again.
const LOG_LIVES_MS: i64 = 60 * 60 * 1_000;

/// So many at once: a sweep must not hold up those who write.
const BATCH: u64 = 100;

/// Takes a deleted response away if nobody goes on from it, and then those before it that were only
/// kept for it.
pub async fn forgotten(tx: &impl ConnectionTrait, id: &str) -> Result<(), DbErr> {
    let mut next = Some(id.to_owned());
    while let Some(id) = next {
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

/// Takes the streams away whose time is over.
pub async fn old_logs(db: &Db, now: Timestamp) -> Result<(), DbErr> {
    let over = Query::select()
        .column(Column::Id)
        .from(response::Entity)
        .and_where(Column::CompletedAt.lt(now.plus_ms(-LOG_LIVES_MS)))
        .to_owned();
    let any = event::Entity::find()
        .filter(event::Column::ResponseId.in_subquery(over.clone()))
        .limit(1)
        .one(db.reader())
        .await?;
    if any.is_none() {
        return Ok(());
    }
    db.write(move |tx| {
        Box::pin(async move {
            event::Entity::delete_many()
                .filter(event::Column::ResponseId.in_subquery(over))
                .exec(tx)
                .await
                .map(|_| ())
        })
    })
    .await
}

/// Takes the responses away that ended so long ago, youngest first: what somebody goes on from is
/// kept for as long as they are.
pub async fn expired(db: &Db, now: Timestamp, kept_for: Duration) -> Result<(), DbErr> {
    let kept_ms = i64::try_from(kept_for.as_millis()).unwrap_or(i64::MAX);
    let followed = Query::select()
        .column(Column::PreviousResponseId)
        .from(response::Entity)
        .and_where(Column::PreviousResponseId.is_not_null())
        .to_owned();
    let ids: Vec<String> = response::Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::CompletedAt.lt(now.plus_ms(-kept_ms)))
        .filter(Column::Id.not_in_subquery(followed))
        .limit(BATCH)
        .into_tuple()
        .all(db.reader())
        .await?;
    for id in ids {
        take_away(db, id).await?;
    }
    Ok(())
}

/// One whole chain from its end, as far as its links are old enough is left to the next sweeps.
async fn take_away(db: &Db, id: String) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let followers = response::Entity::find().filter(Column::PreviousResponseId.eq(&id));
            // Somebody may have gone on from it meanwhile.
            if followers.count(tx).await? == 0 {
                response::Entity::delete_by_id(&id).exec(tx).await?;
            }
            Ok(())
        })
    })
    .await
}
