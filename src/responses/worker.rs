//! Runs background responses: claims queued ones, fairly among users, and executes them.

use std::time::Duration;

use leased_jobs::job::{Job, JobFailure, JobTiming, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle};
use sea_orm::DbErr;

use crate::db::connect::Backend;
use crate::responses::concurrency_limit::{ConcurrencyPermit, LimitReached};
use crate::responses::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use crate::responses::error::ResponseEngineError;
use crate::responses::item::ItemDirection;
use crate::responses::preparation::PreparedResponse;
use crate::responses::recorder::Recorder;
use crate::responses::response::ResponseStatus;
use crate::responses::response_task::{ResponseOutput, TaskOutcome};
use crate::responses::services::{LogSignal, ResponseServices};
use crate::responses::{
    compaction, finalize, history, item, mcp, preparation, queue, response, response_task,
};

/// How often the queue is polled, for responses of other nodes and lost wake-up signals.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The delay after a failed query.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Stored responses, as a kind of leased job.
pub struct ResponseJob {
    services: ResponseServices,
}

impl ResponseJob {
    /// Creates the job of this node.
    pub fn new(services: ResponseServices) -> Self {
        Self { services }
    }
}

impl Job for ResponseJob {
    type Id = String;
    type Data = LogSignal;
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<String, LogSignal> {
        &self.services.leases
    }

    fn timing(&self) -> JobTiming {
        JobTiming {
            heartbeat: self.services.settings.heartbeat,
            stale_after: self.services.settings.stale_after,
            // The next write of the recorder detects a lost lease.
            gives_up_stale_leases: false,
        }
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        match failure {
            JobFailure::Heartbeat(error) => {
                tracing::warn!(%error, "failed to renew response heartbeats; retrying: {error}");
            }
            JobFailure::HeartbeatTimeout => {
                tracing::warn!("response heartbeats timed out; retrying");
            }
        }
    }

    async fn renew(&self, held: &[String]) -> Result<Vec<RenewedLease<String>>, DbErr> {
        let (db, now) = (&self.services.db, self.services.clock.now());
        let connection = db.heartbeat_connection();
        let renewed = queue::heartbeat(connection, &self.services.node, held, now, db.backend());
        db.run_observed(renewed).await
    }
}

/// Claims and runs responses until the node drains.
pub async fn run_worker(services: ResponseServices) {
    let draining = services.shutdown.draining.clone();
    loop {
        let mut wait = match services.db.backend() {
            // A single process uses the database, so every insert notifies this worker.
            Backend::Sqlite => None,
            Backend::Postgres => Some(POLL_INTERVAL),
        };
        if let Err(error) = claim_due(&services).await {
            tracing::warn!(%error, "failed to query queued responses; retrying: {error}");
            wait = Some(RETRY_DELAY);
        }
        let pause = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = draining.cancelled() => return,
            () = services.queue_signal.notified() => {}
            () = pause => {}
        }
    }
}

/// Claims queued responses while permits are free. Users with the fewest running ones come first.
async fn claim_due(services: &ResponseServices) -> Result<(), DbErr> {
    loop {
        let mut owners = queue::queued_user_ids(services.db.reader()).await?;
        owners.sort_by_key(|it| services.background_permits.n_held_by(*it));
        let mut has_claimed = false;
        for owner in owners {
            if services.shutdown.draining.is_cancelled() {
                return Ok(());
            }
            let permit = match services.background_permits.acquire(owner) {
                Ok(place) => place,
                Err(LimitReached::Global) => return Ok(()),
                Err(LimitReached::PerUser) => continue,
            };
            let Some(next) = queue::next_for_user(services.db.reader(), owner).await? else {
                continue;
            };
            // If another node claimed it first, the next pass sees what is left.
            has_claimed = true;
            if let Some(row) = claim(services, next).await? {
                services
                    .shutdown
                    .spawn(execute(services.clone(), row, permit));
            }
        }
        if !has_claimed {
            return Ok(());
        }
    }
}

async fn claim(services: &ResponseServices, id: String) -> Result<Option<response::Model>, DbErr> {
    let (node, now, dialect) = (
        services.node.clone(),
        services.clock.now(),
        services.db.backend(),
    );
    services
        .db
        .write(move |tx| Box::pin(async move { queue::claim(tx, &id, &node, now, dialect).await }))
        .await
}

