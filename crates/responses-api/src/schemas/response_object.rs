//! Describes the response object, whose fields are partly those of its request.

use serde_json::Value;
use utoipa::ToSchema;

use crate::request::parameters::TruncationMode;
use crate::response::{ErrorView, IncompleteDetails, UsageView};
use crate::schemas::optional_fields;
use crate::schemas::output_items::OutputItemSchema;
use crate::status::ResponseStatus;

/// A response.
#[derive(Clone, Debug, ToSchema)]
pub struct ResponseObject {
    pub id: String,
    #[schema(pattern = "^response$")]
    pub object: String,
    /// In seconds since 1970, as `completed_at`.
    pub created_at: i64,
    /// `null` unless the status is `completed`.
    pub completed_at: Option<i64>,
    pub status: ResponseStatus,
    pub error: Option<ErrorView>,
    pub incomplete_details: Option<IncompleteDetails>,
    pub model: String,
    pub previous_response_id: Option<String>,
    /// `{id}`, if the response continues a conversation.
    #[schema(schema_with = optional_fields::object)]
    pub conversation: Option<Value>,
    pub instructions: Option<String>,
    pub max_output_tokens: Option<i64>,
    #[schema(value_type = Object)]
    pub metadata: Value,
    #[schema(value_type = Option<Object>)]
    pub reasoning: Option<Value>,
    pub store: bool,
    pub background: bool,
    pub temperature: f64,
    pub top_p: f64,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
    #[schema(value_type = Object)]
    pub text: Value,
    pub truncation: TruncationMode,
    pub top_logprobs: i64,
    pub service_tier: String,
    pub safety_identifier: Option<String>,
    pub prompt_cache_key: Option<String>,
    pub max_tool_calls: Option<i64>,
    pub parallel_tool_calls: bool,
    /// A word, or an object that names a tool.
    pub tool_choice: Value,
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
    pub output: Vec<OutputItemSchema>,
    /// `null` until the response ends.
    pub usage: Option<UsageView>,
}
