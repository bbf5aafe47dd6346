//! Plans auto mode: starts rounds in which characters answer each other until the turns allowed
//! after a human message are used up, resets the count of turns, and cancels queued turns when auto
//! mode is switched off.

use crate::conversations::conversation;
use crate::rounds::round;
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
    if !by_ai || !builder.state.space.auto_mode_enabled || !builder.has_auto_mode_turns_left() {
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

/// Resets the count of turns after a human message.
pub fn resets_turns(builder: &mut PlanBuilder) {
    if builder.auto_mode_turns > 0 {
        builder.auto_mode_turns = 0;
        builder.push(PlanChange::AutoModeTurns(0));
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
