//! What becomes of a run: every end, a node that dies or closes, a round that nothing moves.

use crate::ids::RunId;
use crate::rounds::round::RoundState;
use crate::runs::command::Command;
use crate::runs::command::End;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::forced;
use crate::runs::planner::stage::queued;
use crate::runs::planner::stage::running;
use crate::runs::planner::stage::success;
use crate::runs::planner::stage::written;
use crate::runs::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::RepliesPerTurn;
use crate::spaces::space::ReplyOrder;

fn stop(keep_partial: bool) -> Command {
    Command::Stop { keep_partial }
}

#[test]
fn the_slots_of_a_round_speak_one_after_the_other() {
    let mut stage = running();

    let first = stage.ends(success("I am Ada."));
    let tail = stage.messages.last().unwrap().id;
    let queued = stage.s.queued.clone().unwrap();
    stage.due();
    let second = stage.ends(success("I am Bob."));

    let expected = [
        "finish Ada: succeeded",
        r#"Ada says "I am Ada.""#,
        "slot 0 spoken",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];
    assert_eq!(first, expected);
    assert_eq!(queued.debug.expected_last_message_id, Some(tail));
    let expected = [
        "finish Bob: succeeded",
        r#"Bob says "I am Bob.""#,
        "slot 1 spoken",
        "round finished: everybody_spoke",
    ];
    assert_eq!(second, expected);
}

#[test]
fn a_slot_that_cannot_be_scheduled_is_left_out() {
    let mut stage = Stage::of(&["Ada", "Bob", "Cid"]);
    stage.s.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.eve_says("Hi.").unwrap();
    stage.due();
    stage.seat(BOB).participation = Participation::Muted;

    let plan = stage.ends(success("Hello."));

    assert_eq!(plan[3], "slot 1 skipped: not_schedulable");
    assert_eq!(plan[4], "round generating at 2");
    assert_eq!(plan[5], "queue Cid: user_turn, next_slot");
}

#[test]
fn in_manual_order_nothing_follows_a_reply() {
    let mut stage = running();
    stage.s.space.reply_order = ReplyOrder::Manual;

    let plan = stage.ends(success("Hello."));

    assert_eq!(plan[3], "round finished: reply_order_manual");
    assert!(stage.s.queued.is_none());
}

#[test]
fn nothing_follows_a_reply_of_a_paused_round() {
    let mut stage = running();
    stage.does(&Command::Pause).unwrap();

    let plan = stage.ends(success("Hello."));

    assert_eq!(plan[3], "round paused at 1");
    assert!(stage.s.queued.is_none());
}

#[test]
fn what_a_run_cost_is_spent_also_when_it_failed() {
    let usage = Some(run::Usage {
        prompt_tokens: 7,
        completion_tokens: 5,
        estimated: false,
    });
    let mut good = written("Hello.");
    good.usage = usage;
    let error = run::Error {
        code: "upstream_error".to_owned(),
        message: String::new(),
        retryable: true,
    };
    let prompt = None;
    let bad = End::Failed {
        error,
        usage,
        prompt,
    };

    for end in [End::Succeeded(good), bad] {
        let mut stage = running();
        stage.ends(end);

        assert_eq!(stage.s.space.tokens_used, 12);
        assert_eq!(stage.ended[0].usage, usage);
    }
}

#[test]
fn a_failure_fails_its_round_and_keeps_its_place() {
    let mut stage = running();

    let plan = stage.ends(failure());

    assert_eq!(
        plan,
        ["finish Ada: failed upstream_error", "round failed at 0"]
    );
    assert!(stage.messages.len() == 1 && stage.s.queued.is_none());
}

#[test]
fn a_failure_of_a_superseded_round_fails_nothing_else() {
    let mut stage = running();
    stage.eve_says("Never mind.").unwrap();

    assert_eq!(stage.ends(failure()), ["finish Ada: failed upstream_error"]);
    assert_eq!(stage.s.round.unwrap().row.state, RoundState::Generating);
}

