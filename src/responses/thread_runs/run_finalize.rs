//! Ends a run that no task of this node executes: one that is queued or waits for its client, or whose
//! node is lost or slow.

use base::clock::Timestamp;
use responses_api::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use responses_api::response::ResponseState;
use responses_api::threads::run_fold::RunFold;
use sea_orm::{ConnectionTrait, DbErr};

use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::recorder::RecordError;
use crate::responses::services::ResponseServices;
use crate::responses::telemetry::call_log::CallSurface;
use crate::responses::thread_runs::run_recorder::StoredProgress;
use crate::responses::thread_runs::{run_queue, run_row_conversion};
use crate::responses::threads::thread_run;

/// Ends a run in the state given by `row`. What it has written so far is kept; its open message becomes
/// incomplete, and its open step ends. Does nothing if its state has changed in the meantime.
pub async fn finalize_orphan(
    services: &ResponseServices,
    row: thread_run::Model,
    outcome: ResponseOutcome,
) -> Result<(), DbErr> {
    let at = services.clock.now();
    let end_log = end_log(&row, services);
    let id = row.id.clone();
    let ended: Result<Option<ResponseState>, RecordError> = services
        .db
        .write(move |tx| {
            Box::pin(async move { finalize_in_transaction(tx, &row, outcome, at).await })
        })
        .await;
    match ended {
        Ok(Some(state)) => {
            end_log.write(&state, false);
            services.notify_run_readers(&id);
            Ok(())
        }
        Ok(None) | Err(RecordError::LeaseLost) => Ok(()),
        Err(RecordError::Database(error)) => Err(error),
    }
}

async fn finalize_in_transaction(
    tx: &impl ConnectionTrait,
    row: &thread_run::Model,
    outcome: ResponseOutcome,
    at: Timestamp,
) -> Result<Option<ResponseState>, RecordError> {
    let from = (row.status, row.lease);
    // Lock the row first: every writer of the log locks it, so the log cannot change concurrently.
    if !run_queue::lock_in_state(tx, &row.id, from).await? {
        return Ok(None);
    }
    let mut fold: RunFold = run_row_conversion::load_fold(tx, row, at).await?;
    let before = StoredProgress::of(&fold);
    let usage = fold.run_state().usage.map(Into::into);
    let events = fold.apply(EngineEvent::Finished(ResponseEnd { outcome, usage, at }));
    if !run_queue::set_state_without_task(tx, &row.id, from, fold.run_state()).await? {
        return Ok(None);
    }
    before.write(tx, &fold, &events).await?;
    Ok(Some(fold.state().clone()))
}

/// Returns the log line about the end of a run.
pub fn end_log(row: &thread_run::Model, services: &ResponseServices) -> EndLog {
    let (metrics, created_at) = (&services.call_metrics, row.created_at);
    let line = EndLog::new(&row.id, row.user_id, metrics, created_at);
    let mut line = line.with_surface(CallSurface::Assistants);
    line.started_at = row.started_at;
    line.model.clone_from(&row.spec.model);
    (line.is_stored, line.is_background) = (true, true);
    line.attempt = row.attempt;
    line.counts.n_model_calls = u32::try_from(row.n_model_calls).unwrap_or(u32::MAX);
    line
}
