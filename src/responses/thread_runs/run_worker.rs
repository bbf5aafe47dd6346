//! Claims queued runs, fairly among users and with the permits of background responses, and executes
//! them.

use std::future::pending;
use std::time::Duration;

use base::ids::UserId;
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use leased_jobs::job::{Job, JobFailure, JobTiming, NextWork, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle};
use llm::tool::ToolChoice;
use responses_api::fold::engine_event::ResponseOutcome;
use responses_api::threads::run_fold::RunFold;
use sea_orm::DbErr;
use tokio::time::Instant;

use crate::db::backend;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::projection::Projection;
use crate::responses::execution::response_task;
use crate::responses::execution::response_task::{ResponseOutput, ResponseTask, TaskOutcome};
use crate::responses::queued_jobs::FairJob;
use crate::responses::request::StoredRequest;
use crate::responses::services::{LogSignal, ResponseServices};
use crate::responses::store::leased_table;
use crate::responses::store::output_recorder::OutputRecorder;
use crate::responses::thread_runs::run_recorder::RunRecorder;
use crate::responses::thread_runs::{
    run_context, run_finalize, run_queue, run_recovery, run_row_conversion,
};
use crate::responses::threads::thread_run;
use crate::responses::{preparation, queued_jobs};

/// The maximum number of model calls of a run.
const MAX_MODEL_CALLS: u32 = agent::next_action::MAX_ITERATIONS;

/// Runs of threads, as a kind of leased job.
pub struct ThreadRunJob {
    services: ResponseServices,
    cleaned_up_at: Instant,
}

impl ThreadRunJob {
    /// Creates the job of this node.
    pub fn new(services: ResponseServices) -> Self {
        Self {
            services,
            cleaned_up_at: Instant::now(),
        }
    }
}

impl Job for ThreadRunJob {
    type Id = String;
    type Data = LogSignal;
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<String, LogSignal> {
        &self.services.run_leases
    }

    fn timing(&self) -> JobTiming {
        queued_jobs::timing(&self.services)
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        queued_jobs::report(failure, "runs of threads");
    }

    async fn renew(&self, held: &[String]) -> Result<Vec<RenewedLease<String>>, DbErr> {
        let (db, now) = (&self.services.db, self.services.clock.now());
        let connection = db.heartbeat_connection();
        let node = &self.services.node;
        let renewed = leased_table::heartbeat::<thread_run::Entity>(
            connection,
            node,
            held,
            now,
            db.backend(),
        );
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
            true => run_recovery::recover(services, Some(services.settings.stale_after)).await,
            false => Ok(()),
        };
        run_recovery::end_expired(services).await?;
        let cleanup_interval = queued_jobs::CLEANUP_INTERVAL.min(self.timing().recovery_interval);
        if self.cleaned_up_at.elapsed() >= cleanup_interval {
            self.cleaned_up_at = Instant::now();
            if let Err(error) = run_recovery::clean_up(services).await {
                tracing::warn!(%error, "failed to clean up old event logs: {error}");
            }
        }
        recovered
    }
}

impl FairJob for ThreadRunJob {
    type Table = thread_run::Entity;

    async fn start(&self, id: String, permit: ConcurrencyPermit<UserId>) -> Result<(), DbErr> {
        let services = &self.services;
        if let Some(row) = claim(services, id).await? {
            let executed = execute(services.clone(), row, permit);
            services.shutdown.spawn(executed);
        }
        Ok(())
    }
}

async fn claim(
    services: &ResponseServices,
    id: String,
) -> Result<Option<thread_run::Model>, DbErr> {
    let (node, now, backend) = (
        services.node.clone(),
        services.clock.now(),
        services.db.backend(),
    );
    services
        .db
        .write(move |tx| {
            Box::pin(async move { run_queue::claim(tx, &id, &node, now, backend).await })
        })
        .await
}

async fn execute(
    services: ResponseServices,
    row: thread_run::Model,
    permit: ConcurrencyPermit<UserId>,
) {
    let cancel = CancelHandle::default();
    let (guard, log_written) = services.hold_run_lease(&row.id, row.lease, &cancel);
    if let Err(error) = run_claimed(&services, &row, cancel, log_written).await {
        // Its heartbeats stop here; recovery ends or requeues the row.
        tracing::error!(run.id = %row.id, %error, "failed to execute run {}; recovery will end or requeue it: {error}", row.id);
    }
    drop((permit, guard));
    // Background responses use the same permits, so both workers are notified.
    services.queue_signal.notify();
    services.run_queue_signal.notify();
}

