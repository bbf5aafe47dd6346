//! Describes the body of a request to complete a chat. A field whose value is `null` counts as
//! absent; fields that are not listed are accepted without effect.

use serde_json::Value;
use utoipa::ToSchema;

use crate::request::parameters::EffortLevel;
use crate::request::text_config::Verbosity;
use crate::schemas::request_values;

/// A request to complete a chat.
#[derive(Clone, Debug, ToSchema)]
pub struct ChatCompletionBody {
    /// The id of a model, a character or a space that `GET /v1/models` lists.
    #[schema(min_length = 1, example = "demo")]
    pub model: String,
    /// Messages of the roles system, developer, user, assistant, tool and function.
    #[schema(value_type = Vec<Object>, min_items = 1)]
    pub messages: Vec<Value>,
    /// Whether the chunks are streamed.
    pub stream: Option<bool>,
    /// `include_usage`: whether the stream ends with the usage.
    #[schema(value_type = Option<Object>)]
    pub stream_options: Option<Value>,
    #[schema(minimum = 1, maximum = 4_294_967_295_i64)]
    pub max_completion_tokens: Option<i64>,
    /// The former name of `max_completion_tokens`.
    #[schema(minimum = 1, maximum = 4_294_967_295_i64)]
    pub max_tokens: Option<i64>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f64>,
    /// Numbers between -100 and 100 by the id of the token.
    #[schema(value_type = Option<Object>)]
    pub logit_bias: Option<Value>,
    pub seed: Option<i64>,
    #[schema(schema_with = request_values::stop)]
    pub stop: Option<Value>,
    pub logprobs: Option<bool>,
    #[schema(minimum = 0, maximum = 20)]
    pub top_logprobs: Option<i64>,
    /// `text`, `json_object`, or `json_schema` with a name and a schema.
    #[schema(value_type = Option<Object>)]
    pub response_format: Option<Value>,
    /// Functions and custom tools, which the client runs.
    #[schema(value_type = Option<Vec<Object>>, max_items = 128)]
    pub tools: Option<Vec<Value>>,
    #[schema(schema_with = request_values::tool_choice)]
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    /// The former form of `tools`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub functions: Option<Vec<Value>>,
    /// The former form of `tool_choice`: `auto`, `none`, or an object with a name.
    pub function_call: Option<Value>,
    /// The number of answers.
    #[schema(minimum = 1)]
    pub n: Option<i64>,
    pub reasoning_effort: Option<EffortLevel>,
    pub verbosity: Option<Verbosity>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    /// Nothing is stored: true has no effect.
    pub store: Option<bool>,
    /// Has no effect.
    pub service_tier: Option<String>,
    /// Has no effect.
    pub user: Option<String>,
    /// Has no effect.
    pub prompt_cache_key: Option<String>,
    /// Has no effect.
    pub safety_identifier: Option<String>,
    /// Only `text` is supported.
    pub modalities: Option<Vec<String>>,
}
