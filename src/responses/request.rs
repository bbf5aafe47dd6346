//! A request to create a response, as the engine receives it.

use std::sync::Arc;

use base::samplers::Samplers;
use llm::request::Request;
use llm::tool::OutputFormat;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::responses::execution::tool_config::ToolConfig;

/// A validated request.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseRequest {
    /// The model name as requested.
    pub model: String,
    /// New items, each with its id.
    pub input: Vec<Value>,
    pub previous_response_id: Option<String>,
    /// The whole history, if it was loaded in advance.
    pub prior_items: Option<Arc<Vec<Value>>>,
    pub conversation_id: Option<String>,
    pub store: bool,
    pub stream: bool,
    pub background: bool,
    pub stored: StoredRequest,
}

/// The part of a request that is stored with its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct StoredRequest {
    /// The request fields that the response object repeats.
    pub echo: Map<String, Value>,
    pub instructions: Option<String>,
    pub sampling: Sampling,
    /// The oldest messages may be dropped if the prompt is too long.
    pub truncates: bool,
    /// The required format of the answer.
    #[serde(default)]
    pub format: OutputFormat,
    /// The available tools; empty in rows from before tools were supported.
    #[serde(default)]
    pub tools: ToolConfig,
}

/// The sampling parameters; unset ones are not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub max_output_tokens: Option<u32>,
    /// Returns logprobs, with this many alternatives for each token.
    pub top_logprobs: Option<u8>,
}

impl Sampling {
    /// Returns a model request without messages.
    pub fn request(&self, model: &str) -> Request {
        Request {
            model: model.to_owned(),
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_output_tokens,
            top_logprobs: self.top_logprobs,
            samplers: Samplers {
                presence_penalty: self.presence_penalty,
                frequency_penalty: self.frequency_penalty,
                ..Samplers::default()
            },
            ..Request::default()
        }
    }
}
