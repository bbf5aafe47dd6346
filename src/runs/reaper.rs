//! Heals what a dead node left behind: runs whose heartbeat stopped, rounds that nothing moves.
//! Runs on every node; two at once do no harm, since every move names the lease it saw.
//!
//! **Invariant:** a reaper that was itself stopped does not judge others: after a gap in its own
//! ticks it waits one full stale time, in which living nodes beat again.

use crate::db::connect::Dialect;
use crate::ids::ConversationId;
use crate::rounds::round;
use crate::runs::command::Command;
use crate::runs::context::Context;
use crate::runs::error::EngineError;
use crate::runs::queue;
use crate::runs::queue::Stale;
use crate::runs::run;
use crate::runs::scheduler;
use sea_orm::ColumnTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::Query;
use serde::Serialize;
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
}

/// Sweeps until the node has put everything down.
pub async fn keep_reaping(context: Context) {
    let interval = context.settings.reaper_interval;
    let mut tick = tokio::time::interval(interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = Instant::now();
    let mut judges_from = last;
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        let now = Instant::now();
        if now.duration_since(last) > interval + context.settings.heartbeat {
            judges_from = now + context.settings.stale_after;
        }
        last = now;
        if now < judges_from {
            continue;
        }
        if let Err(error) = sweep(&context).await {
            tracing::warn!(%error, "the reaper could not look: {error}");
        }
    }
}

/// Looks once, and heals what it finds.
///
/// # Errors
/// When the database does not answer.
pub async fn sweep(context: &Context) -> Result<Report, DbErr> {
    let silent = context.settings.stale_after.as_millis();
    sweep_silent_for(context, i64::try_from(silent).unwrap_or(i64::MAX)).await
}

/// Longer than any clock can be set back between two starts, and no sum of it overflows.
const HOWEVER_YOUNG_MS: i64 = i64::MIN / 4;

/// Heals at start what the last process left, on a database that one process owns: whatever runs
/// there has nobody who writes it.
///
/// # Errors
/// When the database does not answer.
pub async fn sweep_at_start(context: &Context) -> Result<Report, DbErr> {
    match context.db.dialect() {
        Dialect::Sqlite => sweep_silent_for(context, HOWEVER_YOUNG_MS).await,
        Dialect::Postgres => sweep(context).await,
    }
}

async fn sweep_silent_for(context: &Context, after_ms: i64) -> Result<Report, DbErr> {
    crate::fail_point!("reap.begin", ?);
    let stale = Stale {
        after_ms,
        dialect: context.db.dialect(),
    };
    let mut report = Report::default();
    for run in queue::expired(context.db.reader(), context.clock.now(), &stale).await? {
        heal(context, &run, after_ms, &mut report).await?;
    }
    for conversation in adrift(context).await? {
        match scheduler::step(context, conversation, Command::Adrift).await {
            Ok(_) => report.rounds_closed += 1,
            Err(EngineError::Database(error)) => return Err(error),
            Err(_) => {}
        }
    }
    context.meter.swept(&report);
    Ok(report)
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
                .is_some_and(|it| it.reason == run::Reason::Recovered);
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
async fn adrift(context: &Context) -> Result<Vec<ConversationId>, DbErr> {
    let moved = Query::select()
        .column(run::Column::ConversationId)
        .from(run::Entity)
        .and_where(Expr::cust("(status = 'queued' OR status = 'running')"))
        .to_owned();
    round::Entity::find()
        .select_only()
        .column(round::Column::ConversationId)
        .filter(Expr::cust("status = 'active'"))
        .filter(round::Column::State.eq(round::State::Generating))
        .filter(round::Column::ConversationId.not_in_subquery(moved))
        .limit(500)
        .into_tuple()
        .all(context.db.reader())
        .await
}
