//! Heals what a dead node left behind: runs whose heartbeat stopped, rounds that nothing moves.
//! Runs on every node; two at once do no harm, since every move names the lease it saw.
//!
//! **Invariant:** a reaper that was itself stopped, or whose database was, does not judge others:
//! after a gap in its own ticks, a look that failed or took as long as a heartbeat, or a clock of the
//! database that was set, it waits one full stale time, in which living nodes beat again. What its
//! own node executes it never judges.

use crate::clock::Timestamp;
use crate::db::backend;
use crate::db::connect::Backend;
use crate::ids::ConversationId;
use crate::rounds::round;
use crate::runs::command::Command;
use crate::runs::context::Context;
use crate::runs::context::Settings;
use crate::runs::error::EngineError;
use crate::runs::jobs;
use crate::runs::marked;
use crate::runs::queue;
use crate::runs::queue::Stale;
use crate::runs::run;
use crate::runs::scheduler;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::ExprTrait;
use sea_orm::sea_query::Query;
use serde::Serialize;
use std::time::Duration;
use std::time::Instant;
use utoipa::ToSchema;

/// What a sweep healed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReapReport)]
pub struct Report {
    /// Runs that were ended because their node is gone.
    pub failed: u32,
    /// Those of them whose turn was planned again.
    pub requeued: u32,
    /// Rounds that waited for nothing.
    pub rounds_closed: u32,
    /// Background jobs whose node is gone, and which this one continues.
    pub jobs_continued: u32,
}

/// Sweeps until the node has put everything down.
pub async fn keep_reaping(context: Context) {
    let interval = context.settings.reaper_interval;
    let mut tick = tokio::time::interval(interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut patience = Patience::new(&context.settings, Instant::now());
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        // It looks in any case: what stands still longer than that is seen only by looking.
        let judges = |shows| patience.may_judge(Instant::now(), shows);
        match sweep_silent_for(&context, stale_ms(&context), judges).await {
            Ok(Some(_)) => {}
            Ok(None) => patience.stood_still(Instant::now()),
            Err(error) => {
                tracing::warn!(%error, "the reaper could not look: {error}");
                patience.stood_still(Instant::now()); // nor could anybody beat
            }
        }
    }
}

/// When a reaper may judge others: not for a stale time after something stood still.
struct Patience {
    longest_gap: Duration,
    heartbeat: Duration,
    stale_after: Duration,
    last: Instant,
    judges_from: Instant,
    /// When the clock that hearts are told by was looked at, and what it showed.
    showed: Option<(Instant, Timestamp)>,
}

impl Patience {
    fn new(settings: &Settings, now: Instant) -> Self {
        Self {
            longest_gap: settings.reaper_interval + settings.heartbeat,
            heartbeat: settings.heartbeat,
            stale_after: settings.stale_after,
            last: now,
            judges_from: now,
            showed: None,
        }
    }

    /// After each look, with what the clock of the hearts shows. A gap between two: this very process
    /// stood still. Time that passed on one clock and not on ours: that one was set.
    fn may_judge(&mut self, now: Instant, shows: Option<Timestamp>) -> bool {
        if now.duration_since(self.last) > self.longest_gap || self.was_set(now, shows) {
            self.stood_still(now);
        }
        self.showed = shows.map(|it| (now, it));
        self.last = now;
        now >= self.judges_from
    }

    fn was_set(&self, now: Instant, shows: Option<Timestamp>) -> bool {
        let (Some((at, before)), Some(shows)) = (self.showed, shows) else {
            return false;
        };
        let passed = now.duration_since(at).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let off = shows.ms_since(before).saturating_sub(passed);
        u128::from(off.unsigned_abs()) > self.heartbeat.as_millis()
    }

    fn stood_still(&mut self, now: Instant) {
        self.last = now;
        self.judges_from = now + self.stale_after;
    }
}

/// Looks once, and heals what it finds.
///
/// # Errors
/// When the database does not answer.
pub async fn sweep(context: &Context) -> Result<Report, DbErr> {
    let report = sweep_silent_for(context, stale_ms(context), |_| true).await?;
    Ok(report.unwrap_or_default())
}

fn stale_ms(context: &Context) -> i64 {
    let silent = context.settings.stale_after.as_millis();
    i64::try_from(silent).unwrap_or(i64::MAX)
}

/// Longer than any clock can be set back between two starts, and no sum of it overflows.
const HOWEVER_YOUNG_MS: i64 = i64::MIN / 4;

/// Heals at start what the last process left, on a database that one process owns: whatever runs
/// there has nobody who writes it.
///
/// # Errors
/// When the database does not answer.
pub async fn sweep_at_start(context: &Context) -> Result<Report, DbErr> {
    match context.db.backend() {
        Backend::Sqlite => {
            let report = sweep_silent_for(context, HOWEVER_YOUNG_MS, |_| true).await?;
            Ok(report.unwrap_or_default())
        }
        Backend::Postgres => sweep(context).await,
    }
}

