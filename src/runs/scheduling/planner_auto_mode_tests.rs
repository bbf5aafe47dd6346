//! Tests of auto mode: AI replies to AI, with a delay before each turn, until no turns are left.

use base::ids::MessageId;

use crate::runs::scheduling::auto_mode;
use crate::runs::scheduling::planner::fixture::{PlannerFixture, success};
use crate::runs::store::run;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};

const DELAY: i64 = 5_000;

/// Ada and Bob, who reply to each other three times.
pub fn auto_mode_fixture() -> PlannerFixture {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    stage.state.space.auto_mode_enabled = true;
    stage.state.space.auto_mode_max_turns = 3;
    stage
}

/// Ada has replied to Eve, and Bob's turn is queued.
pub fn waiting() -> PlannerFixture {
    let mut stage = auto_mode_fixture();
    stage.post_as_eve("Hi.").unwrap();
    stage.claim_due();
    stage.end_run(success("I am Ada."));
    stage
}

/// Bob's turn is running.
pub fn running() -> PlannerFixture {
    let mut stage = waiting();
    stage.claim_after_delay();
    stage
}

impl PlannerFixture {
    /// Advances the clock by the delay and claims the queued run.
    pub fn claim_after_delay(&mut self) {
        self.now = self.now.plus_ms(DELAY);
        assert_eq!(self.claim_due().len(), 1, "it is claimed");
    }

    pub fn turns_left(&self) -> Option<i64> {
        auto_mode::turns_left(&self.state.conversation, &self.state.space)
    }

    /// Runs until nothing is queued; returns the number of auto mode's replies.
    pub fn run_to_end(&mut self) -> usize {
        for _ in 0..50 {
            match (&self.state.running, &self.state.queued) {
                (Some(_), _) => _ = self.end_run(success("Well.")),
                (None, Some(_)) => self.claim_after_delay(),
                (None, None) => break,
            }
        }
        let by_itself = |it: &&run::Model| it.kind == run::RunKind::AutoMode;
        self.ended.iter().filter(by_itself).count()
    }
}

#[test]
fn a_reply_is_answered_by_another_after_the_delay() {
    let mut stage = auto_mode_fixture();
    stage.post_as_eve("Hi.").unwrap();
    stage.claim_due();

    let plan = stage.end_run(success("I am Ada."));

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
    let run = stage.state.queued.as_ref().unwrap();
    assert_eq!(run.debug.expected_last_message_id, Some(MessageId(2)));
    assert_eq!(run.debug.trigger_message_id, Some(MessageId(2)));
    assert_eq!(stage.turns_left(), Some(2));
}

#[test]
fn it_rests_when_its_turns_are_spent() {
    let mut stage = waiting();

    assert_eq!(stage.run_to_end(), 3);
    assert_eq!(stage.turns_left(), Some(0));
    assert!(stage.state.round.is_none() && stage.state.queued.is_none());
}

#[test]
fn a_human_message_resets_its_turns() {
    let mut stage = waiting();
    stage.run_to_end();

    let plan = stage.post_as_eve("Go on.").unwrap();

    assert_eq!(plan[1], "auto mode spoke 0 times");
    assert_eq!(stage.turns_left(), Some(3));
    assert_eq!(stage.run_to_end(), 6, "three of each");
}

#[test]
fn a_human_message_comes_before_the_turn_that_waits() {
    let mut stage = waiting();
    let waits = stage.state.queued.as_ref().unwrap().id;

    let plan = stage.post_as_eve("Me first.").unwrap();

    let expected = [
        r#"Eve says "Me first.""#,
        "auto mode spoke 0 times",
        "round superseded: user_message",
        "round of Bob",
        "queue Bob: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        stage.state.queued.unwrap().id,
        waits,
        "the row keeps its id"
    );
}

#[test]
fn a_turn_makes_sense_only_after_the_text_it_answers() {
    let mut stage = waiting();
    stage.state.space.reply_order = ReplyOrder::Manual;
    stage.post_as_eve("Hush.").unwrap();
    stage.state.space.reply_order = ReplyOrder::List;
    stage.now = stage.now.plus_ms(DELAY);

    let plan = stage.claim_due();

    let expected = [
        "skip Bob: expected_last_message_mismatch",
        "slot 0 skipped: expected_last_message_mismatch",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_character_answers_itself_only_if_the_space_allows_it() {
    let alone = |allowed| {
        let mut stage = PlannerFixture::with_characters(&["Ada"]);
        stage.state.space.auto_mode_enabled = true;
        stage.state.space.auto_mode_max_turns = 3;
        stage.state.space.allow_self_responses = allowed;
        stage.post_as_eve("Hi.").unwrap();
        stage.run_to_end()
    };

    assert_eq!(alone(false), 0);
    assert_eq!(alone(true), 3);
}

#[test]
fn in_manual_order_it_rests() {
    let mut stage = running();
    stage.state.space.reply_order = ReplyOrder::Manual;

    stage.end_run(success("I am Bob."));

    assert!(stage.state.queued.is_none() && stage.state.round.is_none());
}

#[test]
fn one_at_a_time_the_pool_is_drawn_empty_and_then_it_rests() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    stage.state.space.auto_mode_enabled = true;
    stage.state.space.reply_order = ReplyOrder::Pooled;
    stage.post_as_eve("Hi.").unwrap();

    assert_eq!(stage.run_to_end(), 2, "the others, each once");
}

#[test]
fn each_slot_of_its_rounds_waits_and_counts() {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    stage.state.space.auto_mode_enabled = true;
    stage.state.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.state.space.auto_mode_max_turns = 3;
    stage.post_as_eve("Hi.").unwrap();
    for _ in 0..3 {
        stage.claim_due();
        stage.end_run(success("Mine."));
    }
    assert_eq!(stage.turns_left(), Some(2), "a person's round costs none");
    stage.claim_after_delay();

    let second = stage.end_run(success("Ada's second."));
    stage.claim_after_delay();
    let third = stage.end_run(success("Bob's second."));
    stage.claim_after_delay();
    let spent = stage.end_run(success("Ada's third."));

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
    assert!(stage.state.queued.is_none());
}
