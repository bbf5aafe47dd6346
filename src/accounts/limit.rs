//! One limit: counted on this node in any case, and on all nodes together where that works.

use std::fmt::Display;
use std::hash::Hash;
use std::time::Duration;

use crate::accounts::limits::RetryAfter;
use crate::accounts::sliding_window::SlidingWindow;
use crate::clock::Clock;
use crate::realtime::cluster::shared_counter::{CounterEntry, CounterSpec, SharedCounter};

/// At most so many for each key within a span; 0 is no limit.
pub struct RateLimit<K> {
    local: SlidingWindow<K>,
    shared: SharedCounter,
    kind: &'static str,
    max: usize,
    span: Duration,
}

/// A place that was taken; can be given back.
pub struct Acquired<K> {
    key: K,
    entry: Option<CounterEntry>,
}

impl<K: Eq + Hash + Clone + Display> RateLimit<K> {
    /// Nothing is counted yet. Another `kind` is another limit.
    pub fn new(
        kind: &'static str,
        (max, span_ms): (u32, i64),
        clock: &Clock,
        shared: &SharedCounter,
    ) -> Self {
        Self {
            local: SlidingWindow::new(max, span_ms, clock),
            shared: shared.clone(),
            kind,
            max: usize::try_from(max).unwrap_or(usize::MAX),
            span: Duration::from_millis(span_ms.unsigned_abs()),
        }
    }

    /// Takes one place.
    ///
    /// # Errors
    /// There is none, here or on all nodes together.
    pub async fn acquire(&self, key: K) -> Result<Acquired<K>, RetryAfter> {
        self.local.acquire(key.clone())?;
        match self.shared.acquire(self.counter_spec(&key)).await {
            Ok(entry) => Ok(Acquired { key, entry }),
            Err(wait) => {
                self.local.refund(&key);
                Err(RetryAfter(to_seconds(wait)))
            }
        }
    }

    /// What a place was taken for did not happen.
    pub fn refund(&self, acquired: Acquired<K>) {
        self.local.refund(&acquired.key);
        if let Some(entry) = acquired.entry {
            self.shared.release(entry);
        }
    }

    /// Seconds until there is a place; `None`: there is one now.
    pub async fn retry_after(&self, key: &K) -> Option<u64> {
        if let Some(wait) = self.local.retry_after(key) {
            return Some(wait);
        }
        let wait = self.shared.retry_after(self.counter_spec(key)).await;
        wait.map(to_seconds)
    }

    /// Counts one, whether there is a place or not.
    pub fn record(&self, key: K) {
        self.shared.record(self.counter_spec(&key));
        self.local.record(key);
    }

    fn counter_spec(&self, key: &K) -> CounterSpec {
        CounterSpec {
            key: (self.kind, key.to_string()),
            max: self.max,
            window: self.span,
        }
    }
}

fn to_seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}
