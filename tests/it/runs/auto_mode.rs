//! Tests auto mode through the whole engine: the delay, the budget, and what stops it; on one node,
//! on two nodes, and when nodes fail.

use serde_json::Value;
use troupe::conversations::audience::viewer::Viewer;
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
fn builder(backend: TestBackend) -> EngineTestBuilder {
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
    let app = builder(backend).open().await;
    app.user.post("Hello.").await;
    app.settle().await;
    app
}

/// Bob has produced "One" of "One two three." in auto mode.
async fn speaking(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let app = waiting(backend).await;
    let gate = HoldPoint::closed();
    app.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    app.clock.advance_ms(DELAY_MS);
    gate.step();
    app.events.wait_for_text("One").await;
    (app, gate)
}

impl EngineTest {
    /// Advances the clock by more than one delay and waits until all due work is done.
    async fn advance_time(&self) {
        for _ in 0..2 * TURNS {
            self.clock.advance_ms(DELAY_MS);
            self.settle().await;
        }
    }

    /// The number of replies that auto mode triggered.
    async fn n_auto_mode_replies(&self) -> usize {
        let runs = self.runs().await;
        let replies = runs.iter().filter(|it| it.kind == RunKind::AutoMode);
        replies
            .filter(|it| it.status == RunStatus::Succeeded)
            .count()
    }

    /// The remaining turns as the API reports them.
    async fn turns_left(&self) -> Option<i64> {
        let document = self
            .engine
            .conversation_view(self.conversation, Viewer::Server)
            .await;
        document
            .expect("the view could not be loaded")
            .auto_mode_turns_left
    }

    async fn set_auto_mode(&self, on: bool) {
        self.change_rules(|it| it.auto_mode_enabled = on).await;
        let applied = self.engine.settings_changed(self.space).await;
        applied.expect("the change was not applied");
    }
}

