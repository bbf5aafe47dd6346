//! Ends or requeues runs of lost nodes, ends those that have expired, and deletes old event logs. Every
//! node does this; concurrent recoveries are safe, because each transition names the lease it saw.

use std::time::Duration;

use leased_jobs::lease::CancelReason;
use responses_api::fold::engine_event::ResponseOutcome;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::{ConnectionTrait, DbErr};

use crate::responses::execution::response_task;
use crate::responses::services::ResponseServices;
use crate::responses::store::leased_table;
use crate::responses::thread_runs::{run_event, run_finalize, run_queue};
use crate::responses::threads::thread_run;

/// How long a run may wait in the queue, in milliseconds.
pub const MAX_QUEUE_WAIT_MS: i64 = 60 * 60 * 1_000;

/// The maximum number of batches of event logs that one cleanup deletes.
const MAX_BATCHES: u32 = 100;

/// How long the event log of an ended run is kept, in milliseconds.
const LOG_RETENTION_MS: i64 = 60 * 60 * 1_000;

/// Ends or requeues runs without a heartbeat for at least `after`; `None` means all that are running.
///
/// # Errors
/// Returns the error of the database.
pub async fn recover(services: &ResponseServices, after: Option<Duration>) -> Result<(), DbErr> {
    let (now, backend) = (services.clock.now(), services.db.backend());
    for row in
        leased_table::list_lost::<thread_run::Entity>(services.db.reader(), now, after, backend)
            .await?
    {
        // Runs that this node executes are not lost.
        if !services.run_leases.contains(&row.id, row.lease) {
            tracing::warn!(run.id = %row.id, "run {} was abandoned by its node", row.id);
            recover_one(services, row).await?;
        }
    }
    Ok(())
}

async fn recover_one(services: &ResponseServices, row: thread_run::Model) -> Result<(), DbErr> {
    let outcome = match row.status {
        ThreadRunStatus::Cancelling => ResponseOutcome::Cancelled,
        _ if !has_output(services.db.reader(), &row.id).await? => {
            return requeue(services, row).await;
        }
        _ => ResponseOutcome::Failed(response_task::lease_lost_error()),
    };
    run_finalize::finalize_orphan(services, row, outcome).await
}

/// Returns whether the run has output since it was last taken from the queue.
async fn has_output(db: &impl ConnectionTrait, id: &str) -> Result<bool, DbErr> {
    let last = run_event::find_last(db, id).await?;
    let is_start = |kind: &str| matches!(kind, "thread.run.queued" | "thread.run.in_progress");
    Ok(last.is_some_and(|(_, kind)| !is_start(&kind)))
}

/// Returns a run without new output to the queue, or fails it after the last attempt.
///
/// # Errors
/// Returns the error of the database.
pub async fn requeue(services: &ResponseServices, row: thread_run::Model) -> Result<(), DbErr> {
    if row.attempt >= leased_table::MAX_ATTEMPTS {
        let outcome = ResponseOutcome::Failed(response_task::lease_lost_error());
        return run_finalize::finalize_orphan(services, row, outcome).await;
    }
    let expires_at = services.clock.now().plus_ms(MAX_QUEUE_WAIT_MS);
    let requeued: Result<bool, DbErr> = services
        .db
        .write(move |tx| {
            Box::pin(async move {
                // Every writer of the log locks the row, so the log cannot change below. A run that was
                // not lost may have written meanwhile; if its node is lost, the next recovery fails it.
                let is_own = run_queue::lock_lease(tx, &row.id, row.lease).await?;
                if !is_own || has_output(tx, &row.id).await? {
                    return Ok(false);
                }
                run_queue::requeue(tx, &row.id, row.lease, expires_at).await
            })
        })
        .await;
    requeued?;
    services.run_queue_signal.notify();
    Ok(())
}

/// Ends runs that have expired: they waited too long in the queue or for their client, or were
/// executed for too long.
///
/// # Errors
/// Returns the error of the database.
pub async fn end_expired(services: &ResponseServices) -> Result<(), DbErr> {
    for row in run_queue::list_expired(services.db.reader(), services.clock.now()).await? {
        expire_run(services, row).await?;
    }
    Ok(())
}

/// Ends a run that has expired.
///
/// # Errors
/// Returns the error of the database.
pub async fn expire_run(services: &ResponseServices, row: thread_run::Model) -> Result<(), DbErr> {
    let (id, lease) = (row.id.clone(), row.lease);
    let outcome = match row.status {
        ThreadRunStatus::Cancelling => ResponseOutcome::Cancelled,
        _ => ResponseOutcome::Incomplete("expired"),
    };
    run_finalize::finalize_orphan(services, row, outcome).await?;
    services
        .run_leases
        .cancel_lease(&id, lease, CancelReason::LeaseLost);
    Ok(())
}

/// Deletes the event logs of runs that ended long ago.
///
/// # Errors
/// Returns the error of the database.
pub async fn clean_up(services: &ResponseServices) -> Result<(), DbErr> {
    let before = services.clock.now().plus_ms(-LOG_RETENTION_MS);
    for _ in 0..MAX_BATCHES {
        let runs = thread_run::list_ended_with_events(services.db.reader(), before).await?;
        if runs.is_empty() {
            break;
        }
        let deleted: Result<(), DbErr> = services
            .db
            .write(move |tx| Box::pin(async move { run_event::delete_all(tx, &runs).await }))
            .await;
        deleted?;
    }
    Ok(())
}
