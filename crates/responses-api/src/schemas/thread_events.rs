//! Describes runs of threads, whose fields are partly those of their requests, and the events of their
//! streams.

use serde_json::Value;
use utoipa::ToSchema;

use crate::schemas::request_values;
use crate::threads::run_objects::{RunIncompleteDetails, ThreadRunStepObject};
use crate::threads::run_values::{RequiredAction, ThreadRunError, ThreadRunUsage};
use crate::threads::thread_message_object::ThreadMessageObject;
use crate::threads::thread_object::ThreadObject;
use crate::threads::thread_status::ThreadRunStatus;

/// A run of a thread.
#[derive(Clone, Debug, ToSchema)]
pub struct ThreadRunDocument {
    pub id: String,
    #[schema(pattern = "^thread\\.run$")]
    pub object: String,
    /// In seconds since 1970, as the other times.
    pub created_at: i64,
    pub assistant_id: String,
    pub thread_id: String,
    pub status: ThreadRunStatus,
    pub started_at: Option<i64>,
    /// `null` if the run has ended.
    pub expires_at: Option<i64>,
    pub cancelled_at: Option<i64>,
    pub failed_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub required_action: Option<RequiredAction>,
    pub last_error: Option<ThreadRunError>,
    pub incomplete_details: Option<RunIncompleteDetails>,
    pub model: String,
    pub instructions: String,
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_prompt_tokens: Option<i64>,
    pub max_completion_tokens: Option<i64>,
    #[schema(value_type = Object)]
    pub truncation_strategy: Value,
    #[schema(schema_with = request_values::answer_format)]
    pub response_format: Value,
    #[schema(schema_with = request_values::tool_choice)]
    pub tool_choice: Value,
    pub parallel_tool_calls: bool,
    pub reasoning_effort: Option<String>,
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// `null` until the run has ended.
    pub usage: Option<ThreadRunUsage>,
}

/// New text of a message, or new parts of a step.
#[derive(Clone, Debug, ToSchema)]
pub struct ThreadDelta {
    /// The id of the message or of the step.
    pub id: String,
    #[schema(pattern = "^thread\\.(message|run\\.step)\\.delta$")]
    pub object: String,
    #[schema(value_type = Object)]
    pub delta: Value,
}

/// The data of an event; the field `event:` of the frame names it.
#[derive(Clone, Debug, ToSchema)]
#[serde(untagged)]
pub enum ThreadStreamEvent {
    Thread(ThreadObject),
    Run(Box<ThreadRunDocument>),
    Step(Box<ThreadRunStepObject>),
    Message(Box<ThreadMessageObject>),
    Delta(ThreadDelta),
}
