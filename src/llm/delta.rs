//! What a model streams back: text, reasoning, calls of tools, signs of life, what it cost, and why it ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::tool::ToolCallDelta;

/// One step of an answer.
///
/// **Invariant:** a stream that ends without [`Delta::End`] was cut off; it is never a success.
/// A usage report may still follow the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// The next piece of visible text; never empty.
    Text(String),
    /// How likely each token of the next piece of text was: `{token, logprob, bytes, top_logprobs}`;
    /// never empty, and only where it was asked for.
    Logprobs(Vec<Value>),
    /// Where something in the text comes from: `{type: "url_citation", start_index, end_index, url,
    /// title}`, places counted in characters of the whole text.
    Citation(Value),
    /// The next piece of why it does not answer, by a model that tells this from a text; never empty.
    Refusal(String),
    /// The next piece of what the model thinks before it speaks; never empty, and no part of the
    /// text.
    Reasoning(String),
    /// The next piece of a call.
    ToolCall(ToolCallDelta),
    /// A comment, a role or an empty piece: nothing to show, but the model's server is alive.
    KeepAlive,
    /// What the call cost so far; the last report counts.
    Usage(TokenUsage),
    /// The model said that it is done, and why.
    End(FinishReason),
}

/// Tokens of one call, as the provider counted them.
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
    /// A word that we do not know; kept, as it may help whoever looks.
    Other(String),
}

impl FinishReason {
    /// Reads the word that an API uses, in small letters.
    pub fn from_code(word: &str) -> Self {
        match word {
            "stop" | "end_turn" | "eos" | "stop_sequence" => Self::Stop,
            "length" | "max_tokens" | "model_context_window_exceeded" => Self::Length,
            "content_filter" | "refusal" | "safety" | "recitation" | "blocklist"
            | "prohibited_content" | "spii" | "language" => Self::ContentFilter,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            // A stranger's word ends up in metadata: it stays short, and holds no character that
            // the database refuses.
            other => {
                let plain = other.chars().filter(|it| !it.is_control());
                Self::Other(plain.take(64).collect())
            }
        }
    }

    /// The word stored in `metadata.finish_reason`.
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
