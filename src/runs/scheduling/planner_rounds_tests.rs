//! Tests of rounds with several speakers: later slots expect the current tail, a slot whose node
//! died gets one more attempt, and the invariants hold when a round is over.

use base::ids::{MembershipId, MessageId};

use crate::rounds::round::RoundState;
use crate::rounds::slot;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::planner::fixture::{BOB, PlannerFixture, STOP, failure, success};
use crate::runs::store::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};

const CID: MembershipId = MembershipId(4);

/// Ada has replied to Eve, and Bob's turn is queued, in a round of Ada, Bob and Cid.
fn queued() -> PlannerFixture {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    stage.state.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.post_as_eve("Hi.").unwrap();
    stage.claim_due();
    stage.end_run(success("I am Ada."));
    stage
}

/// Bob's turn is running.
fn running() -> PlannerFixture {
    let mut stage = queued();
    stage.claim_due();
    stage
}

fn expected_tail(stage: &PlannerFixture) -> Option<MessageId> {
    let queued = stage.state.queued.as_ref().expect("a run is queued");
    queued.debug.expected_last_message_id
}

#[test]
fn slots_after_the_first_expect_the_present_tail() {
    let tail = Some(MessageId(2));
    let mut skipped = running();
    skipped.run_command(&Command::Skip).unwrap();
    let mut muted = running();
    muted.member_mut(BOB).participation = Participation::Muted;
    muted.run_command(&Command::ApplyChanges).unwrap();
    let mut resumed = running();
    resumed.run_command(&STOP).unwrap();
    resumed.run_command(&Command::Resume).unwrap();
    let mut retried = running();
    retried.end_run(failure());
    retried.run_command(&Command::Retry).unwrap();
    let mut recovered = running();
    recovered.expire_lease();

    for stage in [queued(), skipped, muted, resumed, retried, recovered] {
        assert_eq!(expected_tail(&stage), tail);
    }
    let mut first = PlannerFixture::with_characters(&["Ada"]);
    first.post_as_eve("Hi.").unwrap();
    assert_eq!(expected_tail(&first), None, "a burst moves the tail");
}

#[test]
fn a_message_without_repliers_moves_the_queued_turn_to_the_next_slot() {
    let mut stage = queued();
    stage.state.space.reply_order = ReplyOrder::Manual;
    stage.post_as_eve("Hush.").unwrap();
    stage.state.space.reply_order = ReplyOrder::List;

    let plan = stage.claim_due();

    let expected = [
        "skip Bob: expected_last_message_mismatch",
        "slot 1 skipped: expected_last_message_mismatch",
        "round generating at 2",
        "queue Cid: user_turn, next_slot",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        stage.claim_due(),
        ["claim Cid"],
        "it expects the present tail"
    );
}

#[test]
fn a_slot_whose_node_dies_gets_one_more_attempt_and_then_fails_in_place() {
    let mut stage = running();

    let first = stage.expire_lease();
    stage.claim_due();
    let second = stage.expire_lease();

    let expected = [
        "expire Bob: failed stale_running_run",
        "queue Bob: user_turn, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    let expected = ["expire Bob: failed stale_running_run", "round failed at 1"];
    assert_eq!(second, expected);
    let plan = stage.run_command(&Command::Skip).unwrap();
    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn a_recovered_speaker_muted_meanwhile_is_skipped_at_the_claim() {
    let mut stage = running();
    stage.expire_lease();
    stage.member_mut(BOB).participation = Participation::Muted;

    let plan = stage.claim_due();

    assert_eq!(plan[0], "skip Bob: speaker_unavailable");
    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn skipped_slots_of_a_finished_round_are_before_its_cursor() {
    let mut stage = running();
    for seat in [BOB, CID] {
        stage.member_mut(seat).participation = Participation::Muted;
    }

    let plan = stage.run_command(&Command::ApplyChanges).unwrap();

    let expected = [
        "finish Bob: canceled",
        "slot 1 skipped: not_schedulable",
        "slot 2 skipped: not_schedulable",
        "round generating at 2",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_speaker_unmuted_before_its_turn_speaks() {
    let mut stage = running();
    stage.member_mut(CID).participation = Participation::Muted;
    stage.run_command(&Command::ApplyChanges).unwrap();
    stage.member_mut(CID).participation = Participation::Active;

    let plan = stage.end_run(success("I am Bob."));

    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn a_paused_round_resumes_at_the_slot_to_which_it_was_skipped() {
    let mut stage = queued();
    stage.run_command(&Command::Pause).unwrap();

    stage.run_command(&Command::Skip).unwrap();
    let round = stage.state.round.clone().unwrap();
    let resumed = stage.run_command(&Command::Resume).unwrap();

    assert_eq!((round.row.state, round.row.cursor), (RoundState::Paused, 2));
    assert_eq!(round.slots[1].status, slot::SlotStatus::Skipped);
    assert_eq!(resumed.last().unwrap(), "queue Cid: user_turn, resume");
}

#[test]
fn a_stop_of_a_failed_round_leaves_it_failed_and_a_message_opens_a_new_one() {
    let mut stage = running();
    stage.end_run(failure());

    let stopped = stage.run_command(&STOP).unwrap();
    let state = stage.state.round.as_ref().unwrap().row.state;
    let plan = stage.post_as_eve("Once more.").unwrap();

    assert!(stopped.is_empty());
    assert_eq!(state, RoundState::Failed);
    assert_eq!(plan[1], "round superseded: user_message");
    assert_eq!(plan[2], "round of Ada, Bob, Cid");
}

#[test]
fn a_canceled_run_rests_its_round_in_its_place() {
    let mut stage = running();
    let run = stage.running().0;

    let plan = stage.run_command(&Command::CancelRun { run }).unwrap();

    assert_eq!(plan, ["finish Bob: canceled", "round paused at 1"]);
    let statuses: Vec<_> = stage.ended.iter().map(|it| it.status).collect();
    assert_eq!(
        statuses,
        [run::RunStatus::Succeeded, run::RunStatus::Canceled]
    );
    let retried = stage.run_command(&Command::Retry).unwrap();
    assert_eq!(retried[1], "queue Bob: user_turn, retry");
    assert_eq!(stage.state.queued.unwrap().speaker_space_membership_id, BOB);
}