async fn execute(services: ResponseServices, row: response::Model, permit: ConcurrencyPermit) {
    let cancel = CancelHandle::default();
    let (guard, log_written) = services.hold_lease(&row.id, row.lease, &cancel);
    let done = run_claimed(&services, &row, cancel, log_written).await;
    if let Err(error) = done {
        // Its heartbeats end here; recovery ends or requeues the row.
        tracing::error!(response.id = %row.id, %error, "failed to run response {}; recovery will end or requeue it: {error}", row.id);
    }
    drop((permit, guard));
    services.queue_signal.notify_one();
}

async fn run_claimed(
    services: &ResponseServices,
    row: &response::Model,
    cancel: CancelHandle,
    log_written: LogSignal,
) -> Result<(), DbErr> {
    let fold = finalize::load_fold(services.db.reader(), row).await?;
    let output = ResponseOutput {
        fold,
        recorder: Some(Recorder::new(services.db.clone(), row)),
        sender: None,
        is_reader_dropped: false,
        is_background: true,
        has_log: true,
        log_written,
    };
    let prepared = match prepare(services, row).await {
        Ok(prepared) => prepared,
        Err(ResponseEngineError::Database(error)) => return Err(error),
        Err(error) => {
            fail(services, output, &error).await;
            return Ok(());
        }
    };
    let task = prepared.into_task(services, cancel, output);
    if let TaskOutcome::NotStarted = response_task::run(task).await {
        requeue(services, row).await?;
    }
    Ok(())
}

async fn prepare(
    services: &ResponseServices,
    row: &response::Model,
) -> Result<PreparedResponse, ResponseEngineError> {
    let db = services.db.reader();
    let (previous, conversation) = (
        row.previous_response_id.as_deref(),
        row.api_conversation_id.as_deref(),
    );
    let prior = history::list_items(db, previous, conversation).await?;
    let input = item::list_for_response(db, &row.id, ItemDirection::Input).await?;
    let input = input.into_iter().map(|it| it.payload).collect();
    let sealer = &services.models.cipher;
    let (prior, input) = compaction::expand_summaries(sealer, row.user_id, prior, input)?;
    let mut stored = row.request.clone();
    stored.tools.credentials = mcp::decrypt(sealer, &row.id, row.sealed_secrets.as_deref())?;
    let mcp_plan = mcp::plan(services, row.user_id, &stored.tools, &prior, &input)?;
    let target = preparation::find_target(services, row.user_id, &row.model).await?;
    let mut prepared = preparation::prepare(services, target, &stored, prior, input).await?;
    prepared.mcp_plan = mcp_plan;
    Ok(prepared)
}

/// Fails a queued response that can no longer be started.
async fn fail(
    services: &ResponseServices,
    mut output: ResponseOutput,
    error: &ResponseEngineError,
) {
    let outcome = ResponseOutcome::Failed(response_task::start_error(error));
    let (usage, at) = (None, services.clock.now());
    let mut events = Vec::new();
    // A second attempt has already emitted `Started`.
    if output.fold.state().status == ResponseStatus::Queued {
        events.extend(output.fold.apply(EngineEvent::Started));
    }
    events.extend(
        output
            .fold
            .apply(EngineEvent::Finished(ResponseEnd { outcome, usage, at })),
    );
    if let Some(recorder) = output.recorder {
        // On an error, another node has ended it or recovery will.
        let standing = output.fold.state();
        let _ = recorder
            .finish(output.fold.items(), &events, standing)
            .await;
    }
}

/// Returns the response to the queue, or fails it after the last attempt.
async fn requeue(services: &ResponseServices, row: &response::Model) -> Result<(), DbErr> {
    if row.attempt >= queue::MAX_ATTEMPTS {
        let (outcome, now) = (
            ResponseOutcome::Failed(response_task::lease_lost_error()),
            services.clock.now(),
        );
        finalize::finalize_orphan(&services.db, row.clone(), outcome, now).await?;
        return Ok(());
    }
    let (id, lease) = (row.id.clone(), row.lease);
    let requeued: Result<bool, DbErr> = services
        .db
        .write(move |tx| Box::pin(async move { queue::requeue(tx, &id, lease).await }))
        .await;
    requeued.map(drop)
}
