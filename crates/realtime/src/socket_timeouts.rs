//! The timeouts of WebSockets, and the window of their frame rate limit.

use std::time::Duration;

/// The timeouts of sockets; a test may shorten them.
#[derive(Clone, Copy, Debug)]
pub struct SocketTimeouts {
    pub ping_interval: Duration,
    /// A peer that sends nothing for this long, not even a pong, is disconnected.
    pub silence_timeout: Duration,
    /// A peer that accepts no frame for this long is disconnected. Shorter than the silence
    /// timeout: while a frame is written, nothing is read.
    pub write_timeout: Duration,
    /// The window of the frame rate limit.
    pub frame_rate_window: Duration,
    /// How long a socket of `/v1` accepts requests.
    pub v1_session_limit: Duration,
}

impl Default for SocketTimeouts {
    fn default() -> Self {
        Self {
            ping_interval: Duration::from_secs(20),
            silence_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(20),
            frame_rate_window: Duration::from_secs(10),
            v1_session_limit: Duration::from_secs(60 * 60),
        }
    }
}
