//! A window that slides: how often something happened lately, counted in this process.
//!
//! **Invariant:** what is older than its window is forgotten, so memory follows the traffic of the
//! last minutes and not of the server's life.

use crate::accounts::limits::Wait;
use crate::clock::Clock;
use crate::clock::Timestamp;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// Below so many keys nothing is swept.
const SWEEP_FROM: usize = 1024;

/// At most `most` per key within the last `span_ms`; 0 is no limit.
pub struct Window<K> {
    most: usize,
    span_ms: i64,
    clock: Clock,
    seen: Mutex<Seen<K>>,
}

struct Seen<K> {
    by_key: HashMap<K, VecDeque<Timestamp>>,
    /// Sweeping doubles its threshold, so that its cost stays a small part of what was noted.
    sweep_at: usize,
}

impl<K: Eq + Hash> Window<K> {
    /// An empty window.
    pub fn new(most: u32, span_ms: i64, clock: &Clock) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            span_ms,
            clock: clock.clone(),
            seen: Mutex::new(Seen {
                by_key: HashMap::new(),
                sweep_at: SWEEP_FROM,
            }),
        }
    }

    /// Takes one place in the window.
    ///
    /// # Errors
    /// The window is full.
    pub fn take(&self, key: K) -> Result<(), Wait> {
        let mut seen = self.seen.lock();
        match self.full_for(&mut seen, &key) {
            Some(wait) => Err(Wait(wait)),
            None => {
                self.push(&mut seen, key);
                Ok(())
            }
        }
    }

    /// Gives back the place that was taken last: what it was for did not happen.
    pub fn give_back(&self, key: &K) {
        if let Some(times) = self.seen.lock().by_key.get_mut(key) {
            times.pop_back();
        }
    }

    /// Seconds until there is a place; `None`: there is one now.
    pub fn wait_for(&self, key: &K) -> Option<u64> {
        self.full_for(&mut self.seen.lock(), key)
    }

    /// Counts one, whether there is a place or not.
    pub fn note(&self, key: K) {
        self.push(&mut self.seen.lock(), key);
    }

    fn full_for(&self, seen: &mut Seen<K>, key: &K) -> Option<u64> {
        if self.most == 0 {
            return None;
        }
        let now = self.clock.now();
        let times = seen.by_key.get_mut(key)?;
        forget(times, now, self.span_ms);
        let frees_next = *times.get(times.len().checked_sub(self.most)?)?;
        let ms = frees_next.plus_ms(self.span_ms).ms_since(now).max(1);
        Some(u64::try_from(ms).unwrap_or(0).div_ceil(1000))
    }

    fn push(&self, seen: &mut Seen<K>, key: K) {
        if self.most == 0 {
            return;
        }
        let now = self.clock.now();
        if seen.by_key.len() >= seen.sweep_at {
            seen.by_key.retain(|_, times| {
                forget(times, now, self.span_ms);
                !times.is_empty()
            });
            seen.sweep_at = (seen.by_key.len() * 2).max(SWEEP_FROM);
        }
        seen.by_key.entry(key).or_default().push_back(now);
    }
}

fn forget(times: &mut VecDeque<Timestamp>, now: Timestamp, span_ms: i64) {
    while times.front().is_some_and(|it| now.ms_since(*it) >= span_ms) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::SWEEP_FROM;
    use super::Window;
    use crate::accounts::limits::Wait;
    use crate::clock::Clock;

    #[test]
    fn a_window_slides() {
        let clock = Clock::manual();
        let window = Window::new(2, 60_000, &clock);

        assert_eq!(window.take("ann"), Ok(()));
        clock.advance_ms(30_000);
        assert_eq!(window.take("ann"), Ok(()));
        assert_eq!(window.take("ann"), Err(Wait(30)));
        assert_eq!(window.take("ben"), Ok(()));
        clock.advance_ms(29_999);
        assert_eq!(window.take("ann"), Err(Wait(1)));
        clock.advance_ms(1);
        assert_eq!(window.take("ann"), Ok(()));
        assert_eq!(window.take("ann"), Err(Wait(30)));
    }

    #[test]
    fn what_was_given_back_is_free() {
        let window = Window::new(1, 60_000, &Clock::manual());
        window.take("ann").unwrap();

        window.give_back(&"ann");

        assert_eq!(window.take("ann"), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        let window = Window::new(0, 60_000, &Clock::manual());

        assert!((0..1000).all(|_| window.take("ann").is_ok()));
        assert!(window.seen.lock().by_key.is_empty());
    }

    #[test]
    fn old_keys_are_swept() {
        let clock = Clock::manual();
        let window = Window::new(5, 1_000, &clock);
        for key in 0..SWEEP_FROM {
            window.note(key);
        }
        clock.advance_ms(1_000);

        window.note(SWEEP_FROM);

        assert_eq!(window.seen.lock().by_key.len(), 1);
    }
}
