//! How patient sockets are with their peers.

use std::time::Duration;

/// The patience of sockets; a test may shorten it.
#[derive(Clone, Copy, Debug)]
pub struct SocketTimeouts {
    pub ping_interval: Duration,
    /// A peer that says nothing for so long, not even an answer to a ping, is gone.
    pub silence_timeout: Duration,
    /// A peer that takes no frame for so long is gone. Shorter than the silence: who writes hears
    /// nothing meanwhile.
    pub write_timeout: Duration,
    /// In which time so many frames are taken and no more.
    pub frame_rate_window: Duration,
    /// So long a socket of `/v1` takes turns.
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
