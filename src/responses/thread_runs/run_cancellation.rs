//! Cancels runs: through the task that executes the run, or directly if there is no task or it is too slow.

use std::time::Duration;

use leased_jobs::lease::CancelReason;
use responses_api::fold::engine_event::ResponseOutcome;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::{DbErr, EntityTrait};
use tokio::time::Instant;

use crate::responses::engine::ResponseEngine;
use crate::responses::thread_runs::run_error::RunOperationError;
use crate::responses::thread_runs::{run_finalize, run_queue};
use crate::responses::threads::thread_run;

/// How long a cancellation waits for the task that executes the run.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval at which the status of a run is read during this wait.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The maximum number of attempts to cancel a run whose status changes concurrently.
const MAX_ATTEMPTS: u32 = 10;

impl ResponseEngine {
    /// Cancels a run, and returns it: as cancelled, or as cancelling if a task executes it, which then
    /// ends within about two seconds.
    ///
    /// # Errors
    /// Returns `NotCancellable` when it has ended.
    pub async fn cancel_run(
        &self,
        mut row: thread_run::Model,
    ) -> Result<thread_run::Model, RunOperationError> {
        let mut has_changed = false;
        for _ in 0..MAX_ATTEMPTS {
            match row.status {
                ThreadRunStatus::Queued | ThreadRunStatus::RequiresAction => {
                    let outcome = ResponseOutcome::Cancelled;
                    run_finalize::finalize_orphan(&self.services, row.clone(), outcome).await?;
                }
                ThreadRunStatus::InProgress => self.request_run_cancel(&row.id).await?,
                ThreadRunStatus::Cancelling => {
                    self.ensure_cancelled(row.clone());
                    return Ok(row);
                }
                ThreadRunStatus::Cancelled if has_changed => return Ok(row),
                _ => return Err(RunOperationError::NotCancellable),
            }
            has_changed = true;
            row = self.reload_run(row).await?;
        }
        Ok(row)
    }

    async fn request_run_cancel(&self, id: &str) -> Result<(), DbErr> {
        let (own_id, now) = (id.to_owned(), self.services.clock.now());
        let requested: Result<bool, DbErr> = self
            .services
            .db
            .write(move |tx| {
                Box::pin(async move { run_queue::request_cancel(tx, &own_id, now).await })
            })
            .await;
        requested?;
        self.services
            .run_leases
            .cancel(&id.to_owned(), CancelReason::Requested);
        Ok(())
    }

    /// Waits in the background for the end of a run that is being cancelled, and ends it if its task
    /// does not.
    fn ensure_cancelled(&self, row: thread_run::Model) {
        let engine = self.clone();
        self.services.shutdown.spawn(async move {
            let id = row.id.clone();
            if let Err(error) = engine.wait_until_cancelled(row).await {
                // The recovery ends it when its lease expires.
                tracing::warn!(run.id = %id, %error, "failed to cancel run {id}; recovery will end it: {error}");
            }
        });
    }

    async fn wait_until_cancelled(
        &self,
        mut row: thread_run::Model,
    ) -> Result<(), RunOperationError> {
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        while row.status == ThreadRunStatus::Cancelling && Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
            row = self.reload_run(row).await?;
        }
        if row.status != ThreadRunStatus::Cancelling {
            return Ok(());
        }
        let (id, outcome) = (row.id.clone(), ResponseOutcome::Cancelled);
        run_finalize::finalize_orphan(&self.services, row, outcome).await?;
        self.services
            .run_leases
            .cancel(&id, CancelReason::LeaseLost);
        Ok(())
    }

    async fn reload_run(
        &self,
        row: thread_run::Model,
    ) -> Result<thread_run::Model, RunOperationError> {
        let found = thread_run::Entity::find_by_id(&row.id);
        let found = found.one(self.services.db.reader()).await?;
        found.ok_or(RunOperationError::NotFound)
    }
}
