//! The heartbeat: renews the leases of this process, and cancels the jobs whose lease is lost or
//! whose end a user requested.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use crate::job::{Job, JobFailure};
use crate::lease::{CancelReason, Lease};

/// Renews the leases of a kind of job until `stop` fires. One statement renews all of them; a job
/// that is missing in its result is lost and gets canceled.
pub async fn run_heartbeat<J: Job>(job: J, stop: CancellationToken) {
    let timing = job.timing();
    let mut ticks = Ticks::new(timing.heartbeat, stop);
    let mut renewed_at = Instant::now();
    while ticks.next().await {
        let began = Instant::now();
        match timeout(timing.stale_after, renew_leases(&job)).await {
            Ok(Ok(())) => renewed_at = began,
            Ok(Err(error)) => job.report(JobFailure::Heartbeat(&error)),
            Err(_) => job.report(JobFailure::HeartbeatTimeout),
        }
        if timing.gives_up_stale_leases && renewed_at.elapsed() >= timing.stale_after {
            give_up_leases(&job);
        }
        job.after_heartbeat().await;
    }
}

/// Cancels all jobs, because other processes may execute them again.
fn give_up_leases<J: Job>(job: &J) {
    for lease in stored_leases(job) {
        lease.cancel.cancel(CancelReason::LeaseLost);
        job.on_given_up(&lease);
    }
}

async fn renew_leases<J: Job>(job: &J) -> Result<(), J::Error> {
    // Read before the statement: a job that is claimed meanwhile must not count as missing.
    let held = stored_leases(job);
    if held.is_empty() {
        return Ok(());
    }
    let ids: Vec<J::Id> = held.iter().map(|lease| lease.id.clone()).collect();
    let renewed = job.renew(&ids).await?;
    for lease in held {
        let is_same = |id: &J::Id, number| *id == lease.id && number == lease.number;
        match renewed.iter().find(|it| is_same(&it.id, it.number)) {
            None => lease.cancel.cancel(CancelReason::LeaseLost),
            Some(it) if it.is_cancel_requested => lease.cancel.cancel(CancelReason::Requested),
            Some(_) => {}
        }
    }
    Ok(())
}

fn stored_leases<J: Job>(job: &J) -> Vec<Lease<J::Id, J::Data>> {
    let mut leases = job.leases().list();
    leases.retain(|lease| lease.number > 0);
    leases
}

/// The ticks of a loop: the first one at once, the others at an interval.
pub(crate) struct Ticks {
    interval: Interval,
    stop: CancellationToken,
}

impl Ticks {
    pub(crate) fn new(every: Duration, stop: CancellationToken) -> Self {
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, stop }
    }

    /// Returns `true` at the next tick, and `false` as soon as the loop must end.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            _ = self.interval.tick() => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;
    use tokio_util::sync::CancellationToken;

    use super::run_heartbeat;
    use crate::lease::{CancelReason, lock};
    use crate::test_job::{SECOND, TestJob};

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_cancels_lost_leases_and_jobs_with_a_requested_cancellation() {
        let job = TestJob::default();
        let (held, requested) = (job.claim("held", 1), job.claim("asked", 1));
        let (lost, not_stored) = (job.register("lost", 1), job.register("not stored", 0));
        let older = job.claim("claimed again", 2);
        job.register("claimed again", 1);
        lock(&job.stored)[1].is_cancel_requested = true;

        let stop = CancellationToken::new();
        let heartbeat = tokio::spawn(run_heartbeat(job.clone(), stop.clone()));
        sleep(SECOND).await;

        assert!(!held.token.is_cancelled() && !not_stored.token.is_cancelled());
        assert!(requested.token.is_cancelled() && lost.token.is_cancelled());
        assert_eq!(requested.reason(), CancelReason::Requested);
        assert_eq!(lost.reason(), CancelReason::LeaseLost);
        assert!(!older.token.is_cancelled(), "its entry was replaced");
        let replaced = job
            .leases
            .find(&"claimed again")
            .map(|it| it.cancel.reason());
        assert_eq!(replaced, Some(CancelReason::LeaseLost));
        stop.cancel();
        heartbeat.await.expect("the loop ends when it is stopped");
    }

    #[tokio::test(start_paused = true)]
    async fn leases_are_given_up_after_the_stale_time_without_a_heartbeat() {
        let job = TestJob::default();
        let held = job.claim("held", 1);
        tokio::spawn(run_heartbeat(job.clone(), CancellationToken::new()));
        sleep(SECOND).await;

        job.set_database_down(true);
        sleep(28 * SECOND).await;
        assert!(!held.token.is_cancelled());
        assert_eq!(lock(&job.failures)[0], "Heartbeat(\"database down\")");
        sleep(2 * SECOND).await;

        assert!(held.token.is_cancelled());
        assert_eq!(held.reason(), CancelReason::LeaseLost);
    }
}
