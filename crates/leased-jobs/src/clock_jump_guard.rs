//! Postpones the recovery of jobs after a suspension or a clock jump, because jobs of living
//! processes may then look abandoned.
//!
//! **Invariant:** a process that was itself suspended, or whose database was, recovers nothing for
//! one stale time, in which living processes renew their heartbeats. It detects this by a gap
//! between its own checks, a check that failed, or a jump of the clock that stamps the heartbeats.

use std::time::Duration;

use tokio::time::Instant;

/// Decides when a process may recover jobs: not for one stale time after a suspension or a clock
/// jump.
pub struct ClockJumpGuard {
    longest_gap: Duration,
    heartbeat: Duration,
    stale_after: Duration,
    last: Instant,
    recover_from: Instant,
    /// When the clock of the heartbeats was last read, and what it showed.
    last_reading: Option<(Instant, i64)>,
}

impl ClockJumpGuard {
    /// Creates a guard that permits recovery from `now` on. Two checks are `longest_gap` apart at
    /// most; the clock of the heartbeats may jump by one `heartbeat` interval.
    pub fn new(
        longest_gap: Duration,
        heartbeat: Duration,
        stale_after: Duration,
        now: Instant,
    ) -> Self {
        Self {
            longest_gap,
            heartbeat,
            stale_after,
            last: now,
            recover_from: now,
            last_reading: None,
        }
    }

    /// Called after each check, with the reading of the heartbeats' clock in milliseconds if that is
    /// not this process's own. A gap between two calls means that this process was suspended; a
    /// difference between elapsed time and the readings means that the clock was set.
    pub fn can_recover(&mut self, now: Instant, reading: Option<i64>) -> bool {
        if now.duration_since(self.last) > self.longest_gap || self.has_clock_jumped(now, reading) {
            self.postpone(now);
        }
        self.last_reading = reading.map(|it| (now, it));
        self.last = now;
        now >= self.recover_from
    }

    fn has_clock_jumped(&self, now: Instant, reading: Option<i64>) -> bool {
        let (Some((at, before)), Some(shows)) = (self.last_reading, reading) else {
            return false;
        };
        let passed = now.duration_since(at).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let off = shows.saturating_sub(before).saturating_sub(passed);
        u128::from(off.unsigned_abs()) > self.heartbeat.as_millis()
    }

    /// Recovers nothing for one stale time from `now`.
    pub fn postpone(&mut self, now: Instant) {
        self.last = now;
        self.recover_from = now + self.stale_after;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::ClockJumpGuard;

    fn guard(now: Instant) -> ClockJumpGuard {
        let seconds = Duration::from_secs;
        ClockJumpGuard::new(seconds(10), seconds(5), seconds(30), now)
    }

    #[test]
    fn a_node_whose_ticks_are_on_time_may_recover() {
        let start = Instant::now();
        let mut guard = guard(start);

        let results = (1..9).map(|n| guard.can_recover(start + Duration::from_secs(5 * n), None));

        assert!(results.into_iter().all(|it| it));
    }

    #[test]
    fn a_suspended_node_waits_one_stale_time() {
        let start = Instant::now();
        let mut guard = guard(start);
        let resumed_at = start + Duration::from_secs(90);
        let later = |s| resumed_at + Duration::from_secs(s);

        assert!(!guard.can_recover(resumed_at, None));
        assert!(!guard.can_recover(later(5), None));
        assert!(!guard.can_recover(later(15), None) && !guard.can_recover(later(25), None));
        assert!(guard.can_recover(later(30), None));
    }

    #[test]
    fn a_node_that_waited_for_the_database_waits_one_stale_time() {
        let start = Instant::now();
        let mut guard = guard(start);
        assert!(guard.can_recover(start + Duration::from_secs(5), None));
        let response_at = start + Duration::from_secs(70);
        let later = |s| response_at + Duration::from_secs(s);

        guard.postpone(response_at);

        assert!(!guard.can_recover(later(5), None));
        let mut ticks = (2..6).map(|n| guard.can_recover(later(5 * n), None));
        assert!(ticks.all(|it| !it));
        assert!(guard.can_recover(later(30), None));
    }

    #[test]
    fn a_node_that_detects_a_clock_jump_waits_one_stale_time() {
        const HOUR: i64 = 3_600_000;
        for set_by in [HOUR, -HOUR] {
            let start = Instant::now();
            let mut guard = guard(start);
            // The other clock runs a little slower than ours.
            let mut check = |s: u64, by: i64| {
                let other_clock_ms = HOUR + by + i64::try_from(s).expect("a small number") * 990;
                guard.can_recover(start + Duration::from_secs(s), Some(other_clock_ms))
            };
            assert!(check(5, 0) && check(10, 0));

            assert!(!check(15, set_by));

            assert!(!check(20, set_by) && !check(30, set_by) && !check(40, set_by));
            assert!(check(45, set_by));
        }
    }
}
