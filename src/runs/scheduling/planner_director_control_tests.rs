//! Tests of what controls, crashes, settings and queue edits do to a choice of the director.

use base::ids::MembershipId;

use crate::conversations::audience::viewer::Viewer;
use crate::rounds::round::RoundState;
use crate::rounds::slot::SlotStatus;
use crate::runs::scheduling::command::{Command, CommandError, SlotsEdit};
use crate::runs::scheduling::director::choice::DirectorChoice;
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, PlannerFixture, RETRY, SKIP, STOP, failure, post, success,
};
use crate::runs::scheduling::planner::fixture_director::{
    CID, answer, choose_command, choosing, directed,
};
use crate::runs::store::run::{RunCancelReason, RunStatus, RunUsage};
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

#[test]
fn a_canceled_or_reclaimed_run_chooses_nothing() {
    let mut stopped = choosing();
    let late = choose_command(&stopped, answer(&[BOB], "Bob.")).unwrap();
    stopped.run_command(&STOP).unwrap();
    let mut released = choosing();
    let stale = choose_command(&released, answer(&[BOB], "Bob.")).unwrap();
    released.release_run();
    released.claim_due();

    assert_eq!(
        stopped.run_command(&late),
        Err(CommandError::AlreadyFinished)
    );
    assert_eq!(
        released.run_command(&stale),
        Err(CommandError::AlreadyFinished)
    );
    assert_eq!(released.slot_speakers(), [None]);
}

#[test]
fn a_second_choice_changes_nothing() {
    let mut fixture = choosing();
    fixture.choose(answer(&[BOB], "Bob.")).unwrap();

    assert_eq!(
        fixture.choose(answer(&[ADA], "Ada.")),
        Err(CommandError::AlreadyFinished)
    );
}

#[test]
fn a_stop_that_keeps_the_text_ends_the_run_at_its_choice() {
    let mut fixture = choosing();
    fixture
        .run_command(&Command::Stop { keep_partial: true })
        .unwrap();

    let plan = fixture.choose(answer(&[BOB], "Bob.")).unwrap();

    assert_eq!(plan, ["finish director: canceled"]);
    let round = fixture.state.round.as_ref().unwrap();
    assert_eq!(
        (round.state, fixture.slot_speakers()),
        (RoundState::Paused, vec![None])
    );
}

#[test]
fn stop_and_resume_ask_the_director_again() {
    let mut fixture = choosing();
    fixture.run_command(&STOP).unwrap();

    let plan = fixture.run_command(&Command::Resume).unwrap();

    assert_eq!(plan[1], "queue director: user_turn, resume");
}

#[test]
fn a_pause_during_the_choice_lets_the_chosen_one_speak_and_nothing_follow() {
    let mut fixture = directed();
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.run_command(&Command::Pause).unwrap();

    fixture.choose(answer(&[BOB, CID], "Both.")).unwrap();
    fixture.end_run(success("Hello."));

    let round = fixture.state.round.as_ref().unwrap();
    assert_eq!((round.state, round.cursor), (RoundState::Paused, 1));
    assert!(fixture.state.queued.is_none());
}

#[test]
fn skip_ends_the_choice_and_the_slot() {
    let mut fixture = choosing();

    fixture.run_command(&SKIP).unwrap();

    assert!(fixture.state.running.is_none() && fixture.state.round.is_none());
    let ended = fixture.ended.last().unwrap();
    assert_eq!(ended.canceled_because, Some(RunCancelReason::Skipped));
}

#[test]
fn retry_of_a_chosen_slot_lets_the_same_member_speak() {
    let mut fixture = choosing();
    fixture.choose(answer(&[BOB], "Bob.")).unwrap();
    fixture.end_run(failure());

    let plan = fixture.run_command(&RETRY).unwrap();

    assert_eq!(plan[1], "queue Bob: user_turn, retry");
}

#[test]
fn retry_of_a_run_that_failed_before_its_choice_asks_the_director() {
    let mut fixture = directed();
    fixture.has_provider = false;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.has_provider = true;

    let plan = fixture.run_command(&RETRY).unwrap();

    assert_eq!(plan[1], "queue director: user_turn, retry");
}

#[test]
fn a_crash_during_the_choice_plans_the_slot_without_a_member_again() {
    let mut fixture = choosing();

    let plan = fixture.expire_lease();

    assert_eq!(plan[1], "queue director: user_turn, recovered, attempt 2");
}

#[test]
fn a_crash_after_the_choice_plans_the_chosen_member_again() {
    let mut fixture = choosing();
    fixture.choose(answer(&[CID], "Cid.")).unwrap();

    let plan = fixture.expire_lease();

    assert_eq!(plan[1], "queue Cid: user_turn, recovered, attempt 2");
    assert_eq!(
        fixture
            .state
            .queued
            .as_ref()
            .unwrap()
            .debug
            .chosen_because
            .as_deref(),
        Some("director: Cid.")
    );
}

