//! How long, how often and how much: the limits of one model call.

use std::time::Duration;

/// The limits that [`generate`](crate::generation::generator::generate) keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Between two signs of life until the first text, thought or tool call; the request itself is
    /// the first one. Exceeded twice, the call has failed.
    pub first_chunk: Duration,
    /// Between two signs of life after that, comments and empty pieces included.
    pub idle: Duration,
    /// All attempts and waits together. What keeps a stream of mere comments from lasting.
    pub total: Duration,
    /// The longest text; a longer one is cut there and its call ended.
    pub max_text_bytes: usize,
    /// The wait before the second attempt; doubled before each further one.
    pub backoff: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            first_chunk: Duration::from_secs(120),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
            max_text_bytes: 64 * 1024,
            backoff: Duration::from_millis(250),
        }
    }
}
