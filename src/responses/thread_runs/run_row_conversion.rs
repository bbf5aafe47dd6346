//! Converts the rows of a run, its steps and its messages to the parts of a fold, and back.

use base::clock::Timestamp;
use responses_api::threads::run_deltas::MessageDelta;
use responses_api::threads::run_fold::{RunFold, StoredRun};
use responses_api::threads::run_message::{RunMessage, RunMessagePart};
use responses_api::threads::run_objects::{ThreadRunObject, ThreadRunStepObject};
use responses_api::threads::run_state::{RunHeader, RunState, RunStep};
use responses_api::threads::thread_status::{
    ThreadMessageStatus, ThreadRunStatus, ThreadRunStepStatus,
};
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::json;

use crate::responses::thread_runs::run_event;
use crate::responses::threads::{thread_message, thread_run, thread_run_step};

/// Loads the fold of a run with its stored steps and messages. It continues after its last event.
pub async fn load_fold(
    db: &impl ConnectionTrait,
    row: &thread_run::Model,
    now: Timestamp,
) -> Result<RunFold, DbErr> {
    let last = run_event::find_last(db, &row.id).await?;
    let (last_seq, last_kind) = last.unwrap_or((-1, String::new()));
    let mut state = state(row);
    // A worker that was lost may have announced the start; otherwise it is announced now.
    if state.status == ThreadRunStatus::InProgress && last_kind == "thread.run.queued" {
        state.status = ThreadRunStatus::Queued;
    }
    let steps = thread_run_step::list_for_run(db, &row.id).await?;
    let messages = thread_message::list_for_run(db, &row.id).await?;
    let is_open = |it: &thread_message::Model| it.status == ThreadMessageStatus::InProgress;
    let has_open = messages.iter().any(is_open);
    let steps: Vec<RunStep> = steps.into_iter().map(step).collect();
    let messages = messages.into_iter().map(|it| message(it, &steps));
    let mut fold = RunFold::new(
        StoredRun {
            header: header(row),
            state,
            messages: messages.collect(),
            steps,
            next_seq: last_seq + 1,
        },
        now,
    );
    if has_open {
        restore_texts(db, row, &mut fold).await?;
    }
    Ok(fold)
}

/// Adds the texts that were sent but not yet stored in their message.
async fn restore_texts(
    db: &impl ConnectionTrait,
    row: &thread_run::Model,
    fold: &mut RunFold,
) -> Result<(), DbErr> {
    for event in run_event::list_deltas(db, &row.id).await? {
        let Ok(delta) = serde_json::from_str::<MessageDelta>(&event.json) else {
            continue;
        };
        let id = delta.id.clone();
        for text in delta.into_texts() {
            fold.restore_text(&id, &text);
        }
    }
    Ok(())
}

/// Returns the part of a run that never changes, except for its metadata.
pub fn header(row: &thread_run::Model) -> RunHeader {
    RunHeader {
        id: row.id.clone(),
        thread_id: row.thread_id.clone(),
        assistant_id: row.assistant_id.clone(),
        created_at: row.created_at,
        metadata: row.metadata.clone(),
        echo: row.spec.request.echo.clone(),
    }
}

/// Returns the state of a run.
pub fn state(row: &thread_run::Model) -> RunState {
    RunState {
        status: row.status,
        required_action: row.required_action.clone(),
        last_error: row.last_error.clone(),
        incomplete_reason: row.incomplete_reason.clone(),
        usage: row.usage,
        n_model_calls: u32::try_from(row.n_model_calls).unwrap_or(u32::MAX),
        n_server_calls: u32::try_from(row.n_server_calls).unwrap_or(u32::MAX),
        work_left_ms: row.work_left_ms,
        expires_at: row.expires_at,
        started_at: row.started_at,
        completed_at: row.completed_at,
        cancelled_at: row.cancelled_at,
        failed_at: row.failed_at,
    }
}

/// Returns a run as clients see it.
pub fn document(row: &thread_run::Model) -> ThreadRunObject {
    ThreadRunObject::new(&header(row), &state(row))
}

/// Returns a step as clients see it.
pub fn step_document(run: &thread_run::Model, row: thread_run_step::Model) -> ThreadRunStepObject {
    ThreadRunStepObject::new(&header(run), &step(row))
}

/// Returns a stored step.
pub fn step(row: thread_run_step::Model) -> RunStep {
    let ended_at = row
        .completed_at
        .or(row.cancelled_at)
        .or(row.failed_at)
        .or(row.expired_at);
    RunStep {
        id: row.id,
        status: row.status,
        details: row.step_details,
        usage: row.usage,
        last_error: row.last_error,
        created_at: row.created_at,
        ended_at,
    }
}

/// Returns the row of a step at this position of its run.
pub fn step_row(run: &str, position: usize, step: &RunStep) -> thread_run_step::Model {
    let at_end = |status| step.ended_at.filter(|_| step.status == status);
    thread_run_step::Model {
        id: step.id.clone(),
        run_id: run.to_owned(),
        position: i64::try_from(position).unwrap_or(i64::MAX),
        kind: step.details.kind(),
        status: step.status,
        step_details: step.details.clone(),
        usage: step.usage,
        last_error: step.last_error.clone(),
        created_at: step.created_at,
        completed_at: at_end(ThreadRunStepStatus::Completed),
        cancelled_at: at_end(ThreadRunStepStatus::Cancelled),
        failed_at: at_end(ThreadRunStepStatus::Failed),
        expired_at: at_end(ThreadRunStepStatus::Expired),
    }
}

fn message(row: thread_message::Model, steps: &[RunStep]) -> RunMessage {
    let of_message = |it: &&RunStep| it.message_id() == Some(row.id.as_str());
    let speaker = steps.iter().find(of_message).and_then(RunStep::speaker);
    let reason = row.incomplete_details.as_ref();
    let reason = reason.and_then(|it| it["reason"].as_str().map(str::to_owned));
    let parts = row.content.as_array().into_iter().flatten();
    RunMessage {
        speaker: speaker.cloned(),
        status: row.status,
        parts: parts.filter_map(RunMessagePart::read).collect(),
        incomplete_reason: reason,
        created_at: row.created_at,
        ended_at: row.completed_at,
        id: row.id,
    }
}

/// Returns the row of a message that a run writes. `seq` is its position in the thread. An open message
/// is stored without its text, which is in the event log.
pub fn message_row(run: &RunHeader, seq: i64, message: &RunMessage) -> thread_message::Model {
    let stored = message.stored(run);
    let is_open = stored.status == ThreadMessageStatus::InProgress;
    thread_message::Model {
        id: stored.id,
        thread_id: stored.thread_id,
        seq,
        role: stored.role,
        content: if is_open { json!([]) } else { stored.content },
        status: stored.status,
        assistant_id: stored.assistant_id,
        run_id: stored.run_id,
        hidden_for_run_id: None,
        metadata: stored.metadata,
        incomplete_details: stored.incomplete_details,
        created_at: stored.created_at,
        completed_at: stored.ended_at,
        deleted_at: None,
    }
}
