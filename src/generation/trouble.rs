//! What can spoil an attempt, whether another one may follow, and how it is told to people.

use std::time::Duration;

use crate::generation::outcome::Failure;
use crate::generation::outcome::FailureCode;
use crate::generation::watches::Watches;
use crate::llm::error::LlmError;

/// All tries of one call, the first included.
pub const MAX_ATTEMPTS: u32 = 3;

/// A provider that asks for a longer wait than this is not waited for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Why an attempt brought no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// No text, thought or tool call yet, and no sign of life in time.
    NoChunk,
    /// Text, a thought or a tool call, then no sign of life for too long.
    Silence,
    /// The stream ended properly, but the answer did not.
    CutShort,
    /// The call itself failed.
    Call(LlmError),
}

/// What was tried so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tries {
    /// Attempts made.
    pub n_attempts: u32,
    /// Those of them that ended with [`Trouble::NoChunk`].
    pub n_without_chunk: u32,
}

impl Trouble {
    /// How long to wait before the next attempt; `None` if there is to be none. `jitter` is a
    /// number from 0 to 1. To be asked only while nothing was forwarded.
    pub fn wait_before_retry(
        &self,
        tries: Tries,
        watches: &Watches,
        jitter: f64,
    ) -> Option<Duration> {
        if tries.n_attempts >= MAX_ATTEMPTS {
            return None;
        }
        match self {
            // Two minutes have passed already: no use in waiting longer.
            Self::NoChunk => (tries.n_without_chunk < 2).then_some(Duration::ZERO),
            Self::Call(error) if error.is_retryable() => {
                let asked = error.retry_after().unwrap_or(Duration::ZERO);
                let doubled = watches.backoff * 2_u32.pow(tries.n_attempts.saturating_sub(1));
                let wait = doubled.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 2.0);
                (asked <= MAX_RETRY_AFTER).then_some(wait.max(asked))
            }
            Self::Silence | Self::CutShort | Self::Call(_) => None,
        }
    }

    /// What the run will say about it.
    pub fn failure(&self, watches: &Watches) -> Failure {
        let (code, message) = match self {
            Self::NoChunk => (FailureCode::UpstreamTimeout, no_chunk(watches)),
            Self::Silence => (FailureCode::UpstreamTimeout, silence(watches)),
            Self::CutShort => (
                FailureCode::UpstreamDisconnected,
                "The model's answer was cut off before its end.".to_owned(),
            ),
            Self::Call(error) => (code(error), error.to_string()),
        };
        let retryable = match self {
            Self::Call(LlmError::Upstream { .. }) => true,
            Self::Call(error) => error.is_retryable(),
            _ => true,
        };
        Failure {
            code,
            message,
            retryable,
        }
    }
}

fn no_chunk(watches: &Watches) -> String {
    format!(
        "The model did not begin to answer within {} seconds.",
        seconds(watches.first_chunk)
    )
}

fn silence(watches: &Watches) -> String {
    format!(
        "The model fell silent for {} seconds in its answer.",
        seconds(watches.idle)
    )
}

/// Whole seconds as people say them, fractions only where there is nothing else.
pub fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

fn code(error: &LlmError) -> FailureCode {
    match error {
        LlmError::Status { status: 429, .. } => FailureCode::UpstreamRateLimited,
        // Whoever asks for a long pause is limiting, whatever the status says.
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

    use super::Tries;
    use super::Trouble;
    use crate::generation::outcome::FailureCode;
    use crate::generation::watches::Watches;
    use crate::llm::error::LlmError;

    fn status(status: u16, retry_after_s: Option<u64>) -> Trouble {
        let retry_after = retry_after_s.map(Duration::from_secs);
        Trouble::Call(LlmError::Status {
            status,
            message: "Busy.".to_owned(),
            retry_after,
        })
    }

    fn wait_ms(trouble: &Trouble, n_attempts: u32, jitter: f64) -> Option<u128> {
        let tries = Tries {
            n_attempts,
            n_without_chunk: n_attempts,
        };
        trouble
            .wait_before_retry(tries, &Watches::default(), jitter)
            .map(|it| it.as_millis())
    }

    #[test]
    fn the_wait_doubles_and_its_jitter_only_adds() {
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

        let failure = status(503, Some(999_999)).failure(&Watches::default());
        assert_eq!(failure.code, FailureCode::UpstreamRateLimited);
    }

    #[test]
    fn a_silent_start_is_tried_once_more_and_silence_later_never() {
        assert_eq!(wait_ms(&Trouble::NoChunk, 1, 0.5), Some(0));
        assert_eq!(wait_ms(&Trouble::NoChunk, 2, 0.5), None);
        assert_eq!(wait_ms(&Trouble::Silence, 1, 0.5), None);
        assert_eq!(wait_ms(&Trouble::CutShort, 1, 0.5), None);
    }

    #[test]
    fn a_refused_request_is_not_repeated() {
        assert_eq!(wait_ms(&status(401, None), 1, 0.5), None);
        assert!(!status(401, None).failure(&Watches::default()).retryable);
    }

    #[test]
    fn limits_are_told_in_seconds() {
        let failure = Trouble::NoChunk.failure(&Watches::default());

        assert_eq!(
            failure.message,
            "The model did not begin to answer within 120 seconds."
        );
    }
}
