//! The result types of a model call: a text, a failure with its code, or a cancellation.

use std::fmt;

use llm::delta::{FinishReason, TokenUsage};
use llm::reasoning::thought::Thought;
use llm::tool::ToolCall;

use crate::reasoning::Reasoning;
use crate::usage::{CallUsage, UsageTotal};

/// The result of [`complete`](crate::model_call::complete).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelOutput {
    pub end: CallEnd,
    /// Exactly what the sink received.
    pub text: String,
    pub reasoning: Option<Reasoning>,
    /// The reasoning in the form that the API expects back after the tool calls.
    pub thoughts: Vec<Thought>,
    /// The tool calls, in order; if the answer was cut off, the last one may be incomplete.
    pub calls: Vec<ToolCall>,
    /// As last reported by the provider.
    pub usage: Option<TokenUsage>,
    /// The attempts with a success status, for
    /// [`count_usage`](crate::usage::count_usage).
    pub call_usages: Vec<CallUsage>,
    /// Our own length limit ended the answer.
    pub is_capped: bool,
}

impl ModelOutput {
    /// Returns whether the model did not finish, or reached a limit or a filter.
    pub fn is_truncated(&self) -> bool {
        let is_whole = match &self.end {
            CallEnd::Answered(FinishReason::Length | FinishReason::ContentFilter) => false,
            CallEnd::Answered(_) => !self.is_capped,
            CallEnd::Failed(_) | CallEnd::Canceled => false,
        };
        !is_whole
    }
}

/// How a call ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CallEnd {
    /// The model reported the end of its answer, for this reason.
    Answered(FinishReason),
    /// The call failed before the answer was complete.
    Failed(GenerationFailure),
    /// The caller canceled the call.
    #[default]
    Canceled,
}

/// The result of [`generate`](crate::model_call::generate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GenerationOutcome {
    Succeeded {
        /// Exactly what the sink received; never blank.
        text: String,
        reasoning: Option<Reasoning>,
        usage: Option<UsageTotal>,
        reason: FinishReason,
        /// The model's or our own length limit ended the answer early.
        truncated: bool,
    },
    Failed {
        failure: GenerationFailure,
        /// What the sink received before the failure; often empty.
        text: String,
        usage: Option<UsageTotal>,
    },
    Canceled {
        /// What the sink received before the cancellation.
        text: String,
        reasoning: Option<Reasoning>,
        usage: Option<UsageTotal>,
    },
}

/// Why a run failed: a code for programs and a sentence for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationFailure {
    pub code: FailureCode,
    pub message: String,
    /// Whether a later attempt may succeed.
    pub is_retryable: bool,
}

impl GenerationFailure {
    /// Returns the failure for an error of this server, which the caller logs.
    pub fn internal() -> Self {
        Self {
            code: FailureCode::Internal,
            message: "Internal server error. It has been logged.".to_owned(),
            is_retryable: true,
        }
    }
}

/// The error codes of a failed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    UpstreamTimeout,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamDisconnected,
    RunTimeout,
    EmptyResponse,
    ContentFilter,
    TokenLimitExceeded,
    NoProvider,
    ContextOverflow,
    InvalidMacro,
    StaleRunningRun,
    Internal,
}

impl FailureCode {
    /// Returns the code used in rows, JSON and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamRateLimited => "upstream_rate_limited",
            Self::UpstreamDisconnected => "upstream_disconnected",
            Self::RunTimeout => "run_timeout",
            Self::EmptyResponse => "empty_response",
            Self::ContentFilter => "content_filter",
            Self::TokenLimitExceeded => "token_limit_exceeded",
            Self::NoProvider => "no_provider",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidMacro => "invalid_macro",
            Self::StaleRunningRun => "stale_running_run",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
