//! Defines the request to create a response as the engine receives it, and converts parsed API
//! requests to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::Timestamp;
use base::samplers::Samplers;
use llm::openai_chat::logprobs::MAX_TOP_LOGPROBS;
use llm::reasoning::effort::Effort;
use llm::request::Request;
use llm::tool::{OutputFormat, OutputSchema};
use responses_api::request::chat::chat_completion::CreateChatCompletion;
use responses_api::request::create_response::{CompactExchange, CreateResponse};
use responses_api::request::parameters;
use responses_api::request::parameters::{
    EffortLevel, IncludedOutput, SamplingParameters, TruncationMode,
};
use responses_api::request::text_config::TextFormat;
use responses_api::response::ResponseHeader;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::responses::execution::tool_config::ToolConfig;
use crate::responses::store::idempotency_key::IdempotencyClaim;
use crate::responses::telemetry::call_origin::CallOrigin;
use crate::responses::tool_declarations;

/// The API and the model APIs have the same limit.
const _: () = assert!(parameters::MAX_TOP_LOGPROBS == MAX_TOP_LOGPROBS as i64);

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
    /// The key with which the request is stored; `None` without a key or without storage.
    pub idempotency: Option<IdempotencyClaim>,
    /// The HTTP request, for the log.
    pub origin: CallOrigin,
}

/// A validated request to complete a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    pub request: ResponseRequest,
    /// Whether the stream ends with the usage.
    pub include_usage: bool,
    /// How many answers are generated.
    pub n_choices: usize,
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
    /// The sampling parameters that only a chat completion has.
    #[serde(default)]
    pub chat_sampling: ChatSampling,
    /// How the model should reason.
    #[serde(default, skip_serializing_if = "RequestedReasoning::is_default")]
    pub reasoning: RequestedReasoning,
    /// Whether at most one speaker answers, whatever the settings of the space are.
    #[serde(default)]
    pub has_one_speaker: bool,
    /// Whether the characters of a space also have the tools that the space allows. Not stored, because only
    /// a chat completion sets it.
    #[serde(skip)]
    pub has_space_tools: bool,
    /// Whether the model continues a text of its own at the end of the input. A run of a thread answers
    /// instead.
    #[serde(default)]
    pub continues_text: bool,
    /// The maximum number of tokens of a prompt, even if the model accepts more.
    #[serde(default)]
    pub max_prompt_tokens: Option<u32>,
}

/// How a model should reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedReasoning {
    /// `None` uses the setting of the provider.
    pub effort: Option<Effort>,
    /// Whether the request asks for a summary of the reasoning.
    pub wants_summary: bool,
    /// Whether the client receives the reasoning in encrypted form.
    pub includes_encrypted: bool,
}

/// The sampling parameters that only a chat completion has; unset ones are not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatSampling {
    /// The answer ends before any of these.
    pub stop: Vec<String>,
    pub seed: Option<u32>,
    pub logit_bias: BTreeMap<String, f64>,
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

impl From<CreateResponse> for ResponseRequest {
    fn from(request: CreateResponse) -> Self {
        let echo = request.echo();
        let CreateResponse {
            model,
            input,
            previous_response_id,
            conversation,
            store,
            background,
            stream,
            include,
            instructions,
            sampling,
            truncation,
            text,
            tools,
            tool_choice,
            max_tool_calls,
            parallel_tool_calls,
            // Used by the handler.
            include_obfuscation: _,
            ignored: _,
            reasoning,
            // Only echoed.
            metadata: _,
            hints: _,
        } = request;
        let max_calls = max_tool_calls.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        Self {
            model,
            input,
            previous_response_id,
            prior_items: None,
            conversation_id: conversation,
            store,
            stream,
            background,
            idempotency: None,
            origin: CallOrigin::default(),
            stored: StoredRequest {
                echo,
                instructions,
                sampling: Sampling::new(sampling, &include),
                truncates: truncation == TruncationMode::Auto,
                format: output_format(text.format),
                tools: ToolConfig {
                    max_calls,
                    is_serial: !parallel_tool_calls,
                    ..tool_declarations::tool_config(tools, tool_choice)
                },
                chat_sampling: ChatSampling::default(),
                reasoning: RequestedReasoning {
                    effort: reasoning.and_then(|it| it.effort).map(effort_of),
                    wants_summary: reasoning.is_some_and(|it| it.summary.is_some()),
                    includes_encrypted: include.contains(&IncludedOutput::EncryptedReasoning),
                },
                has_one_speaker: false,
                has_space_tools: false,
                continues_text: true,
                max_prompt_tokens: None,
            },
        }
    }
}

