//! Plans what actions of users change: stop, pause, resume, skip, retry and cancel runs, edit or
//! hide a message, and change settings or memberships.

use base::ids::{MembershipId, MessageId, RunId};
use base::message_text;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message;
use crate::rounds::{round, slot};
use crate::runs::scheduling::command::{CommandError, MessageEdit};
use crate::runs::scheduling::plan::PlanChange;
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::scheduling::turns::human_turns;
use crate::runs::scheduling::{auto_mode, completion, copilot, regenerate};
use crate::runs::store::run;
use crate::runs::store::run::RunCancelReason;
use crate::spaces::permissions::SkipRight;
use crate::spaces::space;

/// Stops all runs and pauses the round; the stopped slot stays at the cursor. With `keep_partial`
/// the executor ends the run and commits the text it has.
pub fn stop(builder: &mut PlanBuilder, keep_partial: bool) {
    if keep_partial {
        if let Some(run) = builder.running.clone() {
            builder.push(PlanChange::RequestCancel(run));
        }
    } else {
        builder.cancel_running(RunCancelReason::Stopped);
    }
    builder.cancel_queued(RunCancelReason::Stopped);
    pause_round(builder);
}

/// Stops one run, as [`stop`] does for all.
///
/// # Errors
/// Returns `AlreadyFinished` when the run is neither running nor queued.
pub fn cancel(builder: &mut PlanBuilder, id: RunId) -> Result<(), CommandError> {
    if builder.running.as_ref().is_some_and(|it| it.id == id) {
        let turn = builder
            .running
            .clone()
            .is_some_and(|it| builder.is_at_cursor(&it));
        builder.cancel_running(RunCancelReason::Stopped);
        if turn {
            pause_round(builder);
        }
        return Ok(());
    }
    if builder.queued.as_ref().is_some_and(|it| it.id == id) {
        let turn = builder
            .queued
            .clone()
            .is_some_and(|it| builder.is_at_cursor(&it));
        builder.cancel_queued(RunCancelReason::Stopped);
        if turn {
            pause_round(builder);
        }
        return Ok(());
    }
    Err(CommandError::AlreadyFinished)
}

/// Pauses the round: the running run finishes, and no other follows.
///
/// # Errors
/// Returns `NoRound` when no round is active.
pub fn pause(builder: &mut PlanBuilder) -> Result<(), CommandError> {
    if builder.round.is_none() {
        return Err(CommandError::NoRound);
    }
    if let Some(run) = builder.queued.clone()
        && builder.is_at_cursor(&run)
    {
        builder.cancel_queued(RunCancelReason::Paused);
    }
    pause_round(builder);
    Ok(())
}

/// Queues the slot at the cursor without delay. If no round is paused, the copilot continues.
///
/// # Errors
/// Returns `NothingPaused` when neither is possible.
pub fn resume(builder: &mut PlanBuilder) -> Result<(), CommandError> {
    let paused = builder
        .round
        .as_ref()
        .is_some_and(|it| it.state == round::RoundState::Paused);
    if copilot::continue_after(builder) {
        return Ok(());
    }
    if !paused || builder.running.is_some() || builder.queued.is_some() {
        return Err(CommandError::NothingPaused);
    }
    continue_round(builder, run::RunReason::Resume);
    Ok(())
}

/// Skips the current slot. A failed round continues, a paused one stays paused.
///
/// # Errors
/// Returns `NoRound` when no round is active, `Forbidden` when the person does not see its replies, or may
/// not skip the current turn.
pub fn skip(
    builder: &mut PlanBuilder,
    viewer: Viewer,
    right: SkipRight,
) -> Result<(), CommandError> {
    if right == SkipRight::OwnTurn && !human_turns::may_skip(builder, viewer, right) {
        return Err(CommandError::Forbidden);
    }
    let Some(round) = builder.round.as_ref() else {
        return Err(CommandError::NoRound);
    };
    if !viewer.sees(round.audience.as_ref()) || !human_turns::may_skip(builder, viewer, right) {
        return Err(CommandError::Forbidden);
    }
    let failed = round.state == round::RoundState::Failed;
    let kind = run_kind_of_round(builder);
    if let Some(run) = builder.running.clone()
        && builder.is_at_cursor(&run)
    {
        builder.cancel_running(RunCancelReason::Skipped);
    }
    if let Some(run) = builder.queued.clone()
        && builder.is_at_cursor(&run)
    {
        builder.cancel_queued(RunCancelReason::Skipped);
    }
    if failed {
        builder.set_round_state(round::RoundState::Generating);
    }
    let turn = NextSlot::new(kind, run::RunReason::NextSlot);
    builder.advance(slot::SlotStatus::Skipped, Some("skipped_by_a_person"), turn);
    Ok(())
}

