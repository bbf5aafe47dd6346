//! Defines the state of a run and of its steps, as they are stored.

use base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::threads::run_values::{
    OpenCall, OpenCalls, OpenFunction, RequiredAction, StepCallKind, ThreadRunError, ThreadRunUsage,
};
use crate::threads::thread_status::{ThreadRunStatus, ThreadRunStepKind, ThreadRunStepStatus};
use crate::{object_ids, server_tools};

/// The part of a run that never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeader {
    pub id: String,
    pub thread_id: String,
    pub assistant_id: String,
    pub created_at: Timestamp,
    pub metadata: Value,
    /// The settings that the object repeats, by name.
    pub echo: Map<String, Value>,
}

/// The part of a run that changes, without its steps and messages.
#[derive(Clone, Debug, PartialEq)]
pub struct RunState {
    pub status: ThreadRunStatus,
    pub required_action: Option<RequiredAction>,
    pub last_error: Option<ThreadRunError>,
    pub incomplete_reason: Option<String>,
    /// The usage of all model calls so far.
    pub usage: Option<ThreadRunUsage>,
    /// The number of model calls of the run.
    pub n_model_calls: u32,
    /// The number of tool calls that this server has run for it.
    pub n_server_calls: u32,
    /// The remaining execution time, in milliseconds.
    pub work_left_ms: i64,
    /// When it expires; for a run that has ended, when it ended.
    pub expires_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
}

impl RunState {
    /// Returns the state of a run that waits for a worker.
    pub fn queued(expires_at: Timestamp, work_left_ms: i64) -> Self {
        Self {
            status: ThreadRunStatus::Queued,
            required_action: None,
            last_error: None,
            incomplete_reason: None,
            usage: None,
            n_model_calls: 0,
            n_server_calls: 0,
            work_left_ms,
            expires_at,
            started_at: None,
            completed_at: None,
            cancelled_at: None,
            failed_at: None,
        }
    }
}

/// A step: a message that the run writes, or the tool calls of one answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStep {
    pub id: String,
    pub status: ThreadRunStepStatus,
    pub details: StepDetails,
    pub usage: Option<ThreadRunUsage>,
    pub last_error: Option<ThreadRunError>,
    pub created_at: Timestamp,
    /// When it ended, with any status.
    pub ended_at: Option<Timestamp>,
}

impl RunStep {
    /// Returns a step that begins now.
    pub fn new(details: StepDetails, now: Timestamp) -> Self {
        Self {
            id: object_ids::generate(object_ids::THREAD_RUN_STEP),
            status: ThreadRunStepStatus::InProgress,
            details,
            usage: None,
            last_error: None,
            created_at: now,
            ended_at: None,
        }
    }

    /// Returns whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.status == ThreadRunStepStatus::InProgress
    }

    /// Returns the speaker of the step, if the model has speakers.
    pub fn speaker(&self) -> Option<&Value> {
        match &self.details {
            StepDetails::MessageCreation { message_creation } => message_creation.troupe.as_ref(),
            StepDetails::ToolCalls { troupe, .. } => troupe.as_ref(),
        }
    }

    /// Returns the id of the message that the step writes.
    pub fn message_id(&self) -> Option<&str> {
        match &self.details {
            StepDetails::MessageCreation { message_creation } => Some(&message_creation.message_id),
            StepDetails::ToolCalls { .. } => None,
        }
    }

    /// Returns the calls of the step.
    pub fn calls(&self) -> &[StepCall] {
        match &self.details {
            StepDetails::ToolCalls { tool_calls, .. } => tool_calls,
            StepDetails::MessageCreation { .. } => &[],
        }
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::FromJsonQueryResult))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepDetails {
    MessageCreation {
        message_creation: StepMessage,
    },
    ToolCalls {
        tool_calls: Vec<StepCall>,
        /// The speaker, if the model has speakers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        troupe: Option<Value>,
    },
}

impl StepDetails {
    /// Returns the kind of the step.
    pub fn kind(&self) -> ThreadRunStepKind {
        match self {
            Self::MessageCreation { .. } => ThreadRunStepKind::MessageCreation,
            Self::ToolCalls { .. } => ThreadRunStepKind::ToolCalls,
        }
    }
}

/// The message of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMessage {
    pub message_id: String,
    /// The speaker, if the model has speakers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub troupe: Option<Value>,
}

/// A tool call of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCall {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: StepCallKind,
    pub function: StepFunction,
}

/// The function of a call, and its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFunction {
    /// The function of the client, or `troupe:<tool>` for a tool of this server.
    pub name: String,
    /// JSON as the model wrote it.
    pub arguments: String,
    /// `None` until the tool has ended.
    pub output: Option<String>,
    /// Whether the output is the message of an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl StepCall {
    /// Returns a call without an output.
    pub fn new(id: String, name: String, arguments: String) -> Self {
        Self {
            id,
            kind: StepCallKind::Function,
            function: StepFunction {
                name,
                arguments,
                output: None,
                is_error: false,
            },
        }
    }

    fn open(&self) -> Option<OpenCall> {
        let is_of_client = server_tools::tool_name(&self.function.name).is_none();
        let is_open = is_of_client && self.function.output.is_none();
        is_open.then(|| OpenCall {
            id: self.id.clone(),
            kind: self.kind,
            function: OpenFunction {
                name: self.function.name.clone(),
                arguments: self.function.arguments.clone(),
            },
        })
    }
}

impl RequiredAction {
    /// Returns the action for the client's calls without an output, or `None` if all have one.
    pub fn of(calls: &[StepCall]) -> Option<Self> {
        let tool_calls: Vec<OpenCall> = calls.iter().filter_map(StepCall::open).collect();
        (!tool_calls.is_empty()).then_some(Self::SubmitToolOutputs {
            submit_tool_outputs: OpenCalls { tool_calls },
        })
    }
}
