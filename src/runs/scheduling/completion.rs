//! Plans what the claim, end, recovery or release of a run changes, and the end of a stalled round.

use agent::outcome::{FailureCode, GenerationFailure};
use base::ids::RunId;

use crate::conversations::message;
use crate::rounds::{round, slot};
use crate::runs::followup;
use crate::runs::scheduling::command::{CommandError, ExecutionEnd, GeneratedText, SentPromptRef};
use crate::runs::scheduling::director::candidates;
use crate::runs::scheduling::messages::post_audience;
use crate::runs::scheduling::plan::{EnqueueRun, MessageRef, NewMessage, PlanChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::scheduling::speaker_choice::TriggerMessage;
use crate::runs::scheduling::{copilot, regenerate};
use crate::runs::store::due_runs::is_due;
use crate::runs::store::run::RunCancelReason;
use crate::runs::store::{queue, run};
use crate::spaces::membership::Model as Membership;
use crate::spaces::{membership, space};

/// Attempts of a run whose node died, including the first.
const MAX_ATTEMPTS: i64 = 2;

/// Claims a queued run that is due; skips it or fails it if it can no longer run.
pub fn claim(builder: &mut PlanBuilder, id: RunId) {
    let Some(run) = builder.queued.clone().filter(|it| it.id == id) else {
        return;
    };
    if builder.running.is_some() || !is_due(run.run_after, run.created_at, builder.now) {
        return;
    }
    if builder.state.space.status == space::SpaceStatus::Archived {
        // The run was planned by a step that loaded the space before it was archived.
        return builder.close(RunCancelReason::Archived);
    }
    if let Some(expected) = run.debug.expected_last_message_id
        && builder.state.tail.as_ref().map(|it| it.id) != Some(expected)
    {
        return skip_queued_run(builder, run, "expected_last_message_mismatch");
    }
    if builder.state.facts.is_target_hidden() {
        return skip_queued_run(builder, run, "target_hidden");
    }
    if !is_eligible(builder, &run) {
        return skip_queued_run(builder, run, "speaker_unavailable");
    }
    if let Some(failure) = builder.state.facts.claim_failure() {
        return fail_claim(builder, run, failure);
    }
    builder.queued = None;
    builder.push(PlanChange::ClaimRun(run));
}

/// Returns whether the speaker of a run may still speak in it, or the director has a choice.
pub fn is_eligible(builder: &PlanBuilder, run: &run::Model) -> bool {
    if run.speaker_space_membership_id.is_none() {
        return !candidates::list(builder.state, run).is_empty();
    }
    let Some(membership) = builder.speaker(run) else {
        return false;
    };
    let conversation = builder.state.conversation.id;
    match (run.kind.is_scheduled(), membership.kind) {
        (true, membership::MembershipKind::Character) => membership.can_be_scheduled(),
        (true, membership::MembershipKind::Human) => copilot::can_run(membership, conversation),
        (false, _) => membership.can_speak(conversation),
    }
}

fn skip_queued_run(builder: &mut PlanBuilder, mut run: run::Model, reason: &'static str) {
    builder.queued = None;
    run.debug.skipped_because = Some(reason.to_owned());
    builder.push(PlanChange::SkipQueued(run.clone()));
    if builder.is_at_cursor(&run) {
        let next = NextSlot::after_run(&run, builder.tail());
        builder.advance(slot::SlotStatus::Skipped, Some(reason), next);
    }
}

fn fail_claim(builder: &mut PlanBuilder, mut run: run::Model, failure: GenerationFailure) {
    builder.queued = None;
    // What its prompt would have contained: Retry is possible until there is a newer message.
    run.cutoff_seq = Some(builder.state.conversation.last_seq);
    let error = run::RunError {
        code: failure.code.to_string(),
        message: failure.message,
        retryable: failure.is_retryable,
    };
    builder.push(PlanChange::FailQueued(run.clone(), error));
    if builder.is_at_cursor(&run) {
        builder.set_round_state(round::RoundState::Failed);
    }
}

/// Ends a run with the result of its executor.
///
/// # Errors
/// Returns `AlreadyFinished` when the run no longer executes under `lease`.
pub fn run_ended(
    builder: &mut PlanBuilder,
    id: RunId,
    lease: i64,
    end: &ExecutionEnd,
) -> Result<(), CommandError> {
    let mut run = require_running(builder, id, lease)?;
    builder.running = None;
    let in_place = run.debug.in_place;
    match (end.text(), active_speaker(builder, &run)) {
        (Some(written), Some(speaker)) => {
            let end = match end {
                ExecutionEnd::Succeeded(_) => queue::RunEnd::Succeeded,
                _ => {
                    run.canceled_because = Some(RunCancelReason::Stopped);
                    queue::RunEnd::Canceled
                }
            };
            commit_text(builder, run, speaker, written, end);
        }
        (Some(written), None) => discard_text(builder, run, written),
        (None, _) => end_without_text(builder, run, end),
    }
    store_prompt(builder, id, end, in_place);
    change_memories(builder, id, end);
    Ok(())
}

/// Returns the speaker of a run unless it was removed.
fn active_speaker<'a>(builder: &PlanBuilder<'a>, run: &run::Model) -> Option<&'a Membership> {
    let speaker = builder.speaker(run);
    speaker.filter(|it| it.status == membership::MembershipStatus::Active)
}

