//! Describes the bodies of requests about runs of threads. A field whose value is `null` counts as
//! absent.

use serde_json::Value;
use utoipa::ToSchema;

use crate::request::parameters::EffortLevel;
use crate::schemas::request_values;
use crate::schemas::thread_bodies::NewThreadBody;
use crate::threads::thread_status::ThreadMessageRole;

/// A new run of a thread.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewThreadRunBody {
    pub assistant_id: String,
    /// The id of a model; that of the assistant by default.
    #[schema(min_length = 1, example = "demo")]
    pub model: Option<String>,
    /// Replace those of the assistant.
    #[schema(max_length = 256_000)]
    pub instructions: Option<String>,
    /// Follow the instructions.
    #[schema(max_length = 256_000)]
    pub additional_instructions: Option<String>,
    /// Messages that are appended to the thread before the run.
    #[schema(max_items = 2_000)]
    pub additional_messages: Option<Vec<AdditionalMessageBody>>,
    #[schema(value_type = Option<Vec<Object>>, max_items = 128)]
    pub tools: Option<Vec<Value>>,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Object>)]
    pub tool_resources: Option<Value>,
    #[schema(schema_with = request_values::tool_choice)]
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    #[schema(schema_with = request_values::answer_format)]
    pub response_format: Option<Value>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// The maximum number of tokens of all prompts of the run together.
    #[schema(minimum = 1)]
    pub max_prompt_tokens: Option<i64>,
    /// The maximum number of tokens of all answers of the run together.
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<i64>,
    /// Which messages the model sees: `{type: "auto"}` as many as fit, or `{type: "last_messages", last_messages}`.
    #[schema(value_type = Option<Object>)]
    pub truncation_strategy: Option<Value>,
    pub reasoning_effort: Option<EffortLevel>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    pub stream: Option<bool>,
}

/// A new thread, and a run of it.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewThreadAndRunBody {
    pub assistant_id: String,
    pub thread: Option<NewThreadBody>,
    /// The id of a model; that of the assistant by default.
    #[schema(min_length = 1, example = "demo")]
    pub model: Option<String>,
    /// Replace those of the assistant.
    #[schema(max_length = 256_000)]
    pub instructions: Option<String>,
    /// Follow the instructions.
    #[schema(max_length = 256_000)]
    pub additional_instructions: Option<String>,
    /// Messages that are appended to the thread before the run.
    #[schema(max_items = 2_000)]
    pub additional_messages: Option<Vec<AdditionalMessageBody>>,
    #[schema(value_type = Option<Vec<Object>>, max_items = 128)]
    pub tools: Option<Vec<Value>>,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Object>)]
    pub tool_resources: Option<Value>,
    #[schema(schema_with = request_values::tool_choice)]
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    #[schema(schema_with = request_values::answer_format)]
    pub response_format: Option<Value>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// The maximum number of tokens of all prompts of the run together.
    #[schema(minimum = 1)]
    pub max_prompt_tokens: Option<i64>,
    /// The maximum number of tokens of all answers of the run together.
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<i64>,
    /// Which messages the model sees: `{type: "auto"}` as many as fit, or `{type: "last_messages", last_messages}`.
    #[schema(value_type = Option<Object>)]
    pub truncation_strategy: Option<Value>,
    pub reasoning_effort: Option<EffortLevel>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    pub stream: Option<bool>,
}

/// A message that is appended to the thread of a run.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdditionalMessageBody {
    pub role: ThreadMessageRole,
    #[schema(schema_with = request_values::text_or_parts)]
    pub content: Value,
    /// Must be empty: no tool of this server uses files.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    pub attachments: Option<Vec<Value>>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    /// Whether only this run sees it.
    pub hidden: Option<bool>,
}

/// Outputs of the tools for which a run waits.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutputsBody {
    /// Exactly one for each open call.
    #[schema(max_items = 128)]
    pub tool_outputs: Vec<ToolOutputBody>,
    pub stream: Option<bool>,
}

/// The output of a tool.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutputBody {
    pub tool_call_id: String,
    /// Empty by default.
    pub output: Option<String>,
}
