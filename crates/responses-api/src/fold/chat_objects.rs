//! Defines the objects of a chat completion: the answer, the chunks of its stream, and what they
//! contain.
//!
//! **Invariant:** the order of the fields is the order on the wire.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::response::ResponseUsage;
use crate::schemas::optional_fields;

/// The tier that every answer reports.
const SERVICE_TIER: &str = "default";

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChatCompletion {
    pub id: String,
    object: &'static str,
    /// In seconds since 1970.
    created: i64,
    model: String,
    pub choices: Vec<ChatChoice>,
    usage: Option<ChatUsage>,
    service_tier: &'static str,
    system_fingerprint: Option<String>,
}

/// One choice of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChatChoice {
    pub index: usize,
    pub message: CompletionMessage,
    pub logprobs: Option<ChatLogprobs>,
    pub finish_reason: ChatFinishReason,
}

/// The message of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CompletionMessage {
    pub role: &'static str,
    pub content: Option<String>,
    pub refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(schema_with = optional_fields::list)]
    pub tool_calls: Vec<ChatCall>,
    /// Citations.
    pub annotations: Vec<Value>,
    /// The speaker, if the model has speakers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_fields::object)]
    pub troupe: Option<Value>,
}

/// The log probabilities of the tokens of a text.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChatLogprobs {
    content: Vec<Value>,
    refusal: Option<Vec<Value>>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatFinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

/// A call of a client's tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChatCall {
    pub id: String,
    #[serde(flatten)]
    pub input: ChatCallInput,
}

/// The input of a call, by the type of the tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatCallInput {
    Function { function: ChatFunction },
    Custom { custom: ChatCustom },
}

/// A function and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatFunction {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub name: Option<String>,
    /// JSON as the model wrote it.
    pub arguments: String,
}

/// A custom tool and its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatCustom {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub name: Option<String>,
    pub input: String,
}

/// One chunk of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChatChunk {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Vec<ChunkChoice>,
    /// Present only if the client requests the usage; then `null` except in the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_fields::object_or_null)]
    usage: Option<Option<ChatUsage>>,
    service_tier: &'static str,
    system_fingerprint: Option<String>,
}

/// The choice to which a chunk adds.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChunkChoice {
    pub index: usize,
    pub delta: ChatDelta,
    pub logprobs: Option<ChatLogprobs>,
    pub finish_reason: Option<ChatFinishReason>,
}

/// What a chunk adds to the message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ChatDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(schema_with = optional_fields::list)]
    pub tool_calls: Vec<CallDelta>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(schema_with = optional_fields::list)]
    pub annotations: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_fields::object)]
    pub troupe: Option<Value>,
}

/// What a chunk adds to a call. The first delta of a call has its id, type and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CallDelta {
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, extensions(("x-optional" = json!(true))))]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_fields::object)]
    pub function: Option<ChatFunction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = optional_fields::object)]
    pub custom: Option<ChatCustom>,
}

/// The token usage of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatUsage {
    prompt_tokens: i64,
    completion_tokens: i64,
    total_tokens: i64,
    prompt_tokens_details: PromptTokensDetails,
    completion_tokens_details: CompletionTokensDetails,
}

/// The tokens of a prompt by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PromptTokensDetails {
    cached_tokens: i64,
    audio_tokens: i64,
}

/// The tokens of an answer by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CompletionTokensDetails {
    reasoning_tokens: i64,
    audio_tokens: i64,
    accepted_prediction_tokens: i64,
    rejected_prediction_tokens: i64,
}

/// The values that are the same in the answer and in all chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionHeader {
    pub id: String,
    /// In seconds since 1970.
    pub created: i64,
    pub model: String,
    /// Whether the stream ends with a chunk that contains the usage.
    pub include_usage: bool,
}

impl CompletionHeader {
    /// Returns the complete answer.
    pub fn completion(
        &self,
        choices: Vec<ChatChoice>,
        usage: Option<ResponseUsage>,
    ) -> ChatCompletion {
        ChatCompletion {
            id: self.id.clone(),
            object: "chat.completion",
            created: self.created,
            model: self.model.clone(),
            choices,
            usage: usage.map(ChatUsage::of),
            service_tier: SERVICE_TIER,
            system_fingerprint: None,
        }
    }

    /// Returns a chunk with a delta.
    pub fn chunk(&self, choice: ChunkChoice) -> ChatChunk {
        self.chunk_of(vec![choice], self.include_usage.then_some(None))
    }

    /// Returns the chunk with the usage.
    pub fn usage_chunk(&self, usage: Option<ResponseUsage>) -> ChatChunk {
        self.chunk_of(Vec::new(), Some(usage.map(ChatUsage::of)))
    }

    fn chunk_of(&self, choices: Vec<ChunkChoice>, usage: Option<Option<ChatUsage>>) -> ChatChunk {
        ChatChunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices,
            usage,
            service_tier: SERVICE_TIER,
            system_fingerprint: None,
        }
    }
}

impl ChatLogprobs {
    /// Returns the logprobs of these tokens, or `None` if there are none.
    pub fn of(tokens: Vec<Value>) -> Option<Self> {
        (!tokens.is_empty()).then_some(Self {
            content: tokens,
            refusal: None,
        })
    }
}

impl ChatUsage {
    fn of(usage: ResponseUsage) -> Self {
        let view = usage.view();
        Self {
            prompt_tokens: view.input_tokens,
            completion_tokens: view.output_tokens,
            total_tokens: view.total_tokens,
            prompt_tokens_details: PromptTokensDetails {
                cached_tokens: view.input_tokens_details.cached_tokens,
                audio_tokens: 0,
            },
            completion_tokens_details: CompletionTokensDetails {
                reasoning_tokens: view.output_tokens_details.reasoning_tokens,
                audio_tokens: 0,
                accepted_prediction_tokens: 0,
                rejected_prediction_tokens: 0,
            },
        }
    }
}

impl ChatCall {
    /// Returns the deltas of this call: the first has its id, type and name, the second its input if that is
    /// not empty.
    pub fn deltas(&self, index: usize) -> Vec<CallDelta> {
        let delta = |id, kind, function, custom| CallDelta {
            index,
            id,
            kind,
            function,
            custom,
        };
        let id = Some(self.id.clone());
        match &self.input {
            ChatCallInput::Function { function } => {
                let part = |name: Option<String>, arguments: &str| {
                    let arguments = arguments.to_owned();
                    Some(ChatFunction { name, arguments })
                };
                let first = part(function.name.clone(), "");
                let first = delta(id, Some("function"), first, None);
                let rest = (!function.arguments.is_empty())
                    .then(|| delta(None, None, part(None, &function.arguments), None));
                [first].into_iter().chain(rest).collect()
            }
            ChatCallInput::Custom { custom } => {
                let part = |name: Option<String>, input: &str| {
                    let input = input.to_owned();
                    Some(ChatCustom { name, input })
                };
                let first = part(custom.name.clone(), "");
                let first = delta(id, Some("custom"), None, first);
                let rest = (!custom.input.is_empty())
                    .then(|| delta(None, None, None, part(None, &custom.input)));
                [first].into_iter().chain(rest).collect()
            }
        }
    }
}
