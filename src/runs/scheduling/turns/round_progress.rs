//! Advances the active round of a plan: completes its current slot and starts the next one.
//!
//! **Invariant:** an auto mode turn is counted in the plan that queues it for the first time since
//! the last human message; a repetition of the same turn (recovery, Retry, Resume) does not count.
//! So neither a crash nor a second node adds turns.

use base::ids::{MembershipId, RoundId};

use crate::rounds::{round, slot};
use crate::runs::scheduling::plan::{EnqueueRun, MessageRef, PlanChange, RoundChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::store::run;
use crate::spaces::space::ReplyOrder;

impl PlanBuilder<'_> {
    /// Completes the current slot, moves the cursor to the next slot whose speaker can be
    /// scheduled, and starts it unless the round is paused or failed. Without such a slot the round
    /// is finished.
    pub fn advance(
        &mut self,
        status: slot::SlotStatus,
        skip_reason: Option<&'static str>,
        turn: NextSlot,
    ) {
        let Some(round) = self.round.clone() else {
            return;
        };
        self.change_round(RoundChange::MarkSlot {
            position: round.cursor,
            status,
            skip_reason,
        });
        if self.state.space.reply_order == ReplyOrder::Manual {
            return self.end_round(round::RoundStatus::Finished, "reply_order_manual");
        }
        if turn.kind == run::RunKind::AutoMode && !self.state.space.auto_mode_enabled {
            return self.end_round(round::RoundStatus::Finished, "auto_mode_off");
        }
        let (state, cursor) = (round.state, round.cursor);
        let rest: Vec<&slot::Slot> = round.slots.from(cursor + 1).collect();
        for slot in &rest {
            if !self.can_fill_slot(slot.space_membership_id, slot.forced) {
                self.change_round(RoundChange::MarkSlot {
                    position: slot.position,
                    status: slot::SlotStatus::Skipped,
                    skip_reason: Some("not_schedulable"),
                });
                continue;
            }
            return self.move_cursor(slot.position, turn);
        }
        // Slots that were just skipped must be before the cursor, even when the round is over.
        if let Some(last) = rest.last() {
            let cursor = last.position;
            self.change_round(RoundChange::Move { state, cursor });
        }
        self.end_round(round::RoundStatus::Finished, "everybody_spoke");
    }

    /// Returns whether this member may speak in a slot of the active round. A forced one may although it is
    /// muted. Whether the director has a choice is checked when the slot is claimed.
    pub fn can_fill_slot(&self, speaker: Option<MembershipId>, is_forced: bool) -> bool {
        let conversation = self.state.conversation.id;
        let Some(speaker) = speaker else {
            return true;
        };
        self.member(speaker).is_some_and(|member| {
            member.can_be_scheduled()
                || is_forced && member.can_speak(conversation)
                || self.can_take_turn(member)
        })
    }

    /// Moves the cursor to `position` and starts that slot unless the round is paused or failed.
    fn move_cursor(&mut self, position: i64, turn: NextSlot) {
        let Some(state) = self.round.as_ref().map(|it| it.state) else {
            return;
        };
        self.change_round(RoundChange::Move {
            state,
            cursor: position,
        });
        if matches!(
            state,
            round::RoundState::Generating | round::RoundState::Waiting
        ) {
            self.start_current_slot(turn);
        }
    }

    /// Starts the slot at the cursor, or the next one if that speaker can no longer speak.
    pub fn start_current_or_next_slot(&mut self, turn: NextSlot) {
        let slot = self.round.as_ref().and_then(|it| it.current_slot());
        match slot.is_some_and(|it| self.can_fill_slot(it.space_membership_id, it.forced)) {
            true => self.start_current_slot(turn),
            false => self.advance(slot::SlotStatus::Skipped, Some("not_schedulable"), turn),
        }
    }

    /// Starts the turn of the slot at the cursor: waits for a person, or queues the run of a character.
    pub fn start_current_slot(&mut self, turn: NextSlot) {
        if self.is_turn_of_person() {
            return self.wait_for_person();
        }
        self.set_round_state(round::RoundState::Generating);
        self.queue_current_slot(turn);
    }

    /// Queues the slot at the cursor. Finishes the round instead if that is an auto mode turn and
    /// no auto mode turns are left.
    pub fn queue_current_slot(&mut self, turn: NextSlot) {
        let Some(round) = self.round.as_ref() else {
            return;
        };
        let Some(slot) = round.current_slot().cloned() else {
            return;
        };
        let (round_id, audience) = (round.id, round.audience.clone());
        let trigger = round.trigger_message_id.map(MessageRef::Message);
        let trigger = self.trigger.or(trigger);
        let is_auto = turn.kind == run::RunKind::AutoMode;
        if is_auto && !self.count_auto_mode_turn((round_id, slot.position), &turn) {
            return self.end_round(round::RoundStatus::Finished, "auto_mode_budget");
        }
        let kind = if slot.forced {
            run::RunKind::ForceTalk
        } else {
            turn.kind
        };
        let mut run = self.new_run(slot.space_membership_id, kind, turn.reason);
        run.round_id = Some(round_id);
        run.slot_position = Some(slot.position);
        run.audience = audience;
        run.attempt = turn.attempt;
        let delay_ms = self.delay_ms(&turn);
        run.run_after = (delay_ms > 0).then(|| self.now.plus_ms(delay_ms));
        run.debug.chosen_because = Some(slot.chosen_because);
        // Only the first slot of a user's round may run after any tail.
        let tail = self.tail().filter(|_| is_auto || slot.position > 0);
        self.enqueue(EnqueueRun {
            run,
            trigger,
            expected_tail: turn.expected_tail.or(tail),
        });
    }

    /// Counts an auto mode turn of this slot, given as round and position, unless it was counted before.
    /// Returns `false` if no turn is left.
    fn count_auto_mode_turn(&mut self, (round, position): (RoundId, i64), turn: &NextSlot) -> bool {
        let newest = self.state.facts.newest_run();
        let had_it = newest
            .is_some_and(|it| it.round_id == Some(round) && it.slot_position == Some(position));
        // After a human message the count restarts at zero, so an earlier run of this slot is not
        // included.
        let is_counted = self.auto_mode_turns > 0 && (turn.attempt > 1 || had_it);
        if is_counted {
            return true;
        }
        if !self.has_auto_mode_turns_left() {
            return false;
        }
        self.auto_mode_turns += 1;
        self.push(PlanChange::AutoModeTurns(self.auto_mode_turns));
        true
    }

    /// Returns the delay before a turn that no person requested.
    fn delay_ms(&self, turn: &NextSlot) -> i64 {
        let by_itself = matches!(
            turn.reason,
            run::RunReason::AutoMode | run::RunReason::NextSlot
        );
        match turn.kind == run::RunKind::AutoMode && by_itself {
            true => self.state.space.auto_mode_delay_ms,
            false => 0,
        }
    }
}
