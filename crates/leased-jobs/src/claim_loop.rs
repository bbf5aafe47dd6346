//! The claim loop: claims due jobs, then waits for a wake-up signal, the next due time, or the end
//! of the poll interval.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::job::{Job, JobFailure};

/// The delay after a failed claim of a kind of job that is not polled.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The signal that something may be due. A lost signal costs a moment, never a job, because another
/// process that polls claims the job. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct WakeupSignal(Arc<Notify>);

impl WakeupSignal {
    /// Wakes the claim loop; if it is busy, it checks once more.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    /// Returns after the next signal, or immediately if one was sent since the last call.
    async fn notified(&self) {
        self.0.notified().await;
    }
}

/// Claims due jobs until `stop` fires. A signal that arrives during a claim is kept, so that the
/// claim is repeated.
pub async fn run_claims<J: Job>(mut job: J, wakeup: WakeupSignal, stop: CancellationToken) {
    let poll_interval = job.timing().poll_interval;
    while !stop.is_cancelled() {
        let next_work = match job.claim().await {
            Ok(next_work) => next_work,
            Err(error) => {
                job.report(JobFailure::Claim(&error));
                Box::pin(sleep(poll_interval.unwrap_or(RETRY_DELAY)))
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = wakeup.notified() => {}
            _ = timeout(poll_interval.unwrap_or(Duration::MAX), next_work) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};
    use tokio_util::sync::CancellationToken;

    use super::{WakeupSignal, run_claims};
    use crate::lease::lock;
    use crate::test_job::{SECOND, TestJob};

    #[tokio::test(start_paused = true)]
    async fn a_claim_follows_a_signal_the_next_due_time_and_the_poll_interval() {
        let (job, wakeup, stop) = (
            TestJob::default(),
            WakeupSignal::default(),
            CancellationToken::new(),
        );
        let began = Instant::now();
        *lock(&job.due_in) = vec![2 * SECOND, 5 * SECOND];
        let claims = tokio::spawn(run_claims(job.clone(), wakeup.clone(), stop.clone()));

        sleep(SECOND).await;
        wakeup.notify();
        sleep(31 * SECOND).await;
        stop.cancel();
        claims.await.expect("the loop ends when it is stopped");

        let claimed_at = lock(&job.claimed_at).clone();
        let seconds: Vec<_> = claimed_at
            .iter()
            .map(|at| (*at - began).as_secs())
            .collect();
        // At once, after the signal, when a job is due, and after each poll interval.
        assert_eq!(seconds, [0, 1, 3, 13, 23]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_claim_is_repeated() {
        let job = TestJob::default();
        job.set_database_down(true);
        tokio::spawn(run_claims(
            job.clone(),
            WakeupSignal::default(),
            CancellationToken::new(),
        ));
        sleep(SECOND).await;

        job.set_database_down(false);
        sleep(10 * SECOND).await;

        assert_eq!(*lock(&job.failures), ["Claim(\"database down\")"]);
        assert_eq!(lock(&job.claimed_at).len(), 1);
    }
}
