//! What a post does to a forced turn and to a regenerate that are queued or running, and the reason
//! that each canceled run keeps.

use crate::ids::MessageId;
use crate::runs::command::Command;
use crate::runs::planner::regenerate_tests::regenerate;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::EVE;
use crate::runs::planner::stage::STOP;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::force;
use crate::runs::planner::stage::queued;
use crate::runs::planner::stage::running;
use crate::runs::planner::stage::success;
use crate::runs::run::RunCancelReason;
use crate::runs::run::RunKind;
use crate::runs::run::RunStatus;
use crate::spaces::membership;
use crate::spaces::membership::CopilotMode;
use crate::spaces::membership::Participation;
use crate::spaces::space::InputPolicy;
use crate::spaces::space::RepliesPerTurn;
use crate::spaces::space::ReplyOrder;

/// Bob is muted and was forced; his turn is queued.
fn forced() -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.user_turn_debounce_ms = 500;
    stage.seat(BOB).participation = Participation::Muted;
    stage.does(&force(BOB)).unwrap();
    stage
}

/// Ada has spoken, and a new version of her text is queued.
fn regenerated() -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.eve_says("Hi.").unwrap();
    stage.due();
    stage.ends(success("Hello."));
    stage.does(&regenerate(None)).unwrap();
    stage
}

#[test]
fn a_post_keeps_a_queued_forced_turn_as_the_first_slot_of_its_round() {
    let mut stage = forced();
    let before = stage.s.queued.clone().unwrap();

    let plan = stage.eve_says("Hi.").unwrap();

    let expected = [
        r#"Eve says "Hi.""#,
        "round of Bob, Ada",
        "queue Bob: force_talk, force_talk, in 500 ms",
    ];
    assert_eq!(plan, expected);
    let run = stage.s.queued.clone().unwrap();
    assert_eq!((run.id, run.kind), (before.id, RunKind::ForceTalk));
    assert_eq!(run.debug.chosen_because.as_deref(), Some("forced by Eve"));
    assert_eq!(run.debug.trigger_message_id, Some(MessageId(1)));
    let round = stage.s.round.clone().unwrap();
    assert_eq!(run.round_id, Some(round.row.id));
    let forced: Vec<bool> = round.slots.iter().map(|it| it.forced).collect();
    assert_eq!(forced, [true, false]);
    assert_eq!(round.slots[0].chosen_because, "forced by Eve");
    stage.now = stage.now.plus_ms(500);
    assert_eq!(stage.due(), ["claim Bob"], "although he is muted");
    let spoken = stage.ends(success("Well."));
    assert_eq!(spoken.last().unwrap(), "queue Ada: user_turn, next_slot");
}

#[test]
fn a_later_post_keeps_the_forced_turn_in_the_same_way() {
    let mut stage = forced();
    let before = stage.s.queued.clone().unwrap();
    stage.eve_says("Hi.").unwrap();
    stage.now = stage.now.plus_ms(100);

    let plan = stage.eve_says("And?").unwrap();

    let expected = [
        r#"Eve says "And?""#,
        "round superseded: user_message",
        "round of Bob, Ada",
        "queue Bob: force_talk, force_talk, in 500 ms",
    ];
    assert_eq!(plan, expected);
    assert_eq!(stage.s.queued.unwrap().id, before.id);
}

#[test]
fn a_forced_speaker_whom_the_post_chooses_too_speaks_once() {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.does(&force(BOB)).unwrap();

    let plan = stage.eve_says("Hi.").unwrap();

    assert_eq!(plan[1], "round of Bob, Ada");
}

