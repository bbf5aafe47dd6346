//! How patient sockets are with their peers.

use std::time::Duration;

/// The patience of sockets; a test may shorten it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub ping_every: Duration,
    /// A peer that says nothing for so long, not even an answer to a ping, is gone.
    pub silent_after: Duration,
    /// A peer that takes no frame for so long is gone. Shorter than the silence: who writes hears
    /// nothing meanwhile.
    pub write_within: Duration,
    /// In which time so many frames are taken and no more.
    pub frames_within: Duration,
    /// So long a socket of `/v1` takes turns.
    pub turns_within: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            ping_every: Duration::from_secs(20),
            silent_after: Duration::from_secs(60),
            write_within: Duration::from_secs(20),
            frames_within: Duration::from_secs(10),
            turns_within: Duration::from_secs(60 * 60),
        }
    }
}