#[test]
fn a_released_run_keeps_its_speaker_if_it_has_one() {
    let mut before = choosing();
    let mut after = choosing();
    after.choose(answer(&[CID], "Cid.")).unwrap();

    before.release_run();
    after.release_run();

    assert_eq!(before.claim_due(), ["claim director"]);
    assert_eq!(after.claim_due(), ["claim Cid"]);
}

#[test]
fn another_order_leaves_a_planned_choice_to_the_director() {
    let mut fixture = directed();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.state.space.reply_order = ReplyOrder::List;
    let applied = fixture.run_command(&Command::ApplyChanges).unwrap();

    let claimed = fixture.claim_due();
    fixture.choose(answer(&[CID], "Cid.")).unwrap();

    assert!(applied.is_empty(), "{applied:?}");
    assert_eq!(claimed, ["claim director"]);
    assert_eq!(fixture.slot_speakers(), [Some(CID)]);
}

#[test]
fn manual_order_cancels_a_planned_choice() {
    let mut fixture = directed();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.state.space.reply_order = ReplyOrder::Manual;

    fixture.run_command(&Command::ApplyChanges).unwrap();

    let ended = fixture.ended.last().unwrap();
    assert_eq!(
        ended.canceled_because,
        Some(RunCancelReason::ReplyOrderManual)
    );
    assert!(fixture.state.round.is_none());
}

fn edit(fixture: &PlannerFixture, slots: &[Option<MembershipId>]) -> Command {
    Command::EditQueue(SlotsEdit {
        round: fixture.state.round.as_ref().expect("a round").id,
        slots: slots.to_vec(),
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    })
}

#[test]
fn the_slot_of_the_director_can_be_moved_replaced_and_removed_but_not_added() {
    let mut queued = directed();
    queued.post_as_eve("Hi.").unwrap();
    let edited = |slots: &[Option<MembershipId>]| {
        let mut fixture = queued.clone();
        let command = edit(&fixture, slots);
        fixture.run_command(&command).map(|_| fixture)
    };

    let moved = edited(&[Some(BOB), None]).unwrap();
    let replaced = edited(&[Some(BOB)]).unwrap();
    let removed = edited(&[]).unwrap();

    assert_eq!(moved.slot_speakers(), [Some(BOB), None]);
    assert_eq!(
        moved
            .state
            .queued
            .as_ref()
            .unwrap()
            .speaker_space_membership_id,
        Some(BOB)
    );
    assert_eq!(replaced.slot_speakers(), [Some(BOB)]);
    assert!(removed.state.round.is_none() && removed.state.queued.is_none());
    assert_eq!(
        edited(&[None, None]).err(),
        Some(CommandError::NotSchedulable)
    );
    let unchanged = edited(&[None]).unwrap();
    assert_eq!(unchanged.state.queued, queued.state.queued);
}

#[test]
fn a_later_slot_of_the_director_is_chosen_when_it_begins() {
    let mut fixture = directed();
    fixture.post_as_eve("Hi.").unwrap();
    let command = edit(&fixture, &[Some(BOB), None, Some(ADA)]);
    fixture.run_command(&command).unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture.claim_due();

    fixture.choose(answer(&[CID], "Cid.")).unwrap();

    assert_eq!(fixture.slot_speakers(), [Some(BOB), Some(CID), Some(ADA)]);
    let slots = &fixture.state.round.as_ref().unwrap().slots.0;
    assert_eq!(slots[0].status, SlotStatus::Spoken);
    assert_eq!(slots[2].chosen_because, "put in the queue by Eve");
}

#[test]
fn the_cost_of_the_choice_is_part_of_the_runs_usage() {
    let mut fixture = choosing();
    let usage = RunUsage {
        prompt_tokens: 30,
        completion_tokens: 4,
        estimated: false,
    };
    let choice = DirectorChoice {
        usage: Some(usage),
        ..answer(&[BOB], "Bob.")
    };

    fixture.choose(choice).unwrap();
    fixture.end_run(success("Hello."));

    let ended = fixture.ended.last().unwrap();
    assert_eq!(
        (ended.status, ended.usage),
        (RunStatus::Succeeded, Some(usage))
    );
    assert_eq!(fixture.state.conversation.tokens_used, 34);
}

#[test]
fn a_rejected_post_leaves_the_choice() {
    let mut fixture = choosing();
    fixture.state.space.during_generation_user_input_policy = InputPolicy::Reject;

    assert_eq!(
        fixture.run_command(&post("Well?")),
        Err(CommandError::GenerationLocked)
    );
    assert_eq!(fixture.slot_speakers(), [None]);
}
