//! Plans a user's edit of the pending slots of a round.

use base::ids::MembershipId;

use crate::conversations::audience::message_audience::Audience;
use crate::rounds::{round, slot};
use crate::runs::scheduling::command::{CommandError, SlotsEdit};
use crate::runs::scheduling::plan::{EnqueueRun, MessageRef, NewSlot, RoundChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::store::run;
use crate::speakers::selection::SpeakerChoice;

/// Replaces the pending slots by other members: the slots after the cursor, and the current one if its
/// run is not running. Members that are left out are removed; a member that is named twice speaks
/// twice. A slot for which the director chooses can be moved or removed, but not added.
///
/// # Errors
/// Returns `StaleRound` when this round is not active or the person does not see its replies, or
/// `NotSchedulable` when a member cannot be scheduled or does not see the round.
pub fn edit(builder: &mut PlanBuilder, edit: &SlotsEdit) -> Result<(), CommandError> {
    let SlotsEdit {
        round,
        slots: members,
        by,
        viewer,
    } = edit;
    let is_seen = |it: &round::Model| it.id == *round && viewer.sees(it.audience.as_ref());
    let present = builder.round.clone().filter(is_seen);
    let present = present.ok_or(CommandError::StaleRound)?;
    let speaks = builder
        .running
        .as_ref()
        .is_some_and(|it| builder.is_at_cursor(it));
    let from = present.cursor + i64::from(speaks);
    let pending: Vec<slot::Slot> = present.slots.from(from).cloned().collect();
    if pending.iter().map(|it| &it.space_membership_id).eq(members) {
        return Ok(());
    }
    let slots = arrange_slots(pending, members, by).ok_or(CommandError::NotSchedulable)?;
    if !slots.iter().all(|it| {
        let is_in = |audience: &Audience| it.speaker.is_none_or(|id| audience.contains(id));
        present.audience.as_ref().is_none_or(is_in)
            && builder.can_fill_slot(it.speaker, it.is_forced)
    }) {
        return Err(CommandError::NotSchedulable);
    }
    let first = slots.first().cloned();
    let keeps_forced = slots.iter().any(|it| it.is_forced);
    let waits_for = builder.awaited_person();
    builder.change_round(RoundChange::ReplaceSlots { from, slots });
    match first {
        _ if speaks => {}
        Some(first) if waits_for.is_some() && waits_for == first.speaker => {}
        Some(_) if waits_for.is_some() => {
            let turn = NextSlot::new(run::RunKind::UserTurn, run::RunReason::NextSlot);
            builder.start_current_slot(turn);
        }
        Some(_) if builder.is_turn_of_person() => wait_instead_of_run(builder),
        Some(first) => replace_queued_run(builder, first, keeps_forced),
        None => {
            builder.cancel_queued(run::RunCancelReason::Superseded);
            builder.end_round(round::RoundStatus::Finished, "queue_emptied");
        }
    }
    Ok(())
}

/// Waits for the person who is now at the cursor, in place of the queued run. A paused or failed round
/// stays as it is.
fn wait_instead_of_run(builder: &mut PlanBuilder) {
    let queued = builder.queued.clone();
    if queued.is_some_and(|it| builder.is_at_cursor(&it)) {
        builder.cancel_queued(run::RunCancelReason::Superseded);
        builder.wait_for_person();
    }
}

/// Returns the slots in their new order; existing slots keep their reason. Returns `None` if the list
/// has more slots without a speaker than there are.
fn arrange_slots(
    mut pending: Vec<slot::Slot>,
    members: &[Option<MembershipId>],
    by: &str,
) -> Option<Vec<NewSlot>> {
    let mut arrange = |id: &Option<MembershipId>| {
        let kept = pending.iter().position(|it| it.space_membership_id == *id);
        match kept.map(|at| pending.remove(at)) {
            Some(slot) => Some(NewSlot::from(slot)),
            None => id.map(|it| SpeakerChoice::new(it, format!("put in the queue by {by}")).into()),
        }
    };
    members.iter().map(&mut arrange).collect()
}

/// Replaces the queued run by one for the new first speaker, due at the same time. A paused or
/// failed round has none. A forced run that is removed ends with its own event.
fn replace_queued_run(builder: &mut PlanBuilder, first: NewSlot, keeps_forced: bool) {
    let queued = builder.queued.clone().filter(|run| {
        let is_forced = run.kind == run::RunKind::ForceTalk;
        let is_same =
            run.speaker_space_membership_id == first.speaker && is_forced == first.is_forced;
        builder.is_at_cursor(run) && !is_same
    });
    let Some(queued) = queued else {
        return;
    };
    let was_forced = queued.kind == run::RunKind::ForceTalk;
    if was_forced && !keeps_forced {
        builder.cancel_queued(run::RunCancelReason::Superseded);
    }
    let (kind, reason) = match (first.is_forced, was_forced) {
        (true, _) => (run::RunKind::ForceTalk, run::RunReason::NextSlot),
        (false, true) => (queued.kind_of_next_slot(), run::RunReason::NextSlot),
        (false, false) => (queued.kind, queued.reason),
    };
    let trigger = queued.debug.trigger_message_id.map(MessageRef::Message);
    let expected_tail = queued.debug.expected_last_message_id;
    let run = run::Model {
        round_id: queued.round_id,
        slot_position: queued.slot_position,
        run_after: queued.run_after.map(|at| at.max(builder.now)),
        burst_started_at: queued.burst_started_at,
        audience: queued.audience,
        debug: run::RunDebug {
            chosen_because: Some(first.reason),
            ..Default::default()
        },
        ..builder.new_run(first.speaker, kind, reason)
    };
    builder.enqueue(EnqueueRun {
        run,
        trigger,
        expected_tail: expected_tail.map(MessageRef::Message),
    });
}
