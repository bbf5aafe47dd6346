//! Defines `CallLimits`, the timeouts, the maximum size of the text and the retry delay of one
//! model call.

use std::time::Duration;

/// The limits that [`generate`](crate::model_call::generate) enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The longest gap between two stream events before the first text, reasoning or tool call;
    /// sending the request starts the first gap. The call fails when this is exceeded twice.
    pub first_chunk: Duration,
    /// The longest gap between two stream events after that; comments and empty chunks count.
    pub idle: Duration,
    /// All attempts and waits together. Ends a stream that only sends comments.
    pub total: Duration,
    /// The longest text; a longer one is cut there and the call ends.
    pub max_text_bytes: usize,
    /// The wait before the second attempt; doubled before each later one.
    pub backoff: Duration,
    /// Model calls that were made before this loop, and count towards its limit.
    pub n_earlier_calls: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            first_chunk: Duration::from_secs(120),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
            max_text_bytes: 64 * 1024,
            backoff: Duration::from_millis(250),
            n_earlier_calls: 0,
        }
    }
}
