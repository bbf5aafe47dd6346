//! The options of one embedding call: its time limit, its retries, and the dimensions of the
//! vectors. They are not part of the client, so that a change of them keeps its cache.

use std::time::Duration;

/// Higher values of the option are lowered to this, because a lease or a person waits.
const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What an embedding is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// For a query, while a reply waits for it: 2 s and no retry.
    Read,
    /// For storing, in the background: 10 s and one retry.
    Write,
    /// For a program, which receives the vectors: 30 s and one retry.
    Relay,
}

/// Options of a provider for embeddings, and what is known of its model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EmbeddingOptions {
    /// The option `embedding_timeout_s`, for each attempt. At 0 the provider is never called; at most
    /// ten minutes count; a negative or infinite value is ignored.
    pub timeout_s: Option<f64>,
    /// The option `embedding_max_retries`. At 0 there is no retry.
    pub max_retries: Option<u32>,
    /// The option `embedding_dimensions`: it is sent to the provider, and expected in its response.
    pub requested_dimensions: Option<usize>,
    /// The number of dimensions of the vectors that are stored, if any. It is not sent, because
    /// most models support only one.
    pub stored_dimensions: Option<usize>,
}

/// The limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallLimits {
    pub timeout: Duration,
    pub max_retries: u32,
}

impl EmbeddingOptions {
    /// Returns the number of dimensions that a vector must have, if it is known.
    pub(super) fn expected_dimensions(&self) -> Option<usize> {
        self.stored_dimensions.or(self.requested_dimensions)
    }

    /// Returns the limits of a call.
    pub(super) fn limits(&self, kind: CallKind) -> CallLimits {
        let (timeout, max_retries) = match kind {
            CallKind::Read => (Duration::from_secs(2), 0),
            CallKind::Write => (Duration::from_secs(10), 1),
            CallKind::Relay => (Duration::from_secs(30), 1),
        };
        let chosen = self.timeout_s.map(Duration::try_from_secs_f64);
        CallLimits {
            timeout: chosen
                .and_then(Result::ok)
                .unwrap_or(timeout)
                .min(MAX_TIMEOUT),
            max_retries: self.max_retries.unwrap_or(max_retries),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CallKind, CallLimits, EmbeddingOptions};

    fn limits(kind: CallKind, timeout_s: Option<f64>, max_retries: Option<u32>) -> CallLimits {
        let options = EmbeddingOptions {
            timeout_s,
            max_retries,
            ..EmbeddingOptions::default()
        };
        options.limits(kind)
    }

    fn of(timeout_ms: u64, max_retries: u32) -> CallLimits {
        CallLimits {
            timeout: Duration::from_millis(timeout_ms),
            max_retries,
        }
    }

    #[test]
    fn reading_has_two_seconds_writing_ten_and_a_retry_and_a_relay_thirty_and_a_retry() {
        assert_eq!(limits(CallKind::Read, None, None), of(2_000, 0));
        assert_eq!(limits(CallKind::Write, None, None), of(10_000, 1));
        assert_eq!(limits(CallKind::Relay, None, None), of(30_000, 1));
    }

    #[test]
    fn zero_is_a_value_and_not_the_default() {
        assert_eq!(limits(CallKind::Read, Some(0.0), Some(0)), of(0, 0));
        assert_eq!(limits(CallKind::Write, Some(0.0), Some(0)), of(0, 0));
        assert_eq!(limits(CallKind::Write, Some(1.5), Some(3)), of(1_500, 3));
    }

    #[test]
    fn a_timeout_is_at_most_ten_minutes() {
        assert_eq!(limits(CallKind::Read, Some(1e18), None), of(600_000, 0));
    }

    #[test]
    fn an_impossible_timeout_is_ignored() {
        for timeout_s in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            let limits = limits(CallKind::Read, Some(timeout_s), None);
            assert_eq!(limits, of(2_000, 0), "{timeout_s}");
        }
    }
}
