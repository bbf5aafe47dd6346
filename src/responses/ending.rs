//! Ends a response that nobody works on here: one that waits, or whose node is gone or slow.

use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::responses::event;
use crate::responses::fold::Fold;
use crate::responses::happening::Ending;
use crate::responses::happening::Happening;
use crate::responses::happening::How;
use crate::responses::item;
use crate::responses::item::Side;
use crate::responses::queue;
use crate::responses::response;
use crate::responses::response::Status;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;

/// Ends it as it was seen in `row`. What it put out so far is kept, its open item incomplete.
/// `false`: it has moved meanwhile.
pub async fn conclude(
    db: &Db,
    row: response::Model,
    how: How,
    at: Timestamp,
) -> Result<bool, DbErr> {
    db.write(move |tx| Box::pin(async move { conclude_in(tx, &row, how, at).await }))
        .await
}

async fn conclude_in(
    tx: &impl ConnectionTrait,
    row: &response::Model,
    how: How,
    at: Timestamp,
) -> Result<bool, DbErr> {
    let from = (row.status, row.lease);
    // The row first: whoever writes its log takes it as well, so the log stands still from here.
    if !queue::is_at(tx, &row.id, from).await? {
        return Ok(false);
    }
    let mut fold = fold_of(tx, row).await?;
    let n_kept = item::of_response(tx, &row.id, Side::Output).await?.len();
    let usage = None;
    let events = fold.apply(Happening::Ended(Ending { how, usage, at }));
    if !queue::finish(tx, &row.id, from, fold.standing()).await? {
        return Ok(false);
    }
    if row.background {
        let new = fold.items().get(n_kept..).unwrap_or_default();
        item::insert(tx, &row.id, Side::Output, n_kept, new).await?;
        event::append(tx, &row.id, &events).await?;
    }
    Ok(true)
}

/// The fold of a background response, from its stream so far. That of another has only its state.
pub async fn fold_of(tx: &impl ConnectionTrait, row: &response::Model) -> Result<Fold, DbErr> {
    let events = match row.background {
        true => event::all(tx, &row.id).await?,
        false => Vec::new(),
    };
    Ok(Fold::replay(row.header(), Status::Queued, &events))
}
