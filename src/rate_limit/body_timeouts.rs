//! Defines `BodyTimeouts`: the minimum rates at which request bodies must arrive, and the grace
//! periods before they are enforced.

use std::time::Duration;

/// Timeouts and minimum rates of request bodies; tests may change them.
#[derive(Clone, Copy, Debug)]
pub struct BodyTimeouts {
    /// During this time a body may arrive at any speed.
    pub grace: Duration,
    /// Replaces `grace` while connections are scarce.
    pub crowded_grace: Duration,
    /// Minimum bytes per second since the start of the body, enforced after the grace period.
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
