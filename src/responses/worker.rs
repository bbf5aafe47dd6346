//! Claims queued background responses, fairly among users, and executes them.

use std::future::pending;
use std::time::Duration;

use base::ids::UserId;
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use leased_jobs::job::{Job, JobFailure, JobTiming, NextWork, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle};
use responses_api::fold::engine_event::ResponseOutcome;
use sea_orm::DbErr;
use tokio::time::Instant;

use crate::db::backend;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::mcp::plan;
use crate::responses::execution::recorder::Recorder;
use crate::responses::execution::response_task::{ResponseOutput, TaskOutcome};
use crate::responses::execution::{finalize, response_task};
use crate::responses::input::sealed_reasoning::ReasoningSealer;
use crate::responses::input::{history, summary_items};
use crate::responses::preparation::PreparedResponse;
use crate::responses::queued_jobs::FairJob;
use crate::responses::services::{LogSignal, ResponseServices};
use crate::responses::store::item::ItemDirection;
use crate::responses::store::output_recorder::OutputRecorder;
use crate::responses::store::{item, leased_table, queue, response};
use crate::responses::{preparation, queued_jobs, recovery};

/// Stored responses, as a kind of leased job.
pub struct ResponseJob {
    services: ResponseServices,
    cleaned_up_at: Instant,
}

impl ResponseJob {
    /// Creates the job of this node.
    pub fn new(services: ResponseServices) -> Self {
        Self {
            services,
            cleaned_up_at: Instant::now(),
        }
    }
}

impl Job for ResponseJob {
    type Id = String;
    type Data = LogSignal;
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<String, LogSignal> {
        &self.services.response_leases
    }

    fn timing(&self) -> JobTiming {
        queued_jobs::timing(&self.services)
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        queued_jobs::report(failure, "responses");
    }

    async fn renew(&self, held: &[String]) -> Result<Vec<RenewedLease<String>>, DbErr> {
        let (db, now) = (&self.services.db, self.services.clock.now());
        let connection = db.heartbeat_connection();
        let node = &self.services.node;
        let renewed =
            leased_table::heartbeat::<response::Entity>(connection, node, held, now, db.backend());
        db.run_observed(renewed).await
    }

    async fn claim(&mut self) -> Result<NextWork, DbErr> {
        queued_jobs::start_due(&self.services, self).await?;
        Ok(Box::pin(pending()))
    }

    async fn recover(&mut self, guard: &mut ClockJumpGuard) -> Result<(), DbErr> {
        let services = &self.services;
        let (db, now) = (services.db.reader(), services.clock.now());
        let reading = backend::read_lease_time(db, services.db.backend(), now).await?;
        let recovered = match guard.can_recover(Instant::now(), reading.map(|at| at.0)) {
            true => recovery::recover(services, Some(services.settings.stale_after)).await,
            false => Ok(()),
        };
        // Runs separately, so that a failing cleanup does not block the recovery.
        if self.cleaned_up_at.elapsed()
            >= queued_jobs::CLEANUP_INTERVAL.min(self.timing().recovery_interval)
        {
            self.cleaned_up_at = Instant::now();
            if let Err(error) = recovery::clean_up(services).await {
                tracing::warn!(%error, "failed to clean up old responses: {error}");
            }
        }
        recovered
    }
}

impl FairJob for ResponseJob {
    type Table = response::Entity;

    async fn start(&self, id: String, permit: ConcurrencyPermit<UserId>) -> Result<(), DbErr> {
        let services = &self.services;
        if let Some(row) = claim(services, id).await? {
            let executed = execute(services.clone(), row, permit);
            services.shutdown.spawn(executed);
        }
        Ok(())
    }
}

async fn claim(services: &ResponseServices, id: String) -> Result<Option<response::Model>, DbErr> {
    let (node, now, backend) = (
        services.node.clone(),
        services.clock.now(),
        services.db.backend(),
    );
    services
        .db
        .write(move |tx| Box::pin(async move { queue::claim(tx, &id, &node, now, backend).await }))
        .await
}

async fn execute(
    services: ResponseServices,
    row: response::Model,
    permit: ConcurrencyPermit<UserId>,
) {
    let cancel = CancelHandle::default();
    let (guard, log_written) = services.hold_lease(&row.id, row.lease, &cancel);
    let done = run_claimed(&services, &row, cancel, log_written).await;
    if let Err(error) = done {
        // Its heartbeats end here; recovery ends or requeues the row.
        tracing::error!(response.id = %row.id, %error, "failed to run response {}; recovery will end or requeue it: {error}", row.id);
    }
    drop((permit, guard));
    // The permits are those of thread runs, too.
    services.queue_signal.notify();
    services.run_queue_signal.notify();
}

async fn run_claimed(
    services: &ResponseServices,
    row: &response::Model,
    cancel: CancelHandle,
    log_written: LogSignal,
) -> Result<(), ResponseEngineError> {
    let fold = finalize::load_fold(services.db.reader(), row).await?;
    let output = ResponseOutput {
        fold: fold.into(),
        recorder: Some(OutputRecorder::Response(Box::new(Recorder::new(
            services.db.clone(),
            row,
        )))),
        sender: None,
        is_reader_dropped: false,
        permits: Vec::new(),
        is_background: true,
        end_log: EndLog::from_row(row, &services.call_metrics),
        log_written,
    };
    let left = time_left(services, row);
    if left.is_zero() {
        let outcome = ResponseOutcome::Incomplete("run_timeout");
        output.end(outcome, &services.clock, &cancel).await;
        return Ok(());
    }
    let prepared = match prepare(services, row).await {
        Ok(prepared) => prepared,
        Err(error @ (ResponseEngineError::Database(_) | ResponseEngineError::TaskEnded(_))) => {
            return Err(error);
        }
        Err(error) => {
            output.fail(&error, &services.clock, &cancel).await;
            return Ok(());
        }
    };
    let is_shown = row.request.reasoning.includes_encrypted;
    let sealer = ReasoningSealer::new(&services.models.cipher, row.user_id, is_shown, true);
    let mut task = prepared.into_task(services, sealer, cancel, output);
    task.limits.total = left;
    if let TaskOutcome::NotStarted = response_task::run(task).await {
        recovery::requeue(services, row.clone()).await?;
    }
    Ok(())
}

/// Returns the time until the deadline, which counts from the first attempt.
fn time_left(services: &ResponseServices, row: &response::Model) -> Duration {
    let now = services.clock.now();
    let used_ms = row.started_at.map_or(0, |it| now.ms_since(it));
    let used = Duration::from_millis(u64::try_from(used_ms).unwrap_or_default());
    services.settings.call_limits.total.saturating_sub(used)
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
    let (prior, input) = summary_items::expand(sealer, row.user_id, prior, input)?;
    let mut stored = row.request.clone();
    stored.tools.credentials = plan::decrypt(sealer, &row.id, row.sealed_secrets.as_deref())?;
    let mcp_plan = plan::plan(services, row.user_id, &stored.tools, &prior, &input)?;
    let target = preparation::find_target(services, row.user_id, &row.model).await?;
    let mut prepared = preparation::prepare(services, target, &stored, prior, input).await?;
    prepared.mcp_plan = mcp_plan;
    Ok(prepared)
}
