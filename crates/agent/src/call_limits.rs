//! Defines `CallLimits`, the timeouts, the maximum size of the text and the retry delay of one
//! model call, and `CallPermits`, which limits how many calls run at the same time and counts those
//! that wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// The limits that [`generate`](crate::model_call::generate) enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The longest gap between two stream events before the first text, reasoning or tool call;
    /// sending the request starts the first gap. The call fails when this is exceeded twice.
    pub first_chunk: Duration,
    /// The longest gap between two stream events after that; comments and empty chunks count.
    pub idle: Duration,
    /// All attempts and waits together. Ends a stream that only sends comments.
    pub total: Duration,
    /// The longest text; a longer one is cut there and the call ends.
    pub max_text_bytes: usize,
    /// The wait before the second attempt; doubled before each later one.
    pub backoff: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            first_chunk: Duration::from_secs(120),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
            max_text_bytes: 64 * 1024,
            backoff: Duration::from_millis(250),
        }
    }
}

/// The permits of one limit, granted in the order of the requests.
#[derive(Debug)]
pub struct CallPermits {
    limit: usize,
    permits: Semaphore,
    n_waiting: AtomicUsize,
}

impl CallPermits {
    /// Creates a limit of `limit` calls.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            permits: Semaphore::new(limit),
            n_waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for a permit; dropping it ends the call.
    ///
    /// # Cancel safety
    /// A future that is dropped no longer waits, and takes no permit.
    pub async fn acquire(&self) -> SemaphorePermit<'_> {
        if let Ok(permit) = self.permits.try_acquire() {
            return permit;
        }
        let _waiting = WaitingCall::new(&self.n_waiting);
        let permit = self.permits.acquire().await;
        permit.expect("the semaphore is never closed")
    }

    /// Returns how many calls run.
    pub fn n_running(&self) -> usize {
        self.limit - self.permits.available_permits()
    }

    /// Returns how many calls wait.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting.load(Ordering::Relaxed)
    }
}

/// Counts a call while it waits.
struct WaitingCall<'a>(&'a AtomicUsize);

impl<'a> WaitingCall<'a> {
    fn new(n_waiting: &'a AtomicUsize) -> Self {
        n_waiting.fetch_add(1, Ordering::Relaxed);
        Self(n_waiting)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::CallPermits;

    #[test]
    fn a_call_over_the_limit_waits_for_the_end_of_another() {
        let permits = CallPermits::new(1);
        let first = permits.acquire().now_or_never().expect("a free permit");
        let mut second = Box::pin(permits.acquire());

        assert!((&mut second).now_or_never().is_none());
        assert_eq!((permits.n_running(), permits.n_waiting()), (1, 1));
        drop(first);
        let second = second.now_or_never().expect("the permit is free again");

        assert_eq!((permits.n_running(), permits.n_waiting()), (1, 0));
        drop(second);
        assert_eq!(permits.n_running(), 0);
    }

    #[test]
    fn a_call_that_stops_waiting_takes_no_permit() {
        let permits = CallPermits::new(1);
        let first = permits.acquire().now_or_never().expect("a free permit");
        let mut second = Box::pin(permits.acquire());
        assert!((&mut second).now_or_never().is_none());

        // The permit is given to the waiting call, which is dropped before it sees it.
        drop(first);
        drop(second);

        assert_eq!((permits.n_running(), permits.n_waiting()), (0, 0));
        assert!(permits.acquire().now_or_never().is_some());
    }
}
