//! Gives a claimed run its speaker: asks the director, and stores the choice with one step, which also
//! announces that the speaker types.
//!
//! **Invariant:** a run that is canceled or recovered meanwhile gets no speaker.

use agent::outcome::GenerationFailure;
use leased_jobs::lease::CancelReason;
use sea_orm::DbErr;

use crate::conversations::token_usage;
use crate::db::retry_wait;
use crate::runs::error::EngineError;
use crate::runs::execution::director::call;
use crate::runs::execution::director::call::ChoiceCanceled;
use crate::runs::execution::ends::execution_result::ExecutionResult;
use crate::runs::execution::lease::RunLease;
use crate::runs::execution::preparation::prepared_run;
use crate::runs::scheduling::command::{Command, ExecutionEnd};
use crate::runs::scheduling::director::choice::DirectorChoice;
use crate::runs::scheduling::scheduler;
use crate::runs::scheduling::state::command_facts::{CommandFacts, token_limit_exceeded};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::services::RunServices;
use crate::runs::store::run;

/// Returns the run with its speaker, and the state from which its prompt is built.
///
/// # Errors
/// Returns the result of the execution when the run gets no speaker or must not call another model.
pub async fn choose(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    state: &ScheduleState,
) -> Result<(run::Model, ScheduleState), ExecutionResult> {
    let choice = call::ask(context, run, lease, state)
        .await
        .map_err(canceled)?;
    base::fail_point!("exec.before_choice");
    let state = store(context, run, lease, choice).await?;
    let chosen = state.running.clone();
    let is_ours = |it: &run::Model| it.id == run.id && it.lease == lease.number;
    // The step has ended it: a stop was requested, or no character can speak any more.
    let chosen = chosen.filter(is_ours).ok_or_else(nothing_left)?;
    match with_claim_facts(context, &chosen, state).await {
        Ok(Ok(state)) => Ok((chosen, state)),
        Ok(Err(failure)) => Err(ExecutionResult::failed_before_sending(failure)),
        Err(error) => {
            tracing::error!(run.id = %run.id, %error, "failed to prepare a run: {error}");
            let failure = GenerationFailure::internal();
            Err(ExecutionResult::failed_before_sending(failure))
        }
    }
}

/// Stores the choice, and returns the state after the step.
async fn store(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    choice: DirectorChoice,
) -> Result<ScheduleState, ExecutionResult> {
    let usage = choice.usage;
    let command = Command::SpeakerChosen {
        run: run.id,
        lease: lease.number,
        choice,
    };
    for attempt in 1.. {
        match scheduler::step(context, run.conversation_id, command.clone()).await {
            Ok(done) => return Ok(done.state),
            Err(EngineError::Conflict | EngineError::Rejected(_)) => break,
            Err(error) => {
                tracing::warn!(run.id = %run.id, attempt, %error, "failed to store the speaker of run {}: {error}", run.id);
                if !retry_wait::wait_after(attempt).await {
                    break;
                }
            }
        }
    }
    Err(ExecutionResult {
        end: None,
        sent: None,
        usage,
    })
}

/// Adds what a claim loads for a run with a speaker: the provider of the speaker. Returns a failure if the
/// call of the director has used the last tokens of the space.
async fn with_claim_facts(
    context: &RunServices,
    run: &run::Model,
    mut state: ScheduleState,
) -> Result<Result<ScheduleState, GenerationFailure>, DbErr> {
    let db = context.db.reader();
    let used = run.usage.map_or(0, run::RunUsage::total);
    if token_usage::has_reached_limit(db, &state.space, used).await? {
        return Ok(Err(token_limit_exceeded()));
    }
    let provider = match run.speaker_space_membership_id {
        Some(speaker) => prepared_run::find_provider(context, speaker).await?,
        None => None,
    };
    state.facts = CommandFacts::Claim {
        provider,
        has_reached_token_limit: false,
        is_target_hidden: false,
        continued: None,
    };
    Ok(Ok(state))
}

/// Returns the result of a run that was canceled during the call.
fn canceled(canceled: ChoiceCanceled) -> ExecutionResult {
    let ChoiceCanceled { reason, usage } = canceled;
    let end = match reason {
        CancelReason::Requested => Some(ExecutionEnd::Canceled {
            partial: None,
            usage,
            prompt: None,
        }),
        // No client waits for a run.
        CancelReason::LeaseLost | CancelReason::Shutdown | CancelReason::ClientDisconnected => None,
    };
    ExecutionResult {
        end,
        sent: None,
        usage,
    }
}

/// Returns the result of a run that has ended, and whose cost is stored.
fn nothing_left() -> ExecutionResult {
    ExecutionResult {
        end: None,
        sent: None,
        usage: None,
    }
}