async fn run_claimed(
    services: &ResponseServices,
    row: &thread_run::Model,
    cancel: CancelHandle,
    log_written: LogSignal,
) -> Result<(), ResponseEngineError> {
    let now = services.clock.now();
    let fold = run_row_conversion::load_fold(services.db.reader(), row, now).await?;
    let recorder = RunRecorder::new(services.db.clone(), row, &fold);
    let prepared = prepare(services, row, &fold).await;
    let output = ResponseOutput {
        fold: Projection::Run(Box::new(fold)),
        recorder: Some(OutputRecorder::Run(Box::new(recorder))),
        sender: None,
        is_reader_dropped: false,
        permits: Vec::new(),
        is_background: true,
        end_log: run_finalize::end_log(row, services),
        log_written,
    };
    let task = match prepared {
        // No client receives the reasoning of a run.
        Ok(prepared) => prepared.into_task(services, None, cancel, output),
        Err(RunStartError::Unavailable(error)) => return Err(error),
        Err(RunStartError::Ended(outcome)) => {
            output.end(outcome, &services.clock, &cancel).await;
            return Ok(());
        }
    };
    let task = with_limits(task, services, row);
    if let TaskOutcome::NotStarted = response_task::run(task).await {
        run_recovery::requeue(services, row.clone()).await?;
    }
    Ok(())
}

/// Reduces the limits of a task by the calls and tokens that the run has used.
fn with_limits(
    mut task: ResponseTask,
    services: &ResponseServices,
    row: &thread_run::Model,
) -> ResponseTask {
    let left_ms = row.expires_at.ms_since(services.clock.now()).max(0);
    let left = Duration::from_millis(left_ms.unsigned_abs());
    task.limits.total = task.limits.total.min(left);
    task.limits.n_earlier_calls = u32::try_from(row.n_model_calls).unwrap_or(u32::MAX);
    task.tools.n_earlier_server_calls = u32::try_from(row.n_server_calls).unwrap_or(u32::MAX);
    task
}

/// The reason why a run makes no model call.
enum RunStartError {
    Ended(ResponseOutcome),
    /// The run is claimed again after its lease has expired.
    Unavailable(ResponseEngineError),
}

async fn prepare(
    services: &ResponseServices,
    row: &thread_run::Model,
    fold: &RunFold,
) -> Result<preparation::PreparedResponse, RunStartError> {
    // The thread was deleted.
    if row.cancel_requested_at.is_some() {
        return Err(RunStartError::Ended(ResponseOutcome::Cancelled));
    }
    let request = remaining_request(row, fold).map_err(RunStartError::Ended)?;
    let preparing = async {
        let context = run_context::load(services.db.reader(), row).await?;
        let target = preparation::find_target(services, row.user_id, &row.spec.model).await?;
        let (prior, input) = (context.prior, context.input);
        preparation::prepare(services, target, &request, prior, input).await
    };
    preparing.await.map_err(|error| match error {
        ResponseEngineError::Database(_) | ResponseEngineError::TaskEnded(_) => {
            RunStartError::Unavailable(error)
        }
        ResponseEngineError::PromptTooLong { .. } if row.spec.max_prompt_tokens.is_some() => {
            RunStartError::Ended(ResponseOutcome::Incomplete("max_prompt_tokens"))
        }
        error => RunStartError::Ended(ResponseOutcome::Failed(response_task::start_error(&error))),
    })
}

/// Returns the request for the rest of the run. The tool choice applies only to its first model call.
///
/// # Errors
/// Returns why the run ends, if one of its limits is used up.
fn remaining_request(
    row: &thread_run::Model,
    fold: &RunFold,
) -> Result<StoredRequest, ResponseOutcome> {
    let spec = &row.spec;
    let used = row.usage.unwrap_or_default();
    let left = |limit: Option<u32>, used: i64, reason| match limit {
        None => Ok(None),
        Some(limit) => match u32::try_from(i64::from(limit) - used) {
            Ok(left) if left > 0 => Ok(Some(left)),
            _ => Err(ResponseOutcome::Incomplete(reason)),
        },
    };
    if fold.run_state().n_model_calls >= MAX_MODEL_CALLS {
        return Err(ResponseOutcome::Incomplete("max_steps"));
    }
    let mut request = spec.request.clone();
    request.sampling.max_output_tokens = left(
        spec.max_completion_tokens,
        used.completion_tokens,
        "max_output_tokens",
    )?;
    request.max_prompt_tokens = left(
        spec.max_prompt_tokens,
        used.prompt_tokens,
        "max_prompt_tokens",
    )?;
    let is_first = fold.steps().is_empty();
    if !is_first && request.tools.choice != ToolChoice::None {
        request.tools.choice = ToolChoice::Auto;
    }
    Ok(request)
}
