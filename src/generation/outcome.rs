//! How a turn ended: with text, with a reason, or because somebody asked.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::llm::delta::FinishReason;
use crate::llm::delta::Usage;

/// The end of one call of [`generate`](crate::generation::generator::generate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded {
        /// Exactly what the sink was given; never blank.
        text: String,
        usage: Option<Usage>,
        reason: FinishReason,
        /// The model or a limit of ours stopped it before it was done.
        truncated: bool,
    },
    Failed {
        failure: Failure,
        /// What the sink was given before it failed; often empty.
        text: String,
        usage: Option<Usage>,
    },
    Canceled {
        /// What the sink was given before the cancel.
        text: String,
        usage: Option<Usage>,
    },
}

/// Why a run failed: a word for programs, a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: FailureCode,
    pub message: String,
    /// Whether trying again later may help.
    pub retryable: bool,
}

/// The words that a failed run can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Every code, for tests and for reading one back from a row.
    pub const ALL: [Self; 12] = [
        Self::UpstreamTimeout,
        Self::UpstreamError,
        Self::UpstreamRateLimited,
        Self::UpstreamDisconnected,
        Self::RunTimeout,
        Self::EmptyResponse,
        Self::ContentFilter,
        Self::TokenLimitExceeded,
        Self::NoProvider,
        Self::ContextOverflow,
        Self::StaleRunningRun,
        Self::Internal,
    ];

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

    /// The code of a stored word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::FailureCode;

    #[test]
    fn a_code_is_spelt_alike_in_rows_and_in_json() {
        for code in FailureCode::ALL {
            let json = serde_json::to_value(code).unwrap();

            assert_eq!(json, code.as_str());
            assert_eq!(FailureCode::from_word(code.as_str()), Some(code));
        }
    }
}
