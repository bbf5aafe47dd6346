//! The items of a model's response stream: pieces of text, reasoning and tool calls, further data
//! such as citations and token usage, and the finish reason. Also parses the finish codes of all
//! APIs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reasoning::thought::{Thought, ThoughtField};
use crate::tool::ToolCallDelta;

/// One item of a response stream.
///
/// **Invariant:** a stream that ends without [`Delta::End`] was cut off and must not count as a
/// success. A usage report may still follow the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// The next piece of visible text; never empty.
    Text(String),
    /// The log probabilities of the tokens of the next piece of text: `{token, logprob, bytes,
    /// top_logprobs}`; never empty, and only if requested.
    Logprobs(Vec<Value>),
    /// A source of the text: `{type: "url_citation", start_index, end_index, url, title}`; the
    /// indexes count characters of the whole text.
    Citation(Value),
    /// The next piece of a refusal, from models that distinguish it from text; never empty.
    Refusal(String),
    /// The next piece of the model's reasoning; never empty, and not part of the text.
    Reasoning(String),
    /// Like [`Delta::Reasoning`], from an endpoint that may expect it back in the same field.
    ReasoningIn(ThoughtField, String),
    /// A complete part of the reasoning, in the form that the API expects back. Its text was already
    /// sent in pieces.
    Thought(Thought),
    /// The next piece of a tool call.
    ToolCall(ToolCallDelta),
    /// A comment, a role or an empty piece: nothing to show, but the model's server is alive.
    KeepAlive,
    /// The usage so far; the last report counts.
    Usage(TokenUsage),
    /// The model has finished, for this reason.
    End(FinishReason),
}

/// Tokens of one call, as counted by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    /// An unknown reason, kept because it may help in an investigation.
    Other(String),
}

impl FinishReason {
    /// Parses the code of an API, in lower case.
    pub fn from_code(word: &str) -> Self {
        match word {
            "stop" | "end_turn" | "eos" | "stop_sequence" => Self::Stop,
            "length" | "max_tokens" | "model_context_window_exceeded" => Self::Length,
            "content_filter" | "refusal" | "safety" | "recitation" | "blocklist"
            | "prohibited_content" | "spii" | "language" => Self::ContentFilter,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            // Untrusted text goes into metadata: it must be short, without characters that the
            // database rejects.
            other => {
                let plain = other.chars().filter(|it| !it.is_control());
                Self::Other(plain.take(64).collect())
            }
        }
    }

    /// Returns the value for `metadata.finish_reason`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::ToolCalls => "tool_calls",
            Self::Other(word) => word,
        }
    }
}
