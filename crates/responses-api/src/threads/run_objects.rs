//! Defines the objects of a run and of its steps as clients see them.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use base::clock::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::objects::seconds;
use crate::threads::run_state::{RunHeader, RunState, RunStep, StepDetails};
use crate::threads::run_values::{RequiredAction, ThreadRunError, ThreadRunUsage};
use crate::threads::thread_status::{ThreadRunStatus, ThreadRunStepKind, ThreadRunStepStatus};

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadRunObject {
    pub id: String,
    object: &'static str,
    /// In seconds since 1970, as the other times.
    created_at: i64,
    assistant_id: String,
    thread_id: String,
    pub status: ThreadRunStatus,
    started_at: Option<i64>,
    /// `None` if the run has ended.
    expires_at: Option<i64>,
    cancelled_at: Option<i64>,
    failed_at: Option<i64>,
    completed_at: Option<i64>,
    required_action: Option<RequiredAction>,
    last_error: Option<ThreadRunError>,
    incomplete_details: Option<RunIncompleteDetails>,
    /// The settings of the run, by name.
    #[serde(flatten)]
    echo: Map<String, Value>,
    metadata: Value,
    /// `None` until the run has ended.
    usage: Option<ThreadRunUsage>,
}

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunIncompleteDetails {
    reason: String,
}

impl ThreadRunObject {
    /// Returns the object of a run in this state.
    pub fn new(header: &RunHeader, state: &RunState) -> Self {
        let is_over = state.status.is_final();
        let reason = state.incomplete_reason.clone();
        Self {
            id: header.id.clone(),
            object: "thread.run",
            created_at: seconds(header.created_at),
            assistant_id: header.assistant_id.clone(),
            thread_id: header.thread_id.clone(),
            status: state.status,
            started_at: state.started_at.map(seconds),
            expires_at: (!is_over).then(|| seconds(state.expires_at)),
            cancelled_at: state.cancelled_at.map(seconds),
            failed_at: state.failed_at.map(seconds),
            completed_at: state.completed_at.map(seconds),
            required_action: state.required_action.clone(),
            last_error: state.last_error.clone(),
            incomplete_details: reason.map(|reason| RunIncompleteDetails { reason }),
            echo: header.echo.clone(),
            metadata: header.metadata.clone(),
            usage: is_over.then(|| state.usage.unwrap_or_default()),
        }
    }
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ThreadRunStepObject {
    pub id: String,
    object: &'static str,
    created_at: i64,
    run_id: String,
    assistant_id: String,
    thread_id: String,
    #[serde(rename = "type")]
    kind: ThreadRunStepKind,
    pub status: ThreadRunStepStatus,
    cancelled_at: Option<i64>,
    completed_at: Option<i64>,
    expired_at: Option<i64>,
    failed_at: Option<i64>,
    last_error: Option<ThreadRunError>,
    #[schema(value_type = Object)]
    step_details: StepDetails,
    /// `None` until the step has ended.
    usage: Option<ThreadRunUsage>,
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

impl ThreadRunStepObject {
    /// Returns the object of a step of this run.
    pub fn new(run: &RunHeader, step: &RunStep) -> Self {
        let at_end = |status| ended_at(step, status);
        Self {
            id: step.id.clone(),
            object: "thread.run.step",
            created_at: seconds(step.created_at),
            run_id: run.id.clone(),
            assistant_id: run.assistant_id.clone(),
            thread_id: run.thread_id.clone(),
            kind: step.details.kind(),
            status: step.status,
            cancelled_at: at_end(ThreadRunStepStatus::Cancelled),
            completed_at: at_end(ThreadRunStepStatus::Completed),
            expired_at: at_end(ThreadRunStepStatus::Expired),
            failed_at: at_end(ThreadRunStepStatus::Failed),
            last_error: step.last_error.clone(),
            step_details: step.details.clone(),
            usage: step
                .usage
                .filter(|_| step.status != ThreadRunStepStatus::InProgress),
            metadata: Map::new(),
        }
    }
}

/// Returns when the step ended, if it ended with this status.
fn ended_at(step: &RunStep, status: ThreadRunStepStatus) -> Option<i64> {
    let ended_at: Option<Timestamp> = step.ended_at;
    ended_at.filter(|_| step.status == status).map(seconds)
}
