//! How much one scan may look for.
//!
//! **Invariant:** it is counted in steps, so that the same scan ends at the same place on every
//! machine and however busy it is: a preview shows what a run will send. The clock is there as well,
//! far above what the steps take, for patterns that are slower than any we know.

use std::cell::Cell;
use std::time::Duration;
use std::time::Instant;

/// The most steps. One is a byte that a pattern goes over; they are done in a quarter of a second.
pub const MAX_STEPS: u64 = 64 * 1024 * 1024;
/// What a place where a plain key stands is counted as.
pub const STEPS_OF_FOUND: u64 = 16;
/// The last resort.
const MAX_TIME: Duration = Duration::from_secs(4);

/// What is left.
pub struct Effort {
    pub left: Cell<u64>,
    until: Instant,
}

impl Effort {
    /// Nothing done yet.
    pub fn new() -> Self {
        Self {
            left: Cell::new(MAX_STEPS),
            until: Instant::now() + MAX_TIME,
        }
    }

    /// Takes so many steps, if they are left.
    pub fn takes(&self, steps: u64) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Has it taken too long all the same?
    pub fn is_late(&self) -> bool {
        Instant::now() > self.until
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self::new()
    }
}
