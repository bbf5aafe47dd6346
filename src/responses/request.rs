//! What a program asks for, after every rule that needs no database was held to it.

use std::sync::Arc;

use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::llm::request::{Request, Samplers};
use crate::llm::tool::OutputFormat;
use crate::responses::tool_config::ToolConfig;

/// A request that can be granted, as far as its own text tells.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateResponse {
    /// The model as it was named.
    pub model: String,
    /// New items, each with its id.
    pub input: Vec<Value>,
    pub previous_response_id: Option<String>,
    /// All that it goes on from, where that was looked up before.
    pub prior_items: Option<Arc<Vec<Value>>>,
    pub conversation_id: Option<String>,
    pub store: bool,
    pub stream: bool,
    pub background: bool,
    pub stored: StoredRequest,
}

/// What of a request is stored with its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct StoredRequest {
    /// The fields of the response object that tell what was asked for.
    pub echo: Map<String, Value>,
    pub instructions: Option<String>,
    pub sampling: Sampling,
    /// Oldest turns may go when it is too long.
    pub truncates: bool,
    /// How the answer must look.
    #[serde(default)]
    pub format: OutputFormat,
    /// What may be called; nothing in rows from before there were tools.
    #[serde(default)]
    pub tools: ToolConfig,
}

/// What goes to the model beside the words; only what was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub max_output_tokens: Option<u32>,
    /// How likely each token was is told, beside so many others.
    pub top_logprobs: Option<u8>,
}

impl Sampling {
    /// A request without words yet.
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
