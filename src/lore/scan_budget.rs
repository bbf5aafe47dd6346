//! How much one scan may look for.
//!
//! **Invariant:** it is counted in steps, so that the same scan ends at the same place on every
//! machine and however busy it is: a preview shows what a run will send. The clock is there as well,
//! far above what the steps take, for patterns that are slower than any we know.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The most steps. One is a byte that a pattern goes over; they are done in a quarter of a second.
pub const MAX_STEPS: u64 = 64 * 1024 * 1024;
/// What a place where a plain key stands is counted as.
pub const STEPS_PER_MATCH: u64 = 16;
/// The last resort.
const MAX_TIME: Duration = Duration::from_secs(4);

/// What is left.
pub struct ScanBudget {
    pub steps_left: Cell<u64>,
    deadline: Instant,
}

impl ScanBudget {
    /// Nothing done yet.
    pub fn new() -> Self {
        Self {
            steps_left: Cell::new(MAX_STEPS),
            deadline: Instant::now() + MAX_TIME,
        }
    }

    /// Takes so many steps, if they are left.
    pub fn spend(&self, steps: u64) -> bool {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Has it taken too long all the same?
    pub fn is_exhausted(&self) -> bool {
        Instant::now() > self.deadline
    }
}

impl Default for ScanBudget {
    fn default() -> Self {
        Self::new()
    }
}
