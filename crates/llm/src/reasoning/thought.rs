//! A model's reasoning in the form in which its API expects it back after a tool call. Reasoning is
//! never sent to a model as ordinary text.

use serde::{Deserialize, Serialize};

/// The maximum size of one thought, in bytes. It is sent with every following request.
pub const MAX_THOUGHT_BYTES: usize = 1024 * 1024;

/// A part of the reasoning before the text and the calls of one message. An API receives only the
/// variants that it sends itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thought {
    /// The text that an endpoint sent in a field of the message.
    Text { field: ThoughtField, text: String },
    /// A thinking block of Anthropic's API. The signature is valid only for the unchanged text.
    Signed { text: String, signature: String },
    /// A thinking block that Anthropic's API has encrypted.
    Redacted { data: String },
    /// What the Gemini API has attached to a call; `call` is its index among the calls of the
    /// message.
    CallSignature { call: usize, signature: String },
}

/// The field of a message in which an endpoint sends its reasoning, and expects it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThoughtField {
    /// DeepSeek, vLLM, llama.cpp and others.
    ReasoningContent,
    /// OpenRouter, Groq and others.
    Reasoning,
    /// Ollama.
    Thinking,
}

impl ThoughtField {
    /// Returns the name of the field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::Thinking => "thinking",
        }
    }
}

impl Thought {
    /// Returns the number of bytes of its texts.
    pub fn n_bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Signed { text, signature } => text.len().saturating_add(signature.len()),
            Self::Redacted { data } => data.len(),
            Self::CallSignature { signature, .. } => signature.len(),
        }
    }

    /// Returns the text, if the reasoning is readable.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } | Self::Signed { text, .. } => Some(text),
            Self::Redacted { .. } | Self::CallSignature { .. } => None,
        }
    }
}
