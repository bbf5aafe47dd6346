//! Runs background jobs: one task for each job of this node, one batch at a time.
//!
//! **Invariant:** a node writes at most one batch at a time, and after each batch the task sleeps
//! for as long as the batch took, to leave the database to others. A job whose node died is found
//! by its heartbeat and continues at its cursor.

use std::time::{Duration, Instant};

use base::ids::JobId;
use sea_orm::{DbErr, EntityTrait};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::conversations::jobs::batch_size::BatchSize;
use crate::conversations::jobs::job;
use crate::db::backend;
use crate::runs::job_batches;
use crate::runs::job_batches::BatchError;
use crate::runs::services::RunServices;

/// The minimum time between two progress events of a job.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// The delay after a batch that failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

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

/// Starts the task of a job that belongs to this node.
pub fn start(context: &RunServices, job: job::Model) -> JobTask {
    context.jobs.running.insert(job.id);
    publish_job(context, &job);
    let own = context.clone();
    let row = job.clone();
    let task = context.shutdown.spawn(async move {
        let id = row.id;
        run_job(&own, row).await;
        own.jobs.running.remove(&id);
    });
    JobTask { job, task }
}

/// Takes over the jobs without a heartbeat for `silent_ms`, and returns their number.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn take_over_stale(context: &RunServices, silent_ms: i64) -> Result<u32, DbErr> {
    if context.shutdown.draining.is_cancelled() {
        return Ok(0);
    }
    let now = context.clock.now();
    let is_ours = |id: JobId| context.jobs.running.contains(&id);
    let taken =
        job::claim_abandoned(&context.db, &context.node, silent_ms, (now, &is_ours)).await?;
    let n_taken = u32::try_from(taken.len()).unwrap_or(u32::MAX);
    for row in taken {
        tracing::info!(job.id = %row.id, "took over a background job whose worker stopped");
        start(context, row);
    }
    Ok(n_taken)
}

async fn run_job(context: &RunServices, mut job: job::Model) {
    let mut size = BatchSize::default();
    let mut announced = Instant::now();
    loop {
        if context.shutdown.draining.is_cancelled() {
            if let Err(error) = job::release(&context.db, &job).await {
                tracing::warn!(%error, job.id = %job.id, "failed to release a background job: {error}");
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
            () = context.shutdown.draining.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
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
        Ok(row) => row.filter(|it| it.needs_work && it.worker_id == job.worker_id),
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
