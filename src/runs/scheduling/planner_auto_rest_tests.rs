//! Tests of what stops auto mode, what continues it, and that no turn is counted twice.

use crate::conversations::message::Visibility;
use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::{Command, ExecutionEnd};
use crate::runs::scheduling::planner::auto_mode_tests::{auto_mode_fixture, running, waiting};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, PlannerFixture, RETRY, SKIP, STOP, failure, force, generated_text, success,
};
use crate::runs::scheduling::planner::rules_tests::show;
use crate::runs::store::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

#[test]
fn auto_mode_queues_no_turn_while_its_round_is_failed_or_paused() {
    let mut failed = running();
    let plan = failed.end_run(failure());
    assert_eq!(plan[1], "round failed at 0");

    let mut stopped = running();
    stopped.run_command(&STOP).unwrap();
    let mut paused = waiting();
    paused.run_command(&Command::Pause).unwrap();

    for fixture in [&failed, &stopped, &paused] {
        assert!(fixture.state.queued.is_none());
    }
    let state = |fixture: &PlannerFixture| fixture.state.round.as_ref().map(|it| it.state);
    assert_eq!(state(&failed), Some(RoundState::Failed));
    assert_eq!(state(&stopped), Some(RoundState::Paused));
    assert_eq!(state(&paused), Some(RoundState::Paused));
}

#[test]
fn a_repeated_auto_mode_turn_is_counted_once() {
    let mut failed = running();
    failed.end_run(failure());
    let mut stopped = running();
    stopped.run_command(&STOP).unwrap();
    let mut paused = waiting();
    paused.run_command(&Command::Pause).unwrap();
    let mut dead = running();
    dead.expire_lease();

    failed.run_command(&RETRY).unwrap();
    stopped.run_command(&Command::Resume).unwrap();
    paused.run_command(&Command::Resume).unwrap();

    for mut fixture in [failed, stopped, paused, dead] {
        assert_eq!(fixture.turns_left(), Some(2));
        assert_eq!(fixture.state.queued.as_ref().unwrap().run_after, None);
        fixture.run_to_end();
        assert_eq!(fixture.turns_left(), Some(0));
        let mut slots = fixture
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
fn a_turn_repeated_after_a_human_message_counts_as_one_of_the_new_turns() {
    let mut fixture = running();
    fixture.state.space.during_generation_user_input_policy = InputPolicy::Queue;
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.post_as_eve("Nobody needs to answer.").unwrap();
    assert_eq!(fixture.turns_left(), Some(3));
    fixture.state.space.reply_order = ReplyOrder::List;

    fixture.expire_lease();

    assert_eq!(fixture.turns_left(), Some(2));
    assert_eq!(fixture.run_to_end(), 4, "the repeated turn and three more");
}

#[test]
fn a_last_turn_whose_node_died_is_repeated_and_no_other_follows() {
    let mut fixture = waiting();
    while fixture.turns_left() != Some(0) {
        fixture.claim_after_delay();
        fixture.end_run(success("Well."));
    }
    fixture.claim_after_delay();

    fixture.expire_lease();
    fixture.claim_due();
    fixture.end_run(success("At last."));

    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn an_auto_mode_turn_that_a_user_skips_is_used_up() {
    let mut fixture = waiting();

    fixture.run_command(&SKIP).unwrap();

    assert_eq!(fixture.turns_left(), Some(2));
    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn turning_auto_mode_off_cancels_the_queued_turn_and_lets_the_running_one_finish() {
    let off = |mut fixture: PlannerFixture| {
        fixture.state.space.auto_mode_enabled = false;
        let plan = fixture.run_command(&Command::ApplyChanges).unwrap();
        (plan, fixture)
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
fn no_turn_follows_after_auto_mode_is_turned_off_during_its_round() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    for _ in 0..3 {
        fixture.claim_due();
        fixture.end_run(success("Mine."));
    }
    fixture.claim_after_delay();
    fixture.state.space.auto_mode_enabled = false;
    fixture.run_command(&Command::ApplyChanges).unwrap();

    let plan = fixture.end_run(success("Ada's second."));

    assert_eq!(plan.last().unwrap(), "round finished: auto_mode_off");
}

#[test]
fn turning_auto_mode_off_keeps_a_reply_to_a_user() {
    let mut fixture = auto_mode_fixture();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.state.space.auto_mode_enabled = false;

    assert!(
        fixture
            .run_command(&Command::ApplyChanges)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn turning_auto_mode_on_starts_no_run() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("I am Ada."));
    fixture.state.space.auto_mode_enabled = true;

    assert!(
        fixture
            .run_command(&Command::ApplyChanges)
            .unwrap()
            .is_empty()
    );
    assert!(fixture.state.queued.is_none());
}

#[test]
fn a_forced_reply_restarts_auto_mode_within_its_budget() {
    let mut fresh = auto_mode_fixture();
    fresh.run_command(&force(ADA)).unwrap();
    let mut spent = waiting();
    spent.run_to_end();
    spent.run_command(&force(ADA)).unwrap();

    assert_eq!(fresh.run_to_end(), 3);
    assert_eq!(spent.run_to_end(), 3, "no more than its budget");
}

#[test]
fn no_auto_mode_turn_follows_a_reply_that_a_user_stopped() {
    let keep_partial = true;
    let mut fixture = running();
    fixture
        .run_command(&Command::Stop { keep_partial })
        .unwrap();

    let partial = Some(generated_text("I am"));
    let plan = fixture.end_run(ExecutionEnd::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    assert_eq!(plan.last().unwrap(), "round finished: everybody_spoke");
    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn auto_mode_paused_during_a_reply_waits_for_resume() {
    let mut fixture = running();
    fixture.run_command(&Command::Pause).unwrap();

    let plan = fixture.end_run(success("I am Bob."));
    let left = fixture.turns_left();
    let resumed = fixture.run_command(&Command::Resume).unwrap();

    assert_eq!(plan[4..], ["round of Ada", "round paused at 0"]);
    assert_eq!(left, Some(2), "a turn is used when its run is queued");
    let expected = [
        "round generating at 0",
        "auto mode spoke 2 times",
        "queue Ada: auto_mode, resume",
    ];
    assert_eq!(resumed, expected);
}

#[test]
fn resuming_auto_mode_over_its_budget_finishes_the_round() {
    let mut fixture = running();
    fixture.run_command(&Command::Pause).unwrap();
    fixture.end_run(success("I am Bob."));
    fixture.state.space.auto_mode_max_turns = 1;

    let plan = fixture.run_command(&Command::Resume).unwrap();

    let expected = ["round generating at 0", "round finished: auto_mode_budget"];
    assert_eq!(plan, expected);
}

#[test]
fn hiding_the_answered_text_cancels_the_turn() {
    let mut fixture = waiting();

    let plan = fixture.run_command(&show(2, Visibility::Hidden)).unwrap();

    let expected = [
        "message hidden",
        "cancel queued Bob",
        "round canceled: message_hidden",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_speaker_muted_while_waiting_loses_the_turn() {
    let mut fixture = waiting();
    fixture.member_mut(BOB).participation = Participation::Muted;

    let plan = fixture.run_command(&Command::ApplyChanges).unwrap();

    assert_eq!(plan.last().unwrap(), "round finished: everybody_spoke");
    assert!(fixture.state.queued.is_none());
}
