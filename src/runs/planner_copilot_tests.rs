//! The copilot: when it speaks, what its words do, and where it rests.

use crate::runs::command::Command;
use crate::runs::command::End;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::EVE;
use crate::runs::planner::stage::STOP;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::force;
use crate::runs::planner::stage::success;
use crate::runs::planner::stage::written;
use crate::spaces::membership;
use crate::spaces::membership::CopilotMode;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space::ReplyOrder;

const START: Command = Command::CopilotStarted { seat: EVE };
const CHANGED: Command = Command::ApplyChanges;

/// Eve with Ada, her copilot on with so many steps, not started.
fn on(steps: i64) -> Stage {
    let mut stage = Stage::of(&["Ada"]);
    turn_on(&mut stage, EVE, steps);
    stage
}

fn turn_on(stage: &mut Stage, seat: crate::ids::MembershipId, steps: i64) {
    let here = stage.s.conversation.id;
    let seat = stage.seat(seat);
    seat.copilot_mode = CopilotMode::Full;
    seat.copilot_remaining_steps = Some(steps);
    seat.copilot_conversation_id = Some(here);
}

fn turn_off(stage: &mut Stage) {
    let seat = stage.seat(EVE);
    seat.copilot_mode = CopilotMode::None;
    seat.copilot_remaining_steps = None;
}

fn started(steps: i64) -> Stage {
    let mut stage = on(steps);
    stage.does(&START).unwrap();
    stage.due();
    stage
}

/// What Eve's seat says of her copilot.
fn left(stage: &mut Stage) -> (CopilotMode, Option<i64>) {
    let seat = stage.seat(EVE);
    (seat.copilot_mode, seat.copilot_remaining_steps)
}

#[test]
fn turned_on_it_begins_at_once_where_nothing_goes_on() {
    let mut stage = on(2);

    assert_eq!(
        stage.does(&START).unwrap(),
        ["queue Eve: user_turn, copilot_start"]
    );
    assert!(
        stage
            .s
            .queued
            .as_ref()
            .is_some_and(|it| it.round_id.is_none())
    );
    assert!(stage.does(&START).unwrap().is_empty());
}

