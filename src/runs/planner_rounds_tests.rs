//! Rounds of several, in their middle: whoever comes next expects the tail that is there then, a
//! node that dies costs a slot one more attempt, and a round that is over keeps its laws.

use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::rounds::round::RoundState;
use crate::rounds::slot;
use crate::runs::command::Command;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::STOP;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::success;
use crate::runs::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::RepliesPerTurn;
use crate::spaces::space::ReplyOrder;

const CID: MembershipId = MembershipId(4);

/// Ada has answered Eve, and Bob's turn of a round of Ada, Bob and Cid is queued.
fn queued() -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob", "Cid"]);
    stage.s.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.eve_says("Hi.").unwrap();
    stage.due();
    stage.ends(success("I am Ada."));
    stage
}

/// Bob's turn is running.
fn running() -> Stage {
    let mut stage = queued();
    stage.due();
    stage
}

fn expected_tail(stage: &Stage) -> Option<MessageId> {
    let queued = stage.s.queued.as_ref().expect("a queued run");
    queued.debug.expected_last_message_id
}

#[test]
fn after_the_first_slot_everybody_expects_the_tail_that_is_there() {
    let tail = Some(MessageId(2));
    let mut skipped = running();
    skipped.does(&Command::Skip).unwrap();
    let mut muted = running();
    muted.seat(BOB).participation = Participation::Muted;
    muted.does(&Command::ApplyChanges).unwrap();
    let mut resumed = running();
    resumed.does(&STOP).unwrap();
    resumed.does(&Command::Resume).unwrap();
    let mut retried = running();
    retried.ends(failure());
    retried.does(&Command::Retry).unwrap();
    let mut recovered = running();
    recovered.dies();

    for stage in [queued(), skipped, muted, resumed, retried, recovered] {
        assert_eq!(expected_tail(&stage), tail);
    }
    let mut first = Stage::of(&["Ada"]);
    first.eve_says("Hi.").unwrap();
    assert_eq!(expected_tail(&first), None, "a burst moves the tail");
}

#[test]
fn a_message_that_wakes_nobody_passes_the_turn_that_waits_to_the_next_slot() {
    let mut stage = queued();
    stage.s.space.reply_order = ReplyOrder::Manual;
    stage.eve_says("Hush.").unwrap();
    stage.s.space.reply_order = ReplyOrder::List;

    let plan = stage.due();

    let expected = [
        "skip Bob: expected_last_message_mismatch",
        "slot 1 skipped: expected_last_message_mismatch",
        "round generating at 2",
        "queue Cid: user_turn, next_slot",
    ];
    assert_eq!(plan, expected);
    assert_eq!(stage.due(), ["claim Cid"], "it expects the present tail");
}

#[test]
fn a_slot_whose_node_dies_is_tried_once_more_and_then_waits_in_its_place() {
    let mut stage = running();

    let first = stage.dies();
    stage.due();
    let second = stage.dies();

    let expected = [
        "expire Bob: failed stale_running_run",
        "queue Bob: user_turn, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    let expected = ["expire Bob: failed stale_running_run", "round failed at 1"];
    assert_eq!(second, expected);
    let plan = stage.does(&Command::Skip).unwrap();
    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn who_died_and_was_muted_meanwhile_makes_place_at_the_claim() {
    let mut stage = running();
    stage.dies();
    stage.seat(BOB).participation = Participation::Muted;

    let plan = stage.due();

    assert_eq!(plan[0], "skip Bob: speaker_unavailable");
    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn of_a_round_that_is_over_no_slot_behind_the_cursor_is_settled() {
    let mut stage = running();
    for seat in [BOB, CID] {
        stage.seat(seat).participation = Participation::Muted;
    }

    let plan = stage.does(&Command::ApplyChanges).unwrap();

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
fn who_was_muted_and_is_back_before_the_turn_comes_speaks() {
    let mut stage = running();
    stage.seat(CID).participation = Participation::Muted;
    stage.does(&Command::ApplyChanges).unwrap();
    stage.seat(CID).participation = Participation::Active;

    let plan = stage.ends(success("I am Bob."));

    assert_eq!(plan.last().unwrap(), "queue Cid: user_turn, next_slot");
}

#[test]
fn a_paused_round_is_skipped_through_and_resumed_where_it_stands() {
    let mut stage = queued();
    stage.does(&Command::Pause).unwrap();

    stage.does(&Command::Skip).unwrap();
    let round = stage.s.round.clone().unwrap();
    let resumed = stage.does(&Command::Resume).unwrap();

    assert_eq!((round.row.state, round.row.cursor), (RoundState::Paused, 2));
    assert_eq!(round.slots[1].status, slot::SlotStatus::Skipped);
    assert_eq!(resumed.last().unwrap(), "queue Cid: user_turn, resume");
}

#[test]
fn a_stop_of_a_failed_round_leaves_it_failed_and_a_message_opens_a_new_one() {
    let mut stage = running();
    stage.ends(failure());

    let stopped = stage.does(&STOP).unwrap();
    let state = stage.s.round.as_ref().unwrap().row.state;
    let plan = stage.eve_says("Once more.").unwrap();

    assert!(stopped.is_empty());
    assert_eq!(state, RoundState::Failed);
    assert_eq!(plan[1], "round superseded: user_message");
    assert_eq!(plan[2], "round of Ada, Bob, Cid");
}

#[test]
fn a_canceled_run_rests_its_round_in_its_place() {
    let mut stage = running();
    let run = stage.running().0;

    let plan = stage.does(&Command::Cancel { run }).unwrap();

    assert_eq!(plan, ["finish Bob: canceled", "round paused at 1"]);
    let statuses: Vec<_> = stage.ended.iter().map(|it| it.status).collect();
    assert_eq!(
        statuses,
        [run::RunStatus::Succeeded, run::RunStatus::Canceled]
    );
    let retried = stage.does(&Command::Retry).unwrap();
    assert_eq!(retried[1], "queue Bob: user_turn, retry");
    assert_eq!(stage.s.queued.unwrap().speaker_space_membership_id, BOB);
}
