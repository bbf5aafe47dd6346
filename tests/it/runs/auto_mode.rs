//! Tests auto mode through the whole engine: the delay, the budget, and what stops it; on one node,
//! on two nodes, and when nodes fail.

use serde_json::Value;
use troupe::runs::execution::recovery::RecoveryReport;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::store::run::{RunKind, RunStatus};
use troupe::spaces::space::RepliesPerTurn;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::EngineTestBuilder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

const DELAY_MS: i64 = 5_000;
const TURNS: i64 = 3;

/// Ada and Bob answer each other three times.
fn blueprint(backend: TestBackend) -> EngineTestBuilder {
    EngineTest::builder(backend)
        .cast(&["Ada", "Bob"])
        .rules(|it| {
            it.auto_mode_enabled = true;
            it.auto_mode_delay_ms = DELAY_MS;
            it.auto_mode_max_turns = TURNS;
        })
}

/// Ada has answered, and Bob's run is queued.
async fn waiting(backend: TestBackend) -> EngineTest {
    let room = blueprint(backend).open().await;
    room.user.post("Hello.").await;
    room.settle().await;
    room
}

/// Bob has produced "One" of "One two three." in auto mode.
async fn speaking(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let room = waiting(backend).await;
    let gate = HoldPoint::closed();
    room.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    room.clock.advance_ms(DELAY_MS);
    gate.step();
    room.events.wait_for_text("One").await;
    (room, gate)
}

impl EngineTest {
    /// Advances the clock by more than one delay and waits until all due work is done.
    async fn time_passes(&self) {
        for _ in 0..2 * TURNS {
            self.clock.advance_ms(DELAY_MS);
            self.settle().await;
        }
    }

    /// The number of replies that auto mode triggered.
    async fn n_by_itself(&self) -> usize {
        let runs = self.runs().await;
        let replies = runs.iter().filter(|it| it.kind == RunKind::AutoMode);
        replies
            .filter(|it| it.status == RunStatus::Succeeded)
            .count()
    }

    /// The remaining turns as the API reports them.
    async fn turns_left(&self) -> Option<i64> {
        let document = self.engine.conversation_view(self.conversation).await;
        document.expect("a document").auto_mode_turns_left
    }

    async fn switches_auto_mode(&self, on: bool) {
        self.change_rules(|it| it.auto_mode_enabled = on).await;
        let told = self.engine.settings_changed(self.space).await;
        told.expect("the schedule is told");
    }
}