fn end_without_text(builder: &mut PlanBuilder, mut run: run::Model, end: &ExecutionEnd) {
    record_usage(&mut run, end.usage(), end.sent_prompt());
    let ExecutionEnd::Failed { error, .. } = end else {
        run.canceled_because = Some(RunCancelReason::Stopped);
        let end = queue::RunEnd::Canceled;
        return builder.push(PlanChange::Finish { run, end });
    };
    let end = queue::RunEnd::Failed(error.clone());
    let finished = run.clone();
    builder.push(PlanChange::Finish { run: finished, end });
    if builder.is_at_cursor(&run) {
        builder.set_round_state(round::RoundState::Failed);
    }
}

/// Drops the text of a speaker that was removed meanwhile.
fn discard_text(builder: &mut PlanBuilder, mut run: run::Model, written: &GeneratedText) {
    record_usage(&mut run, written.usage, written.prompt.as_ref());
    cancel_unavailable(builder, run);
}

/// Cancels a running run whose speaker can no longer speak, and advances the round.
pub fn cancel_unavailable(builder: &mut PlanBuilder, mut run: run::Model) {
    run.canceled_because = Some(RunCancelReason::SpeakerUnavailable);
    builder.push(PlanChange::Finish {
        run: run.clone(),
        end: queue::RunEnd::Canceled,
    });
    if builder.is_at_cursor(&run) {
        let next = NextSlot::new(run.kind_of_next_slot(), run::RunReason::NextSlot);
        builder.advance(slot::SlotStatus::Skipped, Some("not_schedulable"), next);
    }
}

/// Stores the prompt that was sent. Changes by macros and World Info are stored only if the run
/// succeeded; of an in-place run only the variables, because its prompt ended at an earlier message.
fn store_prompt(builder: &mut PlanBuilder, run: RunId, end: &ExecutionEnd, in_place: bool) {
    let Some(sent) = end.sent_prompt() else {
        return;
    };
    builder.push(PlanChange::StorePrompt(run, sent.record.clone()));
    if builder.has_succeeded(run) {
        let effects = match in_place {
            true => sent.effects.variables_only().into(),
            false => sent.effects.clone(),
        };
        builder.push(PlanChange::StoreEffects(effects));
    }
}

