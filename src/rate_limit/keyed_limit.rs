//! Defines `RateLimit`: limits the events of a key in a time window, counted on this node and, if
//! Redis is available, on all nodes together.

use std::fmt::Display;
use std::hash::Hash;
use std::time::Duration;

use base::clock::Clock;
use realtime::cluster::shared_counter::{CounterEntry, CounterSpec, SharedCounter};

use crate::rate_limit::sliding_window::{RemainingEvents, RetryAfter, SlidingWindow};

/// Limits the number of events per key in a time window; 0 means no limit.
pub struct RateLimit<K> {
    local: SlidingWindow<K>,
    shared: SharedCounter,
    kind: &'static str,
    max: usize,
    span: Duration,
}

/// A counted event, which can be refunded.
pub struct Acquired<K> {
    key: K,
    entry: Option<CounterEntry>,
}

impl<K: Eq + Hash + Clone + Display> RateLimit<K> {
    /// Creates a limit without counted events. Limits with different `kind`s are independent.
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

    /// Counts one event.
    ///
    /// # Errors
    /// Returns `RetryAfter` when the limit is reached, on this node or on all nodes together.
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

    /// Removes a counted event, because what it was counted for did not happen.
    pub fn refund(&self, acquired: Acquired<K>) {
        self.local.refund(&acquired.key);
        if let Some(entry) = acquired.entry {
            self.shared.release(entry);
        }
    }

    /// Returns the seconds until the next event is allowed, or `None` if it is allowed now.
    pub async fn retry_after(&self, key: &K) -> Option<u64> {
        if let Some(wait) = self.local.retry_after(key) {
            return Some(wait);
        }
        let wait = self.shared.retry_after(self.counter_spec(key)).await;
        wait.map(to_seconds)
    }

    /// Returns what is left of the limit on this node, or `None` if there is no limit.
    pub fn remaining(&self, key: &K) -> Option<RemainingEvents> {
        self.local.remaining(key)
    }

    /// Counts one event even if the limit is reached.
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
