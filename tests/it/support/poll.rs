//! Waits for a condition that no event announces: polls until it holds, and fails at a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The deadline of every wait, long enough that only a stuck server reaches it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Polls until `probe` returns a value; panics with `what` at the deadline.
pub async fn until<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(DEADLINE, what, probe).await
}

/// The same with another deadline.
pub async fn until_within<T>(
    deadline: Duration,
    what: &str,
    probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let found = find_within(deadline, probe).await;
    found.unwrap_or_else(|| panic!("timed out after {deadline:?}: {what}"))
}

/// Polls until `probe` returns a value; returns `None` at the deadline.
pub async fn find_within<T>(
    deadline: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        let found = probe().await;
        if found.is_some() || Instant::now() >= end {
            return found;
        }
        sleep(Duration::from_millis(20)).await;
    }
}
