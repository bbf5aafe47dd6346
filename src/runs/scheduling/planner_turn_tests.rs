//! Tests of regenerating a whole turn: what is hidden, who replies again, and where that happens.

use base::ids::MessageId;

use crate::conversations::message::MessageRole;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::planner::fixture::{ADA, BOB, PlannerFixture, force, success};
use crate::runs::scheduling::planner::regenerate_tests::regenerate;
use crate::spaces::membership;
use crate::spaces::space::{GroupRegenerateMode, ReplyOrder};

/// Ada and Bob have replied to Eve, in a space that regenerates whole turns.
fn answered_by_two() -> PlannerFixture {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    stage.state.space.group_regenerate_mode = GroupRegenerateMode::LastTurn;
    stage.post_as_eve("Hi.").unwrap();
    stage.claim_due();
    stage.end_run(success("Hello."));
    stage.run_command(&force(BOB)).unwrap();
    stage.claim_due();
    stage.end_run(success("Welcome."));
    stage
}

#[test]
fn a_whole_turn_goes_and_the_human_is_answered_again() {
    for message in [None, Some(2), Some(3)] {
        let mut stage = answered_by_two();

        let plan = stage.run_command(&regenerate(message)).unwrap();

        let expected = [
            "2 messages hidden",
            "round of Ada",
            "queue Ada: user_turn, last_turn",
        ];
        assert_eq!(plan, expected, "{message:?}");
        assert_eq!(
            stage
                .state
                .queued
                .as_ref()
                .unwrap()
                .debug
                .trigger_message_id,
            Some(MessageId(1))
        );
        stage.claim_due();
        stage.end_run(success("Good day."));
        assert!(stage.state.round.is_none());
    }
}

#[test]
fn a_turn_with_later_messages_or_branches_is_regenerated_in_a_branch() {
    let branch_first = Err(CommandError::BranchRequired(MessageId(1)));
    let mut forked = answered_by_two();
    forked.fork_point = Some(MessageId(2));
    assert_eq!(forked.run_command(&regenerate(None)), branch_first);

    let mut earlier = answered_by_two();
    earlier.post_as_eve("And?").unwrap();
    assert_eq!(earlier.run_command(&regenerate(Some(3))), branch_first);
}

#[test]
fn without_a_group_repliers_or_a_user_message_only_the_message_is_regenerated() {
    let one = ["queue Bob: regenerate, regenerate"];
    let mut alone = answered_by_two();
    alone.member_mut(ADA).status = membership::MembershipStatus::Removed;
    assert_eq!(alone.run_command(&regenerate(None)).unwrap(), one);

    let mut by_hand = answered_by_two();
    by_hand.state.space.reply_order = ReplyOrder::Manual;
    assert_eq!(by_hand.run_command(&regenerate(None)).unwrap(), one);

    let mut unasked = answered_by_two();
    unasked.messages[0].role = MessageRole::Assistant;
    assert_eq!(unasked.run_command(&regenerate(None)).unwrap(), one);
}

#[test]
fn a_branch_begins_with_the_answer_to_its_last_message() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    assert_eq!(
        stage.run_command(&Command::ReplyToTail),
        Err(CommandError::NothingToRegenerate)
    );
    stage.state.space.reply_order = ReplyOrder::Manual;
    stage.post_as_eve("Hi.").unwrap();
    stage.state.space.reply_order = ReplyOrder::List;

    let plan = stage.run_command(&Command::ReplyToTail).unwrap();

    assert_eq!(plan, ["round of Ada", "queue Ada: user_turn, last_turn"]);
}