/// Repeats the slot at the cursor, or the newest run without a round if it failed and no message
/// followed.
///
/// # Errors
/// Returns `NothingToRetry` when another run is active, or when there is no such slot or run that the
/// person sees; `InPlaceForbidden` when the run would change a message that the person may not edit.
pub fn retry(
    builder: &mut PlanBuilder,
    may_edit: bool,
    viewer: Viewer,
) -> Result<(), CommandError> {
    let active = builder.running.as_ref().or(builder.queued.as_ref());
    if let Some(run) = active {
        // Two simultaneous requests: the run planned for the first one answers both.
        return match run.reason {
            _ if !viewer.sees(run.audience.as_ref()) => Err(CommandError::NothingToRetry),
            run::RunReason::Retry | run::RunReason::CopilotContinue => Ok(()),
            _ => Err(CommandError::NothingToRetry),
        };
    }
    if let Some(round) = builder.round.as_ref() {
        let is_seen = viewer.sees(round.audience.as_ref());
        let has_stopped = matches!(
            round.state,
            round::RoundState::Paused | round::RoundState::Failed
        );
        if !has_stopped || !is_seen {
            return Err(CommandError::NothingToRetry);
        }
        continue_round(builder, run::RunReason::Retry);
        return Ok(());
    }
    let newest_seq = builder.state.tail.as_ref().map_or(0, |it| it.seq);
    let failed = builder.state.facts.newest_run().filter(|it| {
        it.status == run::RunStatus::Failed
            && it.round_id.is_none()
            && viewer.sees(it.audience.as_ref())
            && it.cutoff_seq.is_some_and(|cutoff| cutoff >= newest_seq)
    });
    let failed = failed.ok_or(CommandError::NothingToRetry)?;
    if copilot::is_copilot_run(builder, failed) {
        return match copilot::continue_after(builder) {
            true => Ok(()),
            false => Err(CommandError::NothingToRetry),
        };
    }
    if failed.debug.in_place && !may_edit {
        return Err(CommandError::InPlaceForbidden);
    }
    completion::replan(builder, failed, run::RunReason::Retry, 1);
    Ok(())
}

/// Shows a message, excludes it from prompts, or hides it. If the tail or the trigger of the round
/// is hidden, all replies in progress are canceled, because they are based on it.
///
/// # Errors
/// Returns `NotFound` when the message does not exist, `ForkPoint` when a message with branches
/// would be hidden.
pub fn set_visibility(
    builder: &mut PlanBuilder,
    id: MessageId,
    visibility: message::Visibility,
) -> Result<(), CommandError> {
    let target = builder.state.facts.target();
    let target = target.ok_or(CommandError::NotFound)?;
    if target.row.visibility == visibility {
        return Ok(());
    }
    let hides = visibility == message::Visibility::Hidden;
    if hides && target.is_fork_point {
        return Err(CommandError::ForkPoint);
    }
    builder.push(PlanChange::SetVisibility {
        message: id,
        visibility,
    });
    let is_tail = builder.state.tail.as_ref().is_some_and(|it| it.id == id);
    let is_trigger = builder
        .round
        .as_ref()
        .is_some_and(|it| it.trigger_message_id == Some(id));
    if hides && (is_tail || is_trigger) {
        builder.cancel_running(RunCancelReason::MessageHidden);
        builder.cancel_queued(RunCancelReason::MessageHidden);
        builder.end_round(round::RoundStatus::Canceled, "message_hidden");
    }
    if hides {
        regenerate::cancel_targeting(builder, id);
    }
    Ok(())
}

/// Sets whether the memory may use a message. Replies are not affected.
///
/// # Errors
/// Returns `NotFound` when the message does not exist or is hidden.
pub fn set_remembered(
    builder: &mut PlanBuilder,
    id: MessageId,
    remember: bool,
) -> Result<(), CommandError> {
    let target = builder.state.facts.target();
    let target = target.filter(|it| it.row.visibility != message::Visibility::Hidden);
    let target = target.ok_or(CommandError::NotFound)?;
    if target.row.is_remembered != remember {
        builder.push(PlanChange::SetRemembered {
            message: id,
            remember,
        });
    }
    Ok(())
}

