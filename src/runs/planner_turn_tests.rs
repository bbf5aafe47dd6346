//! A whole turn once more: what goes, who answers again, and where that happens.

use crate::conversations::message::MessageRole;
use crate::ids::MessageId;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::planner::regenerate_tests::regenerate;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::force;
use crate::runs::planner::stage::success;
use crate::spaces::membership;
use crate::spaces::space::GroupRegenerateMode;
use crate::spaces::space::ReplyOrder;

/// Ada and Bob have answered Eve, in a space that writes whole turns anew.
fn turn() -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.group_regenerate_mode = GroupRegenerateMode::LastTurn;
    stage.eve_says("Hi.").unwrap();
    stage.due();
    stage.ends(success("Hello."));
    stage.does(&force(BOB)).unwrap();
    stage.due();
    stage.ends(success("Welcome."));
    stage
}

#[test]
fn a_whole_turn_goes_and_the_human_is_answered_again() {
    for message in [None, Some(2), Some(3)] {
        let mut stage = turn();

        let plan = stage.does(&regenerate(message)).unwrap();

        let expected = [
            "2 messages hidden",
            "round of Ada",
            "queue Ada: user_turn, last_turn",
        ];
        assert_eq!(plan, expected, "{message:?}");
        assert_eq!(
            stage.s.queued.as_ref().unwrap().debug.trigger_message_id,
            Some(MessageId(1))
        );
        stage.due();
        stage.ends(success("Good day."));
        assert!(stage.s.round.is_none());
    }
}

#[test]
fn a_turn_on_which_others_have_built_is_answered_again_in_a_branch() {
    let branch_first = Err(Refusal::BranchFirst(MessageId(1)));
    let mut forked = turn();
    forked.fork_point = Some(MessageId(2));
    assert_eq!(forked.does(&regenerate(None)), branch_first);

    let mut earlier = turn();
    earlier.eve_says("And?").unwrap();
    assert_eq!(earlier.does(&regenerate(Some(3))), branch_first);
}

#[test]
fn alone_by_hand_or_without_a_human_it_means_the_one_message() {
    let one = ["queue Bob: regenerate, regenerate"];
    let mut alone = turn();
    alone.seat(ADA).status = membership::MembershipStatus::Removed;
    assert_eq!(alone.does(&regenerate(None)).unwrap(), one);

    let mut by_hand = turn();
    by_hand.s.space.reply_order = ReplyOrder::Manual;
    assert_eq!(by_hand.does(&regenerate(None)).unwrap(), one);

    let mut unasked = turn();
    unasked.messages[0].role = MessageRole::Assistant;
    assert_eq!(unasked.does(&regenerate(None)).unwrap(), one);
}

#[test]
fn a_branch_begins_with_the_answer_to_its_last_message() {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    assert_eq!(
        stage.does(&Command::AnswerAgain),
        Err(Refusal::NothingToRegenerate)
    );
    stage.s.space.reply_order = ReplyOrder::Manual;
    stage.eve_says("Hi.").unwrap();
    stage.s.space.reply_order = ReplyOrder::List;

    let plan = stage.does(&Command::AnswerAgain).unwrap();

    assert_eq!(plan, ["round of Ada", "queue Ada: user_turn, last_turn"]);
}