#[test]
fn turned_on_in_the_middle_of_a_reply_it_waits_for_the_end_of_the_round() {
    let mut stage = Stage::of(&["Ada"]);
    stage.eve_says("Hi.").unwrap();
    turn_on(&mut stage, EVE, 2);
    assert!(stage.does(&START).unwrap().is_empty());
    stage.due();
    assert!(stage.does(&START).unwrap().is_empty());

    let told = stage.ends(success("Hello."));

    assert_eq!(
        told.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn its_words_spend_a_step_and_are_answered_as_a_persons() {
    let mut stage = started(2);

    let told = stage.ends(success("I am Eve."));

    let expected = [
        "finish Eve: succeeded",
        "Eve says \"I am Eve.\"",
        "a step of Eve",
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(told, expected);
    assert_eq!(
        stage.messages[0].role,
        crate::conversations::message::MessageRole::User
    );
    assert_eq!(left(&mut stage), (CopilotMode::Full, Some(1)));
}

#[test]
fn the_last_step_is_answered_and_it_is_off() {
    let mut stage = started(1);
    let told = stage.ends(success("Bye."));
    assert_eq!(told.last().unwrap(), "queue Ada: user_turn, user_message");
    assert_eq!(left(&mut stage), (CopilotMode::None, None));
    stage.due();

    stage.ends(success("Farewell."));

    assert!(stage.s.queued.is_none() && stage.s.round.is_none());
    assert!(stage.eve_says("It is me again.").is_ok());
}

#[test]
fn so_many_steps_are_so_many_texts_and_so_many_answers() {
    let mut stage = started(10);
    let mut n_texts = 0;
    while stage.s.running.is_some() {
        stage.ends(success("Word."));
        n_texts += 1;
        if stage.s.queued.is_some() {
            stage.due();
        }
    }

    assert_eq!(n_texts, 20);
    let by_eve = stage
        .messages
        .iter()
        .filter(|it| it.space_membership_id == EVE);
    assert_eq!(by_eve.count(), 10);
}

#[test]
fn a_node_that_dies_spends_no_step_and_the_second_attempt_spends_one() {
    let mut stage = started(3);

    assert_eq!(
        stage.dies(),
        [
            "expire Eve: failed stale_running_run",
            "queue Eve: user_turn, recovered, attempt 2"
        ]
    );
    assert_eq!(left(&mut stage).1, Some(3));
    stage.due();
    stage.ends(success("Again."));

    assert_eq!(left(&mut stage).1, Some(2));
}

#[test]
fn out_of_steps_at_the_claim_it_is_passed_over() {
    let mut stage = on(1);
    stage.does(&START).unwrap();
    turn_off(&mut stage);

    assert_eq!(stage.due(), ["skip Eve: speaker_unavailable"]);
}

#[test]
fn turned_off_what_waits_is_canceled_and_what_is_written_is_dropped() {
    let mut queued = on(2);
    queued.does(&START).unwrap();
    turn_off(&mut queued);
    assert_eq!(queued.does(&CHANGED).unwrap(), ["cancel queued Eve"]);

    let mut running = started(2);
    turn_off(&mut running);
    assert_eq!(running.does(&CHANGED).unwrap(), ["finish Eve: canceled"]);
}

#[test]
fn a_seat_without_a_voice_is_not_spoken_for() {
    let muted = |it: &mut membership::Model| it.participation = Participation::Muted;
    let observer = |it: &mut membership::Model| it.participation = Participation::Observer;
    let removed = |it: &mut membership::Model| it.status = MembershipStatus::Removed;
    for lose in [muted, observer, removed] {
        let mut stage = on(2);
        lose(stage.seat(EVE));
        assert!(stage.does(&START).unwrap().is_empty());

        let mut stage = on(2);
        stage.does(&START).unwrap();
        lose(stage.seat(EVE));
        assert_eq!(
            stage.does(&CHANGED).unwrap(),
            ["skip Eve: speaker_unavailable"]
        );

        let mut stage = started(2);
        lose(stage.seat(EVE));
        assert_eq!(stage.does(&CHANGED).unwrap(), ["finish Eve: canceled"]);
    }
}

#[test]
fn it_rests_while_a_round_is_failed_and_goes_on_after_the_retry() {
    let mut stage = started(2);
    stage.ends(success("Hi."));
    stage.due();
    stage.ends(failure());
    assert!(stage.s.queued.is_none());
    assert!(stage.does(&START).unwrap().is_empty());
    stage.does(&Command::Retry).unwrap();
    stage.due();

    let told = stage.ends(success("Hello."));

    assert_eq!(
        told.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn paused_in_the_middle_of_an_answer_it_rests_until_somebody_resumes() {
    let mut stage = started(2);
    stage.ends(success("Hi."));
    stage.due();
    stage.does(&Command::Pause).unwrap();
    stage.ends(success("Hello."));
    assert!(stage.s.queued.is_none());

    let told = stage.does(&Command::Resume).unwrap();

    assert_eq!(told, ["queue Eve: user_turn, copilot_continue"]);
    assert_eq!(stage.does(&Command::Resume), Err(Refusal::NothingPaused));
}

#[test]
fn stopped_in_its_own_words_it_rests_until_somebody_resumes() {
    let mut stage = started(2);
    stage.does(&STOP).unwrap();
    assert!(stage.s.queued.is_none());
    assert_eq!(left(&mut stage), (CopilotMode::Full, Some(2)));

    let told = stage.does(&Command::Resume).unwrap();

    assert_eq!(told, ["queue Eve: user_turn, copilot_continue"]);
}

#[test]
fn its_failed_run_is_tried_again_while_it_is_on() {
    let mut stage = started(2);
    stage.ends(failure());
    assert!(stage.s.round.is_none() && stage.s.queued.is_none());

    let told = stage.does(&Command::Retry).unwrap();

    assert_eq!(told, ["queue Eve: user_turn, copilot_continue"]);
    assert!(
        stage.does(&Command::Retry).unwrap().is_empty(),
        "pressed twice: one run"
    );
    stage.due();
    stage.ends(failure());
    turn_off(&mut stage);
    assert_eq!(stage.does(&Command::Retry), Err(Refusal::NothingToRetry));
}

#[test]
fn kept_words_of_a_stopped_run_spend_a_step_and_are_not_answered() {
    let mut stage = started(2);
    stage.does(&Command::Stop { keep_partial: true }).unwrap();

    let partial = Some(written("I was"));
    let told = stage.ends(End::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    assert_eq!(
        told,
        [
            "finish Eve: canceled",
            "Eve says \"I was\"",
            "a step of Eve"
        ]
    );
}

#[test]
fn it_is_asked_before_auto_mode_and_gives_auto_mode_no_new_turns() {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.auto_mode_enabled = true;
    stage.s.space.auto_mode_max_turns = 1;
    stage.s.conversation.auto_mode_turns = 1;
    turn_on(&mut stage, EVE, 1);
    stage.does(&START).unwrap();
    stage.due();
    stage.ends(success("Hi."));
    assert_eq!(stage.s.conversation.auto_mode_turns, 1);
    stage.due();

    stage.ends(success("Hello."));

    assert!(
        stage.s.queued.is_none(),
        "auto mode's turns are a person's to renew"
    );
}

#[test]
fn a_reply_order_without_speakers_lets_nobody_speak() {
    let mut stage = on(2);
    stage.s.space.reply_order = ReplyOrder::Manual;
    assert!(stage.does(&START).unwrap().is_empty());
    stage.does(&force(ADA)).unwrap();
    stage.due();

    stage.ends(success("Hello."));

    assert!(stage.s.queued.is_none());
}

#[test]
fn a_speaker_who_was_forced_is_followed_too() {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    turn_on(&mut stage, EVE, 2);
    stage.does(&force(BOB)).unwrap();
    stage.due();

    let told = stage.ends(success("Hello."));

    assert_eq!(
        told.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn where_nobody_can_answer_it_does_not_talk_to_itself() {
    let mut stage = started(5);
    stage.seat(ADA).participation = Participation::Muted;

    stage.ends(success("Hello?"));

    assert!(stage.s.queued.is_none() && stage.s.round.is_none());
    assert_eq!(left(&mut stage).1, Some(4));
}

#[test]
fn several_of_them_take_turns() {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.seat(BOB).kind = membership::MembershipKind::Human;
    turn_on(&mut stage, EVE, 2);
    turn_on(&mut stage, BOB, 2);
    stage.does(&START).unwrap();
    stage.due();
    stage.ends(success("I am Eve."));
    stage.due();

    let told = stage.ends(success("Hello, Eve."));

    assert_eq!(
        told.last().unwrap(),
        "queue Bob: user_turn, copilot_followup"
    );
}

#[test]
fn it_plays_in_its_own_conversation_alone() {
    let mut stage = on(2);
    stage.seat(EVE).copilot_conversation_id = Some(crate::ids::ConversationId(9));

    assert!(stage.does(&START).unwrap().is_empty());
    stage.eve_says("Me.").unwrap();
    stage.due();
    stage.ends(success("You."));

    assert!(stage.s.queued.is_none());
}
