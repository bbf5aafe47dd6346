//! Tests of the controls for users: stop, pause, resume, skip, retry, cancel.

use base::ids::RunId;

use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::planner::fixture::{
    ADA, PlannerFixture, RETRY, SKIP, STOP, failed, failure, force, forced, paused, queued,
    queued_and_running, running, success,
};
use crate::spaces::membership::Participation;
use crate::spaces::space::ReplyOrder;

fn idle() -> PlannerFixture {
    PlannerFixture::with_characters(&["Ada", "Bob"])
}

/// Bob's forced turn has failed.
fn failed_forced_turn() -> PlannerFixture {
    let mut fixture = forced();
    fixture.end_run(failure());
    fixture
}

#[test]
fn a_stop_cancels_the_running_run_and_pauses_the_round_at_its_slot() {
    let plan = running().run_command(&STOP).unwrap();

    assert_eq!(plan, ["finish Ada: canceled", "round paused at 0"]);
}

#[test]
fn a_stop_cancels_the_queued_run_too() {
    assert_eq!(
        queued().run_command(&STOP).unwrap(),
        ["cancel queued Ada", "round paused at 0"]
    );
    assert_eq!(
        queued_and_running().run_command(&STOP).unwrap(),
        [
            "finish Ada: canceled",
            "cancel queued Bob",
            "round paused at 0"
        ]
    );
}

#[test]
fn a_stop_that_keeps_the_text_leaves_the_end_to_the_executor() {
    let keep_partial = true;
    let mut fixture = running();

    let plan = fixture
        .run_command(&Command::Stop { keep_partial })
        .unwrap();

    assert_eq!(plan, ["ask Ada to end", "round paused at 0"]);
    assert!(fixture.state.running.is_some());
}

#[test]
fn a_stop_changes_nothing_if_no_run_is_active() {
    for mut fixture in [idle(), paused(), failed()] {
        let before = fixture.state.round.as_ref().map(|it| it.state);

        assert!(fixture.run_command(&STOP).unwrap().is_empty());
        assert_eq!(fixture.state.round.map(|it| it.state), before);
    }
}

#[test]
fn a_pause_lets_the_running_reply_finish() {
    assert_eq!(
        running().run_command(&Command::Pause).unwrap(),
        ["round paused at 0"]
    );
    assert_eq!(
        queued().run_command(&Command::Pause).unwrap(),
        ["cancel queued Ada", "round paused at 0"]
    );
}

#[test]
fn a_pause_leaves_a_failed_round_failed_and_needs_a_round() {
    assert!(failed().run_command(&Command::Pause).unwrap().is_empty());
    assert_eq!(
        idle().run_command(&Command::Pause),
        Err(CommandError::NoRound)
    );
}

#[test]
fn a_resume_queues_the_slot_at_the_cursor() {
    let plan = paused().run_command(&Command::Resume).unwrap();

    let expected = ["round generating at 0", "queue Ada: user_turn, resume"];
    assert_eq!(plan, expected);
}

