//! A plan in the making: the changes so far, and the conversation as it will be after them.

use crate::clock::Timestamp;
use crate::ids::{MembershipId, RoundId, RunId};
use crate::rounds::{round, slot};
use crate::runs::plan::{EnqueueRun, MessageRef, Plan, PlanChange};
use crate::runs::state::{ActiveRound, ScheduleState};
use crate::runs::{auto_mode, new_run, plan, queue, run};
use crate::spaces::membership;
use crate::spaces::space::ReplyOrder;
use crate::speakers::selection::SpeakerChoice;

/// What a plan takes from chance: made by the caller, so that planning itself is pure.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedIds {
    /// Of the dice; kept in the round.
    pub seed: i64,
    pub round: RoundId,
    pub run: RunId,
}

/// See the module. Its fields follow the changes.
pub struct PlanBuilder<'a> {
    pub state: &'a ScheduleState,
    pub ids: GeneratedIds,
    pub now: Timestamp,
    pub round: Option<ActiveRound>,
    pub queued: Option<run::Model>,
    pub running: Option<run::Model>,
    /// How often auto mode has spoken since a person did.
    pub auto_mode_turns: i64,
    /// What a round that this plan opens answers.
    trigger: Option<MessageRef>,
    plan: Plan,
}

impl<'a> PlanBuilder<'a> {
    /// Nothing is changed yet.
    pub fn new(state: &'a ScheduleState, ids: GeneratedIds, now: Timestamp) -> Self {
        Self {
            round: state.round.clone(),
            queued: state.queued.clone(),
            running: state.running.clone(),
            auto_mode_turns: state.conversation.auto_mode_turns,
            trigger: None,
            plan: Plan::default(),
            state: state,
            ids: ids,
            now,
        }
    }

    /// The finished plan.
    pub fn into_plan(self) -> Plan {
        self.plan
    }

    /// Adds a change that no later decision depends on.
    pub fn push(&mut self, change: PlanChange) {
        self.plan.changes.push(change);
    }

    /// Whether this plan ends a run well.
    pub fn has_succeeded(&self, id: RunId) -> bool {
        self.plan.changes.iter().any(
            |it| matches!(it, PlanChange::Finish { run, end: queue::RunEnd::Succeeded } if run.id == id),
        )
    }