/// Stores the changes of memories that the run requested, if it succeeded.
fn change_memories(builder: &mut PlanBuilder, run: RunId, end: &ExecutionEnd) {
    let changes = end.text().map(|it| &it.memory_changes);
    if let Some(changes) = changes.filter(|it| !it.is_empty() && builder.has_succeeded(run)) {
        builder.push(PlanChange::ChangeMemories(changes.clone()));
    }
}

/// Appends the text as a message and marks the slot as spoken.
fn commit_text(
    builder: &mut PlanBuilder,
    mut run: run::Model,
    speaker: &Membership,
    written: &GeneratedText,
    end: queue::RunEnd,
) {
    record_usage(&mut run, written.usage, written.prompt.as_ref());
    if run.debug.target_message_id.is_some() {
        return regenerate::commit_swipe(builder, run, written, end);
    }
    // The fenced change comes first: if the lease was lost, nothing of this plan is written.
    let finished = run.clone();
    builder.push(PlanChange::Finish { run: finished, end });
    let role = match speaker.kind {
        membership::MembershipKind::Human => message::MessageRole::User,
        membership::MembershipKind::Character => message::MessageRole::Assistant,
    };
    builder.push(PlanChange::Append(NewMessage {
        author: speaker.id,
        role,
        content: written.content.clone(),
        token_count: written.token_count,
        client_id: None,
        is_ooc: false,
        audience: run.audience.clone(),
        is_for_people: post_audience::is_for_people(builder, run.audience.as_ref()),
        persona: None,
        reply_to: builder.earlier_trigger(&run),
        attachments: Vec::new(),
        run: Some(run.id),
        alternates: Vec::new(),
        metadata: written.metadata.clone(),
    }));
    let was_stopped = run.cancel_requested_at.is_some();
    let mut is_paused = false;
    if builder.is_at_cursor(&run) {
        is_paused = !is_round_generating(builder);
        let turn = NextSlot::after_run(&run, Some(MessageRef::Appended));
        builder.advance(slot::SlotStatus::Spoken, None, turn);
    }
    let trigger_message = TriggerMessage {
        author: speaker.id,
        text: &written.content,
        mentions: &[],
    };
    if role == message::MessageRole::User {
        builder.audience = run.audience;
        copilot::spend_step(builder, &trigger_message, was_stopped);
    } else if !was_stopped && run.audience.is_none() {
        followup::after_text(builder, &trigger_message, is_paused);
    }
}

/// Adds the cost to that of earlier executions, before the run was released. The space's token
/// count is updated when the run ends.
fn record_usage(
    run: &mut run::Model,
    usage: Option<run::RunUsage>,
    prompt: Option<&SentPromptRef>,
) {
    run.usage = run::RunUsage::sum(run.usage, usage);
    run.debug.prompt = prompt.map(|it| it.stats.clone());
}

/// Handles a run whose heartbeat stopped. A crash must not cost readers their reply: the same turn
/// is planned again unless a newer run is queued.
///
/// # Errors
/// Returns `AlreadyFinished` when the run no longer executes under `lease`.
pub fn lease_expired(
    builder: &mut PlanBuilder,
    id: RunId,
    lease: i64,
    silent_for_ms: i64,
) -> Result<(), CommandError> {
    let mut run = require_running(builder, id, lease)?;
    builder.running = None;
    if run.cancel_requested_at.is_some() {
        run.canceled_because = Some(RunCancelReason::Stopped);
        builder.push(PlanChange::ExpireLease {
            run,
            end: queue::RunEnd::Canceled,
            silent_for_ms,
        });
        return Ok(());
    }
    let error = run::RunError {
        code: FailureCode::StaleRunningRun.to_string(),
        message: "The server stopped while this reply was being written.".to_owned(),
        retryable: true,
    };
    builder.push(PlanChange::ExpireLease {
        run: run.clone(),
        end: queue::RunEnd::Failed(error),
        silent_for_ms,
    });
    if builder.queued.is_some() {
        return Ok(());
    }
    let again = run.attempt < MAX_ATTEMPTS;
    match (run.round_id.is_some(), builder.is_at_cursor(&run)) {
        (true, true) if again && is_round_generating(builder) => {
            let turn = NextSlot {
                attempt: run.attempt + 1,
                ..NextSlot::new(run.kind_of_next_slot(), run::RunReason::Recovered)
            };
            builder.queue_current_slot(turn);
        }
        (true, true) => builder.set_round_state(round::RoundState::Failed),
        // Its round is over, so there is nothing to repeat.
        (true, false) => {}
        (false, _) if again => replan(builder, &run, run::RunReason::Recovered, run.attempt + 1),
        (false, _) => {}
    }
    Ok(())
}

