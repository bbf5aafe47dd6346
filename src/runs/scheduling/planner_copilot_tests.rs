//! Tests of the copilot: when it speaks, what follows its texts, and when it pauses.

use crate::runs::scheduling::command::{Command, CommandError, ExecutionEnd};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, STOP, failure, force, generated_text, success,
};
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, MembershipStatus, Participation};
use crate::spaces::space::ReplyOrder;

const START: Command = Command::CopilotStarted { seat: EVE };
const CHANGED: Command = Command::ApplyChanges;

/// Eve with Ada; her copilot is on with this number of steps, but was not started.
fn copilot_on(steps: i64) -> PlannerFixture {
    let mut stage = PlannerFixture::with_characters(&["Ada"]);
    enable_copilot(&mut stage, EVE, steps);
    stage
}

fn enable_copilot(stage: &mut PlannerFixture, membership: base::ids::MembershipId, steps: i64) {
    let here = stage.state.conversation.id;
    let seat = stage.member_mut(membership);
    seat.copilot_mode = CopilotMode::Full;
    seat.copilot_remaining_steps = Some(steps);
    seat.copilot_conversation_id = Some(here);
}

fn disable_copilot(stage: &mut PlannerFixture) {
    let seat = stage.member_mut(EVE);
    seat.copilot_mode = CopilotMode::None;
    seat.copilot_remaining_steps = None;
}

fn started(steps: i64) -> PlannerFixture {
    let mut stage = copilot_on(steps);
    stage.run_command(&START).unwrap();
    stage.claim_due();
    stage
}

/// Returns the copilot mode and the remaining steps of Eve's membership.
fn copilot_settings(stage: &mut PlannerFixture) -> (CopilotMode, Option<i64>) {
    let seat = stage.member_mut(EVE);
    (seat.copilot_mode, seat.copilot_remaining_steps)
}

#[test]
fn turned_on_it_begins_at_once_where_nothing_goes_on() {
    let mut stage = copilot_on(2);

    assert_eq!(
        stage.run_command(&START).unwrap(),
        ["queue Eve: user_turn, copilot_start"]
    );
    assert!(
        stage
            .state
            .queued
            .as_ref()
            .is_some_and(|it| it.round_id.is_none())
    );
    assert!(stage.run_command(&START).unwrap().is_empty());
}

