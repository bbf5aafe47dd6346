//! Tests of continues: when one is planned or refused, how it ends, and what cancels it.

use base::ids::MessageId;
use base::message_text;

use crate::conversations::message::Visibility;
use crate::runs::scheduling::command::{Command, CommandError, ExecutionEnd};
use crate::runs::scheduling::planner::fixture::{
    ADA, EVE, PlannerFixture, RETRY, STOP, failure, force, generated_text, new_version, success,
};
use crate::runs::scheduling::planner::regenerate_tests::{regenerate, select};
use crate::runs::scheduling::planner::rules_tests::{edit, show};
use crate::runs::store::run::{RunCancelReason, RunKind, RunReason, RunStatus};
use crate::spaces::membership::{CopilotMode, MembershipStatus};
use crate::spaces::space::{GroupRegenerateMode, RepliesPerTurn};

/// Returns the command to continue this message, or the tail.
pub fn continue_command(message: Option<i64>) -> Command {
    Command::Continue(new_version(message))
}

/// Eve has posted "Hi.", Ada has replied "Hello." as message 2.
fn answered() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture
}

/// A continue of Ada's reply is running.
fn writing() -> PlannerFixture {
    let mut fixture = answered();
    fixture.run_command(&continue_command(None)).unwrap();
    fixture.claim_due();
    fixture
}

fn refusal(fixture: &mut PlannerFixture, message: Option<i64>) -> CommandError {
    fixture.run_command(&continue_command(message)).unwrap_err()
}

fn texts(fixture: &PlannerFixture) -> Vec<(i64, &str)> {
    let all = fixture.swipes.iter();
    all.map(|it| (it.position, it.content.as_str())).collect()
}

#[test]
fn the_author_of_the_newest_message_continues_it() {
    for message in [None, Some(2)] {
        let mut fixture = answered();

        let plan = fixture.run_command(&continue_command(message)).unwrap();

        assert_eq!(plan, ["queue Ada: continue, continue"]);
        let run = fixture.state.queued.unwrap();
        assert_eq!(run.speaker_space_membership_id, Some(ADA));
        assert_eq!(run.debug.target_message_id, Some(MessageId(2)));
        assert_eq!(run.debug.expected_last_message_id, Some(MessageId(2)));
        assert_eq!(run.debug.trigger_message_id, Some(MessageId(1)));
        assert_eq!(run.debug.chosen_because.unwrap(), "continued by Eve");
        assert!(run.round_id.is_none() && run.run_after.is_none());
    }
}

#[test]
fn the_text_becomes_a_version_and_nothing_follows() {
    let mut fixture = answered();
    fixture.state.space.auto_mode_enabled = true;
    fixture.run_command(&continue_command(None)).unwrap();
    fixture.claim_due();

    let plan = fixture.end_run(success("Hello. And so on."));

    let expected = [
        "finish Ada: succeeded",
        r#"another text "Hello. And so on.""#,
    ];
    assert_eq!(plan, expected);
    assert_eq!(texts(&fixture), [(0, "Hello."), (1, "Hello. And so on.")]);
    assert_eq!(fixture.messages[1].active_swipe, 1);
    assert_eq!(fixture.messages.len(), 2);
    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn only_the_newest_message_is_continued() {
    let mut fixture = answered();
    assert_eq!(refusal(&mut fixture, Some(1)), CommandError::NotTheNewest);
    assert_eq!(refusal(&mut fixture, Some(9)), CommandError::NotFound);
    fixture.run_command(&show(2, Visibility::Hidden)).unwrap();
    assert_eq!(refusal(&mut fixture, Some(2)), CommandError::NotFound);
    assert_eq!(refusal(&mut fixture, None), CommandError::NothingToContinue);

    let mut older = answered();
    older.post_as_eve("And?").unwrap();
    older.run_command(&STOP).unwrap();
    for message in [None, Some(2), Some(3)] {
        assert_eq!(refusal(&mut older, message), CommandError::NotTheNewest);
    }

    let mut empty = PlannerFixture::with_characters(&["Ada"]);
    assert_eq!(refusal(&mut empty, None), CommandError::NothingToContinue);
}

#[test]
fn the_mode_of_a_regenerate_does_not_affect_a_continue() {
    let mut fixture = answered();
    fixture.state.space.group_regenerate_mode = GroupRegenerateMode::LastTurn;

    let plan = fixture.run_command(&continue_command(None)).unwrap();

    assert_eq!(plan, ["queue Ada: continue, continue"]);
}

#[test]
fn a_message_of_a_copilot_is_not_an_ai_message() {
    let mut fixture = PlannerFixture::with_characters(&["Ada"]);
    let conversation = fixture.state.conversation.id;
    let member = fixture.member_mut(EVE);
    member.copilot_mode = CopilotMode::Full;
    member.copilot_remaining_steps = Some(1);
    member.copilot_conversation_id = Some(conversation);
    let start = Command::CopilotStarted { membership: EVE };
    fixture.run_command(&start).unwrap();
    fixture.claim_due();
    fixture.end_run(success("I think so."));
    fixture.run_command(&STOP).unwrap();

    assert_eq!(refusal(&mut fixture, None), CommandError::NothingToContinue);
}

#[test]
fn an_excluded_message_is_not_continued() {
    let mut fixture = answered();
    fixture.run_command(&show(2, Visibility::Excluded)).unwrap();

    assert_eq!(refusal(&mut fixture, None), CommandError::NothingToContinue);
}

#[test]
fn a_continue_is_refused_while_a_run_is_running() {
    let mut fixture = answered();
    fixture.run_command(&force(ADA)).unwrap();
    fixture.claim_due();

    assert_eq!(refusal(&mut fixture, None), CommandError::GenerationLocked);
}

#[test]
fn a_member_that_left_continues_nothing() {
    let mut fixture = answered();
    fixture.member_mut(ADA).status = MembershipStatus::Removed;

    assert_eq!(refusal(&mut fixture, None), CommandError::NoSpeaker);
}

#[test]
fn a_message_without_room_for_more_text_is_not_continued() {
    let mut fixture = answered();
    fixture.messages[1].content = "x".repeat(message_text::MAX_BYTES);
    assert_eq!(refusal(&mut fixture, None), CommandError::TooLong);

    fixture.messages[1].content.pop();
    fixture.run_command(&continue_command(None)).unwrap();
}

#[test]
fn a_continue_ends_the_round_and_replaces_the_queued_run() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    let bob = fixture.state.queued.as_ref().unwrap().id;

    let plan = fixture.run_command(&continue_command(None)).unwrap();

    let expected = ["round canceled: continue", "queue Ada: continue, continue"];
    assert_eq!(plan, expected);
    assert_eq!(fixture.state.queued.as_ref().unwrap().id, bob);
}

