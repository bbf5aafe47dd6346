//! Tests of the copilot: when it speaks, what follows its texts, and when it pauses.

use crate::runs::scheduling::command::{Command, CommandError, ExecutionEnd};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, RETRY, STOP, failure, force, generated_text, success,
};
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, MembershipStatus, Participation};
use crate::spaces::space::ReplyOrder;

const START: Command = Command::CopilotStarted { membership: EVE };
const CHANGED: Command = Command::ApplyChanges;

/// Eve with Ada; her copilot is on with this number of steps, but was not started.
fn copilot_on(steps: i64) -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada"]);
    enable_copilot(&mut fixture, EVE, steps);
    fixture
}

fn enable_copilot(fixture: &mut PlannerFixture, membership: base::ids::MembershipId, steps: i64) {
    let conversation = fixture.state.conversation.id;
    let member = fixture.member_mut(membership);
    member.copilot_mode = CopilotMode::Full;
    member.copilot_remaining_steps = Some(steps);
    member.copilot_conversation_id = Some(conversation);
}

fn disable_copilot(fixture: &mut PlannerFixture) {
    let member = fixture.member_mut(EVE);
    member.copilot_mode = CopilotMode::None;
    member.copilot_remaining_steps = None;
}

fn started(steps: i64) -> PlannerFixture {
    let mut fixture = copilot_on(steps);
    fixture.run_command(&START).unwrap();
    fixture.claim_due();
    fixture
}

/// Returns the copilot mode and the remaining steps of Eve's membership.
fn copilot_settings(fixture: &mut PlannerFixture) -> (CopilotMode, Option<i64>) {
    let member = fixture.member_mut(EVE);
    (member.copilot_mode, member.copilot_remaining_steps)
}

#[test]
fn a_copilot_started_in_an_idle_conversation_is_queued_at_once() {
    let mut fixture = copilot_on(2);

    assert_eq!(
        fixture.run_command(&START).unwrap(),
        ["queue Eve: user_turn, copilot_start"]
    );
    assert!(
        fixture
            .state
            .queued
            .as_ref()
            .is_some_and(|it| it.round_id.is_none())
    );
    assert!(fixture.run_command(&START).unwrap().is_empty());
}

