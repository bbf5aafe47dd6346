//! Tests of rounds with several speakers: later slots expect the current tail, a slot whose node
//! died gets one more attempt, and the invariants hold when a round is over.

use base::ids::{MembershipId, MessageId};

use crate::rounds::round::RoundState;
use crate::rounds::slot;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::planner::fixture::{
    BOB, PlannerFixture, RETRY, SKIP, STOP, failure, success,
};
use crate::runs::store::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

const CID: MembershipId = MembershipId(4);

/// Ada has replied to Eve, and Bob's turn is queued, in a round of Ada, Bob and Cid.
fn queued() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("I am Ada."));
    fixture
}

/// Bob's turn is running.
fn running() -> PlannerFixture {
    let mut fixture = queued();
    fixture.claim_due();
    fixture
}

fn expected_tail(fixture: &PlannerFixture) -> Option<MessageId> {
    let queued = fixture.state.queued.as_ref().expect("a run is queued");
    queued.debug.expected_last_message_id
}

#[test]
fn slots_after_the_first_expect_the_current_tail() {
    let tail = Some(MessageId(2));
    let mut skipped = running();
    skipped.run_command(&SKIP).unwrap();
    let mut muted = running();
    muted.member_mut(BOB).participation = Participation::Muted;
    muted.run_command(&Command::ApplyChanges).unwrap();
    let mut resumed = running();
    resumed.run_command(&STOP).unwrap();
    resumed.run_command(&Command::Resume).unwrap();
    let mut retried = running();
    retried.end_run(failure());
    retried.run_command(&RETRY).unwrap();
    let mut recovered = running();
    recovered.expire_lease();

    for fixture in [queued(), skipped, muted, resumed, retried, recovered] {
        assert_eq!(expected_tail(&fixture), tail);
    }
    let mut first = PlannerFixture::with_characters(&["Ada"]);
    first.post_as_eve("Hi.").unwrap();
    assert_eq!(
        expected_tail(&first),
        None,
        "a burst of messages may change the tail"
    );
}

#[test]
fn a_message_during_a_round_supersedes_it_unless_it_is_rejected() {
    let with_policy = |policy| {
        let mut fixture = running();
        fixture.state.space.during_generation_user_input_policy = policy;
        let plan = fixture.post_as_eve("And then?");
        (fixture, plan)
    };
    let of_new_round = [
        "round superseded: user_message",
        "round of Ada, Bob, Cid",
        "queue Ada: user_turn, user_message",
    ];

    let (mut queue, of_queue) = with_policy(InputPolicy::Queue);
    let committed = queue.end_run(success("I am Bob."));
    let (_, of_restart) = with_policy(InputPolicy::Restart);
    let (mut reject, of_reject) = with_policy(InputPolicy::Reject);
    let followed = reject.end_run(success("I am Bob."));

    assert_eq!(of_queue.unwrap()[1..], of_new_round);
    let expected = ["finish Bob: succeeded", r#"Bob says "I am Bob.""#];
    assert_eq!(
        committed, expected,
        "Cid does not speak in the superseded round"
    );
    let of_restart = of_restart.unwrap();
    assert_eq!(of_restart[1], "finish Bob: canceled");
    assert_eq!(of_restart[2..], of_new_round);
    assert_eq!(of_reject, Err(CommandError::GenerationLocked));
    assert_eq!(followed.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn a_message_without_repliers_moves_the_queued_turn_to_the_next_slot() {
    let mut fixture = queued();
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.post_as_eve("Hush.").unwrap();
    fixture.state.space.reply_order = ReplyOrder::List;

    let plan = fixture.claim_due();

    let expected = [
        "skip Bob: expected_last_message_mismatch",
        "slot 1 skipped: expected_last_message_mismatch",
        "round generating at 2",
        "queue Cid: user_turn, next_slot",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        fixture.claim_due(),
        ["claim Cid"],
        "it expects the current tail"
    );
}

#[test]
fn a_slot_whose_node_dies_gets_one_more_attempt_and_then_fails_in_place() {
    let mut fixture = running();

    let first = fixture.expire_lease();
    fixture.claim_due();
    let second = fixture.expire_lease();

    let expected = [
        "expire Bob: failed stale_running_run",
        "queue Bob: user_turn, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    let expected = ["expire Bob: failed stale_running_run", "round failed at 1"];
    assert_eq!(second, expected);
    let plan = fixture.run_command(&SKIP).unwrap();
    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn a_recovered_speaker_muted_meanwhile_is_skipped_at_the_claim() {
    let mut fixture = running();
    fixture.expire_lease();
    fixture.member_mut(BOB).participation = Participation::Muted;

    let plan = fixture.claim_due();

    assert_eq!(plan[0], "skip Bob: speaker_unavailable");
    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn skipped_slots_of_a_finished_round_are_before_its_cursor() {
    let mut fixture = running();
    for member in [BOB, CID] {
        fixture.member_mut(member).participation = Participation::Muted;
    }

    let plan = fixture.run_command(&Command::ApplyChanges).unwrap();

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
    let mut fixture = running();
    fixture.member_mut(CID).participation = Participation::Muted;
    fixture.run_command(&Command::ApplyChanges).unwrap();
    fixture.member_mut(CID).participation = Participation::Active;

    let plan = fixture.end_run(success("I am Bob."));

    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn a_paused_round_resumes_at_the_slot_after_the_skipped_one() {
    let mut fixture = queued();
    fixture.run_command(&Command::Pause).unwrap();

    fixture.run_command(&SKIP).unwrap();
    let round = fixture.state.round.clone().unwrap();
    let resumed = fixture.run_command(&Command::Resume).unwrap();

    assert_eq!((round.state, round.cursor), (RoundState::Paused, 2));
    assert_eq!(round.slots.0[1].status, slot::SlotStatus::Skipped);
    assert_eq!(resumed.last().unwrap(), "queue Cid: user_turn, resume");
}

#[test]
fn a_stop_of_a_failed_round_leaves_it_failed_and_a_message_starts_a_new_one() {
    let mut fixture = running();
    fixture.end_run(failure());

    let stopped = fixture.run_command(&STOP).unwrap();
    let state = fixture.state.round.as_ref().unwrap().state;
    let plan = fixture.post_as_eve("Once more.").unwrap();

    assert!(stopped.is_empty());
    assert_eq!(state, RoundState::Failed);
    assert_eq!(plan[1], "round superseded: user_message");
    assert_eq!(plan[2], "round of Ada, Bob, Cid");
}

#[test]
fn canceling_a_run_pauses_its_round_at_the_same_slot() {
    let mut fixture = running();
    let run = fixture.running().0;

    let plan = fixture.run_command(&Command::CancelRun { run }).unwrap();

    assert_eq!(plan, ["finish Bob: canceled", "round paused at 1"]);
    let statuses: Vec<_> = fixture.ended.iter().map(|it| it.status).collect();
    assert_eq!(
        statuses,
        [run::RunStatus::Succeeded, run::RunStatus::Canceled]
    );
    let retried = fixture.run_command(&RETRY).unwrap();
    assert_eq!(retried[1], "queue Bob: user_turn, retry");
    assert_eq!(
        fixture.state.queued.unwrap().speaker_space_membership_id,
        Some(BOB)
    );
}
