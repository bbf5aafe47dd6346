//! What people press: stop, pause, resume, skip, retry, cancel, delete, mute, archive.

use crate::conversations::message;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RunId;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::auto_mode;
use crate::runs::command::Edit;
use crate::runs::command::Refusal;
use crate::runs::copilot;
use crate::runs::draft::Draft;
use crate::runs::draft::Turn;
use crate::runs::endings;
use crate::runs::plan::Change;
use crate::runs::regenerate;
use crate::runs::run;
use crate::runs::run::RunCancelReason;
use crate::spaces::space;

/// Everything rests, the stopped slot waits at the cursor. With `keep_partial` the executor ends
/// the run and commits what it has.
pub fn stop(d: &mut Draft, keep_partial: bool) {
    if keep_partial {
        if let Some(run) = d.running.clone() {
            d.push(Change::AskCancel(run));
        }
    } else {
        d.cancel_running(RunCancelReason::Stopped);
    }
    d.cancel_queued(RunCancelReason::Stopped);
    rest(d);
}

/// One run is stopped, as by [`stop`].
pub fn cancel(d: &mut Draft, id: RunId) -> Result<(), Refusal> {
    if d.running.as_ref().is_some_and(|it| it.id == id) {
        let turn = d.running.clone().is_some_and(|it| d.is_current_turn(&it));
        d.cancel_running(RunCancelReason::Stopped);
        if turn {
            rest(d);
        }
        return Ok(());
    }
    if d.queued.as_ref().is_some_and(|it| it.id == id) {
        let turn = d.queued.clone().is_some_and(|it| d.is_current_turn(&it));
        d.cancel_queued(RunCancelReason::Stopped);
        if turn {
            rest(d);
        }
        return Ok(());
    }
    Err(Refusal::AlreadyFinished)
}

/// The running run finishes, nothing follows.
pub fn pause(d: &mut Draft) -> Result<(), Refusal> {
    if d.round.is_none() {
        return Err(Refusal::NoRound);
    }
    if let Some(run) = d.queued.clone()
        && d.is_current_turn(&run)
    {
        d.cancel_queued(RunCancelReason::Paused);
    }
    rest(d);
    Ok(())
}

/// The cursor's slot is queued without delay. Where no round waits, the copilot goes on.
pub fn resume(d: &mut Draft) -> Result<(), Refusal> {
    let paused = d
        .round
        .as_ref()
        .is_some_and(|it| it.row.state == round::RoundState::Paused);
    if copilot::go_on(d) {
        return Ok(());
    }
    if !paused || d.running.is_some() || d.queued.is_some() {
        return Err(Refusal::NothingPaused);
    }
    go_on(d, run::RunReason::Resume);
    Ok(())
}

/// The current slot is passed over. A failed round goes on, a paused one stays paused.
pub fn skip(d: &mut Draft) -> Result<(), Refusal> {
    let Some(round) = d.round.as_ref() else {
        return Err(Refusal::NoRound);
    };
    let failed = round.row.state == round::RoundState::Failed;
    let kind = kind_of_round(d);
    if let Some(run) = d.running.clone()
        && d.is_current_turn(&run)
    {
        d.cancel_running(RunCancelReason::Skipped);
    }
    if let Some(run) = d.queued.clone()
        && d.is_current_turn(&run)
    {
        d.cancel_queued(RunCancelReason::Skipped);
    }
    if failed {
        d.set_round_state(round::RoundState::Generating);
    }
    let turn = Turn::new(kind, run::RunReason::NextSlot);
    d.advance(slot::SlotStatus::Skipped, Some("skipped_by_a_person"), turn);
    Ok(())
}

