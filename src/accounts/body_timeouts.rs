//! How slowly the bodies of requests may arrive.

use std::time::Duration;

/// The deadlines of bodies; a test may change them.
#[derive(Clone, Copy, Debug)]
pub struct BodyTimeouts {
    /// Within this time any body may arrive, at any speed.
    pub grace: Duration,
    /// The same while connections are scarce.
    pub crowded_grace: Duration,
    /// After the grace: bytes per second since the beginning.
    pub json_rate: u32,
    /// The same for forms with files.
    pub upload_rate: u32,
}

impl Default for BodyTimeouts {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(10),
            crowded_grace: Duration::from_secs(1),
            json_rate: 1_000,
            upload_rate: 16_000,
        }
    }
}
