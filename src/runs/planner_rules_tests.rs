//! What is hidden, edited, muted, set or archived, and what that does to the schedule.

use crate::conversations::message::Visibility;
use crate::ids::MessageId;
use crate::runs::command::Command;
use crate::runs::command::Edit;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::both;
use crate::runs::planner::stage::failed;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::force;
use crate::runs::planner::stage::forced;
use crate::runs::planner::stage::paused;
use crate::runs::planner::stage::post;
use crate::runs::planner::stage::queued;
use crate::runs::planner::stage::running;
use crate::runs::planner::stage::success;
use crate::runs::run::RunCancelReason;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space;
use crate::spaces::space::ReplyOrder;

fn idle() -> Stage {
    Stage::of(&["Ada", "Bob"])
}

/// Bob was made to speak and failed: a retry would make him speak again.
fn retryable() -> Stage {
    let mut stage = forced();
    stage.ends(failure());
    stage
}

fn hide(message: i64) -> Command {
    show(message, Visibility::Hidden)
}

pub fn show(message: i64, visibility: Visibility) -> Command {
    Command::VisibilityChanged {
        message: MessageId(message),
        visibility,
    }
}

pub fn edit(message: i64) -> Command {
    edit_from(message, 1)
}

/// An edit that was made from this version of the message.
fn edit_from(message: i64, expected_version: i64) -> Command {
    Command::Edited(Edit {
        message: MessageId(message),
        content: "New.".to_owned(),
        token_count: 1,
        expected_version,
        by: None,
    })
}

#[test]
fn hiding_the_tail_or_the_trigger_takes_the_ground_from_every_reply() {
    let mut second_slot = running();
    second_slot.ends(success("I am Ada."));
    second_slot.due();

    assert_eq!(
        running().does(&hide(1)).unwrap(),
        [
            "message hidden",
            "finish Ada: canceled",
            "round canceled: message_hidden"
        ]
    );
    assert_eq!(
        queued().does(&hide(1)).unwrap(),
        [
            "message hidden",
            "cancel queued Ada",
            "round canceled: message_hidden"
        ]
    );
    for (message, what) in [(1, "the trigger"), (2, "the tail")] {
        let plan = second_slot.clone().does(&hide(message)).unwrap();
        let expected = [
            "message hidden",
            "finish Bob: canceled",
            "round canceled: message_hidden",
        ];
        assert_eq!(plan, expected, "{what}");
    }
}

#[test]
fn hiding_another_message_leaves_the_schedule_alone() {
    let mut stage = running();
    stage.ends(success("One."));
    stage.eve_says("Two.").unwrap();

    assert_eq!(stage.does(&hide(2)).unwrap(), ["message hidden"]);
    assert!(stage.does(&hide(2)).unwrap().is_empty(), "twice is once");
    let shown = stage.does(&show(2, Visibility::Normal)).unwrap();
    assert_eq!(shown, ["message normal"]);
}

#[test]
fn dimming_a_message_leaves_the_schedule_alone() {
    let dimmed = show(1, Visibility::Excluded);

    assert_eq!(running().does(&dimmed).unwrap(), ["message excluded"]);
}

#[test]
fn a_fork_point_is_neither_hidden_nor_edited_and_nothing_unknown_is() {
    let mut stage = queued();
    stage.fork_point = Some(MessageId(1));

    assert_eq!(stage.does(&hide(1)), Err(Refusal::ForkPoint));
    assert_eq!(stage.does(&edit(1)), Err(Refusal::ForkPoint));
    assert!(stage.does(&show(1, Visibility::Excluded)).is_ok());
    assert_eq!(stage.does(&hide(9)), Err(Refusal::NotFound));
    assert_eq!(stage.does(&edit(9)), Err(Refusal::NotFound));
}