#[test]
fn a_copilot_started_during_a_reply_waits_for_the_end_of_the_round() {
    let mut fixture = PlannerFixture::with_characters(&["Ada"]);
    fixture.post_as_eve("Hi.").unwrap();
    enable_copilot(&mut fixture, EVE, 2);
    assert!(fixture.run_command(&START).unwrap().is_empty());
    fixture.claim_due();
    assert!(fixture.run_command(&START).unwrap().is_empty());

    let plan = fixture.end_run(success("Hello."));

    assert_eq!(
        plan.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn a_text_of_the_copilot_uses_a_step_and_is_answered_like_a_user_message() {
    let mut fixture = started(2);

    let plan = fixture.end_run(success("I am Eve."));

    let expected = [
        "finish Eve: succeeded",
        "Eve says \"I am Eve.\"",
        "a step of Eve",
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        fixture.messages[0].role,
        crate::conversations::message::MessageRole::User
    );
    assert_eq!(copilot_settings(&mut fixture), (CopilotMode::Full, Some(1)));
}

#[test]
fn the_last_text_of_the_copilot_is_answered_and_turns_it_off() {
    let mut fixture = started(1);
    let plan = fixture.end_run(success("Bye."));
    assert_eq!(plan.last().unwrap(), "queue Ada: user_turn, user_message");
    assert_eq!(copilot_settings(&mut fixture), (CopilotMode::None, None));
    fixture.claim_due();

    fixture.end_run(success("Farewell."));

    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
    assert!(fixture.post_as_eve("It is me again.").is_ok());
}

#[test]
fn each_step_writes_one_text_that_gets_one_reply() {
    let mut fixture = started(10);
    let mut n_texts = 0;
    while fixture.state.running.is_some() {
        fixture.end_run(success("Word."));
        n_texts += 1;
        if fixture.state.queued.is_some() {
            fixture.claim_due();
        }
    }

    assert_eq!(n_texts, 20);
    let by_eve = fixture
        .messages
        .iter()
        .filter(|it| it.space_membership_id == EVE);
    assert_eq!(by_eve.count(), 10);
}

#[test]
fn a_copilot_run_whose_node_died_uses_no_step_and_its_second_attempt_uses_one() {
    let mut fixture = started(3);

    assert_eq!(
        fixture.expire_lease(),
        [
            "expire Eve: failed stale_running_run",
            "queue Eve: user_turn, recovered, attempt 2"
        ]
    );
    assert_eq!(copilot_settings(&mut fixture).1, Some(3));
    fixture.claim_due();
    fixture.end_run(success("Again."));

    assert_eq!(copilot_settings(&mut fixture).1, Some(2));
}

#[test]
fn a_copilot_without_steps_at_the_claim_is_skipped() {
    let mut fixture = copilot_on(1);
    fixture.run_command(&START).unwrap();
    disable_copilot(&mut fixture);

    assert_eq!(fixture.claim_due(), ["skip Eve: speaker_unavailable"]);
}

#[test]
fn disabling_the_copilot_cancels_its_queued_or_running_run() {
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
    for restrict in [muted, observer, removed] {
        let mut fixture = copilot_on(2);
        restrict(fixture.member_mut(EVE));
        assert!(fixture.run_command(&START).unwrap().is_empty());

        let mut fixture = copilot_on(2);
        fixture.run_command(&START).unwrap();
        restrict(fixture.member_mut(EVE));
        assert_eq!(
            fixture.run_command(&CHANGED).unwrap(),
            ["skip Eve: speaker_unavailable"]
        );

        let mut fixture = started(2);
        restrict(fixture.member_mut(EVE));
        assert_eq!(
            fixture.run_command(&CHANGED).unwrap(),
            ["finish Eve: canceled"]
        );
    }
}

#[test]
fn the_copilot_waits_while_a_round_is_failed_and_continues_after_the_retry() {
    let mut fixture = started(2);
    fixture.end_run(success("Hi."));
    fixture.claim_due();
    fixture.end_run(failure());
    assert!(fixture.state.queued.is_none());
    assert!(fixture.run_command(&START).unwrap().is_empty());
    fixture.run_command(&RETRY).unwrap();
    fixture.claim_due();

    let plan = fixture.end_run(success("Hello."));

    assert_eq!(
        plan.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn a_copilot_paused_during_a_reply_waits_for_resume() {
    let mut fixture = started(2);
    fixture.end_run(success("Hi."));
    fixture.claim_due();
    fixture.run_command(&Command::Pause).unwrap();
    fixture.end_run(success("Hello."));
    assert!(fixture.state.queued.is_none());

    let plan = fixture.run_command(&Command::Resume).unwrap();

    assert_eq!(plan, ["queue Eve: user_turn, copilot_continue"]);
    assert_eq!(
        fixture.run_command(&Command::Resume),
        Err(CommandError::NothingPaused)
    );
}

#[test]
fn a_copilot_stopped_during_its_own_text_waits_for_resume() {
    let mut fixture = started(2);
    fixture.run_command(&STOP).unwrap();
    assert!(fixture.state.queued.is_none());
    assert_eq!(copilot_settings(&mut fixture), (CopilotMode::Full, Some(2)));

    let plan = fixture.run_command(&Command::Resume).unwrap();

    assert_eq!(plan, ["queue Eve: user_turn, copilot_continue"]);
}

#[test]
fn a_failed_copilot_run_can_be_retried_while_the_copilot_is_on() {
    let mut fixture = started(2);
    fixture.end_run(failure());
    assert!(fixture.state.round.is_none() && fixture.state.queued.is_none());
    assert_eq!(copilot_settings(&mut fixture), (CopilotMode::Full, Some(2)));

    let plan = fixture.run_command(&RETRY).unwrap();

    assert_eq!(plan, ["queue Eve: user_turn, copilot_continue"]);
    assert!(
        fixture.run_command(&RETRY).unwrap().is_empty(),
        "a second retry should queue no other run"
    );
    fixture.claim_due();
    fixture.end_run(failure());
    disable_copilot(&mut fixture);
    assert_eq!(
        fixture.run_command(&RETRY),
        Err(CommandError::NothingToRetry)
    );
}

#[test]
fn the_kept_text_of_a_stopped_copilot_run_uses_a_step_and_is_not_answered() {
    let mut fixture = started(2);
    fixture
        .run_command(&Command::Stop { keep_partial: true })
        .unwrap();

    let partial = Some(generated_text("I was"));
    let plan = fixture.end_run(ExecutionEnd::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    assert_eq!(
        plan,
        [
            "finish Eve: canceled",
            "Eve says \"I was\"",
            "a step of Eve"
        ]
    );
}

#[test]
fn the_copilot_precedes_auto_mode_and_does_not_reset_its_turns() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.auto_mode_max_turns = 1;
    fixture.state.conversation.auto_mode_turns = 1;
    enable_copilot(&mut fixture, EVE, 1);
    fixture.run_command(&START).unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hi."));
    assert_eq!(fixture.state.conversation.auto_mode_turns, 1);
    fixture.claim_due();

    fixture.end_run(success("Hello."));

    assert!(
        fixture.state.queued.is_none(),
        "only a user's own message resets the turns of auto mode"
    );
}

#[test]
fn the_copilot_does_not_start_or_follow_in_manual_order() {
    let mut fixture = copilot_on(2);
    fixture.state.space.reply_order = ReplyOrder::Manual;
    assert!(fixture.run_command(&START).unwrap().is_empty());
    fixture.run_command(&force(ADA)).unwrap();
    fixture.claim_due();

    fixture.end_run(success("Hello."));

    assert!(fixture.state.queued.is_none());
}

#[test]
fn the_copilot_also_follows_a_forced_reply() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    enable_copilot(&mut fixture, EVE, 2);
    fixture.run_command(&force(BOB)).unwrap();
    fixture.claim_due();

    let plan = fixture.end_run(success("Hello."));

    assert_eq!(
        plan.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
}

#[test]
fn without_a_replier_the_copilot_does_not_reply_to_itself() {
    let mut fixture = started(5);
    fixture.member_mut(ADA).participation = Participation::Muted;

    fixture.end_run(success("Hello?"));

    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
    assert_eq!(copilot_settings(&mut fixture).1, Some(4));
}

#[test]
fn several_copilots_alternate() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.member_mut(BOB).kind = membership::MembershipKind::Human;
    enable_copilot(&mut fixture, EVE, 2);
    enable_copilot(&mut fixture, BOB, 2);
    fixture.run_command(&START).unwrap();
    fixture.claim_due();
    fixture.end_run(success("I am Eve."));
    fixture.claim_due();

    let plan = fixture.end_run(success("Hello, Eve."));

    assert_eq!(
        plan.last().unwrap(),
        "queue Bob: user_turn, copilot_followup"
    );
}

#[test]
fn the_copilot_speaks_only_in_its_own_conversation() {
    let mut fixture = copilot_on(2);
    fixture.member_mut(EVE).copilot_conversation_id = Some(base::ids::ConversationId(9));

    assert!(fixture.run_command(&START).unwrap().is_empty());
    fixture.post_as_eve("Me.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("You."));

    assert!(fixture.state.queued.is_none());
}
