//! Waits for a fact that no event announces: polls until it holds, and fails at a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a fact may take. Far beyond what is right, so that only a stuck server meets it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Looks until `look` finds something; panics with `what` when it never does.
pub async fn until<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(DEADLINE, what, look).await
}

/// The same with a deadline of its own.
pub async fn until_within<T>(
    deadline: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "waited {deadline:?} in vain: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