#[test]
fn a_resume_skips_a_speaker_that_can_no_longer_speak() {
    let mut fixture = paused();
    fixture.member_mut(ADA).participation = Participation::Muted;

    let plan = fixture.run_command(&Command::Resume).unwrap();

    let expected = [
        "round generating at 0",
        "slot 0 skipped: not_schedulable",
        "round generating at 1",
        "queue Bob: user_turn, resume",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn only_a_paused_round_without_a_running_run_can_be_resumed() {
    let mut still_running = running();
    still_running.run_command(&Command::Pause).unwrap();

    for mut fixture in [idle(), queued(), running(), failed(), still_running] {
        assert_eq!(
            fixture.run_command(&Command::Resume),
            Err(CommandError::NothingPaused)
        );
    }
}

#[test]
fn a_skip_passes_the_turn_to_the_next_slot() {
    let expected = [
        "slot 0 skipped: skipped_by_a_person",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];

    let of_queued = queued().run_command(&SKIP).unwrap();
    let of_running = running().run_command(&SKIP).unwrap();

    assert_eq!(of_queued[0], "cancel queued Ada");
    assert_eq!(of_queued[1..], expected);
    assert_eq!(of_running[0], "finish Ada: canceled");
    assert_eq!(of_running[1..], expected);
}

#[test]
fn after_a_skip_a_failed_round_continues_and_a_paused_one_stays_paused() {
    let of_failed = failed().run_command(&SKIP).unwrap();
    let of_paused = paused().run_command(&SKIP).unwrap();

    let expected = [
        "round generating at 0",
        "slot 0 skipped: skipped_by_a_person",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];
    assert_eq!(of_failed, expected);
    let expected = ["slot 0 skipped: skipped_by_a_person", "round paused at 1"];
    assert_eq!(of_paused, expected);
}

#[test]
fn a_skip_of_the_last_slot_finishes_the_round() {
    let mut fixture = failed();
    fixture.run_command(&SKIP).unwrap();

    let plan = fixture.run_command(&SKIP).unwrap();

    assert_eq!(plan[2], "round finished: everybody_spoke");
    assert!(fixture.state.queued.is_none());
    assert_eq!(fixture.run_command(&SKIP), Err(CommandError::NoRound));
}

#[test]
fn a_retry_queues_the_slot_at_the_cursor_again() {
    for mut fixture in [failed(), paused()] {
        let plan = fixture.run_command(&RETRY).unwrap();

        let expected = ["round generating at 0", "queue Ada: user_turn, retry"];
        assert_eq!(plan, expected);
    }
}

#[test]
fn two_retries_queue_one_run() {
    let mut fixture = failed();
    fixture.run_command(&RETRY).unwrap();
    let planned = fixture.state.queued.as_ref().unwrap().id;

    let again = fixture.run_command(&RETRY).unwrap();
    fixture.claim_due();
    let after_claim = fixture.run_command(&RETRY).unwrap();

    assert!(again.is_empty() && after_claim.is_empty());
    assert_eq!(fixture.state.running.unwrap().id, planned);
}

#[test]
fn a_retry_is_rejected_before_a_failure_or_a_stop() {
    let mut spoken = running();
    spoken.end_run(success("Hello."));

    for mut fixture in [idle(), queued(), running(), spoken] {
        assert_eq!(
            fixture.run_command(&RETRY),
            Err(CommandError::NothingToRetry)
        );
    }
}

#[test]
fn a_failed_forced_turn_can_be_retried_until_a_newer_message_or_run() {
    let mut newer_message = failed_forced_turn();
    newer_message.state.space.reply_order = ReplyOrder::Manual;
    newer_message.post_as_eve("Well.").unwrap();
    let mut newer_run = failed_forced_turn();
    newer_run.run_command(&force(ADA)).unwrap();
    newer_run.run_command(&STOP).unwrap();

    let retried = failed_forced_turn().run_command(&RETRY).unwrap();

    assert_eq!(retried, ["queue Bob: force_talk, retry"]);
    for mut fixture in [newer_message, newer_run] {
        assert_eq!(
            fixture.run_command(&RETRY),
            Err(CommandError::NothingToRetry)
        );
    }
}

#[test]
fn canceling_a_run_pauses_only_its_own_round() {
    let cancel = |mut fixture: PlannerFixture| {
        let run = fixture
            .state
            .running
            .as_ref()
            .or(fixture.state.queued.as_ref());
        let run = run.unwrap().id;
        fixture.run_command(&Command::CancelRun { run }).unwrap()
    };

    assert_eq!(
        cancel(running()),
        ["finish Ada: canceled", "round paused at 0"]
    );
    assert_eq!(cancel(queued()), ["cancel queued Ada", "round paused at 0"]);
    assert_eq!(
        cancel(queued_and_running()),
        ["finish Ada: canceled"],
        "the newer round waits for its own run"
    );
}

#[test]
fn a_finished_run_cannot_be_canceled() {
    let mut fixture = paused();
    let finished = fixture.ended[0].id;

    for run in [finished, RunId::new()] {
        let result = fixture.run_command(&Command::CancelRun { run });
        assert_eq!(result, Err(CommandError::AlreadyFinished));
    }
}

#[test]
fn a_round_is_generating_paused_or_failed() {
    let state = |fixture: PlannerFixture| fixture.state.round.map(|it| it.state);

    assert_eq!(state(queued()), Some(RoundState::Generating));
    assert_eq!(state(paused()), Some(RoundState::Paused));
    assert_eq!(state(failed()), Some(RoundState::Failed));
}
