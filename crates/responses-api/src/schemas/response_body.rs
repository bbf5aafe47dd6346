//! Describes the body of a request to create a response. A field whose value is `null` counts as
//! absent.

use serde_json::Value;
use utoipa::ToSchema;

use crate::request::parameters::{EffortLevel, SummaryStyle, TruncationMode};
use crate::request::text_config::Verbosity;
use crate::schemas::request_values;

/// A request to create a response.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateResponseBody {
    /// The id of a model, a character or a space that `GET /v1/models` lists.
    #[schema(min_length = 1, example = "demo")]
    pub model: String,
    #[schema(schema_with = request_values::text_or_items)]
    pub input: Option<Value>,
    /// A text that precedes the input, in this response only.
    pub instructions: Option<String>,
    /// The id of a stored response, which this one continues.
    pub previous_response_id: Option<String>,
    #[schema(schema_with = request_values::conversation)]
    pub conversation: Option<Value>,
    /// Whether the response is stored; true by default.
    pub store: Option<bool>,
    /// Whether the events are streamed.
    pub stream: Option<bool>,
    pub stream_options: Option<ResponseStreamOptions>,
    /// Whether the response is queued and runs without this request.
    pub background: Option<bool>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f64>,
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f64>,
    #[schema(minimum = 1, maximum = 4_294_967_295_i64)]
    pub max_output_tokens: Option<i64>,
    /// The maximum number of calls of tools of this server.
    #[schema(minimum = 1)]
    pub max_tool_calls: Option<i64>,
    /// The number of alternatives of each token.
    #[schema(minimum = 0, maximum = 20)]
    pub top_logprobs: Option<i64>,
    /// The declarations of tools.
    #[schema(value_type = Option<Vec<Object>>, max_items = 128)]
    pub tools: Option<Vec<Value>>,
    #[schema(schema_with = request_values::tool_choice)]
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<bool>,
    pub text: Option<ResponseTextBody>,
    pub reasoning: Option<ReasoningBody>,
    /// What happens when the prompt is too long; the request fails by default.
    pub truncation: Option<TruncationMode>,
    /// Additional output, such as `message.output_text.logprobs`.
    pub include: Option<Vec<String>>,
    #[schema(schema_with = request_values::metadata)]
    pub metadata: Option<Value>,
    /// Has no effect.
    pub service_tier: Option<String>,
    /// Has no effect.
    pub safety_identifier: Option<String>,
    /// Has no effect.
    pub prompt_cache_key: Option<String>,
    /// Has no effect.
    pub prompt_cache_retention: Option<String>,
    /// Has no effect.
    #[schema(value_type = Option<Object>)]
    pub prompt_cache_options: Option<Value>,
    /// Has no effect.
    pub user: Option<String>,
    /// Has no effect.
    #[schema(value_type = Option<Object>)]
    pub client_metadata: Option<Value>,
    /// Any value; has no effect.
    pub access_programs: Option<Value>,
}

/// Options of a stream.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseStreamOptions {
    /// Whether deltas are padded, so that their length does not show that of the text.
    pub include_obfuscation: Option<bool>,
}

/// The form of the text.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseTextBody {
    /// `text`, `json_object`, or `json_schema` with a name and a schema.
    #[schema(value_type = Option<Object>)]
    pub format: Option<Value>,
    pub verbosity: Option<Verbosity>,
}

/// How the model reasons.
#[derive(Clone, Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasoningBody {
    pub effort: Option<EffortLevel>,
    pub summary: Option<SummaryStyle>,
    /// The former name of `summary`.
    pub generate_summary: Option<SummaryStyle>,
}