/// `None`: the database stood still, or this process while it waited. A heartbeat that waited with
/// us may be written only now, so nobody is judged.
async fn sweep_silent_for(
    context: &Context,
    after_ms: i64,
    judges: impl FnOnce(Option<Timestamp>) -> bool,
) -> Result<Option<Report>, DbErr> {
    crate::fail_point!("reap.begin", ?);
    let stale = Stale {
        after_ms,
        dialect: context.db.backend(),
    };
    let mut report = Report::default();
    let asked = Instant::now();
    let (db, now) = (context.db.reader(), context.clock.now());
    let silent = queue::expired(db, now, &stale).await?;
    // After the list: a clock that was set before it is seen to have been.
    let shows = backend::read_lease_time(db, stale.dialect, now).await?;
    if asked.elapsed() > context.settings.heartbeat {
        return Ok(None);
    }
    if !judges(shows) {
        return Ok(Some(Report::default()));
    }
    // What this node itself executes lives, whatever a clock says that was set.
    let is_ours = |it: &run::Model| {
        let held = context.leases.of(it.id);
        held.is_some_and(|lease| lease.number == it.lease)
    };
    for run in silent.into_iter().filter(|it| !is_ours(it)) {
        heal(context, &run, after_ms, &mut report).await?;
    }
    for conversation in adrift(context.db.reader()).await? {
        match scheduler::step(context, conversation, Command::Adrift).await {
            Ok(_) => report.rounds_closed += 1,
            Err(EngineError::Database(error)) => return Err(error),
            Err(_) => {}
        }
    }
    marked::sweep(context).await?;
    report.jobs_continued = jobs::continue_silent(context, after_ms).await?;
    context.meter.swept(&report);
    Ok(Some(report))
}

async fn heal(
    context: &Context,
    run: &run::Model,
    silent_for_ms: i64,
    report: &mut Report,
) -> Result<(), DbErr> {
    let command = Command::Abandoned {
        run: run.id,
        lease: run.lease,
        silent_for_ms,
    };
    match scheduler::step(context, run.conversation_id, command).await {
        Ok(done) => {
            report.failed += 1;
            let recovered = done
                .situation
                .queued
                .is_some_and(|it| it.reason == run::RunReason::Recovered);
            report.requeued += u32::from(recovered);
            tracing::warn!(run.id = %run.id, node.id = run.worker_id, "run {} was abandoned by its node", run.id);
            Ok(())
        }
        Err(EngineError::Database(error)) => Err(error),
        // It beats again, or another reaper was faster.
        Err(_) => Ok(()),
    }
}

/// Conversations whose round goes on though no run of it is queued or running.
///
/// # Errors
/// When the database does not answer.
pub async fn adrift(db: &impl ConnectionTrait) -> Result<Vec<ConversationId>, DbErr> {
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
    use super::Patience;
    use crate::clock::Timestamp;
    use std::time::Duration;
    use std::time::Instant;

    fn patience(now: Instant) -> Patience {
        Patience {
            longest_gap: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            stale_after: Duration::from_secs(30),
            last: now,
            judges_from: now,
            showed: None,
        }
    }

    #[test]
    fn who_ticks_in_time_judges() {
        let start = Instant::now();
        let mut patience = patience(start);

        let judged = (1..9).map(|n| patience.may_judge(start + Duration::from_secs(5 * n), None));

        assert!(judged.into_iter().all(|it| it));
    }

    #[test]
    fn who_stood_still_lets_one_stale_time_pass() {
        let start = Instant::now();
        let mut patience = patience(start);
        let woken = start + Duration::from_secs(90);
        let later = |s| woken + Duration::from_secs(s);

        assert!(!patience.may_judge(woken, None));
        assert!(!patience.may_judge(later(5), None));
        assert!(!patience.may_judge(later(15), None) && !patience.may_judge(later(25), None));
        assert!(patience.may_judge(later(30), None));
    }

    #[test]
    fn so_does_who_waited_for_the_database() {
        let start = Instant::now();
        let mut patience = patience(start);
        assert!(patience.may_judge(start + Duration::from_secs(5), None));
        let answered = start + Duration::from_secs(70);
        let later = |s| answered + Duration::from_secs(s);

        patience.stood_still(answered);

        assert!(!patience.may_judge(later(5), None));
        let mut ticks = (2..6).map(|n| patience.may_judge(later(5 * n), None));
        assert!(ticks.all(|it| !it));
        assert!(patience.may_judge(later(30), None));
    }

    #[test]
    fn so_does_who_sees_that_the_clock_was_set() {
        const HOUR: i64 = 3_600_000;
        for set_by in [HOUR, -HOUR] {
            let start = Instant::now();
            let mut patience = patience(start);
            // It goes a little slower than ours.
            let mut look = |s: u64, by: i64| {
                let shows = Timestamp(HOUR + by + i64::try_from(s).unwrap() * 990);
                patience.may_judge(start + Duration::from_secs(s), Some(shows))
            };
            assert!(look(5, 0) && look(10, 0));

            assert!(!look(15, set_by));

            assert!(!look(20, set_by) && !look(30, set_by) && !look(40, set_by));
            assert!(look(45, set_by));
        }
    }
}
