//! Tests that the checks of a plan detect broken plans.

use base::clock::Timestamp;
use base::ids::RoundId;

use super::{assert_plan_valid, assert_speaker_of_slot};
use crate::rounds::round;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::plan::{MessageRef, NewRound, Plan, PlanChange};
use crate::runs::scheduling::planner::{fixture, fixture_director};

/// Plans the end of Ada's reply, changes the plan, and asserts its invariants.
fn check_changed_reply_plan(change: impl FnOnce(&mut Plan)) {
    let mut fixture = fixture::queued();
    fixture.claim_due();
    let before = fixture.state.clone();
    let (run, lease) = fixture.running();
    let end = fixture::success("Hello.");
    let command = Command::RunEnded {
        run,
        lease,
        end: Box::new(end),
    };
    let (mut plan, _) = fixture.execute(&command).expect("the lease is valid");
    change(&mut plan);
    assert_plan_valid(&before, &command, &plan, &fixture);
}

#[test]
fn a_valid_plan_breaks_no_invariant() {
    check_changed_reply_plan(|_| {});
}

#[test]
#[should_panic = "the wait"]
fn a_needless_delay_is_detected() {
    check_changed_reply_plan(|it| {
        let enqueue = it.enqueue.as_mut().expect("Bob is next");
        enqueue.run.run_after = Some(Timestamp(9_000_000));
    });
}

#[test]
#[should_panic = "no expected_tail"]
fn a_later_slot_without_its_tail_is_detected() {
    check_changed_reply_plan(|it| it.enqueue.as_mut().expect("Bob is next").expected_tail = None);
}

#[test]
#[should_panic = "a round needs a speaker"]
fn an_empty_round_is_detected() {
    check_changed_reply_plan(|it| {
        it.changes.push(PlanChange::StartRound(NewRound {
            id: RoundId::new(),
            kind: round::RoundKind::UserTurn,
            trigger: MessageRef::Appended,
            seed: 1,
            audience: None,
            slots: Vec::new(),
        }));
    });
}

#[test]
#[should_panic = "a run and its slot have different speakers"]
fn a_choice_that_leaves_its_slot_without_a_speaker_is_detected() {
    let mut fixture = fixture_director::choosing();
    let choice = fixture_director::answer(&[fixture::BOB], "Bob was asked.");
    fixture.choose(choice).expect("the lease is valid");
    let mut round = fixture.state.round.clone().expect("a round");

    round.slots.0[0].space_membership_id = None;

    assert_speaker_of_slot(&fixture.state, &round);
}
