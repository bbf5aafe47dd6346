//! Auto mode: AI answers AI, with a pause before each turn, until the turns are spent that a human
//! message gives it.
//!
//! **Invariant:** a turn is counted in the plan that queues it, for the first time since the last
//! human message; trying the same turn again (its node died, a person pressed Retry or Resume) does
//! not count. So no crash and no second node makes it speak more often.

use crate::conversations::conversation;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::choosing;
use crate::runs::choosing::Said;
use crate::runs::draft::Draft;
use crate::runs::draft::Turn;
use crate::runs::plan::Change;
use crate::runs::plan::Reference;
use crate::runs::run;
use crate::spaces::membership;
use crate::spaces::space;

/// How many turns are left until a person has to speak; `None` while auto mode is off.
pub fn turns_left(conversation: &conversation::Model, space: &space::Model) -> Option<i64> {
    let left = space.auto_mode_max_turns - conversation.auto_mode_turns;
    space.auto_mode_enabled.then_some(left.max(0))
}

/// A character has spoken, and nobody is left of its round: another one answers, if auto mode is on
/// and has turns left. With `rests` the answer is planned and waits for a person.
pub fn follow_up(d: &mut Draft, said: &Said, rests: bool) {
    let by_ai = d
        .member(said.author)
        .is_some_and(|it| it.kind == membership::MembershipKind::Character);
    if !by_ai || !d.s.space.auto_mode_enabled || d.auto_mode_turns >= most_turns(d) {
        return;
    }
    let choices = choosing::after_ai(d, said);
    if choices.is_empty() {
        return; // it rests
    }
    d.new_round(round::RoundKind::AutoMode, choices, Reference::Appended);
    if rests {
        return d.set_round_state(round::RoundState::Paused);
    }
    d.queue_current_slot(Turn {
        expected_tail: Some(Reference::Appended),
        ..Turn::new(run::RunKind::AutoMode, run::RunReason::AutoMode)
    });
}

/// Takes a turn for this slot; says whether there was one to take.
pub fn takes_a_turn(d: &mut Draft, slot: &slot::Model, turn: &Turn) -> bool {
    let had_it = d.s.newest_run.as_ref().is_some_and(|it| {
        it.round_id == Some(slot.round_id) && it.slot_position == Some(slot.position)
    });
    // Where a person has spoken since, the count began anew without it.
    let is_counted = d.auto_mode_turns > 0 && (turn.attempt > 1 || had_it);
    if is_counted {
        return true;
    }
    if d.auto_mode_turns >= most_turns(d) {
        return false;
    }
    d.auto_mode_turns += 1;
    d.push(Change::AutoModeTurns(d.auto_mode_turns));
    true
}

/// A person has spoken: it may answer anew.
pub fn begins_anew(d: &mut Draft) {
    if d.auto_mode_turns > 0 {
        d.auto_mode_turns = 0;
        d.push(Change::AutoModeTurns(0));
    }
}

/// The pause before a turn that nobody pressed for.
pub fn delay_ms(d: &Draft, turn: &Turn) -> i64 {
    let by_itself = matches!(
        turn.reason,
        run::RunReason::AutoMode | run::RunReason::NextSlot
    );
    match turn.kind == run::RunKind::AutoMode && by_itself {
        true => d.s.space.auto_mode_delay_ms,
        false => 0,
    }
}

/// Switched off: a turn that waits goes, and its round with it; a running one finishes.
pub fn switched_off(d: &mut Draft) {
    let waits = d
        .queued
        .as_ref()
        .is_some_and(|it| it.kind == run::RunKind::AutoMode);
    if waits {
        d.cancel_queued(run::RunCancelReason::AutoModeOff);
        d.end_round(round::RoundStatus::Canceled, "auto_mode_off");
    }
}

fn most_turns(d: &Draft) -> i64 {
    d.s.space.auto_mode_max_turns
}