on_sqlite! {
    async fn ai_answers_ai_after_the_delay_until_its_turns_are_spent(backend) {
        let room = waiting(backend).await;

        assert_eq!(room.answers().await.len(), 1, "nothing before the delay is over");
        assert_eq!(room.runtime().await.state(), ConversationState::Queued);
        room.clock.advance_ms(DELAY_MS - 1);
        room.settle().await;
        assert_eq!(room.answers().await.len(), 1);
        room.clock.advance_ms(1);
        room.settle().await;
        assert_eq!(room.answers().await.len(), 2);
        room.time_passes().await;

        let kinds: Vec<RunKind> = room.runs().await.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [RunKind::UserTurn, RunKind::AutoMode, RunKind::AutoMode, RunKind::AutoMode]);
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Ada", "Bob"]);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn the_turns_left_are_reported_everywhere(backend) {
        let room = blueprint(backend).open().await;
        assert_eq!(room.turns_left().await, Some(3));

        room.user.post("Hello.").await;
        room.settle().await;
        let snapshot = room.engine.snapshot(room.conversation, None).await.unwrap().expect("a conversation");
        let early = room.turns_left().await;
        room.time_passes().await;
        room.settle().await;

        assert_eq!((early, snapshot.auto_mode_turns_left), (Some(2), Some(2)));
        assert_eq!(room.turns_left().await, Some(0));
        let log = room.events.log();
        let updates = log.iter().filter(|it| it["type"] == "queue_updated");
        let mut told: Vec<&Value> = updates.map(|it| &it["auto_mode_turns_left"]).collect();
        told.dedup();
        assert_eq!(told, [3, 2, 1, 0]);
        room.switches_auto_mode(false).await;
        assert_eq!(room.turns_left().await, None);
        room.close().await;
    }

    async fn a_human_message_comes_first_and_resets_the_turns(backend) {
        let room = waiting(backend).await;
        room.time_passes().await;

        room.user.post("Go on.").await;
        room.settle().await;
        let left = room.turns_left().await;
        room.user.post("No, wait for me.").await;
        room.time_passes().await;

        assert_eq!(left, Some(2));
        assert_eq!(room.n_by_itself().await, 6);
        let speakers = room.speakers().await;
        assert_eq!(speakers[5..9], ["Eve", "Ada", "Eve", "Bob"], "Bob answers Eve, not Ada");
        room.close().await;
    }

    async fn switched_off_it_drops_what_waits(backend) {
        let room = waiting(backend).await;

        room.switches_auto_mode(false).await;
        room.time_passes().await;

        assert_eq!(room.answers().await.len(), 1);
        assert_eq!(room.runs().await[1].status, RunStatus::Canceled);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn switched_off_it_lets_the_reply_finish_and_nothing_follow(backend) {
        let (room, gate) = speaking(backend).await;

        room.switches_auto_mode(false).await;
        gate.open();
        room.time_passes().await;

        assert_eq!(room.answers().await, ["Hello.", "One two three."]);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn switched_on_it_starts_nothing_by_itself(backend) {
        let room = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        room.user.post("Hello.").await;
        room.settle().await;

        room.switches_auto_mode(true).await;
        room.time_passes().await;
        let before = room.answers().await.len();
        room.engine.force_talk(room.conversation, None, "Eve".to_owned()).await.unwrap();
        room.settle().await;

        assert_eq!(before, 1);
        let waits = room.runtime().await.queued.expect("a forced reply is answered");
        assert_eq!(waits.kind, RunKind::AutoMode);
        room.close().await;
    }

    async fn a_failed_turn_waits_for_a_person_and_is_not_counted_twice(backend) {
        let room = waiting(backend).await;
        room.upstream.next(ResponseScript::status(400));
        room.time_passes().await;
        let failed = (room.runtime().await.state(), room.answers().await.len());

        room.engine.retry(room.conversation).await.unwrap();
        room.time_passes().await;

        assert_eq!(failed, (ConversationState::Failed, 1), "nothing goes on by itself");
        assert_eq!(room.n_by_itself().await, 3);
        room.close().await;
    }

    async fn a_paused_turn_waits_for_resume(backend) {
        let room = waiting(backend).await;
        room.engine.pause(room.conversation).await.unwrap();
        room.time_passes().await;
        let paused = (room.runtime().await.state(), room.answers().await.len());

        room.engine.resume(room.conversation).await.unwrap();
        room.settle().await;
        let at_once = room.answers().await.len();
        room.time_passes().await;

        assert_eq!(paused, (ConversationState::Paused, 1));
        assert_eq!(at_once, 2, "resume does not wait");
        assert_eq!(room.n_by_itself().await, 3);
        room.close().await;
    }

    async fn paused_during_a_reply_the_next_one_waits_for_resume(backend) {
        let (room, gate) = speaking(backend).await;

        room.engine.pause(room.conversation).await.unwrap();
        gate.open();
        room.time_passes().await;
        let paused = (room.runtime().await.state(), room.answers().await.len());
        room.engine.resume(room.conversation).await.unwrap();
        room.time_passes().await;

        assert_eq!(paused, (ConversationState::Paused, 2));
        assert_eq!(room.n_by_itself().await, 3);
        room.close().await;
    }

    async fn stopped_auto_mode_waits_for_the_next_message(backend) {
        let (room, gate) = speaking(backend).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.upstream.wait_for_disconnect(1).await;
        gate.open();
        room.time_passes().await;
        let stopped = (room.runtime().await.state(), room.answers().await);
        room.user.post("Go on.").await;
        room.time_passes().await;

        assert_eq!(stopped, (ConversationState::Idle, vec!["Hello.".to_owned(), "One".to_owned()]));
        assert_eq!(room.n_by_itself().await, 3);
        room.close().await;
    }

    async fn in_rounds_of_several_each_turn_waits_and_counts(backend) {
        let room = blueprint(backend)
            .cast(&["Ada", "Bob", "Cid"])
            .rules(|it| it.replies_per_turn = RepliesPerTurn::Activated)
            .open()
            .await;
        room.user.post("Hello.").await;
        room.settle().await;
        let of_the_human = room.answers().await.len();

        room.clock.advance_ms(DELAY_MS);
        room.settle().await;
        let after_one_delay = room.answers().await.len();
        room.time_passes().await;

        assert_eq!((of_the_human, after_one_delay), (3, 4));
        assert_eq!(room.n_by_itself().await, 3);
        let mut facts = room.facts().await;
        let reasons = facts.rows("SELECT ended_reason FROM conversation_rounds WHERE kind = 'auto_mode' ORDER BY created_at").await;
        assert!(format!("{:?}", reasons.last()).contains("auto_mode_budget"), "{reasons:?}");
        room.close().await;
    }

    async fn a_node_that_dies_does_not_give_it_a_turn_more(backend) {
        let (room, gate) = speaking(backend).await;
        // This node claims nothing more, so another node continues the round.
        room.engine.context().shutdown.draining.cancel();
        room.last_heard(60_000).await;
        let node = room.another_node();

        let report = node.run_recovery().await.unwrap();
        node.start().await.unwrap();
        room.until("its turns are spent", async |room| {
            room.clock.advance_ms(DELAY_MS);
            room.n_by_itself().await >= 3
        })
        .await;
        gate.open();
        room.wait_until_idle().await;
        for _ in 0..5 {
            room.clock.advance_ms(DELAY_MS);
            room.settle_alone().await;
        }

        assert_eq!(report, RecoveryReport { failed: 1, requeued: 1, rounds_closed: 0, jobs_continued: 0 });
        assert_eq!(room.n_by_itself().await, 3, "the second attempt is the same turn");
        assert_eq!(room.turns_left().await, Some(0));
        room.stop(&node).await;
        room.close_without_events().await;
    }

    async fn two_nodes_together_make_no_turn_more(backend) {
        let room = waiting(backend).await;
        let node = room.another_node();
        node.start().await.unwrap();

        for _ in 0..8 {
            room.clock.advance_ms(DELAY_MS);
            let due = async |room: &EngineTest| {
                let runtime = room.runtime().await;
                runtime.running.is_none()
                    && runtime.queued.is_none_or(|it| it.run_after.is_some_and(|at| at > room.clock.now()))
            };
            room.until("what was due is done", due).await;
        }

        assert_eq!(room.n_by_itself().await, 3);
        room.stop(&node).await;
        room.wait_until_idle().await;
        room.close_without_events().await;
    }
}
