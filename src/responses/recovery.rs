//! Ends or requeues responses of lost nodes, ends those that waited too long in the queue, and
//! deletes old rows. Every node does this; concurrent recoveries are safe, because each transition
//! names the lease it saw.

use std::time::Duration;

use responses_api::fold::engine_event::ResponseOutcome;
use sea_orm::DbErr;

use crate::responses::execution::{finalize, response_task};
use crate::responses::services::ResponseServices;
use crate::responses::store::{idempotency_key, leased_table, queue, response, retention};
use crate::responses::threads::thread_retention;

/// A queued response expires after this time, in milliseconds.
const MAX_QUEUE_WAIT_MS: i64 = 60 * 60 * 1_000;

/// Ends or requeues responses without a heartbeat for at least `after`; `None` means all of them.
///
/// # Errors
/// Returns the error of the database.
pub async fn recover(services: &ResponseServices, after: Option<Duration>) -> Result<(), DbErr> {
    let (now, backend) = (services.clock.now(), services.db.backend());
    for row in
        leased_table::list_lost::<response::Entity>(services.db.reader(), now, after, backend)
            .await?
    {
        // Responses that this node runs are alive.
        if !services.response_leases.contains(&row.id, row.lease) {
            tracing::warn!(response.id = %row.id, "response {} was abandoned by its node", row.id);
            recover_one(services, row).await?;
        }
    }
    Ok(())
}

async fn recover_one(services: &ResponseServices, row: response::Model) -> Result<(), DbErr> {
    let outcome = match row.cancel_requested_at {
        Some(_) => ResponseOutcome::Cancelled,
        None if is_retryable(&row) && !has_output(services, &row).await? => {
            return requeue(services, row).await;
        }
        None => ResponseOutcome::Failed(response_task::lease_lost_error()),
    };
    finalize::finalize_orphan(services, row, outcome).await
}

fn is_retryable(row: &response::Model) -> bool {
    row.background && row.attempt < leased_table::MAX_ATTEMPTS
}

async fn has_output(services: &ResponseServices, row: &response::Model) -> Result<bool, DbErr> {
    let fold = finalize::load_fold(services.db.reader(), row).await?;
    Ok(fold.has_output())
}

/// Returns a response without output to the queue, or fails it after the last attempt.
///
/// # Errors
/// Returns the error of the database.
pub async fn requeue(services: &ResponseServices, row: response::Model) -> Result<(), DbErr> {
    if !is_retryable(&row) {
        let outcome = ResponseOutcome::Failed(response_task::lease_lost_error());
        return finalize::finalize_orphan(services, row, outcome).await;
    }
    let write = services
        .db
        .write(move |tx| Box::pin(async move { queue::requeue(tx, &row.id, row.lease).await }));
    let requeued: Result<bool, DbErr> = write.await;
    requeued?;
    services.queue_signal.notify();
    Ok(())
}

/// Ends responses that were queued too long, and deletes old rows.
///
/// # Errors
/// Returns the error of the database.
pub async fn clean_up(services: &ResponseServices) -> Result<(), DbErr> {
    let now = services.clock.now();
    let long_ago = now.plus_ms(-MAX_QUEUE_WAIT_MS);
    for row in queue::queued_before(services.db.reader(), long_ago).await? {
        let outcome = ResponseOutcome::Incomplete("expired");
        finalize::finalize_orphan(services, row, outcome).await?;
    }
    idempotency_key::purge_expired(&services.db, now).await?;
    retention::purge_event_logs(&services.db, now).await?;
    if let Some(kept_for) = services.settings.retention {
        retention::purge_expired(&services.db, now, kept_for).await?;
        thread_retention::purge_expired(&services.db, now, kept_for).await?;
    }
    thread_retention::purge_deleted(&services.db, now).await?;
    retention::purge_orphaned_conversations(&services.db).await
}
