//! The recovery loop, which runs in every process: calls `Job::recover` at an interval, to end or
//! requeue the jobs of dead processes, and postpones the recovery after an error.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock_jump_guard::ClockJumpGuard;
use crate::heartbeat::Ticks;
use crate::job::{Job, JobFailure};

/// Recovers jobs until `stop` fires.
pub async fn run_recovery<J: Job>(mut job: J, stop: CancellationToken) {
    let timing = job.timing();
    let mut ticks = Ticks::new(timing.recovery_interval, stop);
    let longest_gap = timing.recovery_interval + timing.heartbeat;
    let (heartbeat, stale_after) = (timing.heartbeat, timing.stale_after);
    let mut guard = ClockJumpGuard::new(longest_gap, heartbeat, stale_after, Instant::now());
    while ticks.next().await {
        if let Err(error) = job.recover(&mut guard).await {
            job.report(JobFailure::Recovery(&error));
            guard.postpone(Instant::now()); // heartbeats may have failed, too
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};
    use tokio_util::sync::CancellationToken;

    use super::run_recovery;
    use crate::lease::lock;
    use crate::test_job::{SECOND, TestJob};

    #[tokio::test(start_paused = true)]
    async fn a_failed_recovery_is_repeated_after_the_stale_time() {
        let (job, began) = (TestJob::default(), Instant::now());
        tokio::spawn(run_recovery(job.clone(), CancellationToken::new()));
        sleep(14 * SECOND).await;

        job.set_database_down(true);
        sleep(2 * SECOND).await;
        job.set_database_down(false);
        sleep(50 * SECOND).await;

        assert_eq!(*lock(&job.failures), ["Recovery(\"database down\")"]);
        let recovered_at = lock(&job.recovered_at).clone();
        let seconds: Vec<_> = recovered_at
            .iter()
            .map(|at| (*at - began).as_secs())
            .collect();
        assert_eq!(seconds, [0, 45, 60]);
    }
}
