//! What people press, and what that does to the schedule: stop, pause, resume, skip, retry, cancel.

use crate::ids::RunId;
use crate::rounds::round::RoundState;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::STOP;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::both;
use crate::runs::planner::stage::failed;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::force;
use crate::runs::planner::stage::forced;
use crate::runs::planner::stage::paused;
use crate::runs::planner::stage::queued;
use crate::runs::planner::stage::running;
use crate::runs::planner::stage::success;
use crate::spaces::membership::Participation;
use crate::spaces::space::ReplyOrder;

fn idle() -> Stage {
    Stage::of(&["Ada", "Bob"])
}

/// Bob was made to speak and failed.
fn forced_in_vain() -> Stage {
    let mut stage = forced();
    stage.ends(failure());
    stage
}

#[test]
fn a_stop_drops_what_runs_and_the_slot_waits_at_the_cursor() {
    let plan = running().does(&STOP).unwrap();

    assert_eq!(plan, ["finish Ada: canceled", "round paused at 0"]);
}

#[test]
fn a_stop_takes_what_is_queued_too() {
    assert_eq!(
        queued().does(&STOP).unwrap(),
        ["cancel queued Ada", "round paused at 0"]
    );
    assert_eq!(
        both().does(&STOP).unwrap(),
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
    let mut stage = running();

    let plan = stage.does(&Command::Stop { keep_partial }).unwrap();

    assert_eq!(plan, ["ask Ada to end", "round paused at 0"]);
    assert!(stage.s.running.is_some());
}

#[test]
fn a_stop_changes_nothing_where_nothing_runs() {
    for mut stage in [idle(), paused(), failed()] {
        let before = stage.s.round.as_ref().map(|it| it.row.state);

        assert!(stage.does(&STOP).unwrap().is_empty());
        assert_eq!(stage.s.round.map(|it| it.row.state), before);
    }
}

#[test]
fn a_pause_lets_the_running_reply_finish() {
    assert_eq!(
        running().does(&Command::Pause).unwrap(),
        ["round paused at 0"]
    );
    assert_eq!(
        queued().does(&Command::Pause).unwrap(),
        ["cancel queued Ada", "round paused at 0"]
    );
}

#[test]
fn a_pause_leaves_a_failed_round_failed_and_needs_a_round() {
    assert!(failed().does(&Command::Pause).unwrap().is_empty());
    assert_eq!(idle().does(&Command::Pause), Err(Refusal::NoRound));
}

#[test]
fn a_resume_queues_the_slot_at_the_cursor() {
    let plan = paused().does(&Command::Resume).unwrap();

    let expected = ["round generating at 0", "queue Ada: user_turn, resume"];
    assert_eq!(plan, expected);
}

#[test]
fn a_resume_passes_over_who_cannot_speak_any_more() {
    let mut stage = paused();
    stage.seat(ADA).participation = Participation::Muted;

    let plan = stage.does(&Command::Resume).unwrap();

    let expected = [
        "round generating at 0",
        "slot 0 skipped: not_schedulable",
        "round generating at 1",
        "queue Bob: user_turn, resume",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn nothing_is_resumed_that_is_not_paused() {
    let mut still_running = running();
    still_running.does(&Command::Pause).unwrap();

    for mut stage in [idle(), queued(), running(), failed(), still_running] {
        assert_eq!(stage.does(&Command::Resume), Err(Refusal::NothingPaused));
    }
}

#[test]
fn a_skip_passes_the_turn_to_the_next_slot() {
    let expected = [
        "slot 0 skipped: skipped_by_a_person",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];

    let of_queued = queued().does(&Command::Skip).unwrap();
    let of_running = running().does(&Command::Skip).unwrap();

    assert_eq!(of_queued[0], "cancel queued Ada");
    assert_eq!(of_queued[1..], expected);
    assert_eq!(of_running[0], "finish Ada: canceled");
    assert_eq!(of_running[1..], expected);
}

#[test]
fn after_a_skip_a_failed_round_goes_on_and_a_paused_one_stays_paused() {
    let of_failed = failed().does(&Command::Skip).unwrap();
    let of_paused = paused().does(&Command::Skip).unwrap();

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
    let mut stage = failed();
    stage.does(&Command::Skip).unwrap();

    let plan = stage.does(&Command::Skip).unwrap();

    assert_eq!(plan[2], "round finished: everybody_spoke");
    assert!(stage.s.queued.is_none());
    assert_eq!(stage.does(&Command::Skip), Err(Refusal::NoRound));
}

#[test]
fn a_retry_gives_the_slot_its_turn_again() {
    for mut stage in [failed(), paused()] {
        let plan = stage.does(&Command::Retry).unwrap();

        let expected = ["round generating at 0", "queue Ada: user_turn, retry"];
        assert_eq!(plan, expected);
    }
}

#[test]
fn two_retries_make_one_run() {
    let mut stage = failed();
    stage.does(&Command::Retry).unwrap();
    let planned = stage.s.queued.as_ref().unwrap().id;

    let again = stage.does(&Command::Retry).unwrap();
    stage.due();
    let late = stage.does(&Command::Retry).unwrap();

    assert!(again.is_empty() && late.is_empty());
    assert_eq!(stage.s.running.unwrap().id, planned);
}

#[test]
fn nothing_is_retried_that_has_not_failed() {
    let mut spoken = running();
    spoken.ends(success("Hello."));

    for mut stage in [idle(), queued(), running(), spoken] {
        assert_eq!(stage.does(&Command::Retry), Err(Refusal::NothingToRetry));
    }
}

#[test]
fn a_forced_turn_that_failed_is_retried_until_something_newer() {
    let mut newer_message = forced_in_vain();
    newer_message.s.space.reply_order = ReplyOrder::Manual;
    newer_message.eve_says("Well.").unwrap();
    let mut newer_run = forced_in_vain();
    newer_run.does(&force(ADA)).unwrap();
    newer_run.does(&STOP).unwrap();

    let retried = forced_in_vain().does(&Command::Retry).unwrap();

    assert_eq!(retried, ["queue Bob: force_talk, retry"]);
    for mut stage in [newer_message, newer_run] {
        assert_eq!(stage.does(&Command::Retry), Err(Refusal::NothingToRetry));
    }
}

#[test]
fn one_run_is_canceled_and_its_round_rests() {
    let cancel = |mut stage: Stage| {
        let run = stage.s.running.as_ref().or(stage.s.queued.as_ref());
        let run = run.unwrap().id;
        stage.does(&Command::Cancel { run }).unwrap()
    };

    assert_eq!(
        cancel(running()),
        ["finish Ada: canceled", "round paused at 0"]
    );
    assert_eq!(cancel(queued()), ["cancel queued Ada", "round paused at 0"]);
    assert_eq!(
        cancel(both()),
        ["finish Ada: canceled"],
        "the newer round waits for its own run"
    );
}

#[test]
fn a_finished_run_cannot_be_canceled() {
    let mut stage = paused();
    let finished = stage.ended[0].id;

    for run in [finished, RunId::new()] {
        let refusal = stage.does(&Command::Cancel { run });
        assert_eq!(refusal, Err(Refusal::AlreadyFinished));
    }
}

#[test]
fn what_rests_is_told_apart_from_what_goes_on() {
    let state = |stage: Stage| stage.s.round.map(|it| it.row.state);

    assert_eq!(state(queued()), Some(RoundState::Generating));
    assert_eq!(state(paused()), Some(RoundState::Paused));
    assert_eq!(state(failed()), Some(RoundState::Failed));
}