#[test]
fn turned_on_in_the_middle_of_a_reply_it_waits_for_the_end_of_the_round() {
    let mut stage = PlannerFixture::with_characters(&["Ada"]);
    stage.post_as_eve("Hi.").unwrap();
    enable_copilot(&mut stage, EVE, 2);
    assert!(stage.run_command(&START).unwrap().is_empty());
    stage.claim_due();
    assert!(stage.run_command(&START).unwrap().is_empty());

    let told = stage.end_run(success("Hello."));

    assert_eq!(
        told.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn its_text_spends_a_step_and_is_answered_like_a_users() {
    let mut stage = started(2);

    let told = stage.end_run(success("I am Eve."));

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
    assert_eq!(copilot_settings(&mut stage), (CopilotMode::Full, Some(1)));
}

#[test]
fn the_last_step_is_answered_and_it_is_off() {
    let mut stage = started(1);
    let told = stage.end_run(success("Bye."));
    assert_eq!(told.last().unwrap(), "queue Ada: user_turn, user_message");
    assert_eq!(copilot_settings(&mut stage), (CopilotMode::None, None));
    stage.claim_due();

    stage.end_run(success("Farewell."));

    assert!(stage.state.queued.is_none() && stage.state.round.is_none());
    assert!(stage.post_as_eve("It is me again.").is_ok());
}

#[test]
fn each_step_writes_one_text_that_gets_one_reply() {
    let mut stage = started(10);
    let mut n_texts = 0;
    while stage.state.running.is_some() {
        stage.end_run(success("Word."));
        n_texts += 1;
        if stage.state.queued.is_some() {
            stage.claim_due();
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
        stage.expire_lease(),
        [
            "expire Eve: failed stale_running_run",
            "queue Eve: user_turn, recovered, attempt 2"
        ]
    );
    assert_eq!(copilot_settings(&mut stage).1, Some(3));
    stage.claim_due();
    stage.end_run(success("Again."));

    assert_eq!(copilot_settings(&mut stage).1, Some(2));
}

#[test]
fn a_copilot_without_steps_at_the_claim_is_skipped() {
    let mut stage = copilot_on(1);
    stage.run_command(&START).unwrap();
    disable_copilot(&mut stage);

    assert_eq!(stage.claim_due(), ["skip Eve: speaker_unavailable"]);
}

#[test]
fn turned_off_what_waits_is_canceled_and_what_is_written_is_dropped() {
    let mut queued = copilot_on(2);
    queued.run_command(&START).unwrap();
    disable_copilot(&mut queued);
    assert_eq!(queued.run_command(&CHANGED).unwrap(), ["cancel queued Eve"]);

    let mut running = started(2);
    disable_copilot(&mut running);
    assert_eq!(
        running.run_command(&CHANGED).unwrap(),
        ["finish Eve: canceled"]
    );
}

#[test]
fn the_copilot_does_not_speak_for_a_muted_observing_or_removed_member() {
    let muted = |it: &mut membership::Model| it.participation = Participation::Muted;
    let observer = |it: &mut membership::Model| it.participation = Participation::Observer;
    let removed = |it: &mut membership::Model| it.status = MembershipStatus::Removed;
    for lose in [muted, observer, removed] {
        let mut stage = copilot_on(2);
        lose(stage.member_mut(EVE));
        assert!(stage.run_command(&START).unwrap().is_empty());

        let mut stage = copilot_on(2);
        stage.run_command(&START).unwrap();
        lose(stage.member_mut(EVE));
        assert_eq!(
            stage.run_command(&CHANGED).unwrap(),
            ["skip Eve: speaker_unavailable"]
        );

        let mut stage = started(2);
        lose(stage.member_mut(EVE));
        assert_eq!(
            stage.run_command(&CHANGED).unwrap(),
            ["finish Eve: canceled"]
        );
    }
}

#[test]
fn it_rests_while_a_round_is_failed_and_goes_on_after_the_retry() {
    let mut stage = started(2);
    stage.end_run(success("Hi."));
    stage.claim_due();
    stage.end_run(failure());
    assert!(stage.state.queued.is_none());
    assert!(stage.run_command(&START).unwrap().is_empty());
    stage.run_command(&Command::Retry).unwrap();
    stage.claim_due();

    let told = stage.end_run(success("Hello."));

    assert_eq!(
        told.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn paused_during_an_answer_it_waits_for_resume() {
    let mut stage = started(2);
    stage.end_run(success("Hi."));
    stage.claim_due();
    stage.run_command(&Command::Pause).unwrap();
    stage.end_run(success("Hello."));
    assert!(stage.state.queued.is_none());

    let told = stage.run_command(&Command::Resume).unwrap();

    assert_eq!(told, ["queue Eve: user_turn, copilot_continue"]);
    assert_eq!(
        stage.run_command(&Command::Resume),
        Err(CommandError::NothingPaused)
    );
}

#[test]
fn stopped_during_its_own_text_it_waits_for_resume() {
    let mut stage = started(2);
    stage.run_command(&STOP).unwrap();
    assert!(stage.state.queued.is_none());
    assert_eq!(copilot_settings(&mut stage), (CopilotMode::Full, Some(2)));

    let told = stage.run_command(&Command::Resume).unwrap();

    assert_eq!(told, ["queue Eve: user_turn, copilot_continue"]);
}

#[test]
fn its_failed_run_is_tried_again_while_it_is_on() {
    let mut stage = started(2);
    stage.end_run(failure());
    assert!(stage.state.round.is_none() && stage.state.queued.is_none());

    let told = stage.run_command(&Command::Retry).unwrap();

    assert_eq!(told, ["queue Eve: user_turn, copilot_continue"]);
    assert!(
        stage.run_command(&Command::Retry).unwrap().is_empty(),
        "pressed twice: one run"
    );
    stage.claim_due();
    stage.end_run(failure());
    disable_copilot(&mut stage);
    assert_eq!(
        stage.run_command(&Command::Retry),
        Err(CommandError::NothingToRetry)
    );
}

#[test]
fn kept_words_of_a_stopped_run_spend_a_step_and_are_not_answered() {
    let mut stage = started(2);
    stage
        .run_command(&Command::Stop { keep_partial: true })
        .unwrap();

    let partial = Some(generated_text("I was"));
    let told = stage.end_run(ExecutionEnd::Canceled {
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
fn the_copilot_precedes_auto_mode_and_does_not_reset_its_turns() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    stage.state.space.auto_mode_enabled = true;
    stage.state.space.auto_mode_max_turns = 1;
    stage.state.conversation.auto_mode_turns = 1;
    enable_copilot(&mut stage, EVE, 1);
    stage.run_command(&START).unwrap();
    stage.claim_due();
    stage.end_run(success("Hi."));
    assert_eq!(stage.state.conversation.auto_mode_turns, 1);
    stage.claim_due();

    stage.end_run(success("Hello."));

    assert!(
        stage.state.queued.is_none(),
        "auto mode's turns are a person's to renew"
    );
}

#[test]
fn a_reply_order_without_speakers_selects_no_speaker() {
    let mut stage = copilot_on(2);
    stage.state.space.reply_order = ReplyOrder::Manual;
    assert!(stage.run_command(&START).unwrap().is_empty());
    stage.run_command(&force(ADA)).unwrap();
    stage.claim_due();

    stage.end_run(success("Hello."));

    assert!(stage.state.queued.is_none());
}

#[test]
fn a_speaker_who_was_forced_is_followed_too() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    enable_copilot(&mut stage, EVE, 2);
    stage.run_command(&force(BOB)).unwrap();
    stage.claim_due();

    let told = stage.end_run(success("Hello."));

    assert_eq!(
        told.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn without_a_replier_the_copilot_does_not_reply_to_itself() {
    let mut stage = started(5);
    stage.member_mut(ADA).participation = Participation::Muted;

    stage.end_run(success("Hello?"));

    assert!(stage.state.queued.is_none() && stage.state.round.is_none());
    assert_eq!(copilot_settings(&mut stage).1, Some(4));
}

#[test]
fn several_copilots_alternate() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    stage.member_mut(BOB).kind = membership::MembershipKind::Human;
    enable_copilot(&mut stage, EVE, 2);
    enable_copilot(&mut stage, BOB, 2);
    stage.run_command(&START).unwrap();
    stage.claim_due();
    stage.end_run(success("I am Eve."));
    stage.claim_due();

    let told = stage.end_run(success("Hello, Eve."));

    assert_eq!(
        told.last().unwrap(),
        "queue Bob: user_turn, copilot_followup"
    );
}

#[test]
fn the_copilot_speaks_only_in_its_own_conversation() {
    let mut stage = copilot_on(2);
    stage.member_mut(EVE).copilot_conversation_id = Some(base::ids::ConversationId(9));

    assert!(stage.run_command(&START).unwrap().is_empty());
    stage.post_as_eve("Me.").unwrap();
    stage.claim_due();
    stage.end_run(success("You."));

    assert!(stage.state.queued.is_none());
}
