//! Ends or requeues runs of dead nodes, skips turns of people whose time is over, ends rounds without a run, applies pending changes of
//! settings and continues background jobs. Every node does this; concurrent recoveries are safe,
//! because every transition names the lease it saw.
//!
//! **Invariant:** a node that was itself suspended recovers nothing for one stale time, and so does
//! one whose check took as long as a heartbeat. It never recovers runs that it executes itself.

use base::clock::Timestamp;
use base::ids::ConversationId;
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};
use crate::rounds::round;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::{scheduler, space_changes};
use crate::runs::services::RunServices;
use crate::runs::store::{queue, run};
use crate::runs::{background_jobs, turn_deadlines};

/// What a sweep recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReapReport)]
pub struct RecoveryReport {
    /// Runs that were ended because their node is gone.
    pub failed: u32,
    /// Those of them that were queued again.
    pub requeued: u32,
    /// Turns of people whose time was over.
    pub turns_skipped: u32,
    /// Rounds that had neither a queued nor a running run.
    pub rounds_closed: u32,
    /// Background jobs whose node is gone, and which this node continues.
    pub jobs_continued: u32,
}

impl RecoveryReport {
    /// Returns the counts, each with its label in the metrics.
    pub fn counts(&self) -> [(&'static str, u32); 5] {
        [
            ("failed", self.failed),
            ("requeued", self.requeued),
            ("turn_skipped", self.turns_skipped),
            ("round_closed", self.rounds_closed),
            ("job_continued", self.jobs_continued),
        ]
    }
}

/// Checks for dead nodes in any case, because only checking detects a clock or database that stands
/// still, and recovers what it finds if the guard permits it.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn recover_guarded(
    context: &RunServices,
    guard: &mut ClockJumpGuard,
) -> Result<(), EngineError> {
    let can_recover =
        |reading: Option<Timestamp>| guard.can_recover(Instant::now(), reading.map(|at| at.0));
    let checked = recover_silent_for(context, stale_ms(context), can_recover).await?;
    if checked.is_none() {
        guard.postpone(Instant::now());
    }
    Ok(())
}

/// Checks once and recovers what it finds.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn recover(context: &RunServices) -> Result<RecoveryReport, EngineError> {
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
pub async fn recover_at_start(context: &RunServices) -> Result<RecoveryReport, EngineError> {
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
) -> Result<Option<RecoveryReport>, EngineError> {
    base::fail_point!("reap.begin", ?);
    let stale = StaleAfter {
        after_ms,
        backend: context.db.backend(),
    };
    let mut report = RecoveryReport::default();
    let asked = Instant::now();
    let (db, now) = (context.db.reader(), context.clock.now());
    let silent = queue::list_expired(db, now, &stale).await?;
    // After the list, so that a clock jump before the list is detected.
    let shows = backend::read_lease_time(db, stale.backend, now).await?;
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
    (report.turns_skipped, _) = turn_deadlines::skip_passed(context).await?;
    for conversation in list_stalled_rounds(context.db.reader()).await? {
        match scheduler::step(context, conversation, Command::RoundStalled).await {
            Ok(_) => report.rounds_closed += 1,
            Err(error) if error.is_failure() => return Err(error),
            Err(_) => {}
        }
    }
    space_changes::process_all(context).await?;
    report.jobs_continued = background_jobs::take_over_stale(context, &stale).await?;
    context.metrics.recovered(report.counts());
    Ok(Some(report))
}

async fn recover_run(
    context: &RunServices,
    run: &run::Model,
    silent_for_ms: i64,
    report: &mut RecoveryReport,
) -> Result<(), EngineError> {
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
        Err(error) if error.is_failure() => Err(error),
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
