//! Starts and drains the tasks of this node: for background responses and for runs of threads, each
//! with its worker, heartbeats and recovery.

use std::time::Duration;

use leased_jobs::claim_loop::{WakeupSignal, run_claims};
use leased_jobs::heartbeat::run_heartbeat;
use leased_jobs::job::Job;
use leased_jobs::recovery::run_recovery;
use sea_orm::DbErr;

use crate::db::backend::Backend;
use crate::responses::engine::ResponseEngine;
use crate::responses::thread_runs::run_recovery as thread_run_recovery;
use crate::responses::thread_runs::run_worker::ThreadRunJob;
use crate::responses::worker::ResponseJob;
use crate::responses::{queued_jobs, recovery};

impl ResponseEngine {
    /// Recovers what the previous process left, then starts the workers, the heartbeats and the
    /// recovery tasks, which run until the node shuts down.
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
        recovery::recover(services, after).await?;
        thread_run_recovery::recover(services, after).await?;
        self.spawn_tasks(&services.queue_signal, || {
            ResponseJob::new(services.clone())
        });
        let runs = &services.run_queue_signal;
        self.spawn_tasks(runs, || ThreadRunJob::new(services.clone()));
        // On SQLite there is no other node.
        if services.db.backend() == Backend::Postgres {
            let watched = queued_jobs::watch_cancellations(services.clone());
            services.shutdown.spawn(watched);
        }
        Ok(())
    }

    fn spawn_tasks<J: Job>(&self, wakeup: &WakeupSignal, job: impl Fn() -> J) {
        let shutdown = &self.services.shutdown;
        shutdown.spawn(run_heartbeat(job(), shutdown.stopping.clone()));
        shutdown.spawn(run_recovery(job(), shutdown.stopping.clone()));
        if self.services.settings.has_worker {
            let draining = shutdown.draining.clone();
            shutdown.spawn(run_claims(job(), wakeup.clone(), draining));
        }
    }

    /// Waits up to `grace` for tasks to end, cancels the rest and waits up to 5 s for them.
    pub async fn drain(&self, grace: Duration) {
        let (responses, runs) = (&self.services.response_leases, &self.services.run_leases);
        // A task may be claimed but not registered yet; `close` covers that.
        let (responses, runs) = futures::join!(
            responses.drain(grace, |_| responses.close()),
            runs.drain(grace, |_| runs.close()),
        );
        if !(responses && runs) {
            tracing::warn!("responses did not end within 5 s of cancellation");
        }
    }
}
