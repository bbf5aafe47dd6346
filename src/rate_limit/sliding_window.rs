//! Counts the recent events of each key in this process in a sliding time window, and refuses those
//! above a maximum.
//!
//! **Invariant:** events older than the window are dropped, so memory use depends on recent traffic
//! and not on the uptime.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use base::clock::{Clock, Timestamp};
use parking_lot::Mutex;

/// Seconds until the next attempt can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter(pub u64);

/// The part of a limit that is left for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingEvents {
    pub max: usize,
    pub n_left: usize,
    /// Seconds until the whole limit is available again.
    pub full_after: u64,
}

/// Number of keys below which no sweep runs.
const MIN_SWEEP_KEYS: usize = 1024;

/// At most `max` events per key within the last `span_ms`; 0 means no limit.
pub struct SlidingWindow<K> {
    max: usize,
    span_ms: i64,
    clock: Clock,
    hits: Mutex<HitTimes<K>>,
}

struct HitTimes<K> {
    by_key: HashMap<K, VecDeque<Timestamp>>,
    /// Number of keys that triggers a sweep. A sweep doubles it, so that its cost stays small
    /// compared to the cost of recording.
    sweep_at: usize,
}

impl<K: Eq + Hash> SlidingWindow<K> {
    /// Creates an empty window.
    pub fn new(max: u32, span_ms: i64, clock: &Clock) -> Self {
        Self {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            span_ms,
            clock: clock.clone(),
            hits: Mutex::new(HitTimes {
                by_key: HashMap::new(),
                sweep_at: MIN_SWEEP_KEYS,
            }),
        }
    }

    /// Counts one event.
    ///
    /// # Errors
    /// Returns `RetryAfter` when the limit is reached.
    pub fn acquire(&self, key: K) -> Result<(), RetryAfter> {
        let mut hits = self.hits.lock();
        match self.seconds_until_free(&mut hits, &key) {
            Some(wait) => Err(RetryAfter(wait)),
            None => {
                self.push(&mut hits, key);
                Ok(())
            }
        }
    }

    /// Removes the latest event of a key, because what it was counted for did not happen.
    pub fn refund(&self, key: &K) {
        if let Some(times) = self.hits.lock().by_key.get_mut(key) {
            times.pop_back();
        }
    }

    /// Returns the seconds until the next event is allowed, or `None` if it is allowed now.
    pub fn retry_after(&self, key: &K) -> Option<u64> {
        self.seconds_until_free(&mut self.hits.lock(), key)
    }

    /// Counts one event even if the limit is reached.
    pub fn record(&self, key: K) {
        self.push(&mut self.hits.lock(), key);
    }

    /// Returns what is left of the limit, or `None` if there is no limit.
    pub fn remaining(&self, key: &K) -> Option<RemainingEvents> {
        if self.max == 0 {
            return None;
        }
        let now = self.clock.now();
        let mut hits = self.hits.lock();
        let mut n_recent = 0;
        let mut full_after = 0;
        if let Some(times) = hits.by_key.get_mut(key) {
            drop_expired(times, now, self.span_ms);
            n_recent = times.len();
            let last = times
                .back()
                .map(|it| it.plus_ms(self.span_ms).ms_since(now));
            full_after = u64::try_from(last.unwrap_or(0)).unwrap_or(0).div_ceil(1000);
        }
        Some(RemainingEvents {
            max: self.max,
            n_left: self.max.saturating_sub(n_recent),
            full_after,
        })
    }

    fn seconds_until_free(&self, hits: &mut HitTimes<K>, key: &K) -> Option<u64> {
        if self.max == 0 {
            return None;
        }
        let now = self.clock.now();
        let times = hits.by_key.get_mut(key)?;
        drop_expired(times, now, self.span_ms);
        let frees_next = *times.get(times.len().checked_sub(self.max)?)?;
        let ms = frees_next.plus_ms(self.span_ms).ms_since(now).max(1);
        Some(u64::try_from(ms).unwrap_or(0).div_ceil(1000))
    }

    fn push(&self, hits: &mut HitTimes<K>, key: K) {
        if self.max == 0 {
            return;
        }
        let now = self.clock.now();
        if hits.by_key.len() >= hits.sweep_at {
            hits.by_key.retain(|_, times| {
                drop_expired(times, now, self.span_ms);
                !times.is_empty()
            });
            hits.sweep_at = (hits.by_key.len() * 2).max(MIN_SWEEP_KEYS);
        }
        hits.by_key.entry(key).or_default().push_back(now);
    }
}

fn drop_expired(times: &mut VecDeque<Timestamp>, now: Timestamp, span_ms: i64) {
    while times.front().is_some_and(|it| now.ms_since(*it) >= span_ms) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Clock;

    use super::{MIN_SWEEP_KEYS, RemainingEvents, RetryAfter, SlidingWindow};

    #[test]
    fn a_window_slides() {
        let clock = Clock::manual();
        let window = SlidingWindow::new(2, 60_000, &clock);

        assert_eq!(window.acquire("ann"), Ok(()));
        clock.advance_ms(30_000);
        assert_eq!(window.acquire("ann"), Ok(()));
        assert_eq!(window.acquire("ann"), Err(RetryAfter(30)));
        assert_eq!(window.acquire("ben"), Ok(()));
        clock.advance_ms(29_999);
        assert_eq!(window.acquire("ann"), Err(RetryAfter(1)));
        clock.advance_ms(1);
        assert_eq!(window.acquire("ann"), Ok(()));
        assert_eq!(window.acquire("ann"), Err(RetryAfter(30)));
    }

    #[test]
    fn what_remains_grows_as_events_leave_the_window() {
        let clock = Clock::manual();
        let window = SlidingWindow::new(2, 60_000, &clock);
        let remaining = |n_left, full_after| {
            Some(RemainingEvents {
                max: 2,
                n_left,
                full_after,
            })
        };

        assert_eq!(window.remaining(&"ann"), remaining(2, 0));
        window.acquire("ann").unwrap();
        clock.advance_ms(30_000);
        window.acquire("ann").unwrap();
        assert_eq!(window.remaining(&"ann"), remaining(0, 60));
        clock.advance_ms(30_000);
        assert_eq!(window.remaining(&"ann"), remaining(1, 30));
        assert_eq!(
            SlidingWindow::new(0, 60_000, &clock).remaining(&"ann"),
            None
        );
    }

    #[test]
    fn a_refunded_hit_is_free_again() {
        let window = SlidingWindow::new(1, 60_000, &Clock::manual());
        window.acquire("ann").unwrap();

        window.refund(&"ann");

        assert_eq!(window.acquire("ann"), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        let window = SlidingWindow::new(0, 60_000, &Clock::manual());

        assert!((0..1000).all(|_| window.acquire("ann").is_ok()));
        assert!(window.hits.lock().by_key.is_empty());
    }

    #[test]
    fn old_keys_are_swept() {
        let clock = Clock::manual();
        let window = SlidingWindow::new(5, 1_000, &clock);
        for key in 0..MIN_SWEEP_KEYS {
            window.record(key);
        }
        clock.advance_ms(1_000);

        window.record(MIN_SWEEP_KEYS);

        assert_eq!(window.hits.lock().by_key.len(), 1);
    }
}
