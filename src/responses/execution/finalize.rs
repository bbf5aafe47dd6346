//! Ends a response that no task of this node runs: one that is queued, or whose node is lost or
//! slow.

use base::clock::Timestamp;
use responses_api::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use responses_api::fold::response_fold::Fold;
use responses_api::item::OutputItem;
use responses_api::response::ResponseState;
use responses_api::status::ResponseStatus;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::Value;

use crate::responses::execution::end_log::EndLog;
use crate::responses::services::ResponseServices;
use crate::responses::store::item::ItemDirection;
use crate::responses::store::{event, item, queue, response};

/// Ends a response in the state given by `row`. Its output so far is kept and its open item becomes
/// incomplete. Does nothing if its state has changed in the meantime.
pub async fn finalize_orphan(
    services: &ResponseServices,
    row: response::Model,
    outcome: ResponseOutcome,
) -> Result<(), DbErr> {
    let at = services.clock.now();
    let end_log = EndLog::from_row(&row, &services.call_metrics);
    let ended: Result<Option<ResponseState>, DbErr> = services
        .db
        .write(move |tx| {
            Box::pin(async move { finalize_in_transaction(tx, &row, outcome, at).await })
        })
        .await;
    if let Some(state) = ended? {
        end_log.write(&state, false);
    }
    Ok(())
}

async fn finalize_in_transaction(
    tx: &impl ConnectionTrait,
    row: &response::Model,
    outcome: ResponseOutcome,
    at: Timestamp,
) -> Result<Option<ResponseState>, DbErr> {
    let from = (row.status, row.lease);
    // Lock the row first: every writer of the log locks it too, so the log cannot change below.
    if !queue::lock_in_state(tx, &row.id, from).await? {
        return Ok(None);
    }
    let mut fold = load_fold(tx, row).await?;
    let n_kept = item::list_for_response(tx, &row.id, ItemDirection::Output)
        .await?
        .len();
    let usage = None;
    let events = fold.apply(EngineEvent::Finished(ResponseEnd { outcome, usage, at }));
    if !queue::finish(tx, &row.id, from, fold.state()).await? {
        return Ok(None);
    }
    if row.background {
        let new = fold.items().get(n_kept..).unwrap_or_default();
        let new: Vec<Value> = new.iter().map(OutputItem::to_stored_value).collect();
        item::insert(tx, &row.id, ItemDirection::Output, n_kept, &new).await?;
        event::append(tx, &row.id, &events).await?;
    }
    Ok(Some(fold.state().clone()))
}

/// Restores the fold of a background response from its log. Other responses have no log, so only
/// their initial state is restored.
pub async fn load_fold(tx: &impl ConnectionTrait, row: &response::Model) -> Result<Fold, DbErr> {
    let events = match row.background {
        true => event::list_all(tx, &row.id).await?,
        false => Vec::new(),
    };
    Ok(Fold::replay(row.header(), ResponseStatus::Queued, events))
}
