//! Auto mode: AI answers AI, with a pause before each turn, until the turns are spent.

use crate::ids::MessageId;
use crate::runs::auto_mode;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::success;
use crate::runs::run;
use crate::spaces::space::RepliesPerTurn;
use crate::spaces::space::ReplyOrder;

const DELAY: i64 = 5_000;

/// Ada and Bob, who answer each other three times.
pub fn stage() -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.auto_mode_enabled = true;
    stage.s.space.auto_mode_max_turns = 3;
    stage
}

/// Ada has answered Eve, and Bob's turn waits.
pub fn waiting() -> Stage {
    let mut stage = stage();
    stage.eve_says("Hi.").unwrap();
    stage.due();
    stage.ends(success("I am Ada."));
    stage
}

/// Bob's turn is running.
pub fn running() -> Stage {
    let mut stage = waiting();
    stage.time_comes();
    stage
}

impl Stage {
    /// The delay is over, and the queued run begins.
    pub fn time_comes(&mut self) {
        self.now = self.now.plus_ms(DELAY);
        assert_eq!(self.due().len(), 1, "it is claimed");
    }

    pub fn turns_left(&self) -> Option<i64> {
        auto_mode::turns_left(&self.s.conversation, &self.s.space)
    }

    /// Everything comes to its end; gives the number of auto mode's replies.
    pub fn speaks_on(&mut self) -> usize {
        for _ in 0..50 {
            match (&self.s.running, &self.s.queued) {
                (Some(_), _) => _ = self.ends(success("Well.")),
                (None, Some(_)) => self.time_comes(),
                (None, None) => break,
            }
        }
        let by_itself = |it: &&run::Model| it.kind == run::RunKind::AutoMode;
        self.ended.iter().filter(by_itself).count()
    }
}

#[test]
fn a_reply_is_answered_by_another_after_the_delay() {
    let mut stage = stage();
    stage.eve_says("Hi.").unwrap();
    stage.due();

    let plan = stage.ends(success("I am Ada."));

    let expected = [
        "finish Ada: succeeded",
        r#"Ada says "I am Ada.""#,
        "slot 0 spoken",
        "round finished: everybody_spoke",
        "round of Bob",
        "auto mode spoke 1 times",
        "queue Bob: auto_mode, auto_mode, in 5000 ms",
    ];
    assert_eq!(plan, expected);
    let run = stage.s.queued.as_ref().unwrap();
    assert_eq!(run.debug.expected_last_message_id, Some(MessageId(2)));
    assert_eq!(run.debug.trigger_message_id, Some(MessageId(2)));
    assert_eq!(stage.turns_left(), Some(2));
}

#[test]
fn it_rests_when_its_turns_are_spent() {
    let mut stage = waiting();

    assert_eq!(stage.speaks_on(), 3);
    assert_eq!(stage.turns_left(), Some(0));
    assert!(stage.s.round.is_none() && stage.s.queued.is_none());
}

#[test]
fn a_human_message_gives_it_its_turns_anew() {
    let mut stage = waiting();
    stage.speaks_on();

    let plan = stage.eve_says("Go on.").unwrap();

    assert_eq!(plan[1], "auto mode spoke 0 times");
    assert_eq!(stage.turns_left(), Some(3));
    assert_eq!(stage.speaks_on(), 6, "three of each");
}

#[test]
fn a_human_message_comes_before_the_turn_that_waits() {
    let mut stage = waiting();
    let waits = stage.s.queued.as_ref().unwrap().id;

    let plan = stage.eve_says("Me first.").unwrap();

    let expected = [
        r#"Eve says "Me first.""#,
        "auto mode spoke 0 times",
        "round superseded: user_message",
        "round of Bob",
        "queue Bob: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    assert_eq!(stage.s.queued.unwrap().id, waits, "the row keeps its id");
}

#[test]
fn a_turn_makes_sense_only_after_the_text_it_answers() {
    let mut stage = waiting();
    stage.s.space.reply_order = ReplyOrder::Manual;
    stage.eve_says("Hush.").unwrap();
    stage.s.space.reply_order = ReplyOrder::List;
    stage.now = stage.now.plus_ms(DELAY);

    let plan = stage.due();

    let expected = [
        "skip Bob: expected_last_message_mismatch",
        "slot 0 skipped: expected_last_message_mismatch",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn nobody_answers_itself_unless_the_space_allows_it() {
    let alone = |allowed| {
        let mut stage = Stage::of(&["Ada"]);
        stage.s.space.auto_mode_enabled = true;
        stage.s.space.auto_mode_max_turns = 3;
        stage.s.space.allow_self_responses = allowed;
        stage.eve_says("Hi.").unwrap();
        stage.speaks_on()
    };

    assert_eq!(alone(false), 0);
    assert_eq!(alone(true), 3);
}

#[test]
fn in_manual_order_it_rests() {
    let mut stage = running();
    stage.s.space.reply_order = ReplyOrder::Manual;

    stage.ends(success("I am Bob."));

    assert!(stage.s.queued.is_none() && stage.s.round.is_none());
}

#[test]
fn one_at_a_time_the_pool_is_drawn_empty_and_then_it_rests() {
    let mut stage = Stage::of(&["Ada", "Bob", "Cid"]);
    stage.s.space.auto_mode_enabled = true;
    stage.s.space.reply_order = ReplyOrder::Pooled;
    stage.eve_says("Hi.").unwrap();

    assert_eq!(stage.speaks_on(), 2, "the others, each once");
}

#[test]
fn each_slot_of_its_rounds_waits_and_counts() {
    let mut stage = Stage::of(&["Ada", "Bob", "Cid"]);
    stage.s.space.auto_mode_enabled = true;
    stage.s.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.s.space.auto_mode_max_turns = 3;
    stage.eve_says("Hi.").unwrap();
    for _ in 0..3 {
        stage.due();
        stage.ends(success("Mine."));
    }
    assert_eq!(stage.turns_left(), Some(2), "a person's round costs none");
    stage.time_comes();

    let second = stage.ends(success("Ada's second."));
    stage.time_comes();
    let third = stage.ends(success("Bob's second."));
    stage.time_comes();
    let spent = stage.ends(success("Ada's third."));

    let expected = [
        "round generating at 1",
        "auto mode spoke 2 times",
        "queue Bob: auto_mode, next_slot, in 5000 ms",
    ];
    assert_eq!(second[3..], expected);
    assert_eq!(third[3], "round finished: everybody_spoke");
    assert_eq!(third[4], "round of Ada, Cid");
    assert_eq!(
        spent[3..],
        ["round generating at 1", "round finished: auto_mode_budget"]
    );
    assert!(stage.s.queued.is_none());
}
