//! What a model is asked: the finished prompt and the sampling settings, in no one's wire format.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::llm::tool::{AnsweredCall, Attachment, OutputFormat, Tool, ToolCall, ToolChoice};

/// One call of a model. Built by `prompt/` or by a door, spent by `generation/`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub model: String,
    /// Oldest first.
    pub messages: Vec<Message>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// The most tokens the answer may have; `None` leaves it to the model.
    pub max_tokens: Option<u32>,
    /// The window for which the prompt was made, for models that must be told how large to make it.
    pub context_tokens: Option<u32>,
    pub stop: Vec<String>,
    /// What else guides the choice of words. A provider sends what it understands of it, no more.
    pub samplers: Samplers,
    /// What the model may call; often nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// It may call no more than one tool at a time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_serial: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub format: OutputFormat,
    /// How likely each token was is told, too, beside so many others that might have stood there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<u8>,
    /// Lets the demo model repeat itself; real models are never sent it.
    pub seed: u64,
    /// Display name of who is about to speak; only the demo model needs to be told.
    pub speaker: String,
}

impl Request {
    /// The model may not answer with text alone.
    pub fn requires_tool_call(&self) -> bool {
        matches!(
            self.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        ) && !self.tools.is_empty()
    }
}

/// Guides for the choice of words that only some models know; `None` leaves each to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Samplers {
    pub top_k: Option<u32>,
    pub min_p: Option<f64>,
    pub top_a: Option<f64>,
    pub typical_p: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub repetition_penalty: Option<f64>,
    /// Asks for the same words again; unlike [`Request::seed`] somebody chose it.
    pub seed: Option<u32>,
}

/// One entry of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptMessage)]
pub struct Message {
    pub role: PromptRole,
    /// Who said it, where that is not clear from the role. Each provider says it in its own way.
    pub name: Option<String>,
    pub content: String,
    /// What the model called, beside what it said; on its own messages only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub calls: Vec<ToolCall>,
    /// The text is what came of this call. Such a message is on the user's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub answers: Option<AnsweredCall>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub attachments: Vec<Attachment>,
}

impl Message {
    /// A message without a speaker's name.
    pub fn new(role: PromptRole, content: impl Into<String>) -> Self {
        Self {
            role,
            name: None,
            content: content.into(),
            calls: Vec::new(),
            answers: None,
            attachments: Vec::new(),
        }
    }

    /// The same message, said by somebody.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }
}

/// Whose side of the prompt a message is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptRole)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    System,
    User,
    Assistant,
}

impl PromptRole {
    /// The word of the role, as chat APIs spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
