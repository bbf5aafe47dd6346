//! Tests of what stops auto mode, what continues it, and that no turn is counted twice.

use crate::conversations::message::Visibility;
use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::{Command, ExecutionEnd};
use crate::runs::scheduling::planner::auto_mode_tests::{auto_mode_fixture, running, waiting};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, PlannerFixture, STOP, failure, force, generated_text, success,
};
use crate::runs::scheduling::planner::rules_tests::show;
use crate::runs::store::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

#[test]
fn it_rests_while_its_turn_has_failed_or_is_paused() {
    let mut failed = running();
    let plan = failed.end_run(failure());
    assert_eq!(plan[1], "round failed at 0");

    let mut stopped = running();
    stopped.run_command(&STOP).unwrap();
    let mut paused = waiting();
    paused.run_command(&Command::Pause).unwrap();

    for stage in [&failed, &stopped, &paused] {
        assert!(stage.state.queued.is_none());
    }
    let state = |stage: &PlannerFixture| stage.state.round.as_ref().map(|it| it.row.state);
    assert_eq!(state(&failed), Some(RoundState::Failed));
    assert_eq!(state(&stopped), Some(RoundState::Paused));
    assert_eq!(state(&paused), Some(RoundState::Paused));
}

#[test]
fn the_same_turn_again_is_not_counted_again() {
    let mut failed = running();
    failed.end_run(failure());
    let mut stopped = running();
    stopped.run_command(&STOP).unwrap();
    let mut dead = running();
    dead.expire_lease();

    failed.run_command(&Command::Retry).unwrap();
    stopped.run_command(&Command::Resume).unwrap();

    for mut stage in [failed, stopped, dead] {
        assert_eq!(stage.turns_left(), Some(2));
        assert_eq!(stage.state.queued.as_ref().unwrap().run_after, None);
        stage.run_to_end();
        assert_eq!(stage.turns_left(), Some(0));
        let mut slots = stage
            .ended
            .iter()
            .filter(|it| it.kind == run::RunKind::AutoMode);
        let succeeded = slots
            .by_ref()
            .filter(|it| it.status == run::RunStatus::Succeeded);
        assert_eq!(succeeded.count(), 3);
    }
}

#[test]
fn a_turn_that_is_tried_again_after_a_person_spoke_is_one_of_the_new_turns() {
    let mut stage = running();
    stage.state.space.during_generation_user_input_policy = InputPolicy::Queue;
    stage.state.space.reply_order = ReplyOrder::Manual;
    stage.post_as_eve("Nobody needs to answer.").unwrap();
    assert_eq!(stage.turns_left(), Some(3));
    stage.state.space.reply_order = ReplyOrder::List;

    stage.expire_lease();

    assert_eq!(stage.turns_left(), Some(2));
    assert_eq!(stage.run_to_end(), 4, "the one that died, and three");
}

#[test]
fn a_node_that_dies_with_the_last_turn_gets_no_more_than_that_turn() {
    let mut stage = waiting();
    while stage.turns_left() != Some(0) {
        stage.claim_after_delay();
        stage.end_run(success("Well."));
    }
    stage.claim_after_delay();

    stage.expire_lease();
    stage.claim_due();
    stage.end_run(success("At last."));

    assert!(stage.state.queued.is_none() && stage.state.round.is_none());
}

#[test]
fn a_turn_that_a_person_skips_is_spent() {
    let mut stage = waiting();

    stage.run_command(&Command::Skip).unwrap();

    assert_eq!(stage.turns_left(), Some(2));
    assert!(stage.state.queued.is_none() && stage.state.round.is_none());
}

#[test]
fn switched_off_it_drops_what_waits_and_lets_what_runs_finish() {
    let off = |mut stage: PlannerFixture| {
        stage.state.space.auto_mode_enabled = false;
        let plan = stage.run_command(&Command::ApplyChanges).unwrap();
        (plan, stage)
    };

    let (of_waiting, waited) = off(waiting());
    let (of_running, mut ran) = off(running());
    let after = ran.end_run(success("I am Bob."));

    let expected = ["cancel queued Bob", "round canceled: auto_mode_off"];
    assert_eq!(of_waiting, expected);
    assert_eq!(waited.turns_left(), None);
    assert!(of_running.is_empty());
    assert_eq!(after.last().unwrap(), "round finished: auto_mode_off");
}

