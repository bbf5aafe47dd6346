//! Auto mode: characters answer each other, with a delay before each turn, until the number of
//! turns allowed after a human message is used up.
//!
//! **Invariant:** a turn is counted in the plan that queues it for the first time since the last
//! human message; a repetition of the same turn (recovery, Retry, Resume) does not count. So
//! neither a crash nor a second node adds turns.

use crate::conversations::conversation;
use crate::rounds::{round, slot};
use crate::runs::scheduling::plan::{MessageRef, PlanChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::scheduling::speaker_choice;
use crate::runs::scheduling::speaker_choice::TriggerMessage;
use crate::runs::store::run;
use crate::spaces::{membership, space};

/// Returns how many turns are left until a person has to write; `None` while auto mode is off.
pub fn turns_left(conversation: &conversation::Model, space: &space::Model) -> Option<i64> {
    let left = space.auto_mode_max_turns - conversation.auto_mode_turns;
    space.auto_mode_enabled.then_some(left.max(0))
}

/// Plans the next auto mode round after a character's message whose round has no slot left, if auto
/// mode is on and has turns left. If `is_paused` is set, the new round starts paused and a person
/// must resume it.
pub fn follow_up(builder: &mut PlanBuilder, trigger_message: &TriggerMessage, is_paused: bool) {
    let by_ai = builder
        .member(trigger_message.author)
        .is_some_and(|it| it.kind == membership::MembershipKind::Character);
    if !by_ai
        || !builder.state.space.auto_mode_enabled
        || builder.auto_mode_turns >= max_turns(builder)
    {
        return;
    }
    let choices = speaker_choice::after_ai_message(builder, trigger_message);
    if choices.is_empty() {
        return;
    }
    builder.new_round(round::RoundKind::AutoMode, choices, MessageRef::Appended);
    if is_paused {
        return builder.set_round_state(round::RoundState::Paused);
    }
    builder.queue_current_slot(NextSlot {
        expected_tail: Some(MessageRef::Appended),
        ..NextSlot::new(run::RunKind::AutoMode, run::RunReason::AutoMode)
    });
}

/// Counts a turn for this slot unless it was counted before. Returns `false` if no turn is left.
pub fn count_turn(builder: &mut PlanBuilder, slot: &slot::Model, turn: &NextSlot) -> bool {
    let had_it = builder.state.newest_run.as_ref().is_some_and(|it| {
        it.round_id == Some(slot.round_id) && it.slot_position == Some(slot.position)
    });
    // After a human message the count restarts at zero, so an earlier run of this slot is not
    // included.
    let is_counted = builder.auto_mode_turns > 0 && (turn.attempt > 1 || had_it);
    if is_counted {
        return true;
    }
    if builder.auto_mode_turns >= max_turns(builder) {
        return false;
    }
    builder.auto_mode_turns += 1;
    builder.push(PlanChange::AutoModeTurns(builder.auto_mode_turns));
    true
}

/// Resets the count of turns after a human message.
pub fn resets_turns(builder: &mut PlanBuilder) {
    if builder.auto_mode_turns > 0 {
        builder.auto_mode_turns = 0;
        builder.push(PlanChange::AutoModeTurns(0));
    }
}

/// Returns the delay before a turn that no person requested.
pub fn delay_ms(builder: &PlanBuilder, turn: &NextSlot) -> i64 {
    let by_itself = matches!(
        turn.reason,
        run::RunReason::AutoMode | run::RunReason::NextSlot
    );
    match turn.kind == run::RunKind::AutoMode && by_itself {
        true => builder.state.space.auto_mode_delay_ms,
        false => 0,
    }
}

/// Handles auto mode being switched off: cancels a queued auto mode run and its round; a running
/// one finishes.
pub fn disabled(builder: &mut PlanBuilder) {
    let waits = builder
        .queued
        .as_ref()
        .is_some_and(|it| it.kind == run::RunKind::AutoMode);
    if waits {
        builder.cancel_queued(run::RunCancelReason::AutoModeOff);
        builder.end_round(round::RoundStatus::Canceled, "auto_mode_off");
    }
}

fn max_turns(builder: &PlanBuilder) -> i64 {
    builder.state.space.auto_mode_max_turns
}