#[test]
fn a_forced_turn_stays_where_the_post_plans_no_round() {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.reply_order = ReplyOrder::Manual;
    stage.does(&force(BOB)).unwrap();
    let before = stage.s.queued.clone();

    let plan = stage.eve_says("Hi.").unwrap();

    assert_eq!(plan, [r#"Eve says "Hi.""#]);
    assert_eq!(stage.s.queued, before);
}

#[test]
fn a_forced_slot_that_failed_or_was_stopped_is_forced_again() {
    for stops in [true, false] {
        let mut stage = forced();
        stage.eve_says("Hi.").unwrap();
        stage.now = stage.now.plus_ms(500);
        stage.due();
        let again = if stops {
            stage.does(&STOP).unwrap();
            stage.does(&Command::Resume).unwrap()
        } else {
            stage.ends(failure());
            stage.does(&Command::Retry).unwrap()
        };

        let reason = if stops { "resume" } else { "retry" };
        let expected = format!("queue Bob: force_talk, {reason}");
        assert_eq!(again.last(), Some(&expected));
    }
}

#[test]
fn a_queue_edit_without_the_forced_speaker_ends_that_turn_with_a_reason() {
    let mut stage = forced();
    stage.eve_says("Hi.").unwrap();
    let run = stage.s.queued.clone().unwrap();
    let round = stage.s.round.as_ref().unwrap().row.id;

    let slots = vec![ADA];
    let by = "Eve".to_owned();
    stage
        .does(&Command::EditQueue { round, slots, by })
        .unwrap();

    let ended = stage.ended.last().unwrap();
    assert_eq!(ended.id, run.id);
    assert_eq!(ended.canceled_because, Some(RunCancelReason::Superseded));
    let queued = stage.s.queued.unwrap();
    assert_ne!(queued.id, run.id);
    assert_eq!(queued.kind, RunKind::UserTurn);
}

#[test]
fn a_post_cancels_a_queued_regenerate_and_plans_a_new_run() {
    for order in [ReplyOrder::List, ReplyOrder::Manual] {
        let mut stage = regenerated();
        stage.s.space.reply_order = order;
        let before = stage.s.queued.clone().unwrap();

        let plan = stage.eve_says("And?").unwrap();

        assert_eq!(plan[..2], [r#"Eve says "And?""#, "cancel queued Ada"]);
        let ended = stage.ended.last().unwrap();
        assert_eq!((ended.id, ended.status), (before.id, RunStatus::Canceled));
        let reason = Some(RunCancelReason::SupersededByMessage);
        assert_eq!(ended.canceled_because, reason);
        assert_eq!(ended.superseded_by_message_id, Some(MessageId(3)));
        let queued = stage.s.queued.as_ref();
        assert_eq!(queued.is_some(), order == ReplyOrder::List);
        assert!(queued.is_none_or(|it| it.id != before.id));
    }
}

#[test]
fn a_running_run_that_a_post_restarts_names_the_post() {
    let mut stage = running();
    stage.s.space.during_generation_user_input_policy = InputPolicy::Restart;

    stage.eve_says("No, wait.").unwrap();

    let ended = stage.ended.last().unwrap();
    let reason = Some(RunCancelReason::SupersededByMessage);
    assert_eq!(ended.canceled_because, reason);
    assert_eq!(ended.superseded_by_message_id, Some(MessageId(2)));
}

#[test]
fn each_canceled_run_says_why() {
    let settings = |change: fn(&mut Stage)| {
        move |stage: &mut Stage| {
            change(stage);
            _ = stage.does(&Command::ApplyChanges).unwrap();
        }
    };
    let does = |command: Command| move |stage: &mut Stage| _ = stage.does(&command).unwrap();
    let mutes = |stage: &mut Stage| {
        stage.seat(ADA).participation = Participation::Muted;
        _ = stage.does(&Command::ApplyChanges).unwrap();
    };
    let hides = Command::VisibilityChanged {
        message: MessageId(1),
        visibility: crate::conversations::message::Visibility::Hidden,
    };
    let hands_back = |stage: &mut Stage| {
        stage.eve_says("And?").unwrap();
        _ = stage.hands_back();
    };
    let by_hand = settings(|it| it.s.space.reply_order = ReplyOrder::Manual);
    let archived = Command::Closed(RunCancelReason::Archived);
    let deleted = Command::Closed(RunCancelReason::Deleted);
    type Act = Box<dyn Fn(&mut Stage)>;
    let cases: Vec<(Stage, Act, RunCancelReason)> = vec![
        (running(), Box::new(does(STOP)), RunCancelReason::Stopped),
        (
            queued(),
            Box::new(does(Command::Pause)),
            RunCancelReason::Paused,
        ),
        (
            running(),
            Box::new(does(Command::Skip)),
            RunCancelReason::Skipped,
        ),
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
        (running(), Box::new(hands_back), RunCancelReason::Superseded),
        (
            running(),
            Box::new(does(archived)),
            RunCancelReason::Archived,
        ),
        (running(), Box::new(does(deleted)), RunCancelReason::Deleted),
    ];
    for (mut stage, act, reason) in cases {
        act(&mut stage);

        let ended = stage.ended.first().expect("a run is canceled");
        assert_eq!(ended.canceled_because, Some(reason));
        assert_eq!(ended.superseded_by_message_id, None);
    }
}

#[test]
fn a_copilot_that_is_turned_off_and_auto_mode_say_so() {
    let mut copilot = Stage::of(&["Ada"]);
    let here = copilot.s.conversation.id;
    let set = |seat: &mut membership::Model, steps| {
        seat.copilot_mode = match steps {
            Some(_) => CopilotMode::Full,
            None => CopilotMode::None,
        };
        (seat.copilot_remaining_steps, seat.copilot_conversation_id) = (steps, Some(here));
    };
    for is_running in [false, true] {
        set(copilot.seat(EVE), Some(3));
        copilot
            .does(&Command::CopilotStarted { seat: EVE })
            .unwrap();
        if is_running {
            copilot.due();
        }
        set(copilot.seat(EVE), None);
        copilot.does(&Command::ApplyChanges).unwrap();

        let ended = copilot.ended.last().unwrap();
        assert_eq!(ended.canceled_because, Some(RunCancelReason::CopilotOff));
    }
    let mut auto = Stage::of(&["Ada", "Bob"]);
    auto.s.space.auto_mode_enabled = true;
    auto.eve_says("Hi.").unwrap();
    auto.due();
    auto.ends(success("Hello."));
    auto.s.space.auto_mode_enabled = false;

    auto.does(&Command::ApplyChanges).unwrap();

    let ended = auto.ended.last().unwrap();
    assert_eq!(ended.canceled_because, Some(RunCancelReason::AutoModeOff));
}