    /// A seat of this space, removed or not.
    pub fn member(&self, id: MembershipId) -> Option<&'a membership::Model> {
        self.state.member(id)
    }

    /// Ends the active round, if there is one.
    pub fn end_round(&mut self, status: round::RoundStatus, reason: &'static str) {
        if let Some(round) = self.round.take() {
            self.push(PlanChange::EndRound {
                id: round.row.id,
                status,
                reason,
            });
        }
    }

    /// Opens a round of these speakers. Ends the one that is there first.
    pub fn new_round(
        &mut self,
        kind: round::RoundKind,
        slots: Vec<SpeakerChoice>,
        trigger: MessageRef,
    ) {
        let (id, seed) = (self.ids.round, self.ids.seed);
        self.trigger = Some(trigger);
        let row = round::new_model(id, self.state.conversation.id, kind, seed, self.now);
        self.round = Some(ActiveRound {
            row,
            slots: plan::new_slots(id, 0, slots.clone()),
        });
        self.push(PlanChange::NewRound {
            id,
            kind,
            trigger,
            seed,
            slots,
        });
    }

    /// The slots of the active round from a position on give way to these.
    pub fn replace_slots(&mut self, from: i64, choices: Vec<SpeakerChoice>) {
        let Some(round) = self.round.as_mut() else {
            return;
        };
        let id = round.row.id;
        round.slots.retain(|it| it.position < from);
        round
            .slots
            .extend(plan::new_slots(id, from, choices.clone()));
        self.push(PlanChange::ReplaceSlots {
            round: id,
            from,
            slots: choices,
        });
    }

    /// Puts the active round into a state.
    pub fn set_round_state(&mut self, state: round::RoundState) {
        let Some(round) = self.round.as_mut() else {
            return;
        };
        if round.row.state == state {
            return;
        }
        round.row.state = state;
        let (id, cursor) = (round.row.id, round.row.cursor);
        self.push(PlanChange::MoveRound { id, state, cursor });
    }

    /// Is this run the turn of the active round's current slot?
    pub fn is_at_cursor(&self, run: &run::Model) -> bool {
        self.round.as_ref().is_some_and(|it| {
            run.round_id == Some(it.row.id) && run.slot_position == Some(it.row.cursor)
        })
    }

    /// The current slot is done with; the cursor moves on to the next one who can be scheduled,
    /// and that one is queued unless the round rests. Nobody left: the round is finished.
    pub fn advance(
        &mut self,
        status: slot::SlotStatus,
        skip_reason: Option<&'static str>,
        turn: NextSlot,
    ) {
        let Some(round) = self.round.clone() else {
            return;
        };
        let id = round.row.id;
        self.push(PlanChange::MarkSlot {
            round: id,
            position: round.row.cursor,
            status,
            skip_reason,
        });
        if self.state.space.reply_order == ReplyOrder::Manual {
            return self.end_round(round::RoundStatus::Finished, "reply_order_manual");
        }
        if turn.kind == run::RunKind::AutoMode && !self.state.space.auto_mode_enabled {
            return self.end_round(round::RoundStatus::Finished, "auto_mode_off");
        }
        let (state, cursor) = (round.row.state, round.row.cursor);
        let rest: Vec<&slot::Model> = round
            .slots
            .iter()
            .filter(|it| it.position > cursor)
            .collect();
        for slot in &rest {
            if !self.can_fill_slot(slot.space_membership_id, slot.forced) {
                self.push(PlanChange::MarkSlot {
                    round: id,
                    position: slot.position,
                    status: slot::SlotStatus::Skipped,
                    skip_reason: Some("not_schedulable"),
                });
                continue;
            }
            return self.move_cursor(slot.position, turn);
        }
        // Whoever was left out just now stands before the cursor, also of a round that is over.
        if let Some(last) = rest.last() {
            let cursor = last.position;
            self.push(PlanChange::MoveRound { id, state, cursor });
        }
        self.end_round(round::RoundStatus::Finished, "everybody_spoke");
    }

    /// May this member speak in a slot? A forced one may although it is muted.
    pub fn can_fill_slot(&self, speaker: MembershipId, is_forced: bool) -> bool {
        let here = self.state.conversation.id;
        self.member(speaker)
            .is_some_and(|member| member.can_be_scheduled() || is_forced && member.can_speak(here))
    }

    /// The cursor stands on `position`; its slot is queued unless the round rests.
    fn move_cursor(&mut self, position: i64, turn: NextSlot) {
        let Some(round) = self.round.as_mut() else {
            return;
        };
        round.row.cursor = position;
        let (id, state) = (round.row.id, round.row.state);
        self.push(PlanChange::MoveRound {
            id,
            state,
            cursor: position,
        });
        if state == round::RoundState::Generating {
            self.queue_current_slot(turn);
        }
    }

    /// Queues the slot at the cursor; if that is a turn of auto mode and all of them are spent, the
    /// round is finished.
    pub fn queue_current_slot(&mut self, turn: NextSlot) {
        let Some(round) = self.round.as_ref() else {
            return;
        };
        let Some(slot) = round.current_slot().cloned() else {
            return;
        };
        let trigger = round.row.trigger_message_id.map(MessageRef::Message);
        let trigger = self.trigger.or(trigger);
        let is_auto = turn.kind == run::RunKind::AutoMode;
        if is_auto && !auto_mode::count_turn(self, &slot, &turn) {
            return self.end_round(round::RoundStatus::Finished, "auto_mode_budget");
        }
        let kind = if slot.forced {
            run::RunKind::ForceTalk
        } else {
            turn.kind
        };
        let mut run = self.new_run(slot.space_membership_id, kind, turn.reason);
        run.round_id = Some(slot.round_id);
        run.slot_position = Some(slot.position);
        run.attempt = turn.attempt;
        let delay_ms = auto_mode::delay_ms(self, &turn);
        run.run_after = (delay_ms > 0).then(|| self.now.plus_ms(delay_ms));
        run.debug.chosen_because = Some(slot.chosen_because);
        // Only the first slot of a person's round may speak whatever has been said meanwhile.
        let tail = self
            .state
            .tail
            .as_ref()
            .map(|it| MessageRef::Message(it.id));
        let tail = tail.filter(|_| is_auto || slot.position > 0);
        self.enqueue(EnqueueRun {
            run,
            trigger,
            expected_tail: turn.expected_tail.or(tail),
        });
    }

    /// A run of the next id, due now.
    pub fn new_run(
        &self,
        speaker: MembershipId,
        kind: run::RunKind,
        reason: run::RunReason,
    ) -> run::Model {
        new_run::new_model(
            self.ids.run,
            (self.state.space.id, self.state.conversation.id),
            speaker,
            kind,
            reason,
            self.now,
        )
    }

    /// Puts a run into the queued place, over the one that is there.
    pub fn enqueue(&mut self, enqueue: EnqueueRun) {
        self.queued = Some(enqueue.run.clone());
        self.plan.enqueue = Some(enqueue);
    }

    /// Takes the queued run out of the queue, when no other plan needs its place.
    pub fn cancel_queued(&mut self, reason: run::RunCancelReason) {
        if let Some(mut run) = self.queued.take() {
            run.canceled_because = Some(reason);
            self.push(PlanChange::CancelQueued(run));
        }
    }

    /// Ends the running run at once and drops its text.
    pub fn cancel_running(&mut self, reason: run::RunCancelReason) {
        if let Some(mut run) = self.running.take() {
            run.canceled_because = Some(reason);
            self.push(PlanChange::Finish {
                run,
                end: queue::RunEnd::Canceled,
            });
        }
    }
}

/// How the next slot's run comes about.
#[derive(Clone, Copy, Debug)]
pub struct NextSlot {
    pub kind: run::RunKind,
    pub reason: run::RunReason,
    pub attempt: i64,
    pub expected_tail: Option<MessageRef>,
}

impl NextSlot {
    /// The first attempt of a turn, whatever the tail.
    pub fn new(kind: run::RunKind, reason: run::RunReason) -> Self {
        Self {
            kind,
            reason,
            attempt: 1,
            expected_tail: None,
        }
    }

    /// The turn after `run`, which makes sense only while `tail` is the tail.
    pub fn after_run(run: &run::Model, tail: Option<MessageRef>) -> Self {
        Self {
            expected_tail: tail,
            ..Self::new(run.kind_of_next_slot(), run::RunReason::NextSlot)
        }
    }
}
