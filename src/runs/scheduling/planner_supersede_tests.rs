//! Tests of what a post does to forced runs, regenerates and a copilot's runs that are queued or
//! running, and of the reason that each canceled run stores.

use base::ids::{MembershipId, MessageId};

use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::messages::new_post::NewPost;
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, RETRY, SKIP, STOP, failure, force, post, queued, running,
    success,
};
use crate::runs::scheduling::planner::queue_edit_tests;
use crate::runs::scheduling::planner::regenerate_tests::regenerate;
use crate::runs::store::run::{RunCancelReason, RunKind, RunStatus};
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, Participation};
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

/// The second member after Eve, if it is a user.
const GUS: MembershipId = BOB;

/// Bob is muted, and his forced turn is queued.
fn forced() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.user_turn_debounce_ms = 500;
    fixture.member_mut(BOB).participation = Participation::Muted;
    fixture.run_command(&force(BOB)).unwrap();
    fixture
}

/// Ada has replied, and a regenerate of her reply is queued.
fn regenerated() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture.run_command(&regenerate(None)).unwrap();
    fixture
}

#[test]
fn a_post_keeps_a_queued_forced_turn_as_the_first_slot_of_its_round() {
    let mut fixture = forced();
    let before = fixture.state.queued.clone().unwrap();

    let plan = fixture.post_as_eve("Hi.").unwrap();

    let expected = [
        r#"Eve says "Hi.""#,
        "round of Bob, Ada",
        "queue Bob: force_talk, force_talk, in 500 ms",
    ];
    assert_eq!(plan, expected);
    let run = fixture.state.queued.clone().unwrap();
    assert_eq!((run.id, run.kind), (before.id, RunKind::ForceTalk));
    assert_eq!(run.debug.chosen_because.as_deref(), Some("forced by Eve"));
    assert_eq!(run.debug.trigger_message_id, Some(MessageId(1)));
    let round = fixture.state.round.clone().unwrap();
    assert_eq!(run.round_id, Some(round.id));
    let forced: Vec<bool> = round.slots.0.iter().map(|it| it.forced).collect();
    assert_eq!(forced, [true, false]);
    assert_eq!(round.slots.0[0].chosen_because, "forced by Eve");
    fixture.now = fixture.now.plus_ms(500);
    assert_eq!(fixture.claim_due(), ["claim Bob"], "although he is muted");
    let spoken = fixture.end_run(success("Well."));
    assert_eq!(spoken.last().unwrap(), "queue Ada: user_turn, next_slot");
}

#[test]
fn a_later_post_keeps_the_forced_turn_in_the_same_way() {
    let mut fixture = forced();
    let before = fixture.state.queued.clone().unwrap();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.now = fixture.now.plus_ms(100);

    let plan = fixture.post_as_eve("And?").unwrap();

    let expected = [
        r#"Eve says "And?""#,
        "round superseded: user_message",
        "round of Bob, Ada",
        "queue Bob: force_talk, force_talk, in 500 ms",
    ];
    assert_eq!(plan, expected);
    assert_eq!(fixture.state.queued.unwrap().id, before.id);
}

#[test]
fn a_forced_speaker_that_the_post_chooses_too_speaks_once() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.run_command(&force(BOB)).unwrap();

    let plan = fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(plan[1], "round of Bob, Ada");
}

