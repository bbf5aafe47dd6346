//! Plans the turns of people in spaces whose people take turns: a round waits at a person's slot for their
//! message, passes over those who are not there, and is kept when others post meanwhile.
//!
//! Only a public round that a person's message started has slots of people: in auto mode characters answer
//! each other, and a whisper cannot be such a turn.
//!
//! **Invariant:** a round in the state `waiting` has no run, and its cursor is at a pending slot of a person
//! who may take the turn.

use base::ids::{MembershipId, RoundId};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::rounds::{round, slot};
use crate::runs::scheduling::command::CommandError;
use crate::runs::scheduling::plan::{MessageRef, PlanChange, RoundChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::store::run;
use crate::spaces::membership;
use crate::spaces::membership::MembershipKind;
use crate::spaces::permissions::SkipRight;

const MS_PER_SECOND: i64 = 1_000;

impl PlanBuilder<'_> {
    /// Returns whether people get slots in a round for this audience.
    pub fn people_take_turns(&self, audience: Option<&Audience>) -> bool {
        self.state.space.humans_take_turns && audience.is_none()
    }

    /// Returns whether a member may take a turn in the active round.
    pub fn can_take_turn(&self, member: &membership::Model) -> bool {
        member.can_take_turn() && self.round_with_people().is_some()
    }

    /// Returns whether the slot at the cursor is the turn of a person.
    pub fn is_turn_of_person(&self) -> bool {
        self.current_person().is_some()
    }

    /// Returns whether the active round waits for a person.
    pub fn is_waiting(&self) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|it| it.state == round::RoundState::Waiting)
    }

    /// Returns the person for whom the active round waits.
    pub fn awaited_person(&self) -> Option<MembershipId> {
        self.current_person().filter(|_| self.is_waiting())
    }

    /// Waits for the person at the cursor, for as long as the space allows.
    pub fn wait_for_person(&mut self) {
        let timeout_ms = self.state.space.human_turn_timeout_s * MS_PER_SECOND;
        self.change_round(RoundChange::Wait {
            since: self.now,
            deadline: (timeout_ms > 0).then(|| self.now.plus_ms(timeout_ms)),
        });
    }

    /// Returns the active round if people have slots in it.
    fn round_with_people(&self) -> Option<&round::Model> {
        let round = self.round.as_ref()?;
        let has_people = round.kind == round::RoundKind::UserTurn
            && self.people_take_turns(round.audience.as_ref());
        has_people.then_some(round)
    }

    /// Returns the person at the cursor if the slot is their turn. A forced slot is not: the copilot of
    /// that person speaks.
    fn current_person(&self) -> Option<MembershipId> {
        let slot = self.round.as_ref()?.current_slot()?;
        let member = self.member(slot.space_membership_id?)?;
        let is_turn = member.kind == MembershipKind::Human && !slot.forced;
        (is_turn && slot.status == slot::SlotStatus::Pending).then_some(member.id)
    }
}

/// Keeps the active round after a post was appended: a post of the person at the cursor is their turn,
/// any other one leaves the round as it is. `has_discarded_turn`: the post has ended the run of the current
/// slot, which is queued again. Returns `false` if the post supersedes the round.
pub fn keep_round(
    builder: &mut PlanBuilder,
    author: MembershipId,
    has_discarded_turn: bool,
) -> bool {
    let Some(round) = builder.round_with_people() else {
        return false;
    };
    let is_generating = round.state == round::RoundState::Generating;
    let is_own_turn = builder.current_person() == Some(author);
    let next = NextSlot {
        expected_tail: Some(MessageRef::Appended),
        ..next_slot()
    };
    // A whisper is no turn.
    if is_own_turn && builder.audience.is_none() {
        builder.answer_appended();
        builder.advance(slot::SlotStatus::Spoken, None, next);
    } else if has_discarded_turn && is_generating {
        builder.start_current_or_next_slot(next);
        // Without another slot the round is over, and the post starts a new one.
        return builder.round.is_some();
    } else if let Some(run) = builder.queued.clone()
        && run.debug.expected_last_message_id.is_some()
    {
        let tail = Some(MessageRef::Appended);
        builder.push(PlanChange::ExpectTail { run, tail });
    }
    true
}

/// Skips the turn of a person whose time is over.
///
/// # Errors
/// Returns `StaleRound` when the round waits for no one, or until later: another step was faster.
pub fn time_out(builder: &mut PlanBuilder, id: RoundId) -> Result<(), CommandError> {
    let round = builder.round.as_ref().filter(|it| it.id == id);
    let deadline = round.and_then(|it| it.deadline_at);
    if deadline.is_none_or(|it| it > builder.now) {
        return Err(CommandError::StaleRound);
    }
    builder.advance(slot::SlotStatus::Skipped, Some("turn_timeout"), next_slot());
    Ok(())
}

/// Passes over the person for whom the round waits, if they can no longer take the turn. The membership of
/// a guest who never wrote is gone.
pub fn pass_over_unavailable(builder: &mut PlanBuilder) {
    let round = builder.round.as_ref().filter(|_| builder.is_waiting());
    let Some(slot) = round.and_then(|it| it.current_slot()) else {
        return;
    };
    if !builder.can_fill_slot(slot.space_membership_id, slot.forced) {
        let reason = Some("not_schedulable");
        builder.advance(slot::SlotStatus::Skipped, reason, next_slot());
    }
}

/// Returns whether a person may skip the current turn. Everyone may skip their own.
pub fn may_skip(builder: &PlanBuilder, viewer: Viewer, right: SkipRight) -> bool {
    let person = builder.current_person();
    match right {
        SkipRight::Everyone => true,
        _ if person.is_some_and(|it| viewer == Viewer::Member(it)) => true,
        SkipRight::Characters => person.is_none(),
        SkipRight::OwnTurn => false,
    }
}

fn next_slot() -> NextSlot {
    NextSlot::new(run::RunKind::UserTurn, run::RunReason::NextSlot)
}
