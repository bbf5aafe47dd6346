//! Recovers responses of lost nodes, ends those that waited too long in the queue, and deletes old
//! ones. Runs on every node; concurrent runs are safe because each transition names the lease it
//! saw.

use std::time::Duration;

use leased_jobs::heartbeat;
use sea_orm::DbErr;
use tokio::time::Instant;

use crate::db::connect::Backend;
use crate::responses::engine::ResponseEngine;
use crate::responses::engine_event::ResponseOutcome;
use crate::responses::services::ResponseServices;
use crate::responses::worker::ResponseJob;
use crate::responses::{finalize, queue, response, response_task, retention, worker};

/// A queued response expires after this time, in milliseconds.
const MAX_QUEUE_WAIT_MS: i64 = 60 * 60 * 1_000;

/// How often old rows are cleaned up; on SQLite, where no other node can fail, also the interval of
/// the recovery.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

impl ResponseEngine {
    /// Recovers what the previous process left, then starts the worker, the heartbeats and the
    /// recovery task, which run until the node shuts down.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub async fn start(&self) -> Result<(), DbErr> {
        let services = &self.services;
        let after = match services.db.backend() {
            // A single process owns the database, so no other process can still be running them.
            Backend::Sqlite => None,
            Backend::Postgres => Some(services.settings.stale_after),
        };
        recover(services, after).await?;
        let shutdown = &services.shutdown;
        let (job, stopping) = (ResponseJob::new(services.clone()), &shutdown.stopping);
        shutdown.spawn(heartbeat::run_heartbeat(job, stopping.clone()));
        shutdown.spawn(run_recovery(services.clone()));
        if services.settings.has_worker {
            shutdown.spawn(worker::run_worker(services.clone()));
        }
        Ok(())
    }

    /// Waits up to `grace` for tasks to end, cancels the rest and waits up to 5 s for them.
    pub async fn drain(&self, grace: Duration) {
        let leases = &self.services.leases;
        // A task may be claimed but not registered yet; `close` covers that.
        if !leases.drain(grace, |_| leases.close()).await {
            tracing::warn!("responses did not end within 5 s of cancellation");
        }
    }
}

/// Recovers and cleans up until the node stops.
async fn run_recovery(services: ResponseServices) {
    let settings = services.settings;
    let every = match services.db.backend() {
        Backend::Sqlite => CLEANUP_INTERVAL,
        Backend::Postgres => settings.recovery_interval,
    };
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut last, mut recovers_after) = (Instant::now(), Instant::now());
    let mut cleaned_up_at = Instant::now();
    loop {
        tokio::select! {
            () = services.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        // After a pause of this process, wait until live nodes have renewed their heartbeats.
        if last.elapsed() > every + settings.heartbeat {
            recovers_after = Instant::now() + settings.stale_after;
        }
        last = Instant::now();
        if Instant::now() >= recovers_after
            && let Err(error) = recover(&services, Some(settings.stale_after)).await
        {
            tracing::warn!(%error, "failed to recover responses: {error}");
            recovers_after = Instant::now() + settings.stale_after; // heartbeats failed, too
        }
        // Runs separately, so that a failing cleanup does not block the recovery.
        if cleaned_up_at.elapsed() >= CLEANUP_INTERVAL.min(every) {
            cleaned_up_at = Instant::now();
            if let Err(error) = clean_up(&services).await {
                tracing::warn!(%error, "failed to clean up old responses: {error}");
            }
        }
    }
}

/// Ends or requeues responses without a heartbeat for at least `after`; `None` means all of them.
///
/// # Errors
/// Returns the error of the database.
pub async fn recover(services: &ResponseServices, after: Option<Duration>) -> Result<(), DbErr> {
    let (now, dialect) = (services.clock.now(), services.db.backend());
    for row in queue::expired_leases(services.db.reader(), now, after, dialect).await? {
        // Responses that this node runs are alive.
        if !services.leases.contains(&row.id, row.lease) {
            tracing::warn!(response.id = %row.id, "response {} was abandoned by its node", row.id);
            recover_one(services, row).await?;
        }
    }
    Ok(())
}

async fn recover_one(services: &ResponseServices, row: response::Model) -> Result<(), DbErr> {
    let now = services.clock.now();
    if row.cancel_requested_at.is_some() {
        finalize::finalize_orphan(&services.db, row, ResponseOutcome::Cancelled, now).await?;
        return Ok(());
    }
    let is_retryable = row.background && row.attempt < queue::MAX_ATTEMPTS;
    if is_retryable
        && !finalize::load_fold(services.db.reader(), &row)
            .await?
            .has_output()
    {
        let (id, lease) = (row.id, row.lease);
        let requeued: Result<bool, DbErr> = services
            .db
            .write(move |tx| Box::pin(async move { queue::requeue(tx, &id, lease).await }))
            .await;
        requeued?;
        services.queue_signal.notify_one();
        return Ok(());
    }
    let outcome = ResponseOutcome::Failed(response_task::lease_lost_error());
    finalize::finalize_orphan(&services.db, row, outcome, now).await?;
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
        finalize::finalize_orphan(
            &services.db,
            row,
            ResponseOutcome::Incomplete("expired"),
            now,
        )
        .await?;
    }
    retention::purge_event_logs(&services.db, now).await?;
    if let Some(kept_for) = services.settings.retention {
        retention::purge_expired(&services.db, now, kept_for).await?;
    }
    retention::purge_orphaned_conversations(&services.db).await
}
