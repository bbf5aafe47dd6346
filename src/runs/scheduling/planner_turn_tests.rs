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
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.group_regenerate_mode = GroupRegenerateMode::LastTurn;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture.run_command(&force(BOB)).unwrap();
    fixture.claim_due();
    fixture.end_run(success("Welcome."));
    fixture
}

#[test]
fn regenerating_a_whole_turn_hides_it_and_answers_the_user_message_again() {
    for message in [None, Some(2), Some(3)] {
        let mut fixture = answered_by_two();

        let plan = fixture.run_command(&regenerate(message)).unwrap();

        let expected = [
            "2 messages hidden",
            "round of Ada",
            "queue Ada: user_turn, last_turn",
        ];
        assert_eq!(plan, expected, "{message:?}");
        assert_eq!(
            fixture
                .state
                .queued
                .as_ref()
                .unwrap()
                .debug
                .trigger_message_id,
            Some(MessageId(1))
        );
        fixture.claim_due();
        fixture.end_run(success("Good day."));
        assert!(fixture.state.round.is_none());
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

    let mut manual = answered_by_two();
    manual.state.space.reply_order = ReplyOrder::Manual;
    assert_eq!(manual.run_command(&regenerate(None)).unwrap(), one);

    let mut without_user_message = answered_by_two();
    without_user_message.messages[0].role = MessageRole::Assistant;
    assert_eq!(
        without_user_message.run_command(&regenerate(None)).unwrap(),
        one
    );
}

#[test]
fn a_branch_starts_with_a_reply_to_its_last_message() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    assert_eq!(
        fixture.run_command(&Command::ReplyToTail),
        Err(CommandError::NothingToRegenerate)
    );
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.state.space.reply_order = ReplyOrder::List;

    let plan = fixture.run_command(&Command::ReplyToTail).unwrap();

    assert_eq!(plan, ["round of Ada", "queue Ada: user_turn, last_turn"]);
}
