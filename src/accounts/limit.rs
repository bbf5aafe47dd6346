//! One limit: counted on this node in any case, and on all nodes together where that works.

use crate::accounts::limits::Wait;
use crate::accounts::window::Window;
use crate::clock::Clock;
use crate::realtime::bus::tally::Count;
use crate::realtime::bus::tally::Mark;
use crate::realtime::bus::tally::Tally;
use std::fmt::Display;
use std::hash::Hash;
use std::time::Duration;

/// At most so many for each key within a span; 0 is no limit.
pub struct Limit<K> {
    here: Window<K>,
    everywhere: Tally,
    kind: &'static str,
    most: usize,
    span: Duration,
}

/// A place that was taken; can be given back.
pub struct Taken<K> {
    key: K,
    mark: Option<Mark>,
}

impl<K: Eq + Hash + Clone + Display> Limit<K> {
    /// Nothing is counted yet. Another `kind` is another limit.
    pub fn new(
        kind: &'static str,
        (most, span_ms): (u32, i64),
        clock: &Clock,
        everywhere: &Tally,
    ) -> Self {
        Self {
            here: Window::new(most, span_ms, clock),
            everywhere: everywhere.clone(),
            kind,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            span: Duration::from_millis(span_ms.unsigned_abs()),
        }
    }

    /// Takes one place.
    ///
    /// # Errors
    /// There is none, here or on all nodes together.
    pub async fn take(&self, key: K) -> Result<Taken<K>, Wait> {
        self.here.take(key.clone())?;
        match self.everywhere.take(self.count(&key)).await {
            Ok(mark) => Ok(Taken { key, mark }),
            Err(wait) => {
                self.here.give_back(&key);
                Err(Wait(seconds(wait)))
            }
        }
    }

    /// What a place was taken for did not happen.
    pub fn give_back(&self, taken: Taken<K>) {
        self.here.give_back(&taken.key);
        if let Some(mark) = taken.mark {
            self.everywhere.give_back(mark);
        }
    }

    /// Seconds until there is a place; `None`: there is one now.
    pub async fn wait_for(&self, key: &K) -> Option<u64> {
        if let Some(wait) = self.here.wait_for(key) {
            return Some(wait);
        }
        let wait = self.everywhere.wait_for(self.count(key)).await;
        wait.map(seconds)
    }

    /// Counts one, whether there is a place or not.
    pub fn note(&self, key: K) {
        self.everywhere.note(self.count(&key));
        self.here.note(key);
    }

    fn count(&self, key: &K) -> Count {
        Count {
            of: (self.kind, key.to_string()),
            most: self.most,
            span: self.span,
        }
    }
}

fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}
