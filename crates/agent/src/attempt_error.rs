//! The error of one attempt at a model call: decides whether and when to retry the call, and
//! returns the failure that users see.

use std::time::Duration;

use llm::error::LlmError;

use crate::call_limits::CallLimits;
use crate::outcome::{FailureCode, GenerationFailure};

/// The maximum number of attempts for one call, including the first.
pub const MAX_ATTEMPTS: u32 = 3;

/// If a provider requests a longer wait than this, the call is not retried.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Why an attempt returned no complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptError {
    /// The provider sent nothing for too long before any text, reasoning or tool call.
    FirstChunkTimeout,
    /// The provider sent nothing for too long after the answer had begun.
    IdleTimeout,
    /// The stream closed without an error before the answer was complete.
    Incomplete,
    /// The request or its stream failed.
    Provider(LlmError),
}

/// The attempts so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryBudget {
    /// Attempts made.
    pub n_attempts: u32,
    /// Those of them that ended with [`AttemptError::FirstChunkTimeout`].
    pub n_first_chunk_timeouts: u32,
}

impl AttemptError {
    /// Returns how long to wait before the next attempt, or `None` if the call must not be retried.
    /// `jitter` is from 0 to 1. Call this only while nothing has been forwarded to the sink.
    pub fn retry_delay(
        &self,
        budget: RetryBudget,
        limits: &CallLimits,
        jitter: f64,
    ) -> Option<Duration> {
        if budget.n_attempts >= MAX_ATTEMPTS {
            return None;
        }
        match self {
            // This attempt already waited two minutes; no further delay is needed.
            Self::FirstChunkTimeout => {
                (budget.n_first_chunk_timeouts < 2).then_some(Duration::ZERO)
            }
            Self::Provider(error) if error.is_retryable() => {
                let asked = error.retry_after().unwrap_or(Duration::ZERO);
                let doubled = limits.backoff * 2_u32.pow(budget.n_attempts.saturating_sub(1));
                let wait = doubled.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 2.0);
                (asked <= MAX_RETRY_AFTER).then_some(wait.max(asked))
            }
            Self::IdleTimeout | Self::Incomplete | Self::Provider(_) => None,
        }
    }

    /// Returns the failure that the run reports.
    pub fn to_failure(&self, limits: &CallLimits) -> GenerationFailure {
        let (code, message) = match self {
            Self::FirstChunkTimeout => (FailureCode::UpstreamTimeout, first_chunk_timeout(limits)),
            Self::IdleTimeout => (FailureCode::UpstreamTimeout, idle_timeout(limits)),
            Self::Incomplete => (
                FailureCode::UpstreamDisconnected,
                "The model's answer was cut off before its end.".to_owned(),
            ),
            Self::Provider(error) => (failure_code(error), error.to_string()),
        };
        let retryable = match self {
            Self::Provider(LlmError::Upstream { .. }) => true,
            Self::Provider(error) => error.is_retryable(),
            _ => true,
        };
        GenerationFailure {
            code,
            message,
            is_retryable: retryable,
        }
    }
}

fn first_chunk_timeout(limits: &CallLimits) -> String {
    format!(
        "The model did not begin to answer within {} seconds.",
        rounded_seconds(limits.first_chunk)
    )
}

fn idle_timeout(limits: &CallLimits) -> String {
    format!(
        "The model's answer stalled for {} seconds.",
        rounded_seconds(limits.idle)
    )
}

/// Returns the duration in seconds, rounded to one decimal.
pub fn rounded_seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

fn failure_code(error: &LlmError) -> FailureCode {
    match error {
        LlmError::Status { status: 429, .. } => FailureCode::UpstreamRateLimited,
        // A long `Retry-After` is a rate limit, whatever the status.
        LlmError::Status {
            retry_after: Some(wait),
            ..
        } if *wait > MAX_RETRY_AFTER => FailureCode::UpstreamRateLimited,
        LlmError::Disconnected { .. } => FailureCode::UpstreamDisconnected,
        LlmError::ContextOverflow { .. } => FailureCode::ContextOverflow,
        LlmError::Unusable { .. } => FailureCode::NoProvider,
        LlmError::Status { .. } | LlmError::Unreachable { .. } | LlmError::Upstream { .. } => {
            FailureCode::UpstreamError
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use llm::error::LlmError;

    use super::{AttemptError, RetryBudget};
    use crate::call_limits::CallLimits;
    use crate::outcome::FailureCode;

    fn status(status: u16, retry_after_s: Option<u64>) -> AttemptError {
        let retry_after = retry_after_s.map(Duration::from_secs);
        AttemptError::Provider(LlmError::Status {
            status,
            message: "Busy.".to_owned(),
            retry_after,
        })
    }

    fn wait_ms(error: &AttemptError, n_attempts: u32, jitter: f64) -> Option<u128> {
        let tries = RetryBudget {
            n_attempts,
            n_first_chunk_timeouts: n_attempts,
        };
        error
            .retry_delay(tries, &CallLimits::default(), jitter)
            .map(|it| it.as_millis())
    }

    #[test]
    fn the_delay_doubles_and_jitter_only_increases_it() {
        let busy = status(503, None);

        assert_eq!(wait_ms(&busy, 1, 0.0), Some(250));
        assert_eq!(wait_ms(&busy, 1, 1.0), Some(375));
        assert_eq!(wait_ms(&busy, 2, 0.0), Some(500));
        assert_eq!(wait_ms(&busy, 3, 0.0), None);
    }

    #[test]
    fn a_short_retry_after_is_honored_and_a_long_one_ends_the_call() {
        assert_eq!(wait_ms(&status(429, Some(0)), 1, 0.0), Some(250));
        assert_eq!(wait_ms(&status(429, Some(2)), 1, 0.0), Some(2_000));
        assert_eq!(wait_ms(&status(429, Some(10)), 1, 0.0), Some(10_000));
        assert_eq!(wait_ms(&status(429, Some(11)), 1, 0.0), None);

        let failure = status(503, Some(999_999)).to_failure(&CallLimits::default());
        assert_eq!(failure.code, FailureCode::UpstreamRateLimited);
    }

    #[test]
    fn only_a_timeout_before_the_first_chunk_is_retried_once() {
        assert_eq!(wait_ms(&AttemptError::FirstChunkTimeout, 1, 0.5), Some(0));
        assert_eq!(wait_ms(&AttemptError::FirstChunkTimeout, 2, 0.5), None);
        assert_eq!(wait_ms(&AttemptError::IdleTimeout, 1, 0.5), None);
        assert_eq!(wait_ms(&AttemptError::Incomplete, 1, 0.5), None);
    }

    #[test]
    fn a_refused_request_is_not_repeated() {
        assert_eq!(wait_ms(&status(401, None), 1, 0.5), None);
        assert!(
            !status(401, None)
                .to_failure(&CallLimits::default())
                .is_retryable
        );
    }

    #[test]
    fn limits_are_reported_in_seconds() {
        let failure = AttemptError::FirstChunkTimeout.to_failure(&CallLimits::default());

        assert_eq!(
            failure.message,
            "The model did not begin to answer within 120 seconds."
        );
    }
}
