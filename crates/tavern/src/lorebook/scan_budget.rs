//! Limits the steps and the time of one lorebook scan, because its patterns are untrusted.
//!
//! **Invariant:** work is counted in steps, so that a scan ends at the same point on every machine
//! and under any load: a preview shows what a run will send. A time limit, far above what the steps
//! need, covers patterns that are slower than expected.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The maximum number of steps. A step is a byte that a pattern reads; all take about 250 ms.
pub const MAX_STEPS: u64 = 64 * 1024 * 1024;
/// The number of steps charged for each match of a plain key.
pub const STEPS_PER_MATCH: u64 = 16;
/// The time limit; far above the time for `MAX_STEPS`.
const MAX_TIME: Duration = Duration::from_secs(4);

/// The remaining budget of a scan.
pub struct ScanBudget {
    pub steps_left: Cell<u64>,
    deadline: Instant,
}

impl ScanBudget {
    /// Creates a full budget and starts the time limit.
    pub fn new() -> Self {
        Self {
            steps_left: Cell::new(MAX_STEPS),
            deadline: Instant::now() + MAX_TIME,
        }
    }

    /// Spends this many steps; returns `false` if fewer are left.
    pub fn spend(&self, steps: u64) -> bool {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Returns whether the time limit has passed.
    pub fn is_exhausted(&self) -> bool {
        Instant::now() > self.deadline
    }
}

impl Default for ScanBudget {
    fn default() -> Self {
        Self::new()
    }
}
