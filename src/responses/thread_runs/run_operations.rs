//! Operations of clients on runs, except cancellation: create a run, optionally with its thread, and
//! continue it with the outputs of tools.

use std::collections::HashSet;

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::fold::engine_event::EngineEvent;
use responses_api::object_ids;
use responses_api::request::threads::run_bodies::ToolOutput;
use responses_api::request::threads::thread_bodies::NewThread;
use responses_api::request::threads::thread_messages::NewThreadMessage;
use responses_api::threads::run_fold::{RunFold, StoredRun};
use responses_api::threads::run_state::RunState;
use responses_api::threads::run_values::RequiredAction;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::{Map, Value};

use crate::responses::engine::ResponseEngine;
use crate::responses::execution::recorder::RecordError;
use crate::responses::preparation::ModelTarget;
use crate::responses::thread_runs::run_error::RunOperationError;
use crate::responses::thread_runs::run_recorder::StoredProgress;
use crate::responses::thread_runs::run_recovery::MAX_QUEUE_WAIT_MS;
use crate::responses::thread_runs::run_spec::RunSpec;
use crate::responses::thread_runs::{run_event, run_queue, run_recovery, run_row_conversion};
use crate::responses::threads::thread_error::ThreadError;
use crate::responses::threads::thread_message::MessageDraft;
use crate::responses::threads::{thread, thread_message, thread_run, thread_writer};
use crate::responses::{model_provider, preparation};

/// A run to create.
#[derive(Clone)]
pub struct NewThreadRun {
    pub thread: ThreadOfRun,
    pub assistant_id: String,
    pub spec: RunSpec,
    pub metadata: Value,
    /// Appended to the thread before the run.
    pub messages: Vec<NewThreadMessage>,
}

/// The thread of a new run.
#[derive(Clone)]
pub enum ThreadOfRun {
    Existing(String),
    New(NewThread),
}

/// A run that was created, and its thread if that is new.
pub struct CreatedThreadRun {
    pub run: thread_run::Model,
    pub thread: Option<thread::Model>,
}

/// A run that was continued.
pub struct ContinuedRun {
    pub run: thread_run::Model,
    /// The number of the last event before the outputs.
    pub last_seq: i64,
}

impl ResponseEngine {
    /// Creates a run and queues it.
    ///
    /// # Errors
    /// Returns `ActiveRun` while another run of the thread is active, `NotFound` when the thread was
    /// deleted in the meantime, or the reason why the model cannot be called.
    pub async fn create_run(
        &self,
        user: UserId,
        new: NewThreadRun,
    ) -> Result<CreatedThreadRun, RunOperationError> {
        // The semaphore is never closed; an error would only skip the limit.
        let _creation_permit = self.services.creation_permits.acquire().await.ok();
        self.require_usable_model(user, &new.spec).await?;
        let now = self.services.clock.now();
        let work_ms = self.services.settings.call_limits.total.as_millis();
        let work_ms = i64::try_from(work_ms).unwrap_or(i64::MAX);
        let written: Result<CreatedThreadRun, RunOperationError> = self
            .services
            .db
            .write(move |tx| Box::pin(async move { insert(tx, user, new, work_ms, now).await }))
            .await;
        let created = written?;
        self.services.run_queue_signal.notify();
        Ok(created)
    }

    /// Checks that the model exists and supports the settings.
    async fn require_usable_model(
        &self,
        user: UserId,
        spec: &RunSpec,
    ) -> Result<(), RunOperationError> {
        let target = preparation::find_target(&self.services, user, &spec.model).await?;
        let registry = &self.services.tool_runtime.registry;
        let tools = &spec.request.tools;
        tools.require_tools(registry, target.space().is_some())?;
        if let ModelTarget::Provider(row) = target {
            model_provider::load_provider(&self.services, &row, &spec.request)?;
        }
        Ok(())
    }