/// The cursor's slot again; or the force talk or regenerate that failed, until something newer.
pub fn retry(d: &mut Draft) -> Result<(), Refusal> {
    let active = d.running.as_ref().or(d.queued.as_ref());
    if let Some(run) = active {
        // Pressed twice at once: the run that the first press planned is the answer to both.
        return match run.reason {
            run::RunReason::Retry | run::RunReason::CopilotContinue => Ok(()),
            _ => Err(Refusal::NothingToRetry),
        };
    }
    if let Some(round) = d.round.as_ref() {
        if round.row.state == round::RoundState::Generating {
            return Err(Refusal::NothingToRetry);
        }
        go_on(d, run::RunReason::Retry);
        return Ok(());
    }
    let failed = d.s.newest_run.clone().filter(|it| {
        it.status == run::RunStatus::Failed
            && it.round_id.is_none()
            && it.cutoff_seq == Some(d.s.conversation.last_seq)
    });
    let failed = failed.ok_or(Refusal::NothingToRetry)?;
    if copilot::is_its_run(d, &failed) {
        return match copilot::go_on(d) {
            true => Ok(()),
            false => Err(Refusal::NothingToRetry),
        };
    }
    endings::replan(d, &failed, run::RunReason::Retry, 1);
    Ok(())
}

/// A message is hidden, dimmed or shown again. Hiding the tail, or what the round answers, takes
/// the ground from under every reply that is on its way.
pub fn visibility_changed(
    d: &mut Draft,
    id: MessageId,
    visibility: message::Visibility,
) -> Result<(), Refusal> {
    let subject = d.s.subject.as_ref().ok_or(Refusal::NotFound)?;
    if subject.visibility == visibility {
        return Ok(());
    }
    let hides = visibility == message::Visibility::Hidden;
    if hides && d.s.subject_is_fork_point {
        return Err(Refusal::ForkPoint);
    }
    d.push(Change::SetVisibility {
        message: id,
        visibility,
    });
    let is_tail = d.s.tail.as_ref().is_some_and(|it| it.id == id);
    let is_trigger = d
        .round
        .as_ref()
        .is_some_and(|it| it.row.trigger_message_id == Some(id));
    if hides && (is_tail || is_trigger) {
        d.cancel_running(RunCancelReason::MessageHidden);
        d.cancel_queued(RunCancelReason::MessageHidden);
        d.end_round(round::RoundStatus::Canceled, "message_hidden");
    }
    if hides {
        regenerate::cancel_for(d, id);
    }
    Ok(())
}

/// The message whose text may be changed: the tail, while nothing is written and no branch hangs
/// on it.
///
/// # Errors
/// Why it may not.
pub fn open_to_change<'a>(d: &Draft<'a>, id: MessageId) -> Result<&'a message::Model, Refusal> {
    let subject = d.s.subject.as_ref().ok_or(Refusal::NotFound)?;
    if subject.visibility == message::Visibility::Hidden {
        return Err(Refusal::NotFound);
    }
    if d.s.subject_is_fork_point {
        return Err(Refusal::ForkPoint);
    }
    if d.s.tail.as_ref().map(|it| it.id) != Some(id) {
        return Err(Refusal::NotTail);
    }
    match &d.running {
        Some(run) if run.debug.target_message_id == Some(id) => Err(Refusal::MessageBeingWritten),
        Some(_) => Err(Refusal::GenerationLocked),
        None => Ok(subject),
    }
}

/// The tail's text is replaced, if it was made from the text that is there.
pub fn edited(d: &mut Draft, edit: &Edit) -> Result<(), Refusal> {
    is_version(d, edit.expected_version)?;
    let subject = open_to_change(d, edit.message)?;
    if subject.content != edit.content {
        d.push(Change::SetContent(edit.clone()));
    }
    Ok(())
}

/// Refuses a change that was made from another version of the message than the present one.
///
/// # Errors
/// [`Refusal::EditConflict`].
pub fn is_version(d: &Draft, expected: i64) -> Result<(), Refusal> {
    match &d.s.subject {
        Some(it) if it.version != expected && it.visibility != message::Visibility::Hidden => {
            Err(Refusal::EditConflict)
        }
        _ => Ok(()),
    }
}