on_sqlite! {
    async fn characters_answer_each_other_after_the_delay_until_no_turns_are_left(backend) {
        let app = waiting(backend).await;

        assert_eq!(app.answers().await.len(), 1, "a reply came before the delay was over");
        assert_eq!(app.runtime().await.state(), ConversationState::Queued);
        app.clock.advance_ms(DELAY_MS - 1);
        app.settle().await;
        assert_eq!(app.answers().await.len(), 1);
        app.clock.advance_ms(1);
        app.settle().await;
        assert_eq!(app.answers().await.len(), 2);
        app.advance_time().await;

        let kinds: Vec<RunKind> = app.runs().await.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [RunKind::UserTurn, RunKind::AutoMode, RunKind::AutoMode, RunKind::AutoMode]);
        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob", "Ada", "Bob"]);
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn turns_left_are_reported_in_views_snapshots_and_events(backend) {
        let app = builder(backend).open().await;
        assert_eq!(app.turns_left().await, Some(3));

        app.user.post("Hello.").await;
        app.settle().await;
        let snapshot = app.engine.snapshot(app.conversation, Viewer::Server, None).await.unwrap().expect("the conversation is missing");
        let early = app.turns_left().await;
        app.advance_time().await;
        app.settle().await;

        assert_eq!((early, snapshot.auto_mode_turns_left), (Some(2), Some(2)));
        assert_eq!(app.turns_left().await, Some(0));
        let log = app.events.log();
        let updates = log.iter().filter(|it| it["type"] == "queue_updated");
        let mut turns_left: Vec<&Value> = updates.map(|it| &it["auto_mode_turns_left"]).collect();
        turns_left.dedup();
        assert_eq!(turns_left, [3, 2, 1, 0]);
        app.set_auto_mode(false).await;
        assert_eq!(app.turns_left().await, None);
        app.close().await;
    }

    async fn switching_auto_mode_off_cancels_the_queued_run(backend) {
        let app = waiting(backend).await;

        app.set_auto_mode(false).await;
        app.advance_time().await;

        assert_eq!(app.answers().await.len(), 1);
        assert_eq!(app.runs().await[1].status, RunStatus::Canceled);
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn a_paused_auto_mode_turn_waits_for_resume(backend) {
        let app = waiting(backend).await;
        app.engine.pause(app.conversation).await.unwrap();
        app.advance_time().await;
        let paused = (app.runtime().await.state(), app.answers().await.len());

        app.engine.resume(app.conversation).await.unwrap();
        app.settle().await;
        let at_once = app.answers().await.len();
        app.advance_time().await;

        assert_eq!(paused, (ConversationState::Paused, 1));
        assert_eq!(at_once, 2, "resume does not wait");
        assert_eq!(app.n_auto_mode_replies().await, 3);
        app.close().await;
    }

    async fn stopped_auto_mode_waits_for_the_next_message(backend) {
        let (app, gate) = speaking(backend).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(1).await;
        gate.open();
        app.advance_time().await;
        let stopped = (app.runtime().await.state(), app.answers().await);
        app.user.post("Go on.").await;
        app.advance_time().await;

        assert_eq!(stopped, (ConversationState::Idle, vec!["Hello.".to_owned(), "One".to_owned()]));
        assert_eq!(app.n_auto_mode_replies().await, 3);
        app.close().await;
    }

    async fn each_speaker_of_an_auto_mode_round_waits_for_the_delay_and_uses_a_turn(backend) {
        let app = builder(backend)
            .cast(&["Ada", "Bob", "Cid"])
            .rules(|it| it.replies_per_turn = RepliesPerTurn::Activated)
            .open()
            .await;
        app.user.post("Hello.").await;
        app.settle().await;
        let after_the_post = app.answers().await.len();

        app.clock.advance_ms(DELAY_MS);
        app.settle().await;
        let after_one_delay = app.answers().await.len();
        app.advance_time().await;

        assert_eq!((after_the_post, after_one_delay), (3, 4));
        assert_eq!(app.n_auto_mode_replies().await, 3);
        let mut facts = app.facts().await;
        let reasons = facts.rows("SELECT ended_reason FROM conversation_rounds WHERE kind = 'auto_mode' ORDER BY created_at").await;
        assert!(format!("{:?}", reasons.last()).contains("auto_mode_budget"), "{reasons:?}");
        app.close().await;
    }

    async fn a_dead_node_does_not_add_an_auto_mode_turn(backend) {
        let (app, gate) = speaking(backend).await;
        // This node claims nothing more, so another node continues the round.
        app.engine.context().shutdown.draining.cancel();
        app.set_last_heartbeat(60_000).await;
        let node = app.another_node();

        let report = node.run_recovery().await.unwrap();
        node.start().await.unwrap();
        app.until("all turns are used", async |app| {
            app.clock.advance_ms(DELAY_MS);
            app.n_auto_mode_replies().await >= 3
        })
        .await;
        gate.open();
        app.wait_until_idle().await;
        for _ in 0..5 {
            app.clock.advance_ms(DELAY_MS);
            app.settle_alone().await;
        }

        assert_eq!(report, RecoveryReport { failed: 1, requeued: 1, turns_skipped: 0, rounds_closed: 0, jobs_continued: 0 });
        assert_eq!(app.n_auto_mode_replies().await, 3, "the second attempt is the same turn");
        assert_eq!(app.turns_left().await, Some(0));
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn two_nodes_do_not_exceed_the_auto_mode_turns(backend) {
        let app = waiting(backend).await;
        let node = app.another_node();
        node.start().await.unwrap();

        for _ in 0..8 {
            app.clock.advance_ms(DELAY_MS);
            let due = async |app: &EngineTest| {
                let runtime = app.runtime().await;
                runtime.running.is_none()
                    && runtime.queued.is_none_or(|it| it.run_after.is_some_and(|at| at > app.clock.now()))
            };
            app.until("all due runs have ended", due).await;
        }

        assert_eq!(app.n_auto_mode_replies().await, 3);
        app.stop(&node).await;
        app.wait_until_idle().await;
        app.close_without_events().await;
    }
}
