//! Tests of auto mode: AI replies to AI, with a delay before each turn, until no turns are left.

use base::ids::MessageId;

use crate::runs::scheduling::auto_mode;
use crate::runs::scheduling::planner::fixture::{PlannerFixture, success};
use crate::runs::store::run;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};

const DELAY: i64 = 5_000;

/// Ada and Bob, who reply to each other three times.
pub fn auto_mode_fixture() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.auto_mode_max_turns = 3;
    fixture
}

/// Ada has replied to Eve, and Bob's turn is queued.
pub fn waiting() -> PlannerFixture {
    let mut fixture = auto_mode_fixture();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("I am Ada."));
    fixture
}

/// Bob's turn is running.
pub fn running() -> PlannerFixture {
    let mut fixture = waiting();
    fixture.claim_after_delay();
    fixture
}

impl PlannerFixture {
    /// Advances the clock by the delay and claims the queued run.
    pub fn claim_after_delay(&mut self) {
        self.now = self.now.plus_ms(DELAY);
        assert_eq!(
            self.claim_due().len(),
            1,
            "the queued run should be claimed"
        );
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
    let mut fixture = auto_mode_fixture();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();

    let plan = fixture.end_run(success("I am Ada."));

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
    let run = fixture.state.queued.as_ref().unwrap();
    assert_eq!(run.debug.expected_last_message_id, Some(MessageId(2)));
    assert_eq!(run.debug.trigger_message_id, Some(MessageId(2)));
    assert_eq!(fixture.turns_left(), Some(2));
}

#[test]
fn auto_mode_stops_when_no_turns_are_left() {
    let mut fixture = waiting();

    assert_eq!(fixture.run_to_end(), 3);
    assert_eq!(fixture.turns_left(), Some(0));
    assert!(fixture.state.round.is_none() && fixture.state.queued.is_none());
}

#[test]
fn a_human_message_resets_the_turns_of_auto_mode() {
    let mut fixture = waiting();
    fixture.run_to_end();

    let plan = fixture.post_as_eve("Go on.").unwrap();

    assert_eq!(plan[1], "auto mode spoke 0 times");
    assert_eq!(fixture.turns_left(), Some(3));
    assert_eq!(
        fixture.run_to_end(),
        6,
        "three before the message and three after it"
    );
}

#[test]
fn a_human_message_replaces_the_queued_turn_of_auto_mode() {
    let mut fixture = waiting();
    let waits = fixture.state.queued.as_ref().unwrap().id;

    let plan = fixture.post_as_eve("Me first.").unwrap();

    let expected = [
        r#"Eve says "Me first.""#,
        "auto mode spoke 0 times",
        "round superseded: user_message",
        "round of Bob",
        "queue Bob: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        fixture.state.queued.unwrap().id,
        waits,
        "the row keeps its id"
    );
}

#[test]
fn an_auto_mode_turn_is_skipped_if_the_tail_is_not_the_text_it_answers() {
    let mut fixture = waiting();
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.post_as_eve("Hush.").unwrap();
    fixture.state.space.reply_order = ReplyOrder::List;
    fixture.now = fixture.now.plus_ms(DELAY);

    let plan = fixture.claim_due();

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
        let mut fixture = PlannerFixture::with_characters(&["Ada"]);
        fixture.state.space.auto_mode_enabled = true;
        fixture.state.space.auto_mode_max_turns = 3;
        fixture.state.space.allow_self_responses = allowed;
        fixture.post_as_eve("Hi.").unwrap();
        fixture.run_to_end()
    };

    assert_eq!(alone(false), 0);
    assert_eq!(alone(true), 3);
}

#[test]
fn auto_mode_stops_in_manual_order() {
    let mut fixture = running();
    fixture.state.space.reply_order = ReplyOrder::Manual;

    fixture.end_run(success("I am Bob."));

    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn auto_mode_stops_when_the_pool_is_empty() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.reply_order = ReplyOrder::Pooled;
    fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(fixture.run_to_end(), 2, "each other character once");
}

#[test]
fn each_slot_of_an_auto_mode_round_waits_and_uses_a_turn() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.state.space.auto_mode_max_turns = 3;
    fixture.post_as_eve("Hi.").unwrap();
    for _ in 0..3 {
        fixture.claim_due();
        fixture.end_run(success("Mine."));
    }
    assert_eq!(
        fixture.turns_left(),
        Some(2),
        "a round triggered by a user uses no turn"
    );
    fixture.claim_after_delay();

    let second = fixture.end_run(success("Ada's second."));
    fixture.claim_after_delay();
    let third = fixture.end_run(success("Bob's second."));
    fixture.claim_after_delay();
    let spent = fixture.end_run(success("Ada's third."));

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
    assert!(fixture.state.queued.is_none());
}
