//! Defines what the execution of a run resulted in, before that is committed.

use agent::outcome::GenerationFailure;
use agent::usage::UsageTotal;

use crate::runs::scheduling::command::{ExecutionEnd, SentPromptRef};
use crate::runs::store::run;

/// The result of an execution.
pub struct ExecutionResult {
    /// `None`: the lease was lost, or the run is to be released.
    pub end: Option<ExecutionEnd>,
    /// The prompt that was sent, if any.
    pub sent: Option<SentPromptRef>,
    /// The cost of its model calls.
    pub usage: Option<run::RunUsage>,
}

impl ExecutionResult {
    /// Returns the result of a run that failed before a prompt was sent.
    pub fn failed_before_sending(failure: GenerationFailure) -> Self {
        Self {
            end: Some(end_from_failure(failure, None, None)),
            sent: None,
            usage: None,
        }
    }
}

/// Returns the end of a run that failed.
pub fn end_from_failure(
    failure: GenerationFailure,
    usage: Option<UsageTotal>,
    prompt: Option<SentPromptRef>,
) -> ExecutionEnd {
    ExecutionEnd::Failed {
        error: run::RunError {
            code: failure.code.to_string(),
            message: failure.message,
            retryable: failure.is_retryable,
        },
        usage: usage.map(run::RunUsage::from),
        prompt,
    }
}
