//! Commits the end of an executed run, releases it at shutdown, or stores what it has cost if it was
//! ended elsewhere.

use leased_jobs::lease::CancelReason;

use crate::db::retry_wait;
use crate::runs::error::EngineError;
use crate::runs::execution::ends::execution_result::ExecutionResult;
use crate::runs::execution::lease::RunLease;
use crate::runs::scheduling::command::{Command, CommandError, SentPromptRef};
use crate::runs::scheduling::{scheduler, space_changes};
use crate::runs::services::RunServices;
use crate::runs::store::write_effects::LatePrompt;
use crate::runs::store::{run, write_effects};

/// Ends or releases the run, or, if it has already ended otherwise, stores its prompt and cost.
pub async fn commit_end(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    turn: ExecutionResult,
) {
    let command = match (turn.end, lease.cancel.reason()) {
        (Some(end), _) => Command::RunEnded {
            run: run.id,
            lease: lease.number,
            end: Box::new(end),
        },
        (None, CancelReason::Shutdown) => Command::RunReleased {
            run: run.id,
            lease: lease.number,
            usage: turn.usage,
        },
        (None, _) => return store_late_prompt(context, run, lease, turn.sent, turn.usage).await,
    };
    for attempt in 1.. {
        let step = scheduler::step(context, run.conversation_id, command.clone()).await;
        let ended_elsewhere = match step {
            Ok(_) => return,
            // The run was canceled, recovered or claimed again, and that step has published its
            // end; or an earlier attempt of this loop committed and its response was lost.
            Err(EngineError::Conflict | EngineError::Rejected(CommandError::AlreadyFinished)) => {
                Ok(())
            }
            // The conversation is being deleted or was deleted: no other command can end the run.
            Err(EngineError::Rejected(CommandError::NotFound)) => {
                space_changes::cancel_for_deletion(context, run.conversation_id).await
            }
            Err(error) => Err(error),
        };
        match ended_elsewhere {
            Ok(()) => return store_late_prompt(context, run, lease, turn.sent, turn.usage).await,
            Err(error) => {
                tracing::warn!(run.id = %run.id, attempt, %error, "failed to commit the end of run {}: {error}", run.id);
                if !retry_wait::wait_after(attempt).await {
                    break;
                }
            }
        }
    }
    // The caller releases the lease, which ends the heartbeat; recovery then ends the row.
    tracing::error!(run.id = %run.id, "failed to finish run {}; recovery will end it", run.id);
}

/// Stores prompt and cost of a run that was canceled before its executor could report them: a
/// cancellation ends the run without waiting for the executor.
async fn store_late_prompt(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    sent: Option<SentPromptRef>,
    usage: Option<run::RunUsage>,
) {
    // Without both, no model was called.
    if sent.is_none() && usage.is_none() {
        return;
    }
    let late = LatePrompt {
        run: run.id,
        conversation: run.conversation_id,
        space: run.space_id,
        lease: lease.number,
        sent,
        usage_before: run.usage,
        usage,
        now: context.clock.now(),
    };
    for attempt in 1.. {
        let Err(error) = write_effects::store_late_prompt(&context.db, late.clone()).await else {
            return;
        };
        tracing::warn!(run.id = %run.id, attempt, %error, "failed to store prompt and usage of canceled run {}: {error}", run.id);
        if !retry_wait::wait_after(attempt).await {
            return;
        }
    }
}