/// Replaces the text of a message if the edit is based on its current version. The schedule stays.
///
/// # Errors
/// Returns `EditConflict`, `NotFound` or `MessageBeingWritten`, in this order of precedence.
pub fn message_edited(builder: &mut PlanBuilder, edit: &MessageEdit) -> Result<(), CommandError> {
    regenerate::require_version(builder, Some(edit.expected_version))?;
    let subject = regenerate::require_editable(builder, edit.message)?;
    if subject.metadata.get(message::ROLL_KEY).is_some() {
        return Err(CommandError::RollNotEditable);
    }
    if !subject.has_attachments && message_text::is_blank(&edit.content) {
        return Err(CommandError::NothingShown);
    }
    if subject.content != edit.content {
        builder.push(PlanChange::SetContent(edit.clone()));
    }
    Ok(())
}

/// Ends what the current settings and memberships no longer allow.
pub fn apply_changes(builder: &mut PlanBuilder) {
    if builder.state.space.status == space::SpaceStatus::Archived {
        return builder.close(RunCancelReason::Archived);
    }
    settings_changed(builder);
    for run in [
        builder.state.running.as_ref(),
        builder.state.queued.as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        if let Some(speaker) = run.speaker_space_membership_id {
            member_changed(builder, speaker);
        }
    }
    human_turns::pass_over_unavailable(builder);
}

/// Cancels or skips runs of a membership that may no longer speak, and advances the round.
fn member_changed(builder: &mut PlanBuilder, membership: MembershipId) {
    copilot::taken_over_by_user(builder, membership);
    let loses = |d: &PlanBuilder, run: &run::Model| {
        run.speaker_space_membership_id == Some(membership) && !completion::is_eligible(d, run)
    };
    if let Some(run) = builder.running.clone().filter(|it| loses(builder, it)) {
        let turn = builder.is_at_cursor(&run);
        builder.cancel_running(copilot::reason_to_cancel(builder, membership));
        skip_current_slot(builder, &run, turn);
    }
    if let Some(mut run) = builder.queued.clone().filter(|it| loses(builder, it)) {
        let turn = builder.is_at_cursor(&run);
        run.debug.skipped_because = Some("speaker_unavailable".to_owned());
        builder.queued = None;
        builder.push(PlanChange::SkipQueued(run.clone()));
        skip_current_slot(builder, &run, turn);
    }
}

fn skip_current_slot(builder: &mut PlanBuilder, run: &run::Model, turn: bool) {
    if turn {
        let next = NextSlot::new(run.kind_of_next_slot(), run::RunReason::NextSlot);
        builder.advance(slot::SlotStatus::Skipped, Some("not_schedulable"), next);
    }
}

/// Cancels queued runs that the settings no longer allow: after switching to `manual`, or after
/// switching auto mode off. A running run finishes.
fn settings_changed(builder: &mut PlanBuilder) {
    if !builder.state.space.auto_mode_enabled {
        auto_mode::disabled(builder);
    }
    if builder.state.space.reply_order != space::ReplyOrder::Manual {
        return;
    }
    let forbidden = builder
        .queued
        .as_ref()
        .is_some_and(|it| it.kind.is_scheduled());
    if forbidden {
        builder.cancel_queued(RunCancelReason::ReplyOrderManual);
        builder.end_round(round::RoundStatus::Canceled, "reply_order_manual");
    } else if builder.is_waiting() {
        builder.end_round(round::RoundStatus::Canceled, "reply_order_manual");
    }
}

/// Pauses a round; a failed one stays failed.
fn pause_round(builder: &mut PlanBuilder) {
    if builder
        .round
        .as_ref()
        .is_some_and(|it| it.state != round::RoundState::Failed)
    {
        builder.set_round_state(round::RoundState::Paused);
    }
}

/// Starts the slot at the cursor, or the next one if that speaker can no longer speak.
fn continue_round(builder: &mut PlanBuilder, reason: run::RunReason) {
    let kind = run_kind_of_round(builder);
    builder.set_round_state(round::RoundState::Generating);
    let turn = NextSlot::new(kind, reason);
    builder.start_current_or_next_slot(turn);
}

/// Returns the kind of the runs of the active round.
fn run_kind_of_round(builder: &PlanBuilder) -> run::RunKind {
    match builder.round.as_ref().map(|it| it.kind) {
        Some(round::RoundKind::AutoMode) => run::RunKind::AutoMode,
        Some(round::RoundKind::UserTurn) | None => run::RunKind::UserTurn,
    }
}