#[test]
fn switched_off_in_the_middle_of_its_round_nothing_follows() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    stage.state.space.auto_mode_enabled = true;
    stage.state.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.post_as_eve("Hi.").unwrap();
    for _ in 0..3 {
        stage.claim_due();
        stage.end_run(success("Mine."));
    }
    stage.claim_after_delay();
    stage.state.space.auto_mode_enabled = false;
    stage.run_command(&Command::ApplyChanges).unwrap();

    let plan = stage.end_run(success("Ada's second."));

    assert_eq!(plan.last().unwrap(), "round finished: auto_mode_off");
}

#[test]
fn switching_it_off_leaves_a_reply_to_a_person_alone() {
    let mut stage = auto_mode_fixture();
    stage.post_as_eve("Hi.").unwrap();
    stage.state.space.auto_mode_enabled = false;

    assert!(
        stage
            .run_command(&Command::ApplyChanges)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn switching_it_on_starts_nothing() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    stage.post_as_eve("Hi.").unwrap();
    stage.claim_due();
    stage.end_run(success("I am Ada."));
    stage.state.space.auto_mode_enabled = true;

    assert!(
        stage
            .run_command(&Command::ApplyChanges)
            .unwrap()
            .is_empty()
    );
    assert!(stage.state.queued.is_none());
}

#[test]
fn a_forced_reply_restarts_auto_mode_within_its_budget() {
    let mut fresh = auto_mode_fixture();
    fresh.run_command(&force(ADA)).unwrap();
    let mut spent = waiting();
    spent.run_to_end();
    spent.run_command(&force(ADA)).unwrap();

    assert_eq!(fresh.run_to_end(), 3);
    assert_eq!(spent.run_to_end(), 3, "no more than before");
}

#[test]
fn what_a_person_stopped_leads_to_nothing() {
    let keep_partial = true;
    let mut stage = running();
    stage.run_command(&Command::Stop { keep_partial }).unwrap();

    let partial = Some(generated_text("I am"));
    let plan = stage.end_run(ExecutionEnd::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    assert_eq!(plan.last().unwrap(), "round finished: everybody_spoke");
    assert!(stage.state.queued.is_none() && stage.state.round.is_none());
}

#[test]
fn paused_during_the_last_reply_it_waits_for_resume() {
    let mut stage = running();
    stage.run_command(&Command::Pause).unwrap();

    let plan = stage.end_run(success("I am Bob."));
    let left = stage.turns_left();
    let resumed = stage.run_command(&Command::Resume).unwrap();

    assert_eq!(plan[4..], ["round of Ada", "round paused at 0"]);
    assert_eq!(left, Some(2), "it takes its turn when it is queued");
    let expected = [
        "round generating at 0",
        "auto mode spoke 2 times",
        "queue Ada: auto_mode, resume",
    ];
    assert_eq!(resumed, expected);
}

#[test]
fn a_queue_that_was_paused_beyond_the_budget_is_finished_by_resume() {
    let mut stage = running();
    stage.run_command(&Command::Pause).unwrap();
    stage.end_run(success("I am Bob."));
    stage.state.space.auto_mode_max_turns = 1;

    let plan = stage.run_command(&Command::Resume).unwrap();

    let expected = ["round generating at 0", "round finished: auto_mode_budget"];
    assert_eq!(plan, expected);
}

#[test]
fn hiding_the_answered_text_cancels_the_turn() {
    let mut stage = waiting();

    let plan = stage.run_command(&show(2, Visibility::Hidden)).unwrap();

    let expected = [
        "message hidden",
        "cancel queued Bob",
        "round canceled: message_hidden",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_speaker_muted_while_waiting_loses_the_turn() {
    let mut stage = waiting();
    stage.member_mut(BOB).participation = Participation::Muted;

    let plan = stage.run_command(&Command::ApplyChanges).unwrap();

    assert_eq!(plan.last().unwrap(), "round finished: everybody_spoke");
    assert!(stage.state.queued.is_none());
}