#[test]
fn only_the_tail_is_edited_and_not_while_a_reply_is_written() {
    let mut two = idle();
    two.s.space.reply_order = ReplyOrder::Manual;
    two.eve_says("One.").unwrap();
    two.eve_says("Two.").unwrap();

    assert_eq!(two.does(&edit(1)), Err(Refusal::NotTail));
    assert_eq!(two.does(&edit(2)).unwrap(), [r#"message reads "New.""#]);
    assert!(two.does(&edit(2)).unwrap().is_empty(), "twice is once");
    two.does(&hide(2)).unwrap();
    assert_eq!(two.does(&edit(2)), Err(Refusal::NotFound));
    assert!(two.does(&edit(1)).is_ok(), "it is the tail now");
    assert_eq!(running().does(&edit(1)), Err(Refusal::GenerationLocked));
    assert!(queued().does(&edit(1)).is_ok());
}

#[test]
fn a_muted_speaker_loses_the_turn_to_the_next_slot() {
    let muted = |mut stage: Stage| {
        stage.seat(ADA).participation = Participation::Muted;
        stage.does(&Command::ApplyChanges).unwrap()
    };
    let expected = [
        "slot 0 skipped: not_schedulable",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];

    let (of_queued, of_running) = (muted(queued()), muted(running()));

    assert_eq!(of_queued[0], "skip Ada: speaker_unavailable");
    assert_eq!(of_queued[1..], expected);
    assert_eq!(of_running[0], "finish Ada: canceled");
    assert_eq!(of_running[1..], expected);
    assert!(muted(paused()).is_empty() && muted(idle()).is_empty());
}

#[test]
fn a_queued_speaker_who_is_muted_is_passed_over_while_another_reply_runs() {
    let mut stage = both();
    stage.seat(BOB).participation = Participation::Muted;

    let plan = stage.does(&Command::ApplyChanges).unwrap();

    let expected = [
        "skip Bob: speaker_unavailable",
        "slot 0 skipped: not_schedulable",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
    assert!(stage.s.running.is_some());
}

#[test]
fn a_muted_speaker_keeps_a_forced_turn_and_a_removed_one_does_not() {
    let told = Command::ApplyChanges;

    let mut muted = forced();
    muted.seat(BOB).participation = Participation::Muted;
    let mut removed = forced();
    removed.seat(BOB).status = MembershipStatus::Removed;

    assert!(muted.does(&told).unwrap().is_empty());
    assert_eq!(removed.does(&told).unwrap(), ["finish Bob: canceled"]);
}

#[test]
fn a_seat_that_only_changed_its_name_loses_nothing() {
    let told = Command::ApplyChanges;

    assert!(queued().does(&told).unwrap().is_empty());
    assert!(running().does(&told).unwrap().is_empty());
}

#[test]
fn a_change_to_manual_takes_what_is_queued_and_lets_what_runs_finish() {
    let changed = |mut stage: Stage| {
        stage.s.space.reply_order = ReplyOrder::Manual;
        stage.does(&Command::ApplyChanges).unwrap()
    };
    let mut forced = idle();
    forced.does(&force(ADA)).unwrap();

    assert_eq!(
        changed(queued()),
        ["cancel queued Ada", "round canceled: reply_order_manual"]
    );
    assert!(changed(running()).is_empty());
    assert!(changed(forced).is_empty(), "somebody asked for it");
    assert!(changed(paused()).is_empty());
}

#[test]
fn another_change_of_order_leaves_the_round_as_it_is() {
    let mut stage = queued();
    stage.s.space.reply_order = ReplyOrder::Pooled;

    assert!(stage.does(&Command::ApplyChanges).unwrap().is_empty());
}

#[test]
fn nothing_goes_on_in_an_archived_space() {
    let archived = |mut stage: Stage| {
        stage.s.space.status = space::SpaceStatus::Archived;
        stage
            .does(&Command::Closed(RunCancelReason::Archived))
            .unwrap()
    };

    assert_eq!(
        archived(both()),
        [
            "finish Ada: canceled",
            "cancel queued Bob",
            "round canceled: space_closed"
        ]
    );
    assert_eq!(archived(paused()), ["round canceled: space_closed"]);
    assert!(archived(idle()).is_empty());
}

#[test]
fn nothing_begins_in_an_archived_space() {
    let commands = [
        post("Hi."),
        force(ADA),
        Command::Retry,
        Command::Resume,
        Command::Skip,
        edit(1),
        hide(1),
    ];
    for mut stage in [retryable(), failed(), paused()] {
        stage.s.space.status = space::SpaceStatus::Archived;
        for command in &commands {
            let refusal = stage.does(command);
            assert_eq!(refusal, Err(Refusal::SpaceArchived), "{command:?}");
        }
    }
}

#[test]
fn an_edit_from_another_version_is_refused_whatever_else_speaks_against_it() {
    for mut stage in [queued(), running()] {
        assert_eq!(stage.does(&edit_from(1, 2)), Err(Refusal::EditConflict));
    }
}
