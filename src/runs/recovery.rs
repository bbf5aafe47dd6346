//! Recovers what a dead node left behind: runs whose heartbeat stopped, rounds without a run. Runs
//! on every node; two at the same time do no harm, because every transition names the lease it saw.
//!
//! **Invariant:** a reaper that was itself suspended, or whose database was, recovers nothing for
//! one stale time, in which living nodes renew their heartbeats. It detects this by a gap between
//! its own ticks, a check that failed or took as long as a heartbeat, or a jump of the database's
//! clock. It never recovers runs that its own node executes.

use std::time::{Duration, Instant};

use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::db::backend;
use crate::db::connect::Backend;
use crate::ids::ConversationId;
use crate::rounds::round;
use crate::runs::command::Command;
use crate::runs::error::EngineError;
use crate::runs::queue::StaleAfter;
use crate::runs::services::{RunServices, RunSettings};
use crate::runs::{jobs, queue, run, scheduler, step_marks};

/// What a sweep recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReapReport)]
pub struct RecoveryReport {
    /// Runs that were ended because their node is gone.
    pub failed: u32,
    /// Those of them that were queued again.
    pub requeued: u32,
    /// Rounds that had neither a queued nor a running run.
    pub rounds_closed: u32,
    /// Background jobs whose node is gone, and which this node continues.
    pub jobs_continued: u32,
}

/// Runs sweeps until the node stops.
pub async fn run_reaper(context: RunServices) {
    let interval = context.settings.reaper_interval;
    let mut tick = tokio::time::interval(interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut guard = ClockJumpGuard::new(&context.settings, Instant::now());
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        // Checks in any case: only checking detects a clock or database that stands still.
        let judges = |shows| guard.can_recover(Instant::now(), shows);
        match recover_silent_for(&context, stale_ms(&context), judges).await {
            Ok(Some(_)) => {}
            Ok(None) => guard.postpone(Instant::now()),
            Err(error) => {
                tracing::warn!(%error, "recovery query failed");
                guard.postpone(Instant::now()); // heartbeats may have failed, too
            }
        }
    }
}

/// Decides when a reaper may recover: not for one stale time after a suspension or a clock jump.
struct ClockJumpGuard {
    longest_gap: Duration,
    heartbeat: Duration,
    stale_after: Duration,
    last: Instant,
    recover_from: Instant,
    /// When the clock of the heartbeats was last read, and what it showed.
    last_reading: Option<(Instant, Timestamp)>,
}

impl ClockJumpGuard {
    fn new(settings: &RunSettings, now: Instant) -> Self {
        Self {
            longest_gap: settings.reaper_interval + settings.heartbeat,
            heartbeat: settings.heartbeat,
            stale_after: settings.stale_after,
            last: now,
            recover_from: now,
            last_reading: None,
        }
    }

    /// Called after each check with the reading of the heartbeats' clock. A gap between two calls
    /// means that this process was suspended; a difference between elapsed time and the readings
    /// means that the clock was set.
    fn can_recover(&mut self, now: Instant, reading: Option<Timestamp>) -> bool {
        if now.duration_since(self.last) > self.longest_gap || self.has_clock_jumped(now, reading) {
            self.postpone(now);
        }
        self.last_reading = reading.map(|it| (now, it));
        self.last = now;
        now >= self.recover_from
    }

    fn has_clock_jumped(&self, now: Instant, reading: Option<Timestamp>) -> bool {
        let (Some((at, before)), Some(shows)) = (self.last_reading, reading) else {
            return false;
        };
        let passed = now.duration_since(at).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let off = shows.ms_since(before).saturating_sub(passed);
        u128::from(off.unsigned_abs()) > self.heartbeat.as_millis()
    }

    fn postpone(&mut self, now: Instant) {
        self.last = now;
        self.recover_from = now + self.stale_after;
    }
}

/// Checks once and recovers what it finds.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn recover(context: &RunServices) -> Result<RecoveryReport, DbErr> {
    let report = recover_silent_for(context, stale_ms(context), |_| true).await?;
    Ok(report.unwrap_or_default())
}

fn stale_ms(context: &RunServices) -> i64 {
    let silent = context.settings.stale_after.as_millis();
    i64::try_from(silent).unwrap_or(i64::MAX)
}

/// More than any clock can be set back between two starts, and small enough that no sum overflows.
const ANY_AGE_MS: i64 = i64::MIN / 4;

/// Recovers at start what the previous process left. On SQLite, which one process owns, all running
/// runs are recovered, whatever the age of their heartbeat.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn recover_at_start(context: &RunServices) -> Result<RecoveryReport, DbErr> {
    match context.db.backend() {
        Backend::Sqlite => {
            let report = recover_silent_for(context, ANY_AGE_MS, |_| true).await?;
            Ok(report.unwrap_or_default())
        }
        Backend::Postgres => recover(context).await,
    }
}

