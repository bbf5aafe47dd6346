//! Starts and drains the tasks of the run engine on this node (recovery, heartbeats, dispatcher),
//! and runs a recovery on request.

use std::time::Duration;

use leased_jobs::claim_loop::run_claims;
use leased_jobs::heartbeat::run_heartbeat;
use leased_jobs::recovery::run_recovery;

use crate::db::clock_offset;
use crate::runs::background_jobs::BackgroundJob;
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::execution::recovery;
use crate::runs::execution::run_job::RunJob;
use crate::runs::turn_deadlines;

impl RunEngine {
    /// Recovers the runs of the previous process, then starts the heartbeat, the reaper and the
    /// dispatcher, which run until the node closes.
    ///
    /// # Errors
    /// Returns an error when the database does not answer.
    pub async fn start(&self) -> Result<(), EngineError> {
        let context = &self.context;
        clock_offset::measure(&context.db, &context.clock).await;
        let recovered = recovery::recover_at_start(context).await?;
        if recovered != recovery::RecoveryReport::default() {
            tracing::info!(?recovered, "recovered runs of the previous process");
        }
        let (shutdown, wakeup) = (&context.shutdown, context.wakeup.clone());
        let (stopping, releasing) = (&shutdown.stopping, shutdown.releasing.clone());
        let job = || RunJob::new(context.clone());
        shutdown.spawn(run_heartbeat(job(), stopping.clone()));
        shutdown.spawn(run_recovery(job(), stopping.clone()));
        let jobs = BackgroundJob(context.clone());
        shutdown.spawn(run_heartbeat(jobs, stopping.clone()));
        shutdown.spawn(turn_deadlines::run(context.clone()));
        // Grants permits until the node releases its runs; claims none while it drains.
        shutdown.spawn(run_claims(job(), wakeup, releasing));
        Ok(())
    }

    /// Claims no new runs, lets running ones finish for `grace`, and releases the rest. Returns
    /// when all have ended or been released and subscribers were notified, or after a timeout.
    pub async fn drain(&self, grace: Duration) {
        let shutdown = &self.context.shutdown;
        shutdown.draining.cancel();
        let release = |n_runs| {
            if n_runs > 0 {
                tracing::info!(runs = n_runs, "releasing runs that did not finish in time");
            }
            shutdown.releasing.cancel();
        };
        // The executors keep trying to release their runs for longer.
        if !self.context.leases.drain(grace, release).await {
            tracing::warn!("runs not released yet; the database is slow to respond");
        }
        // Each job releases its lease after its current batch, once `draining` is canceled.
        let jobs = &self.context.jobs.leases;
        if !jobs.drain(Duration::ZERO, |_| jobs.close()).await {
            tracing::warn!("background jobs not released yet; the database is slow to respond");
        }
    }

    /// Runs the recovery now and returns its report.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn run_recovery(&self) -> Result<recovery::RecoveryReport, EngineError> {
        recovery::recover(&self.context).await
    }
}