fn is_round_generating(builder: &PlanBuilder) -> bool {
    builder
        .round
        .as_ref()
        .is_some_and(|it| it.state == round::RoundState::Generating)
}

/// Queues a run without a round again, with the same kind, speaker and target.
pub fn replan(builder: &mut PlanBuilder, run: &run::Model, reason: run::RunReason, attempt: i64) {
    let mut again = builder.new_run(run.speaker_space_membership_id, run.kind, reason);
    again.attempt = attempt;
    again.audience.clone_from(&run.audience);
    again.debug = run::RunDebug {
        chosen_because: run.debug.chosen_because.clone(),
        target_message_id: run.debug.target_message_id,
        expected_last_message_id: run.debug.expected_last_message_id,
        in_place: run.debug.in_place,
        instruction: run.debug.instruction.clone(),
        ..Default::default()
    };
    let trigger = run.debug.trigger_message_id.map(MessageRef::Message);
    let expected_tail = run.debug.expected_last_message_id.map(MessageRef::Message);
    builder.enqueue(EnqueueRun {
        run: again,
        trigger,
        expected_tail,
    });
}

/// Requeues the run of a closing node so that another node can execute it immediately.
///
/// # Errors
/// Returns `AlreadyFinished` when the run no longer executes under `lease`.
pub fn run_released(
    builder: &mut PlanBuilder,
    (id, lease): (RunId, i64),
    usage: Option<run::RunUsage>,
) -> Result<(), CommandError> {
    let mut run = require_running(builder, id, lease)?;
    run.usage = run::RunUsage::sum(run.usage, usage);
    builder.running = Some(run.clone());
    let superseded = builder.queued.is_some();
    let stopped = run.cancel_requested_at.is_some();
    // The slot of a paused round waits for a person; a queued run would speak before that.
    let is_paused = builder.is_at_cursor(&run) && !is_round_generating(builder);
    let reason = match (superseded, stopped) {
        (true, _) => Some(RunCancelReason::Superseded),
        (false, true) => Some(RunCancelReason::Stopped),
        (false, false) => is_paused.then_some(RunCancelReason::Paused),
    };
    if let Some(reason) = reason {
        builder.cancel_running(reason);
        return Ok(());
    }
    builder.running = None;
    builder.push(PlanChange::ReleaseRun(run));
    Ok(())
}

/// Ends an active round that has no run to continue it; a person may retry.
///
/// # Errors
/// Returns `NoRound` when the round is no longer stalled.
pub fn round_stalled(builder: &mut PlanBuilder) -> Result<(), CommandError> {
    if builder.running.is_some() || builder.queued.is_some() || !is_round_generating(builder) {
        return Err(CommandError::NoRound); // another step was faster
    }
    builder.end_round(round::RoundStatus::Canceled, "left_without_a_run");
    Ok(())
}

/// Returns the running run.
///
/// # Errors
/// Returns `AlreadyFinished` when this run no longer executes under `lease`.
pub fn require_running(
    builder: &PlanBuilder,
    id: RunId,
    lease: i64,
) -> Result<run::Model, CommandError> {
    builder
        .running
        .clone()
        .filter(|it| it.id == id && it.lease == lease)
        .ok_or(CommandError::AlreadyFinished)
}
