//! The circuit breaker of one client: after failures, no request is sent for a while, and then one
//! request at a time tests whether the provider works again.
//!
//! **Invariant:** each permit is for one request, and only the outcome of a request that was
//! permitted in the present state changes it. A late outcome of an earlier one is ignored.
//!
//! **Invariant:** a probe whose permit is dropped without an outcome permits the next probe.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// So many failures in a row open the breaker.
const MAX_FAILURES: u32 = 3;

/// Limits of the time for which the breaker stays open.
const MIN_OPEN: Duration = Duration::from_millis(500);
const MAX_OPEN: Duration = Duration::from_secs(60);

/// A circuit breaker. It reads no clock: the time is an argument.
#[derive(Debug)]
pub struct CircuitBreaker {
    /// The time for which the first failures open the breaker; each failed probe doubles it.
    first_open: Duration,
    circuit: Mutex<Circuit>,
}

/// The state of the breaker, for metrics and for callers that do not wait for a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests are sent.
    Closed,
    /// Nothing is sent before `until`, and one probe after that.
    Open { until: Instant },
    /// A probe is under way, and nothing else is sent.
    Probing,
}

#[derive(Debug)]
struct Circuit {
    state: BreakerState,
    /// Failures in a row while closed.
    n_failures: u32,
    /// The length of the present or next open state.
    open_for: Duration,
    /// Counts changes of the state, so that late outcomes are recognized.
    n_changes: u64,
}

impl CircuitBreaker {
    /// Creates a closed breaker that opens for `first_open`, but for at least 0.5 s and at most
    /// 60 s.
    pub fn new(first_open: Duration) -> Self {
        let first_open = first_open.clamp(MIN_OPEN, MAX_OPEN);
        let circuit = Circuit {
            state: BreakerState::Closed,
            n_failures: 0,
            open_for: first_open,
            n_changes: 0,
        };
        Self {
            first_open,
            circuit: Mutex::new(circuit),
        }
    }

    /// Returns the state.
    pub fn state(&self) -> BreakerState {
        self.circuit.lock().state
    }

    /// Permits one request.
    ///
    /// # Errors
    /// The earliest instant at which a request may be permitted, while the breaker is open or a
    /// probe is under way.
    pub fn permit(&self, now: Instant) -> Result<RequestPermit<'_>, Instant> {
        let mut circuit = self.circuit.lock();
        let opened_until = match circuit.state {
            BreakerState::Closed => None,
            BreakerState::Open { until } if until <= now => Some(until),
            BreakerState::Open { until } => return Err(until),
            // When the probe ends is unknown; its caller limits its time.
            BreakerState::Probing => return Err(now + MIN_OPEN),
        };
        if opened_until.is_some() {
            circuit.change_to(BreakerState::Probing);
        }
        Ok(RequestPermit {
            breaker: self,
            n_changes: circuit.n_changes,
            opened_until,
        })
    }

    /// Changes the circuit if it is still in the state in which the request was permitted.
    fn record(&self, n_changes: u64, change: impl FnOnce(&mut Circuit)) {
        let mut circuit = self.circuit.lock();
        if circuit.n_changes == n_changes {
            change(&mut circuit);
        }
    }
}

impl Circuit {
    fn change_to(&mut self, state: BreakerState) {
        self.state = state;
        self.n_changes += 1;
    }

    fn open(&mut self, now: Instant) {
        self.n_failures = 0;
        let until = now + self.open_for;
        self.change_to(BreakerState::Open { until });
    }
}

/// The permission to send one request. Its outcome is reported once; to drop it instead means that
/// the request was canceled.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once permits nothing"]
pub struct RequestPermit<'a> {
    breaker: &'a CircuitBreaker,
    n_changes: u64,
    /// For a probe: until when the breaker was open before it.
    opened_until: Option<Instant>,
}

impl RequestPermit<'_> {
    /// Reports a usable response. It closes the breaker after a probe.
    pub fn succeed(self) {
        let first_open = self.breaker.first_open;
        self.breaker.record(self.n_changes, |circuit| {
            circuit.n_failures = 0;
            circuit.open_for = first_open;
            if circuit.state != BreakerState::Closed {
                circuit.change_to(BreakerState::Closed);
            }
        });
    }

    /// Reports a failure. The third one in a row opens the breaker, a timeout or a failed probe
    /// does so at once.
    pub fn fail(self, is_timeout: bool, now: Instant) {
        self.breaker.record(self.n_changes, |circuit| {
            if circuit.state == BreakerState::Probing {
                circuit.open_for = (circuit.open_for * 2).min(MAX_OPEN);
                circuit.open(now);
                return;
            }
            circuit.n_failures += 1;
            if is_timeout || circuit.n_failures >= MAX_FAILURES {
                circuit.open(now);
            }
        });
    }
}

impl Drop for RequestPermit<'_> {
    /// After an outcome of a probe the state has changed, so nothing happens here.
    fn drop(&mut self) {
        let Some(until) = self.opened_until else {
            return;
        };
        self.breaker.record(self.n_changes, |circuit| {
            circuit.change_to(BreakerState::Open { until });
        });
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