    /// Replaces the metadata of a run, and returns the run.
    ///
    /// # Errors
    /// Returns `NotFound` when it was deleted in the meantime.
    pub async fn set_run_metadata(
        &self,
        id: String,
        metadata: Map<String, Value>,
    ) -> Result<thread_run::Model, RunOperationError> {
        let changed: Result<Option<thread_run::Model>, DbErr> = self
            .services
            .db
            .write(move |tx| {
                Box::pin(async move { thread_run::set_metadata(tx, &id, metadata.into()).await })
            })
            .await;
        changed?.ok_or(RunOperationError::NotFound)
    }

    /// Adds the outputs of tools to a run that waits for them, and queues it again.
    ///
    /// # Errors
    /// Returns `NotAwaitingTools`, or an error if the outputs do not match the open calls.
    pub async fn submit_tool_outputs(
        &self,
        row: thread_run::Model,
        outputs: Vec<ToolOutput>,
    ) -> Result<ContinuedRun, RunOperationError> {
        let now = self.services.clock.now();
        let Some(action) = row.required_action.as_ref().filter(|_| is_waiting(&row)) else {
            return Err(RunOperationError::NotAwaitingTools);
        };
        if row.expires_at <= now {
            run_recovery::expire_run(&self.services, row).await?;
            return Err(RunOperationError::NotAwaitingTools);
        }
        check_outputs(action, &outputs)?;
        let outputs = outputs
            .into_iter()
            .map(|it| (it.call_id, it.output))
            .collect();
        let written: Result<ContinuedRun, RunOperationError> = self
            .services
            .db
            .write(move |tx| Box::pin(async move { resume(tx, row, outputs, now).await }))
            .await;
        let continued = written?;
        self.services.run_queue_signal.notify();
        Ok(continued)
    }
}

fn is_waiting(row: &thread_run::Model) -> bool {
    row.status == ThreadRunStatus::RequiresAction
}

/// Inserts a run with its messages and its first events.
async fn insert(
    tx: &impl ConnectionTrait,
    user: UserId,
    new: NewThreadRun,
    work_ms: i64,
    now: Timestamp,
) -> Result<CreatedThreadRun, RunOperationError> {
    let (thread_id, thread) = match new.thread {
        ThreadOfRun::Existing(id) => (id, None),
        ThreadOfRun::New(thread) => {
            let row = thread_writer::create_in_transaction(tx, user, thread, now).await?;
            (row.id.clone(), Some(row))
        }
    };
    // Locks the thread, so that no other run begins and no message is added meanwhile.
    let n_messages = new.messages.len();
    let first_seq = thread::reserve_seqs(tx, &thread_id, n_messages, now).await?;
    let first_seq = first_seq.ok_or(RunOperationError::NotFound)?;
    if let Some(active) = thread_run::find_active(tx, &thread_id).await? {
        return Err(ThreadError::ActiveRun(active).into());
    }
    let id = object_ids::generate(object_ids::THREAD_RUN);
    let state = RunState::queued(now.plus_ms(MAX_QUEUE_WAIT_MS), work_ms);
    let row = thread_run::Model {
        id: id.clone(),
        thread_id: thread_id.clone(),
        assistant_id: new.assistant_id,
        user_id: user,
        status: state.status,
        spec: RunSpec {
            first_seq: first_seq.saturating_add(i64::try_from(n_messages).unwrap_or(i64::MAX)),
            ..new.spec
        },
        metadata: new.metadata,
        required_action: None,
        last_error: None,
        incomplete_reason: None,
        usage: None,
        n_model_calls: 0,
        n_server_calls: 0,
        work_left_ms: state.work_left_ms,
        expires_at: state.expires_at,
        worker_id: None,
        lease: 0,
        attempt: 0,
        heartbeat_at: None,
        cancel_requested_at: None,
        created_at: now,
        started_at: None,
        completed_at: None,
        cancelled_at: None,
        failed_at: None,
    };
    run_queue::insert(tx, row.clone()).await?;
    let drafts = new.messages.into_iter();
    let drafts = drafts
        .map(|it| MessageDraft::of_client(it, Some(&id)))
        .collect();
    thread_message::insert(tx, &thread_id, first_seq, drafts, now).await?;
    let mut fold = RunFold::new(
        StoredRun {
            header: run_row_conversion::header(&row),
            state,
            steps: Vec::new(),
            messages: Vec::new(),
            next_seq: 0,
        },
        now,
    );
    run_event::append(tx, &id, &fold.apply(EngineEvent::Created)).await?;
    Ok(CreatedThreadRun { run: row, thread })
}

