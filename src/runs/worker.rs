//! The dispatcher of a node: finds due runs, claims them through the gate, executes them.
//!
//! **Invariant:** it claims *any* due run, whoever planned it. A bell only makes it look sooner;
//! without one it sleeps until the next run is due, and looks by itself every [`SLOW_POLL`].

use crate::runs::command::Command;
use crate::runs::context::Context;
use crate::runs::error::EngineError;
use crate::runs::executor;
use crate::runs::queue;
use crate::runs::queue::Due;
use crate::runs::scheduler;
use sea_orm::DbErr;
use std::time::Duration;

/// The net under the bell: another node's run, or one whose ring was lost.
const SLOW_POLL: Duration = Duration::from_secs(2);
/// How many queued runs one look sees.
const LOOK: u64 = 32;

/// Works until the node drains.
pub async fn keep_working(context: Context) {
    let draining = context.shutdown.draining.clone();
    while !draining.is_cancelled() {
        let wait = match look(&context).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(%error, "due runs could not be looked up, trying again: {error}");
                None
            }
        };
        tokio::select! {
            () = draining.cancelled() => {}
            () = context.bell.heard() => {}
            () = tokio::time::sleep(SLOW_POLL) => {}
            () = until(&context, wait) => {}
        }
    }
    // The ring just heard may have been for whoever waits for the last run to end.
    context.bell.ring();
}

async fn until(context: &Context, instant: Option<crate::clock::Timestamp>) {
    match instant {
        Some(instant) => context.clock.until(instant).await,
        None => std::future::pending().await,
    }
}

/// Claims what is due and fits; tells when the next one will be due.
async fn look(context: &Context) -> Result<Option<crate::clock::Timestamp>, DbErr> {
    let queued = queue::next_due(context.db.reader(), LOOK).await?;
    let now = context.clock.now();
    let there_is_more = queued.len() as u64 == LOOK;
    for due in queued {
        if due.run_after.is_some_and(|at| at > now) {
            return Ok(due.run_after);
        }
        // What does not fit stays queued, and a run that ends rings; a closing node begins nothing.
        let is_full = context.leases.count() >= context.settings.max_running;
        if is_full || context.shutdown.draining.is_cancelled() {
            return Ok(None);
        }
        claim(context, due).await;
    }
    Ok(there_is_more.then_some(now))
}

/// Says whether the run is ours now.
async fn claim(context: &Context, due: Due) -> bool {
    let command = Command::Due { run: due.id };
    match scheduler::step(context, due.conversation_id, command).await {
        Ok(done) => {
            let Some(run) = done.claimed else {
                return false;
            };
            crate::fail_point!("claim.after_commit");
            // The step holds the lease from before its events went out.
            let Some(lease) = context.leases.of(run.id) else {
                return false;
            };
            context
                .shutdown
                .spawn(executor::execute(context.clone(), run, lease));
            true
        }
        Err(EngineError::Lost | EngineError::Refused(_)) => false, // somebody else was faster
        Err(EngineError::Database(error)) => {
            tracing::warn!(run.id = %due.id, %error, "run {} could not be claimed: {error}", due.id);
            false
        }
    }
}
