//! Limits the work of one lorebook scan, because its patterns are untrusted.
//!
//! **Invariant:** work is counted in steps and matches, so that a scan ends at the same point on
//! every machine and under any load: a preview shows what a run will send.

use std::cell::Cell;

/// The maximum number of steps of a pattern in one scan. They need about 10 ms.
pub const MAX_PATTERN_STEPS: u64 = 2_000_000;
/// The maximum number of steps of all patterns in one scan. They need about 1 s.
pub const MAX_SCAN_STEPS: u64 = 200_000_000;
/// The maximum number of matches of plain keys in one scan. They need about 250 ms.
pub const MAX_MATCHES: u64 = 4 * 1024 * 1024;

/// The limit because of which a search was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchLimit {
    /// The pattern needs more than `MAX_PATTERN_STEPS`.
    Pattern,
    /// The patterns of its lorebook have used up their share of the steps.
    Lorebook,
    /// Plain keys have more than `MAX_MATCHES` matches.
    Matches,
}

/// The remaining budget of a scan.
pub struct ScanBudget {
    pub matches_left: Cell<u64>,
    /// For each lorebook. Every lorebook has the same share, so that none can use up those of the
    /// others.
    pub steps_left: Vec<Cell<u64>>,
}

impl ScanBudget {
    /// Creates a full budget for a scan of this number of lorebooks.
    pub fn new(n_lorebooks: usize) -> Self {
        let share = MAX_SCAN_STEPS / n_lorebooks.max(1) as u64;
        Self {
            matches_left: Cell::new(MAX_MATCHES),
            steps_left: vec![Cell::new(share); n_lorebooks],
        }
    }

    /// Spends a match of a plain key; returns `false` if none is left.
    pub fn spend_match(&self) -> bool {
        let left = self.matches_left.get().saturating_sub(1);
        self.matches_left.set(left);
        left > 0
    }

    /// Returns whether all matches of plain keys could be found so far.
    pub fn has_matches_left(&self) -> bool {
        self.matches_left.get() > 0
    }

    /// Returns how many steps are left for the patterns of a lorebook.
    pub fn pattern_steps(&self, lorebook: usize) -> u64 {
        self.steps_left[lorebook].get()
    }

    /// Spends steps of the patterns of a lorebook, of which at least this number must be left.
    pub fn spend_pattern_steps(&self, lorebook: usize, n_steps: u64) {
        let left = &self.steps_left[lorebook];
        left.set(left.get().saturating_sub(n_steps));
    }
}
