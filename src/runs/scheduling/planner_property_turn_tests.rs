//! Asserts the invariants of active rounds, and what the turns of people change: which of them get slots, and
//! that other posts leave their round as it is.

use base::ids::MembershipId;

use crate::rounds::round::{RoundKind, RoundState};
use crate::rounds::{round, slot};
use crate::runs::scheduling::plan::{NewRound, Plan, PlanChange};
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::spaces::membership;

/// Asserts that the active round progresses, and that its cursor is where its slots are pending.
pub fn assert_round_valid(state: &ScheduleState) {
    let Some(round) = &state.round else {
        return;
    };
    assert_progresses(state, round);
    for it in &round.slots.0 {
        let is_pending = it.status == slot::SlotStatus::Pending;
        assert_eq!(it.position >= round.cursor, is_pending, "I4: {round:?}");
    }
}

/// A generating round has a run of its current slot; a waiting, paused or failed one has none queued.
fn assert_progresses(state: &ScheduleState, round: &round::Model) {
    let is_turn = |run: &run::Model| {
        run.round_id == Some(round.id) && run.slot_position == Some(round.cursor)
    };
    let is_queued = state.queued.as_ref().is_some_and(is_turn);
    let is_running = state.running.as_ref().is_some_and(is_turn);
    let waits = round.state == RoundState::Waiting;
    assert_eq!(round.turn_started_at.is_some(), waits, "S16: {round:?}");
    assert!(round.deadline_at.is_none() || waits, "S16: {round:?}");
    match round.state {
        RoundState::Generating => {
            assert!(is_queued || is_running, "I2: no run continues {round:?}");
        }
        RoundState::Waiting => {
            assert!(!is_queued && !is_running, "I2: a waiting round has a run");
            let slot = round.current_slot().expect("the slot exists");
            let member = slot.space_membership_id.and_then(|it| state.member(it));
            assert!(
                member.is_some_and(is_person) && !slot.forced,
                "I2: {round:?}"
            );
        }
        RoundState::Paused | RoundState::Failed => {
            assert!(!is_queued, "I3: a paused or failed round has a queued run");
        }
    }
}

/// Asserts that the person for whom a round waits can take the turn.
pub fn assert_can_take_turn(state: &ScheduleState) {
    let Some(round) = &state.round else {
        return;
    };
    if round.state == RoundState::Waiting {
        let slot = round.current_slot().expect("the slot exists");
        let member = slot.space_membership_id.and_then(|it| state.member(it));
        assert!(state.space.humans_take_turns && member.is_some_and(|it| it.can_take_turn()));
    }
}

/// Returns whether a member of a new round is a person who takes a turn in it.
pub fn takes_turn(
    new: &NewRound,
    member: &membership::Model,
    plan: &Plan,
    fixture: &PlannerFixture,
) -> bool {
    let mut changes = plan.changes.iter();
    let is_author =
        changes.any(|it| matches!(it, PlanChange::Append(it) if it.author == member.id));
    fixture.state.space.humans_take_turns
        && new.kind == RoundKind::UserTurn
        && new.audience.is_none()
        && member.can_take_turn()
        && !is_author
}

/// Returns whether a post leaves the active round as it is, or is a turn in it.
pub fn keeps_round(before: &ScheduleState, fixture: &PlannerFixture) -> bool {
    let round = before.round.as_ref();
    fixture.state.space.humans_take_turns
        && round.is_some_and(|it| it.kind == RoundKind::UserTurn && it.audience.is_none())
}

/// Asserts that a post fills the slot of its author and advances the round, or changes no slot.
pub fn assert_round_kept(before: &ScheduleState, author: MembershipId, fixture: &PlannerFixture) {
    let was = before.round.as_ref().expect("a round was active");
    let post = fixture.messages.last().expect("just posted");
    let slot = was.current_slot().expect("the slot exists");
    let after = fixture.state.round.as_ref();
    let is_turn =
        slot.space_membership_id == Some(author) && !slot.forced && post.audience.is_none();
    let speaker = slot.space_membership_id.and_then(|it| before.member(it));
    if before.running.is_some()
        && fixture.state.running.is_none()
        && !speaker.is_some_and(|it| it.can_be_scheduled())
    {
        return; // The restarted slot was skipped.
    }
    if !is_turn {
        let after = after.expect("the round is still active");
        assert_eq!((after.id, after.cursor), (was.id, was.cursor));
        assert_eq!(after.slots, was.slots, "another post changed the round");
        assert_eq!(after.state, was.state);
    } else if let Some(after) = after {
        assert_eq!(after.id, was.id, "a turn starts no round");
        let spoken = after.slots.at(slot.position).expect("the slot exists");
        assert_eq!(spoken.status, slot::SlotStatus::Spoken);
        assert_eq!(spoken.message_id, Some(post.id));
    }
    if let Some(run) = &fixture.state.queued
        && run.debug.expected_last_message_id.is_some()
    {
        assert_eq!(run.debug.expected_last_message_id, Some(post.id));
    }
}

fn is_person(member: &membership::Model) -> bool {
    member.kind == membership::MembershipKind::Human
}
