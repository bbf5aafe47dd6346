//! What background responses and runs of threads share as leased jobs: their times, their log lines, fair
//! claims with common permits, and cancellations that other nodes have requested.

use std::future::Future;
use std::time::Duration;

use base::ids::UserId;
use leased_jobs::concurrency_limit::{ConcurrencyPermit, LimitReached};
use leased_jobs::job::{JobFailure, JobTiming};
use leased_jobs::lease::{ActiveLeases, CancelReason};
use sea_orm::DbErr;
use tokio::time::{MissedTickBehavior, interval};

use crate::db::backend::Backend;
use crate::responses::services::{LogSignal, ResponseServices};
use crate::responses::store::leased_table::LeasedTable;
use crate::responses::store::{leased_table, response};
use crate::responses::threads::thread_run;

/// How often the queue is polled, for jobs of other nodes and lost wake-up signals.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often old rows are cleaned up; on SQLite, where no other node can fail, also the interval of
/// the recovery.
pub const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

/// The interval at which a node queries jobs whose cancellation was requested on another node. That request
/// waits two seconds for the end, and the next heartbeat may be later.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(500);

/// Jobs that are claimed one by one, fairly among users.
pub trait FairJob: Sync {
    type Table: LeasedTable;

    /// Claims a queued job, and executes it with this permit. Does nothing if another node claimed it first.
    ///
    /// # Errors
    /// Returns the error of the database.
    fn start(
        &self,
        id: String,
        permit: ConcurrencyPermit<UserId>,
    ) -> impl Future<Output = Result<(), DbErr>> + Send;
}

/// Returns the times of the jobs.
pub fn timing(services: &ResponseServices) -> JobTiming {
    let settings = &services.settings;
    let (poll_interval, recovery_interval) = match services.db.backend() {
        // A single process uses the database, so every insert notifies this worker.
        Backend::Sqlite => (None, CLEANUP_INTERVAL),
        Backend::Postgres => (Some(POLL_INTERVAL), settings.recovery_interval),
    };
    JobTiming {
        heartbeat: settings.heartbeat,
        stale_after: settings.stale_after,
        // The next write of the recorder detects a lost lease.
        gives_up_stale_leases: false,
        poll_interval,
        recovery_interval,
    }
}

/// Logs a failure of these jobs.
pub fn report(failure: JobFailure<'_, DbErr>, jobs: &str) {
    match failure {
        JobFailure::Heartbeat(error) => {
            tracing::warn!(%error, "failed to renew heartbeats of {jobs}; retrying: {error}");
        }
        JobFailure::HeartbeatTimeout => {
            tracing::warn!("heartbeats of {jobs} timed out; retrying");
        }
        JobFailure::Claim(error) => {
            tracing::warn!(%error, "failed to query queued {jobs}; retrying: {error}");
        }
        JobFailure::Recovery(error) => {
            tracing::warn!(%error, "failed to recover {jobs}: {error}");
        }
    }
}

/// Starts queued jobs while permits are free. Users with the fewest running ones come first.
///
/// # Errors
/// Returns the error of the database.
pub async fn start_due<J: FairJob>(services: &ResponseServices, job: &J) -> Result<(), DbErr> {
    let (db, permits) = (services.db.reader(), &services.background_permits);
    loop {
        let mut owners = leased_table::queued_user_ids::<J::Table>(db).await?;
        owners.sort_by_key(|it| permits.n_held_by(*it));
        let mut has_claimed = false;
        for owner in owners {
            if services.shutdown.draining.is_cancelled() {
                return Ok(());
            }
            let permit = match permits.acquire(owner) {
                Ok(permit) => permit,
                Err(LimitReached::Global) => return Ok(()),
                Err(LimitReached::PerOwner) => continue,
            };
            let Some(next) = leased_table::next_for_user::<J::Table>(db, owner).await? else {
                continue;
            };
            // If another node claimed it first, the next iteration queries the remaining jobs.
            has_claimed = true;
            job.start(next, permit).await?;
        }
        if !has_claimed {
            return Ok(());
        }
    }
}

/// Cancels the jobs of this node whose end was requested on another node, until the node stops.
pub async fn watch_cancellations(services: ResponseServices) {
    let stopping = services.shutdown.stopping.clone();
    let mut ticks = interval(CANCELLATION_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = ticks.tick() => {}
        }
        cancel_requested::<response::Entity>(&services, &services.response_leases).await;
        cancel_requested::<thread_run::Entity>(&services, &services.run_leases).await;
    }
}

async fn cancel_requested<T: LeasedTable>(
    services: &ResponseServices,
    leases: &ActiveLeases<String, LogSignal>,
) {
    if leases.count() == 0 {
        return;
    }
    // The heartbeats report a failing database, and cancel what is missed here.
    let requested = leased_table::cancellations::<T>(services.db.reader(), &services.node).await;
    for (id, lease) in requested.unwrap_or_default() {
        leases.cancel_lease(&id, lease, CancelReason::Requested);
    }
}