#[test]
fn a_post_cancels_a_queued_continue() {
    let mut fixture = answered();
    fixture.run_command(&continue_command(None)).unwrap();
    let id = fixture.state.queued.as_ref().unwrap().id;

    fixture.post_as_eve("Wait.").unwrap();

    let ended = fixture.ended.iter().find(|it| it.id == id).unwrap();
    let because = Some(RunCancelReason::SupersededByMessage);
    assert_eq!(
        (ended.status, ended.canceled_because),
        (RunStatus::Canceled, because)
    );
    let queued = fixture.state.queued.as_ref().unwrap();
    assert!(queued.id != id && queued.kind == RunKind::UserTurn);
}

#[test]
fn a_continue_whose_target_is_no_longer_the_newest_is_skipped() {
    let mut fixture = answered();
    fixture.run_command(&continue_command(None)).unwrap();
    fixture
        .state
        .queued
        .as_mut()
        .unwrap()
        .debug
        .expected_last_message_id = Some(MessageId(1));

    assert_eq!(
        fixture.claim_due(),
        ["skip Ada: expected_last_message_mismatch"]
    );
    assert!(fixture.state.queued.is_none());
}

#[test]
fn a_stop_drops_the_new_text_or_keeps_what_was_written() {
    let mut dropped = writing();
    assert_eq!(
        dropped.run_command(&STOP).unwrap(),
        ["finish Ada: canceled"]
    );
    assert!(dropped.swipes.is_empty() && dropped.messages[1].content == "Hello.");

    let mut kept = writing();
    let stop = Command::Stop { keep_partial: true };
    kept.run_command(&stop).unwrap();
    kept.end_run(ExecutionEnd::Canceled {
        partial: Some(generated_text("Hello. And")),
        usage: None,
        prompt: None,
    });
    assert_eq!(texts(&kept), [(0, "Hello."), (1, "Hello. And")]);
}

#[test]
fn a_failed_continue_is_retried_until_a_newer_message() {
    let mut fixture = writing();
    fixture.end_run(failure());
    assert!(fixture.swipes.is_empty());
    let mut newer = fixture.clone();

    fixture.run_command(&RETRY).unwrap();

    let run = fixture.state.queued.as_ref().unwrap();
    assert_eq!(
        (run.kind, run.reason),
        (RunKind::Continue, RunReason::Retry)
    );
    assert_eq!(run.debug.target_message_id, Some(MessageId(2)));
    assert_eq!(run.debug.expected_last_message_id, Some(MessageId(2)));

    newer.post_as_eve("Never mind.").unwrap();
    newer.run_command(&STOP).unwrap();
    newer.run_command(&RETRY).unwrap();
    assert_eq!(newer.state.queued.as_ref().unwrap().kind, RunKind::UserTurn);
}

#[test]
fn a_continue_of_a_dead_node_is_planned_again_once() {
    let mut fixture = writing();
    fixture.expire_lease();
    let run = fixture.state.queued.as_ref().unwrap();
    assert_eq!((run.kind, run.attempt), (RunKind::Continue, 2));
    assert_eq!(run.debug.target_message_id, Some(MessageId(2)));

    fixture.claim_due();
    fixture.expire_lease();
    assert!(fixture.state.queued.is_none());
}

#[test]
fn the_message_is_not_changed_while_it_is_continued() {
    let mut fixture = writing();

    let edited = fixture.run_command(&edit(2));
    assert_eq!(edited.unwrap_err(), CommandError::MessageBeingWritten);
    let selected = fixture.run_command(&select(2, 0));
    assert_eq!(selected.unwrap_err(), CommandError::MessageBeingWritten);
}

#[test]
fn hiding_the_message_cancels_its_continue() {
    let mut fixture = writing();

    fixture.run_command(&show(2, Visibility::Hidden)).unwrap();

    assert!(fixture.state.running.is_none());
    let ended = fixture.ended.last().unwrap();
    assert_eq!(ended.canceled_because, Some(RunCancelReason::MessageHidden));
}

#[test]
fn a_regenerate_cancels_a_running_continue() {
    let mut fixture = writing();

    let plan = fixture.run_command(&regenerate(None)).unwrap();

    let expected = ["finish Ada: canceled", "queue Ada: regenerate, regenerate"];
    assert_eq!(plan, expected);
}
