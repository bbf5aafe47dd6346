//! Tests of how hiding, editing, muting, changing settings and archiving affect the schedule.

use base::ids::MessageId;

use crate::conversations::message::Visibility;
use crate::runs::scheduling::command::{Command, CommandError, MessageEdit};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, PlannerFixture, RETRY, SKIP, failed, failure, force, forced, paused, post, queued,
    queued_and_running, running, success,
};
use crate::runs::store::run::RunCancelReason;
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space;
use crate::spaces::space::ReplyOrder;

fn idle() -> PlannerFixture {
    PlannerFixture::with_characters(&["Ada", "Bob"])
}

/// Bob's forced turn has failed: a retry would force it again.
fn retryable() -> PlannerFixture {
    let mut fixture = forced();
    fixture.end_run(failure());
    fixture
}

fn hide(message: i64) -> Command {
    show(message, Visibility::Hidden)
}

pub fn mark(id: i64, is_ooc: bool) -> Command {
    let message = MessageId(id);
    Command::SetOutOfCharacter { message, is_ooc }
}

pub fn show(message: i64, visibility: Visibility) -> Command {
    Command::SetVisibility {
        message: MessageId(message),
        visibility,
    }
}

pub fn edit(message: i64) -> Command {
    edit_from(message, 1)
}

/// Returns an edit based on this version of the message.
fn edit_from(message: i64, expected_version: i64) -> Command {
    Command::EditMessage(MessageEdit {
        message: MessageId(message),
        content: "New.".to_owned(),
        token_count: 1,
        expected_version,
        by: None,
        unscripted: None,
    })
}

#[test]
fn switching_the_memory_of_a_message_affects_no_reply() {
    let switch = |remember| Command::SetRemembered {
        message: MessageId(1),
        remember,
    };
    let mut fixture = running();

    let off = fixture.run_command(&switch(false)).unwrap();
    let again = fixture.run_command(&switch(false)).unwrap();

    assert_eq!(off, ["message remembered: false"]);
    assert!(again.is_empty());
    fixture.run_command(&hide(1)).unwrap();
    let hidden = fixture.run_command(&switch(true));
    assert_eq!(hidden, Err(CommandError::NotFound));
}

#[test]
fn hiding_the_tail_or_the_trigger_cancels_every_reply() {
    let mut second_slot = running();
    second_slot.end_run(success("I am Ada."));
    second_slot.claim_due();

    assert_eq!(
        running().run_command(&hide(1)).unwrap(),
        [
            "message hidden",
            "finish Ada: canceled",
            "round canceled: message_hidden"
        ]
    );
    assert_eq!(
        queued().run_command(&hide(1)).unwrap(),
        [
            "message hidden",
            "cancel queued Ada",
            "round canceled: message_hidden"
        ]
    );
    for (message, what) in [(1, "the trigger"), (2, "the tail")] {
        let plan = second_slot.clone().run_command(&hide(message)).unwrap();
        let expected = [
            "message hidden",
            "finish Bob: canceled",
            "round canceled: message_hidden",
        ];
        assert_eq!(plan, expected, "{what}");
    }
}

#[test]
fn hiding_another_message_keeps_the_schedule() {
    let mut fixture = running();
    fixture.end_run(success("One."));
    fixture.post_as_eve("Two.").unwrap();

    assert_eq!(fixture.run_command(&hide(2)).unwrap(), ["message hidden"]);
    assert!(
        fixture.run_command(&hide(2)).unwrap().is_empty(),
        "a repetition should change nothing"
    );
    let shown = fixture.run_command(&show(2, Visibility::Normal)).unwrap();
    assert_eq!(shown, ["message normal"]);
}

#[test]
fn excluding_a_message_from_prompts_keeps_the_schedule() {
    let dimmed = show(1, Visibility::Excluded);

    assert_eq!(
        running().run_command(&dimmed).unwrap(),
        ["message excluded"]
    );
}

#[test]
fn a_fork_point_can_be_edited_but_not_hidden() {
    let mut fixture = queued();
    fixture.fork_point = Some(MessageId(1));

    assert_eq!(fixture.run_command(&hide(1)), Err(CommandError::ForkPoint));
    assert!(fixture.run_command(&edit(1)).is_ok());
    assert!(fixture.run_command(&show(1, Visibility::Excluded)).is_ok());
    assert_eq!(fixture.run_command(&hide(9)), Err(CommandError::NotFound));
    assert_eq!(fixture.run_command(&edit(9)), Err(CommandError::NotFound));
}

