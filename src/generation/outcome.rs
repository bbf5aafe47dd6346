//! How a turn ended: with text, with a reason, or because somebody asked.

use std::fmt;

use crate::generation::reasoning::Reasoning;
use crate::generation::usage::{CallUsage, UsageTotal};
use crate::llm::delta::{FinishReason, TokenUsage};
use crate::llm::tool::ToolCall;

/// What came of one call of [`listen`](crate::generation::generator::listen).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOutput {
    pub end: CallEnd,
    /// Exactly what the sink was given.
    pub text: String,
    pub reasoning: Option<Reasoning>,
    /// What was called, in order; of an answer that was cut off the last may lack its end.
    pub calls: Vec<ToolCall>,
    /// As the provider reported it last.
    pub usage: Option<TokenUsage>,
    /// The calls that were answered, for [`count`](crate::generation::usage::count).
    pub call_usages: Vec<CallUsage>,
    /// A limit of ours ended it.
    pub is_capped: bool,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEnd {
    /// The model said that it is done, and why.
    Answered(FinishReason),
    /// It never came so far.
    Failed(GenerationFailure),
    /// Somebody asked to stop.
    Canceled,
}

/// The end of one call of [`generate`](crate::generation::generator::generate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GenerationOutcome {
    Succeeded {
        /// Exactly what the sink was given; never blank.
        text: String,
        reasoning: Option<Reasoning>,
        usage: Option<UsageTotal>,
        reason: FinishReason,
        /// The model or a limit of ours stopped it before it was done.
        truncated: bool,
    },
    Failed {
        failure: GenerationFailure,
        /// What the sink was given before it failed; often empty.
        text: String,
        usage: Option<UsageTotal>,
    },
    Canceled {
        /// What the sink was given before the cancel.
        text: String,
        reasoning: Option<Reasoning>,
        usage: Option<UsageTotal>,
    },
}

/// Why a run failed: a word for programs, a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationFailure {
    pub code: FailureCode,
    pub message: String,
    /// Whether trying again later may help.
    pub is_retryable: bool,
}

/// The words that a failed run can carry.
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
    StaleRunningRun,
    Internal,
}

impl FailureCode {
    /// The word in rows, JSON and logs.
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
