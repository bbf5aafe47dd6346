//! Waits, with exponential backoff, before the end of a run or response is written again while the
//! database fails.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

/// The waits between the attempts. Together they last longer than a restart of the database.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(200))
    .with_max_times(7);

/// Waits after a failed attempt, counted from 1. Returns `false` without waiting after the last
/// one.
pub async fn wait_after(attempt: usize) -> bool {
    let Some(wait) = WAITS.build().nth(attempt.saturating_sub(1)) else {
        return false;
    };
    tokio::time::sleep(wait).await;
    true
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::wait_after;

    #[tokio::test(start_paused = true)]
    async fn each_wait_is_twice_the_last_and_the_eighth_attempt_is_the_last() {
        let mut tenths = Vec::new();
        let mut began = Instant::now();

        for attempt in 1.. {
            if !wait_after(attempt).await {
                break;
            }
            tenths.push((began.elapsed().as_secs_f64() * 10.0).round());
            began = Instant::now();
        }

        // 25 s, longer than a restart of the database.
        assert_eq!(tenths, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);
    }
}