#[test]
fn a_forced_turn_stays_queued_if_the_post_plans_no_round() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.run_command(&force(BOB)).unwrap();
    let before = fixture.state.queued.clone();

    let plan = fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(plan, [r#"Eve says "Hi.""#]);
    assert_eq!(fixture.state.queued, before);
}

#[test]
fn a_forced_slot_that_failed_or_was_stopped_is_forced_again() {
    for stops in [true, false] {
        let mut fixture = forced();
        fixture.post_as_eve("Hi.").unwrap();
        fixture.now = fixture.now.plus_ms(500);
        fixture.claim_due();
        let again = if stops {
            fixture.run_command(&STOP).unwrap();
            fixture.run_command(&Command::Resume).unwrap()
        } else {
            fixture.end_run(failure());
            fixture.run_command(&RETRY).unwrap()
        };

        let reason = if stops { "resume" } else { "retry" };
        let expected = format!("queue Bob: force_talk, {reason}");
        assert_eq!(again.last(), Some(&expected));
    }
}

#[test]
fn a_queue_edit_without_the_forced_speaker_ends_that_turn_with_a_reason() {
    let mut fixture = forced();
    fixture.post_as_eve("Hi.").unwrap();
    let run = fixture.state.queued.clone().unwrap();
    let round = fixture.state.round.as_ref().unwrap().id;

    fixture
        .run_command(&queue_edit_tests::edit(round, &[ADA]))
        .unwrap();

    let ended = fixture.ended.last().unwrap();
    assert_eq!(ended.id, run.id);
    assert_eq!(ended.canceled_because, Some(RunCancelReason::Superseded));
    let queued = fixture.state.queued.unwrap();
    assert_ne!(queued.id, run.id);
    assert_eq!(queued.kind, RunKind::UserTurn);
}

#[test]
fn a_post_cancels_a_queued_regenerate_and_plans_a_new_run() {
    for order in [ReplyOrder::List, ReplyOrder::Manual] {
        let mut fixture = regenerated();
        fixture.state.space.reply_order = order;
        let before = fixture.state.queued.clone().unwrap();

        let plan = fixture.post_as_eve("And?").unwrap();

        assert_eq!(plan[..2], [r#"Eve says "And?""#, "cancel queued Ada"]);
        let ended = fixture.ended.last().unwrap();
        assert_eq!((ended.id, ended.status), (before.id, RunStatus::Canceled));
        let reason = Some(RunCancelReason::SupersededByMessage);
        assert_eq!(ended.canceled_because, reason);
        assert_eq!(ended.superseded_by_message_id, Some(MessageId(3)));
        let queued = fixture.state.queued.as_ref();
        assert_eq!(queued.is_some(), order == ReplyOrder::List);
        assert!(queued.is_none_or(|it| it.id != before.id));
    }
}

#[test]
fn a_post_replaces_the_queued_text_of_another_users_copilot() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Gus"]);
    fixture.member_mut(GUS).kind = membership::MembershipKind::Human;
    let conversation = fixture.state.conversation.id;
    let eve = fixture.member_mut(EVE);
    eve.copilot_mode = CopilotMode::Full;
    (eve.copilot_remaining_steps, eve.copilot_conversation_id) = (Some(2), Some(conversation));
    fixture
        .run_command(&Command::CopilotStarted { membership: EVE })
        .unwrap();
    let Command::MessagePosted(posted) = post("Wait.") else {
        unreachable!("`post` returns a post")
    };

    let plan = fixture.run_command(&Command::MessagePosted(Box::new(NewPost {
        author: GUS,
        ..*posted
    })));
    fixture.claim_due();
    let followed = fixture.end_run(success("I wait."));

    let expected = [
        r#"Gus says "Wait.""#,
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(plan.unwrap(), expected);
    assert_eq!(
        followed.last().unwrap(),
        "queue Eve: user_turn, copilot_followup"
    );
    assert_eq!(fixture.member_mut(EVE).copilot_remaining_steps, Some(2));
}

#[test]
fn a_running_run_that_a_post_restarts_names_the_post() {
    let mut fixture = running();
    fixture.state.space.during_generation_user_input_policy = InputPolicy::Restart;

    fixture.post_as_eve("No, wait.").unwrap();

    let ended = fixture.ended.last().unwrap();
    let reason = Some(RunCancelReason::SupersededByMessage);
    assert_eq!(ended.canceled_because, reason);
    assert_eq!(ended.superseded_by_message_id, Some(MessageId(2)));
}

#[test]
fn each_canceled_run_has_a_reason() {
    let settings = |change: fn(&mut PlannerFixture)| {
        move |fixture: &mut PlannerFixture| {
            change(fixture);
            _ = fixture.run_command(&Command::ApplyChanges).unwrap();
        }
    };
    let does = |command: Command| {
        move |fixture: &mut PlannerFixture| _ = fixture.run_command(&command).unwrap()
    };
    let mutes = |fixture: &mut PlannerFixture| {
        fixture.member_mut(ADA).participation = Participation::Muted;
        _ = fixture.run_command(&Command::ApplyChanges).unwrap();
    };
    let hides = Command::SetVisibility {
        message: MessageId(1),
        visibility: crate::conversations::message::Visibility::Hidden,
    };
    let releases = |fixture: &mut PlannerFixture| {
        fixture.post_as_eve("And?").unwrap();
        _ = fixture.release_run();
    };
    let by_hand = settings(|it| it.state.space.reply_order = ReplyOrder::Manual);
    let archived = Command::SpaceClosed(RunCancelReason::Archived);
    let deleted = Command::SpaceClosed(RunCancelReason::Deleted);
    type Act = Box<dyn Fn(&mut PlannerFixture)>;
    let cases: Vec<(PlannerFixture, Act, RunCancelReason)> = vec![
        (running(), Box::new(does(STOP)), RunCancelReason::Stopped),
        (
            queued(),
            Box::new(does(Command::Pause)),
            RunCancelReason::Paused,
        ),
        (running(), Box::new(does(SKIP)), RunCancelReason::Skipped),
        (
            running(),
            Box::new(mutes),
            RunCancelReason::SpeakerUnavailable,
        ),
        (
            queued(),
            Box::new(by_hand),
            RunCancelReason::ReplyOrderManual,
        ),
        (
            running(),
            Box::new(does(hides)),
            RunCancelReason::MessageHidden,
        ),
        (running(), Box::new(releases), RunCancelReason::Superseded),
        (
            running(),
            Box::new(does(archived)),
            RunCancelReason::Archived,
        ),
        (running(), Box::new(does(deleted)), RunCancelReason::Deleted),
    ];
    for (mut fixture, action, reason) in cases {
        action(&mut fixture);

        let ended = fixture.ended.first().expect("a run is canceled");
        assert_eq!(ended.canceled_because, Some(reason));
        assert_eq!(ended.superseded_by_message_id, None);
    }
}

#[test]
fn disabling_the_copilot_or_auto_mode_sets_the_reason() {
    let mut copilot = PlannerFixture::with_characters(&["Ada"]);
    let conversation = copilot.state.conversation.id;
    let set = |member: &mut membership::Model, steps| {
        member.copilot_mode = match steps {
            Some(_) => CopilotMode::Full,
            None => CopilotMode::None,
        };
        (
            member.copilot_remaining_steps,
            member.copilot_conversation_id,
        ) = (steps, Some(conversation));
    };
    for is_running in [false, true] {
        set(copilot.member_mut(EVE), Some(3));
        copilot
            .run_command(&Command::CopilotStarted { membership: EVE })
            .unwrap();
        if is_running {
            copilot.claim_due();
        }
        set(copilot.member_mut(EVE), None);
        copilot.run_command(&Command::ApplyChanges).unwrap();

        let ended = copilot.ended.last().unwrap();
        assert_eq!(ended.canceled_because, Some(RunCancelReason::CopilotOff));
    }
    let mut auto = PlannerFixture::with_characters(&["Ada", "Bob"]);
    auto.state.space.auto_mode_enabled = true;
    auto.post_as_eve("Hi.").unwrap();
    auto.claim_due();
    auto.end_run(success("Hello."));
    auto.state.space.auto_mode_enabled = false;

    auto.run_command(&Command::ApplyChanges).unwrap();

    let ended = auto.ended.last().unwrap();
    assert_eq!(ended.canceled_because, Some(RunCancelReason::AutoModeOff));
}
