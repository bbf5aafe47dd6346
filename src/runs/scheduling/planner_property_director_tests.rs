//! Asserts that a run and its slot have the same speaker, and what a choice of the director changes.

use crate::rounds::round;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::director::choice::MAX_SPEAKERS;
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::runs::store::run::{RunKind, RunStatus};
use crate::spaces::membership::MembershipKind;
use crate::spaces::space::RepliesPerTurn;

/// Asserts that the run of the current slot has the speaker of the slot, or both have none.
pub fn assert_speaker_of_slot(state: &ScheduleState, round: &round::Model) {
    let Some(slot) = round.current_slot() else {
        return;
    };
    let is_turn =
        |it: &&run::Model| it.round_id == Some(round.id) && it.slot_position == Some(round.cursor);
    let runs = [&state.queued, &state.running].into_iter().flatten();
    for run in runs.filter(is_turn) {
        let of_run = run.speaker_space_membership_id;
        assert_eq!(
            of_run, slot.space_membership_id,
            "a run and its slot have different speakers: {run:?} {round:?}"
        );
    }
}

/// Asserts that a choice gives the running run a speaker that may speak, or ends it, and changes neither
/// a message nor another run; and that no run without a speaker succeeds.
pub fn assert_choice(before: &ScheduleState, command: &Command, fixture: &PlannerFixture) {
    let unspoken = fixture
        .ended
        .iter()
        .find(|it| it.status == RunStatus::Succeeded && it.speaker_space_membership_id.is_none());
    assert!(unspoken.is_none(), "{unspoken:?}");
    let Command::SpeakerChosen { .. } = command else {
        return;
    };
    let was = before.running.as_ref().expect("a run was running");
    assert!(was.speaker_space_membership_id.is_none(), "chosen twice");
    assert_eq!(
        before.conversation.last_seq,
        fixture.state.conversation.last_seq
    );
    let Some(run) = &fixture.state.running else {
        let ended = fixture.ended.last().expect("the run has ended");
        assert_eq!((ended.id, ended.status), (was.id, RunStatus::Canceled));
        return;
    };
    assert_eq!(before.queued, fixture.state.queued);
    let speaker = run.speaker_space_membership_id.expect("a speaker");
    let member = fixture.state.member(speaker).expect("a member");
    assert!(member.kind == MembershipKind::Character && member.can_be_scheduled());
    let tail_author = before.tail.as_ref().map(|it| it.space_membership_id);
    let answers_itself = run.kind == RunKind::AutoMode && tail_author == Some(speaker);
    assert!(fixture.state.space.allow_self_responses || !answers_itself);
    let because = run.debug.chosen_because.as_deref().unwrap_or_default();
    assert!(because.starts_with("director"), "{because}");
    let n_slots = |it: &ScheduleState| it.round.as_ref().map_or(0, |it| it.slots.0.len());
    let n_more = n_slots(&fixture.state) - n_slots(before);
    let several = fixture.state.space.replies_per_turn == RepliesPerTurn::Activated;
    assert!(n_more < MAX_SPEAKERS && (several || n_more == 0));
}