/// Ends what the settings and memberships forbid as they are now.
pub fn apply_changes(d: &mut Draft) {
    if d.s.space.status == space::SpaceStatus::Archived {
        return closed(d, RunCancelReason::Archived);
    }
    settings_changed(d);
    for run in [d.s.running.as_ref(), d.s.queued.as_ref()]
        .into_iter()
        .flatten()
    {
        member_changed(d, run.speaker_space_membership_id);
    }
}

/// A seat was muted, or lost: whose turn it is may have to move on.
fn member_changed(d: &mut Draft, seat: MembershipId) {
    copilot::taken_over(d, seat);
    let loses = |d: &Draft, run: &run::Model| {
        run.speaker_space_membership_id == seat && !endings::may_take_its_turn(d, run)
    };
    if let Some(run) = d.running.clone().filter(|it| loses(d, it)) {
        let turn = d.is_current_turn(&run);
        d.cancel_running(copilot::reason_to_cancel(d, seat));
        pass_on(d, &run, turn);
    }
    if let Some(mut run) = d.queued.clone().filter(|it| loses(d, it)) {
        let turn = d.is_current_turn(&run);
        run.debug.skipped_because = Some("speaker_unavailable".to_owned());
        d.queued = None;
        d.push(Change::SkipQueued(run.clone()));
        pass_on(d, &run, turn);
    }
}

fn pass_on(d: &mut Draft, run: &run::Model, turn: bool) {
    if turn {
        let next = Turn::new(run.kind_of_next_slot(), run::RunReason::NextSlot);
        d.advance(slot::SlotStatus::Skipped, Some("not_schedulable"), next);
    }
}

/// Only a change to `manual`, or switching auto mode off, forbids what is planned: a queued reply
/// goes, a running one finishes.
fn settings_changed(d: &mut Draft) {
    if !d.s.space.auto_mode_enabled {
        auto_mode::switched_off(d);
    }
    if d.s.space.reply_order != space::ReplyOrder::Manual {
        return;
    }
    let forbidden = d.queued.as_ref().is_some_and(|it| it.kind.is_scheduled());
    if forbidden {
        d.cancel_queued(RunCancelReason::ReplyOrderManual);
        d.end_round(round::RoundStatus::Canceled, "reply_order_manual");
    }
}

/// Nothing continues: the space was archived, or it or its conversation is about to be deleted.
pub fn closed(d: &mut Draft, reason: RunCancelReason) {
    d.cancel_running(reason);
    d.cancel_queued(reason);
    d.end_round(round::RoundStatus::Canceled, "space_closed");
}

/// A round that goes on is paused; one that failed stays failed.
fn rest(d: &mut Draft) {
    if d.round
        .as_ref()
        .is_some_and(|it| it.row.state == round::RoundState::Generating)
    {
        d.set_round_state(round::RoundState::Paused);
    }
}

/// The slot at the cursor gets its turn; if it cannot speak any more, the next one does.
fn go_on(d: &mut Draft, reason: run::RunReason) {
    let kind = kind_of_round(d);
    d.set_round_state(round::RoundState::Generating);
    let turn = Turn::new(kind, reason);
    let slot = d.round.as_ref().and_then(|it| it.current());
    let can = slot.is_some_and(|it| d.can_fill_slot(it.space_membership_id, it.forced));
    match can {
        true => d.queue_current_slot(turn),
        false => d.advance(slot::SlotStatus::Skipped, Some("not_schedulable"), turn),
    }
}

/// What the runs of the active round are.
fn kind_of_round(d: &Draft) -> run::RunKind {
    match d.round.as_ref().map(|it| it.row.kind) {
        Some(round::RoundKind::AutoMode) => run::RunKind::AutoMode,
        Some(round::RoundKind::UserTurn) | None => run::RunKind::UserTurn,
    }
}