impl From<CreateChatCompletion> for ChatRequest {
    fn from(request: CreateChatCompletion) -> Self {
        let CreateChatCompletion {
            model,
            input,
            stream,
            include_usage,
            n_choices,
            sampling,
            effort,
            include,
            stop,
            seed,
            logit_bias,
            format,
            tools,
            tool_choice,
            parallel_tool_calls,
            // Used by the handler.
            message_positions: _,
            ignored: _,
        } = request;
        let request = ResponseRequest {
            model,
            input,
            previous_response_id: None,
            prior_items: None,
            conversation_id: None,
            store: false,
            stream,
            background: false,
            idempotency: None,
            origin: CallOrigin::default(),
            stored: StoredRequest {
                sampling: Sampling::new(sampling, &include),
                format: output_format(format),
                tools: ToolConfig {
                    is_serial: !parallel_tool_calls,
                    ..tool_declarations::tool_config(tools, tool_choice)
                },
                chat_sampling: ChatSampling {
                    stop,
                    seed: seed.map(short_seed),
                    logit_bias,
                },
                reasoning: RequestedReasoning {
                    effort: effort.map(effort_of),
                    ..RequestedReasoning::default()
                },
                has_one_speaker: true,
                has_space_tools: true,
                continues_text: true,
                ..StoredRequest::default()
            },
        };
        Self {
            request,
            include_usage,
            n_choices,
        }
    }
}

impl RequestedReasoning {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the effort that a model API is asked for.
pub fn effort_of(level: EffortLevel) -> Effort {
    match level {
        EffortLevel::None => Effort::None,
        EffortLevel::Minimal => Effort::Minimal,
        EffortLevel::Low => Effort::Low,
        EffortLevel::Medium => Effort::Medium,
        EffortLevel::High => Effort::High,
        EffortLevel::Xhigh => Effort::Xhigh,
    }
}

/// Returns the low 32 bits of a seed, because model APIs accept no longer ones. Equal seeds remain equal.
fn short_seed(seed: i64) -> u32 {
    (seed & i64::from(u32::MAX)) as u32
}

impl From<CompactExchange> for ResponseRequest {
    fn from(request: CompactExchange) -> Self {
        Self {
            model: request.model,
            input: request.input,
            previous_response_id: request.previous_response_id,
            prior_items: None,
            conversation_id: None,
            store: false,
            stream: false,
            background: false,
            idempotency: None,
            origin: CallOrigin::default(),
            stored: StoredRequest {
                instructions: request.instructions,
                ..StoredRequest::default()
            },
        }
    }
}

/// Returns the format of the answer for the model.
pub fn output_format(format: TextFormat) -> OutputFormat {
    match format {
        TextFormat::Text => OutputFormat::Text,
        TextFormat::JsonObject => OutputFormat::Json,
        TextFormat::JsonSchema(schema) => OutputFormat::Schema(OutputSchema {
            name: schema.name,
            description: schema.description,
            schema: Value::Object(schema.schema),
            strict: schema.strict,
        }),
    }
}

impl ResponseRequest {
    /// Returns the part of a response that never changes.
    pub fn header(&self, id: &str, now: Timestamp) -> ResponseHeader {
        ResponseHeader {
            id: id.to_owned(),
            created_at: now,
            echo: self.stored.echo.clone(),
        }
    }
}

impl ChatSampling {
    /// Adds these parameters to a model request.
    pub fn apply_to_request(&self, request: &mut Request) {
        // Before those of the preset, because model APIs accept only a few.
        request.stop.splice(0..0, self.stop.iter().cloned());
        request.samplers.seed = self.seed.or(request.samplers.seed);
        request.logit_bias.clone_from(&self.logit_bias);
    }
}

impl Sampling {
    /// Returns the sampling parameters of a request.
    pub fn new(given: SamplingParameters, include: &[IncludedOutput]) -> Self {
        let n_others = given.top_logprobs.unwrap_or_default();
        let has_logprobs = n_others > 0 || include.contains(&IncludedOutput::Logprobs);
        Self {
            temperature: given.temperature,
            top_p: given.top_p,
            presence_penalty: given.presence_penalty,
            frequency_penalty: given.frequency_penalty,
            max_output_tokens: given.max_output_tokens,
            top_logprobs: has_logprobs.then_some(n_others),
        }
    }

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

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
