//! Runs background jobs on this node: one task for each job, one batch at a time. Also renews their
//! leases and continues jobs of dead nodes.
//!
//! **Invariant:** a node writes at most one batch at a time, and after each batch the task sleeps
//! for as long as the batch took, so that other work can use the database. If a node dies or a task
//! panics, the heartbeat of the job stops; another task then continues the job at its cursor.

use std::time::{Duration, Instant};

use base::ids::JobId;
use leased_jobs::job::{Job, JobFailure, JobTiming, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle, CancelReason, Lease};
use sea_orm::{DbErr, EntityTrait};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::conversations::jobs::batch_size::BatchSize;
use crate::conversations::jobs::job;
use crate::db::backend;
use crate::db::backend::StaleAfter;
use crate::runs::job_batches;
use crate::runs::job_batches::BatchError;
use crate::runs::services::RunServices;

/// The minimum time between two progress events of a job.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// The delay after a batch that failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Background jobs, as a kind of leased job. The node that inserts a job starts it at once. The
/// reaper claims jobs without a heartbeat in the same sweep in which it recovers runs.
pub struct BackgroundJob(pub RunServices);

impl Job for BackgroundJob {
    type Id = JobId;
    type Data = ();
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<JobId> {
        &self.0.jobs.leases
    }

    fn timing(&self) -> JobTiming {
        let settings = &self.0.settings;
        JobTiming {
            heartbeat: settings.heartbeat,
            stale_after: settings.stale_after,
            // The next batch detects a lost lease.
            gives_up_stale_leases: false,
            poll_interval: None,
            recovery_interval: settings.reaper_interval,
        }
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        match failure {
            JobFailure::Heartbeat(error)
            | JobFailure::Claim(error)
            | JobFailure::Recovery(error) => {
                tracing::warn!(%error, "failed to renew heartbeats of background jobs; retrying: {error}");
            }
            JobFailure::HeartbeatTimeout => {
                tracing::warn!("heartbeats of background jobs timed out; retrying");
            }
        }
    }

    async fn renew(&self, held: &[JobId]) -> Result<Vec<RenewedLease<JobId>>, DbErr> {
        // Not on the heartbeat connection: a locked row would delay the heartbeats of runs there.
        let (db, now, node) = (&self.0.db, self.0.clock.now(), self.0.node.clone());
        let (held, backend) = (held.to_vec(), db.backend());
        let renewed = db.write(move |tx| {
            let held = held.clone();
            let node = node.clone();
            Box::pin(async move { job::heartbeat(tx, &node, &held, now, backend).await })
        });
        let renewed: Result<Vec<job::Model>, DbErr> = renewed.await;
        let jobs = renewed?.into_iter();
        let renewed = jobs.map(|job| RenewedLease {
            id: job.id,
            number: job.lease,
            // A canceled branch job continues: it deletes what it copied.
            is_cancel_requested: false,
        });
        Ok(renewed.collect())
    }
}

/// A job and its task.
#[derive(Debug)]
pub struct JobTask {
    pub job: job::Model,
    task: JoinHandle<()>,
}

impl JobTask {
    /// Waits until the task has ended, and returns the job after that; `None` if the row was
    /// deleted.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn wait_until_finished(
        self,
        context: &RunServices,
    ) -> Result<Option<job::Model>, DbErr> {
        // Ignores a panic of the task: the row shows whether the job finished.
        drop(self.task.await);
        let db = context.db.reader();
        job::Entity::find_by_id(self.job.id).one(db).await
    }
}

/// Starts the task of a job that this node has claimed.
pub fn start(context: &RunServices, job: job::Model) -> JobTask {
    let cancel = CancelHandle::child_of(&context.shutdown.draining);
    let lease = Lease::new(job.id, job.lease, cancel.clone(), ());
    let guard = context.jobs.leases.hold(lease);
    publish_job(context, &job);
    let own = context.clone();
    let row = job.clone();
    let task = context.shutdown.spawn(async move {
        // Dropped even if the task panics: the heartbeat then stops, and a node claims the job.
        let _guard = guard;
        run_job(&own, row, &cancel).await;
    });
    JobTask { job, task }
}