/// Checks that there is exactly one output for each open call.
fn check_outputs(action: &RequiredAction, outputs: &[ToolOutput]) -> Result<(), RunOperationError> {
    let RequiredAction::SubmitToolOutputs {
        submit_tool_outputs: open,
    } = action;
    let mut answered = HashSet::new();
    for (at, output) in outputs.iter().enumerate() {
        let id = output.call_id.as_str();
        if !open.tool_calls.iter().any(|it| it.id == id) {
            return Err(RunOperationError::UnknownToolCall(at, id.to_owned()));
        }
        if !answered.insert(id) {
            return Err(RunOperationError::DuplicateToolOutput(at, id.to_owned()));
        }
    }
    let missing = open.tool_calls.iter().map(|it| &it.id);
    let missing = missing.filter(|it| !answered.contains(it.as_str()));
    let missing: Vec<String> = missing.cloned().collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(RunOperationError::MissingToolOutput(missing)),
    }
}

/// Stores the outputs and queues the run. Of two concurrent calls, only one succeeds.
async fn resume(
    tx: &impl ConnectionTrait,
    mut row: thread_run::Model,
    outputs: Vec<(String, String)>,
    now: Timestamp,
) -> Result<ContinuedRun, RunOperationError> {
    let from = (ThreadRunStatus::RequiresAction, row.lease);
    if !run_queue::lock_in_state(tx, &row.id, from).await? {
        return Err(RunOperationError::NotAwaitingTools);
    }
    let mut fold = run_row_conversion::load_fold(tx, &row, now).await?;
    let before = StoredProgress::of(&fold);
    let events = fold.submit(&outputs, now.plus_ms(MAX_QUEUE_WAIT_MS));
    if !run_queue::set_state_without_task(tx, &row.id, from, fold.run_state()).await? {
        return Err(RunOperationError::NotAwaitingTools);
    }
    match before.write(tx, &fold, &events).await {
        Ok(()) => {}
        Err(RecordError::LeaseLost) => return Err(RunOperationError::NotFound),
        Err(RecordError::Database(error)) => return Err(error.into()),
    }
    let state = fold.run_state();
    row.status = state.status;
    row.required_action = None;
    row.expires_at = state.expires_at;
    let last_seq = events.first().map_or(-1, |it| it.seq - 1);
    Ok(ContinuedRun { run: row, last_seq })
}

#[cfg(test)]
mod tests {
    use responses_api::request::threads::run_bodies::ToolOutput;
    use responses_api::threads::run_state::StepCall;
    use responses_api::threads::run_values::RequiredAction;

    use super::check_outputs;

    fn error_of(ids: &[&str]) -> Option<String> {
        let call = |id: &str| StepCall::new(id.to_owned(), "look".to_owned(), "{}".to_owned());
        let action = RequiredAction::of(&[call("a"), call("b")]).expect("two calls are open");
        let outputs = ids.iter().map(|id| ToolOutput {
            call_id: (*id).to_owned(),
            output: String::new(),
        });
        let checked = check_outputs(&action, &outputs.collect::<Vec<_>>());
        checked.err().map(|it| it.to_string())
    }

    #[test]
    fn each_open_call_has_exactly_one_output() {
        assert_eq!(error_of(&["b", "a"]), None);
        let missing = error_of(&["a"]).unwrap();
        assert_eq!(missing, "outputs are missing for these calls: [\"b\"]");
        assert_eq!(
            error_of(&["a", "c"]).unwrap(),
            "output 1 is for no open call: c"
        );
        let double = error_of(&["a", "b", "a"]).unwrap();
        assert_eq!(double, "output 2 is the second one for the call a");
    }
}