#[test]
fn a_stop_that_keeps_the_text_makes_the_slot_spoken() {
    let mut stage = running();
    stage.does(&stop(true)).unwrap();

    let partial = Some(written("Hel"));
    let plan = stage.ends(End::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    let expected = [
        "finish Ada: canceled",
        r#"Ada says "Hel""#,
        "slot 0 spoken",
        "round paused at 1",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_stop_before_the_first_word_keeps_the_slot_pending() {
    let mut stage = running();
    stage.does(&stop(true)).unwrap();

    let plan = stage.ends(End::Canceled {
        partial: None,
        usage: None,
        prompt: None,
    });

    assert_eq!(plan, ["finish Ada: canceled"]);
    let round = stage.s.round.unwrap();
    assert_eq!((round.row.state, round.row.cursor), (RoundState::Paused, 0));
}

#[test]
fn a_kept_text_of_a_superseded_round_moves_no_slot() {
    let mut stage = running();
    stage.does(&stop(true)).unwrap();
    stage.eve_says("Go on.").unwrap();

    let partial = Some(written("Hel"));
    let plan = stage.ends(End::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    assert_eq!(plan, ["finish Ada: canceled", r#"Ada says "Hel""#]);
}

#[test]
fn who_does_not_hold_the_lease_changes_nothing() {
    let mut stage = running();
    let (run, lease) = stage.running();
    let silent_for_ms = 0;
    let stale = lease + 1;
    let other = RunId::new();

    for (run, lease) in [(run, stale), (other, lease)] {
        let end = success("Late.");
        let late = stage.does(&Command::Ended {
            run,
            lease,
            end: Box::new(end),
        });
        let reaped = stage.does(&Command::Abandoned {
            run,
            lease,
            silent_for_ms,
        });
        let back = stage.does(&Command::HandedBack {
            run,
            lease,
            usage: None,
        });

        for refusal in [late, reaped, back] {
            assert_eq!(refusal, Err(Refusal::AlreadyFinished));
        }
    }
}

#[test]
fn a_reply_whose_node_died_is_planned_once_more() {
    let mut stage = running();

    let first = stage.dies();
    stage.due();
    let second = stage.dies();

    let expected = [
        "expire Ada: failed stale_running_run",
        "queue Ada: user_turn, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    let expected = ["expire Ada: failed stale_running_run", "round failed at 0"];
    assert_eq!(second, expected);
}

#[test]
fn a_forced_turn_whose_node_died_is_planned_once_more_too() {
    let mut stage = forced();

    let first = stage.dies();
    stage.due();
    let second = stage.dies();

    let expected = [
        "expire Bob: failed stale_running_run",
        "queue Bob: force_talk, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    assert_eq!(second, ["expire Bob: failed stale_running_run"]);
}

#[test]
fn what_waits_already_comes_before_a_second_attempt() {
    let mut stage = running();
    stage.eve_says("Are you there?").unwrap();

    assert_eq!(stage.dies(), ["expire Ada: failed stale_running_run"]);
    assert_eq!(stage.due(), ["claim Ada"]);
}

#[test]
fn a_canceled_run_whose_node_died_is_canceled() {
    let mut stage = running();
    stage.does(&stop(true)).unwrap();

    assert_eq!(stage.dies(), ["expire Ada: canceled"]);
    assert_eq!(stage.s.round.unwrap().row.state, RoundState::Paused);
}

#[test]
fn a_paused_reply_whose_node_died_fails_the_round() {
    let mut stage = running();
    stage.does(&Command::Pause).unwrap();

    let expected = ["expire Ada: failed stale_running_run", "round failed at 0"];
    assert_eq!(stage.dies(), expected);
}

#[test]
fn a_closing_node_gives_its_run_back() {
    let mut stage = running();
    let (id, lease) = stage.running();

    assert_eq!(stage.hands_back(), ["hand back Ada"]);
    assert_eq!(stage.due(), ["claim Ada"]);
    assert_eq!(
        stage.running(),
        (id, lease + 1),
        "the same row, a new lease"
    );
}

#[test]
fn a_run_given_back_makes_place_for_what_waits() {
    let mut stage = running();
    stage.eve_says("Hello?").unwrap();

    assert_eq!(stage.hands_back(), ["finish Ada: canceled"]);
    assert_eq!(stage.due(), ["claim Ada"]);
}

#[test]
fn a_run_of_a_paused_round_is_not_given_back() {
    let mut stage = running();
    stage.does(&Command::Pause).unwrap();

    assert_eq!(stage.hands_back(), ["finish Ada: canceled"]);
    let resumed = stage.does(&Command::Resume).unwrap();
    assert_eq!(resumed[1], "queue Ada: user_turn, resume");
}

#[test]
fn a_run_that_was_stopped_is_not_given_back() {
    let mut stage = forced();
    stage.does(&stop(true)).unwrap();

    assert_eq!(stage.hands_back(), ["finish Bob: canceled"]);
}

#[test]
fn a_round_that_nothing_moves_is_ended() {
    let mut stage = queued();
    stage.s.queued = None;

    let ended = stage.does(&Command::Adrift).unwrap();

    assert_eq!(ended, ["round canceled: left_without_a_run"]);
}

#[test]
fn a_round_that_waits_for_a_run_or_a_person_is_not_adrift() {
    let mut paused = queued();
    paused.does(&Command::Pause).unwrap();
    let mut failed = running();
    failed.ends(failure());
    let idle = Stage::of(&["Ada"]);

    for mut stage in [queued(), running(), paused, failed, idle] {
        assert_eq!(stage.does(&Command::Adrift), Err(Refusal::NoRound));
    }
}