/// Takes over the jobs whose heartbeat is stale, and returns their number.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn take_over_stale(context: &RunServices, stale: &StaleAfter) -> Result<u32, DbErr> {
    if context.shutdown.draining.is_cancelled() {
        return Ok(0);
    }
    let (now, backend) = (context.clock.now(), stale.backend);
    let expired = job::list_expired(context.db.reader(), now, stale).await?;
    let mut n_taken = 0;
    for seen in expired {
        // Jobs that this node executes are alive, even if a clock was set.
        if context.jobs.leases.find(&seen.id).is_some() {
            continue;
        }
        let node = context.node.clone();
        let claim = context.db.write(move |tx| {
            Box::pin(async move { job::claim(tx, &seen, &node, now, backend).await })
        });
        if let Some(row) = claim.await? {
            tracing::info!(job.id = %row.id, "claimed a background job whose worker stopped");
            start(context, row);
            n_taken += 1;
        }
    }
    Ok(n_taken)
}

async fn run_job(context: &RunServices, mut job: job::Model, cancel: &CancelHandle) {
    let mut size = BatchSize::default();
    let mut announced = Instant::now();
    loop {
        if cancel.token.is_cancelled() {
            if cancel.reason() == CancelReason::Shutdown {
                release_job(context, job).await;
            }
            return;
        }
        let turn = context.jobs.batch_lock.lock().await;
        let batch = job_batches::run_next(context, &job, size).await;
        context.db.merge_segments().await;
        drop(turn);
        base::fail_point!("job.after_batch");
        let pause = match batch {
            Ok(batch) => {
                size = size.adjust(batch.elapsed, context.db.backend());
                let is_progress = announced.elapsed() >= PROGRESS_INTERVAL;
                if batch.is_last || batch.job.status != job.status || is_progress {
                    announced = Instant::now();
                    publish_job(context, &batch.job);
                }
                if batch.is_last {
                    return;
                }
                job = batch.job;
                batch.elapsed
            }
            Err(error) => match handle_error(context, &job, error).await {
                Some(next) => {
                    job = next;
                    RETRY_DELAY
                }
                None => return,
            },
        };
        tokio::select! {
            () = cancel.token.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn release_job(context: &RunServices, job: job::Model) {
    let id = job.id;
    let released = context
        .db
        .write(move |tx| Box::pin(async move { job::release(tx, &job).await }));
    let released: Result<(), DbErr> = released.await;
    if let Err(error) = released {
        tracing::warn!(%error, job.id = %id, "failed to release a background job: {error}");
    }
}

/// Handles a batch that did not commit. Returns the job to continue with, or `None` if this node
/// must stop working on it.
async fn handle_error(
    context: &RunServices,
    job: &job::Model,
    error: BatchError,
) -> Option<job::Model> {
    let id = job.id;
    match error {
        BatchError::Db(error)
            if backend::is_transient(&error) || backend::is_rolled_back(&error) =>
        {
            tracing::warn!(%error, job.id = %id, "a batch of a background job failed; retrying: {error}");
            return Some(job.clone());
        }
        error @ (BatchError::Db(_) | BatchError::TaskEnded(_)) => {
            tracing::error!(%error, job.id = %id, "a background job failed: {error}");
            fail_job(
                context,
                job,
                "internal",
                "Internal server error. It has been logged.",
            )
            .await;
        }
        BatchError::Rejected(code, message) => fail_job(context, job, code, &message).await,
        BatchError::Conflict => {}
    }
    // The row shows whether the job ended, was canceled, or was taken over.
    let found = job::Entity::find_by_id(id).one(context.db.reader()).await;
    match found {
        Ok(row) => row.filter(|it| it.needs_work && it.lease == job.lease),
        Err(_) => Some(job.clone()),
    }
}

async fn fail_job(context: &RunServices, job: &job::Model, code: &str, message: &str) {
    if job.status != job::JobStatus::Running || !job.kind.creates_branch() {
        return; // a deletion is retried until nothing is left
    }
    let error = json!({"code": code, "message": message});
    let (row, now) = (job.clone(), context.clock.now());
    let ended = context.db.write(move |tx| {
        Box::pin(
            async move { job::finish(tx, &row, job::JobStatus::Failed, Some(error), now).await },
        )
    });
    let ended: Result<bool, DbErr> = ended.await;
    if let Err(error) = ended {
        tracing::error!(%error, job.id = %job.id, "failed to mark a background job as failed: {error}");
    }
    let found = job::Entity::find_by_id(job.id)
        .one(context.db.reader())
        .await;
    if let Ok(Some(row)) = found {
        publish_job(context, &row);
    }
}

fn publish_job(context: &RunServices, job: &job::Model) {
    if let Some(event) = job.update_event() {
        context.hub.publish(event);
    }
}