#[test]
fn any_message_can_be_edited_also_while_a_reply_is_queued_or_running() {
    let mut two = idle();
    two.state.space.reply_order = ReplyOrder::Manual;
    two.post_as_eve("One.").unwrap();
    two.post_as_eve("Two.").unwrap();

    let expected = [r#"message reads "New.""#];
    assert_eq!(two.run_command(&edit(1)).unwrap(), expected);
    assert_eq!(two.run_command(&edit(2)).unwrap(), expected);
    assert!(
        two.run_command(&edit(2)).unwrap().is_empty(),
        "a repetition should change nothing"
    );
    two.run_command(&hide(2)).unwrap();
    assert_eq!(two.run_command(&edit(2)), Err(CommandError::NotFound));
    assert_eq!(running().run_command(&edit(1)).unwrap(), expected);
    assert_eq!(queued().run_command(&edit(1)).unwrap(), expected);
}

#[test]
fn a_muted_speaker_loses_the_turn_to_the_next_slot() {
    let muted = |mut fixture: PlannerFixture| {
        fixture.member_mut(ADA).participation = Participation::Muted;
        fixture.run_command(&Command::ApplyChanges).unwrap()
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
fn a_queued_speaker_who_is_muted_is_skipped_while_another_reply_runs() {
    let mut fixture = queued_and_running();
    fixture.member_mut(BOB).participation = Participation::Muted;

    let plan = fixture.run_command(&Command::ApplyChanges).unwrap();

    let expected = [
        "skip Bob: speaker_unavailable",
        "slot 0 skipped: not_schedulable",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
    assert!(fixture.state.running.is_some());
}

#[test]
fn a_muted_speaker_keeps_a_forced_turn_and_a_removed_one_does_not() {
    let command = Command::ApplyChanges;

    let mut muted = forced();
    muted.member_mut(BOB).participation = Participation::Muted;
    let mut removed = forced();
    removed.member_mut(BOB).status = MembershipStatus::Removed;

    assert!(muted.run_command(&command).unwrap().is_empty());
    assert_eq!(
        removed.run_command(&command).unwrap(),
        ["finish Bob: canceled"]
    );
}

#[test]
fn a_change_that_forbids_nothing_keeps_all_runs() {
    let command = Command::ApplyChanges;

    assert!(queued().run_command(&command).unwrap().is_empty());
    assert!(running().run_command(&command).unwrap().is_empty());
}

#[test]
fn a_change_to_manual_cancels_the_queued_run_and_lets_the_running_one_finish() {
    let changed = |mut fixture: PlannerFixture| {
        fixture.state.space.reply_order = ReplyOrder::Manual;
        fixture.run_command(&Command::ApplyChanges).unwrap()
    };
    let mut forced = idle();
    forced.run_command(&force(ADA)).unwrap();

    assert_eq!(
        changed(queued()),
        ["cancel queued Ada", "round canceled: reply_order_manual"]
    );
    assert!(changed(running()).is_empty());
    assert!(changed(forced).is_empty(), "a user requested the run");
    assert!(changed(paused()).is_empty());
}

#[test]
fn a_change_to_another_order_keeps_the_round() {
    let mut fixture = queued();
    fixture.state.space.reply_order = ReplyOrder::Pooled;

    let plan = fixture.run_command(&Command::ApplyChanges).unwrap();
    fixture.claim_due();
    let followed = fixture.end_run(success("I am Ada."));

    assert!(plan.is_empty());
    assert_eq!(followed.last().unwrap(), "queue Bob: user_turn, next_slot");
}

#[test]
fn archiving_a_space_ends_its_runs() {
    let archived = |mut fixture: PlannerFixture| {
        fixture.state.space.status = space::SpaceStatus::Archived;
        fixture
            .run_command(&Command::SpaceClosed(RunCancelReason::Archived))
            .unwrap()
    };

    assert_eq!(
        archived(queued_and_running()),
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
fn no_run_starts_in_an_archived_space() {
    let commands = [
        post("Hi."),
        force(ADA),
        RETRY,
        Command::Resume,
        SKIP,
        edit(1),
        hide(1),
    ];
    for mut fixture in [retryable(), failed(), paused()] {
        fixture.state.space.status = space::SpaceStatus::Archived;
        for command in &commands {
            let refusal = fixture.run_command(command);
            assert_eq!(refusal, Err(CommandError::SpaceArchived), "{command:?}");
        }
    }
}

#[test]
fn an_edit_from_another_version_is_a_conflict_before_other_errors() {
    for mut fixture in [queued(), running()] {
        assert_eq!(
            fixture.run_command(&edit_from(1, 2)),
            Err(CommandError::EditConflict)
        );
    }
}