/// Returns `None` if the database or this process was suspended during the check. A heartbeat that
/// was delayed as well may be written only now, so nothing is recovered.
async fn recover_silent_for(
    context: &RunServices,
    after_ms: i64,
    judges: impl FnOnce(Option<Timestamp>) -> bool,
) -> Result<Option<RecoveryReport>, DbErr> {
    crate::fail_point!("reap.begin", ?);
    let stale = StaleAfter {
        after_ms,
        dialect: context.db.backend(),
    };
    let mut report = RecoveryReport::default();
    let asked = Instant::now();
    let (db, now) = (context.db.reader(), context.clock.now());
    let silent = queue::list_expired(db, now, &stale).await?;
    // After the list, so that a clock jump before the list is detected.
    let shows = backend::read_lease_time(db, stale.dialect, now).await?;
    if asked.elapsed() > context.settings.heartbeat {
        return Ok(None);
    }
    if !judges(shows) {
        return Ok(Some(RecoveryReport::default()));
    }
    // Runs that this node executes are alive, even if a clock was set.
    let is_ours = |it: &run::Model| context.leases.contains(&it.id, it.lease);
    for run in silent.into_iter().filter(|it| !is_ours(it)) {
        recover_run(context, &run, after_ms, &mut report).await?;
    }
    for conversation in list_stalled_rounds(context.db.reader()).await? {
        match scheduler::step(context, conversation, Command::RoundStalled).await {
            Ok(_) => report.rounds_closed += 1,
            Err(EngineError::Database(error)) => return Err(error),
            Err(_) => {}
        }
    }
    step_marks::process_all(context).await?;
    report.jobs_continued = jobs::take_over_stale(context, after_ms).await?;
    context.metrics.recovered(&report);
    Ok(Some(report))
}

async fn recover_run(
    context: &RunServices,
    run: &run::Model,
    silent_for_ms: i64,
    report: &mut RecoveryReport,
) -> Result<(), DbErr> {
    let command = Command::LeaseExpired {
        run: run.id,
        lease: run.lease,
        silent_for_ms,
    };
    match scheduler::step(context, run.conversation_id, command).await {
        Ok(done) => {
            report.failed += 1;
            let recovered = done
                .state
                .queued
                .is_some_and(|it| it.reason == run::RunReason::Recovered);
            report.requeued += u32::from(recovered);
            tracing::warn!(run.id = %run.id, node.id = run.worker_id, "run {} was abandoned by its node", run.id);
            Ok(())
        }
        Err(EngineError::Database(error)) => Err(error),
        // The heartbeat resumed, or another reaper was faster.
        Err(_) => Ok(()),
    }
}

/// Returns conversations with a generating round but without a queued or running run.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn list_stalled_rounds(db: &impl ConnectionTrait) -> Result<Vec<ConversationId>, DbErr> {
    let of_round = (round::Entity, round::Column::ConversationId);
    // A literal for each partial index, so that no finished run is read.
    let has_run = |status: &'static str| {
        let runs = Query::select()
            .column(run::Column::ConversationId)
            .from(run::Entity)
            .and_where(Expr::col((run::Entity, run::Column::ConversationId)).equals(of_round))
            .and_where(Expr::cust(status))
            .to_owned();
        Expr::exists(runs)
    };
    round::Entity::find()
        .select_only()
        .column(round::Column::ConversationId)
        .filter(Expr::cust("conversation_rounds.status = 'active'"))
        .filter(round::Column::State.eq(round::RoundState::Generating))
        .filter(has_run("conversation_runs.status = 'queued'").not())
        .filter(has_run("conversation_runs.status = 'running'").not())
        .limit(500)
        .into_tuple()
        .all(db)
        .await
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::ClockJumpGuard;
    use crate::clock::Timestamp;

    fn guard(now: Instant) -> ClockJumpGuard {
        ClockJumpGuard {
            longest_gap: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
            last: now,
            recover_from: now,
            last_reading: None,
        }
    }

    #[test]
    fn a_node_that_ticks_in_time_recovers() {
        let start = Instant::now();
        let mut patience = guard(start);

        let judged = (1..9).map(|n| patience.can_recover(start + Duration::from_secs(5 * n), None));

        assert!(judged.into_iter().all(|it| it));
    }

    #[test]
    fn a_suspended_node_waits_one_stale_time() {
        let start = Instant::now();
        let mut patience = guard(start);
        let woken = start + Duration::from_secs(90);
        let later = |s| woken + Duration::from_secs(s);

        assert!(!patience.can_recover(woken, None));
        assert!(!patience.can_recover(later(5), None));
        assert!(!patience.can_recover(later(15), None) && !patience.can_recover(later(25), None));
        assert!(patience.can_recover(later(30), None));
    }

    #[test]
    fn a_node_that_waited_for_the_database_waits_one_stale_time() {
        let start = Instant::now();
        let mut patience = guard(start);
        assert!(patience.can_recover(start + Duration::from_secs(5), None));
        let answered = start + Duration::from_secs(70);
        let later = |s| answered + Duration::from_secs(s);

        patience.postpone(answered);

        assert!(!patience.can_recover(later(5), None));
        let mut ticks = (2..6).map(|n| patience.can_recover(later(5 * n), None));
        assert!(ticks.all(|it| !it));
        assert!(patience.can_recover(later(30), None));
    }

    #[test]
    fn a_node_that_detects_a_clock_jump_waits_one_stale_time() {
        const HOUR: i64 = 3_600_000;
        for set_by in [HOUR, -HOUR] {
            let start = Instant::now();
            let mut patience = guard(start);
            // The other clock runs a little slower than ours.
            let mut look = |s: u64, by: i64| {
                let shows = Timestamp(HOUR + by + i64::try_from(s).unwrap() * 990);
                patience.can_recover(start + Duration::from_secs(s), Some(shows))
            };
            assert!(look(5, 0) && look(10, 0));

            assert!(!look(15, set_by));

            assert!(!look(20, set_by) && !look(30, set_by) && !look(40, set_by));
            assert!(look(45, set_by));
        }
    }
}
