//! Tests copilot through the whole engine: the AI writes for a user exactly as many times as
//! allowed.

use base::ids::UserId;
use realtime::topic::Topic;
use serde_json::{Value, json};
use troupe::conversations::message::MessageRole;
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunReason, RunStatus};
use troupe::spaces::membership;
use troupe::spaces::membership::CopilotMode;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::event_recorder::EventRecorder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::{poll, transitions};

impl EngineTest {
    /// Enables the copilot in Eve's membership without notifying the scheduler.
    async fn enable_copilot(&self, steps: i64) {
        let here = self.conversation;
        self.change_membership("Eve", |it| {
            it.copilot_mode = CopilotMode::Full;
            it.copilot_remaining_steps = Some(steps);
            it.copilot_conversation_id = Some(here);
        })
        .await;
    }

    /// Enables Eve's copilot as the endpoint does.
    async fn turn_copilot_on(&self, steps: i64) {
        self.enable_copilot(steps).await;
        let started = self
            .engine
            .start_copilot(self.conversation, self.user.membership);
        started.await.expect("the query failed");
    }

    /// Disables Eve's copilot as the endpoint does.
    async fn take_over(&self) {
        self.change_membership("Eve", |it| {
            it.copilot_mode = CopilotMode::None;
            it.copilot_remaining_steps = None;
        })
        .await;
        let applied = self.engine.member_changed(self.space, self.user.membership);
        applied.await.expect("the query failed");
    }

    async fn steps_left(&self) -> (CopilotMode, Option<i64>) {
        let eve = self.membership("Eve").await;
        (eve.copilot_mode, eve.copilot_remaining_steps)
    }

    /// The authors in order: `E` for Eve's copilot, `A` for a character.
    async fn speaker_sequence(&self) -> String {
        let all = self.messages().await.into_iter();
        all.map(|it| match it.role {
            MessageRole::User => 'E',
            _ => 'A',
        })
        .collect()
    }
}

const OFF: (CopilotMode, Option<i64>) = (CopilotMode::None, None);

/// The events on Eve's own user topic.
async fn eves_events(app: &EngineTest) -> EventRecorder {
    let eve: membership::Model = app.membership("Eve").await;
    let user: UserId = eve.user_id.expect("the membership has no user");
    EventRecorder::subscribe(&app.engine.context().hub, Topic::User(user))
}

fn numbered(app: &EngineTest) {
    let mut n = 0;
    app.upstream.answer_with(move |_| {
        n += 1;
        ResponseScript::say(&format!("Text {n}."))
    });
}

/// Eve's copilot has produced "One" of "One two three." when its node stops sending heartbeats.
async fn silent(backend: TestBackend, steps: i64) -> (EngineTest, HoldPoint) {
    let app = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    app.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    app.turn_copilot_on(steps).await;
    gate.step();
    app.events.wait_for_text("One").await;
    // The node claims nothing more, so the second attempt runs on another node.
    app.engine.context().shutdown.draining.cancel();
    app.set_last_heartbeat(60_000).await;
    (app, gate)
}

on_sqlite! {
    async fn every_copilot_step_posts_a_message_and_each_is_answered(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        numbered(&app);
        let (own, space) = (eves_events(&app).await, EventRecorder::subscribe(&app.engine.context().hub, Topic::Space(app.space)));

        app.turn_copilot_on(3).await;
        app.settle().await;

        assert_eq!(app.speaker_sequence().await, "EAEAEA");
        assert_eq!(app.steps_left().await, OFF);
        let runs = app.runs().await;
        let of_eve: Vec<_> = runs.iter().filter(|it| it.speaker_space_membership_id == Some(app.user.membership)).collect();
        let reasons: Vec<_> = of_eve.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [RunReason::CopilotStart, RunReason::CopilotFollowup, RunReason::CopilotFollowup]);
        assert!(of_eve.iter().all(|it| it.kind == run::RunKind::UserTurn && it.round_id.is_none()));
        let events: Vec<Value> = own.log();
        let left: Vec<&Value> = events.iter().map(|it| &it["copilot_remaining_steps"]).collect();
        assert_eq!(left, [&json!(2), &json!(1), &Value::Null]);
        assert_eq!(events[2]["copilot_mode"], "none");
        let mut updates = space.log().into_iter().filter(|it| it["type"] == "membership_updated");
        let last = updates.next_back().expect("the space received no event");
        assert_eq!(last["membership"]["copilot_mode"], "none");
        app.close().await;
    }

    async fn the_copilot_prompt_writes_as_the_user(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("I love bread.").await;
        app.settle().await;
        app.upstream.next(ResponseScript::say("Eve: And cheese.\nAda: Me too."));

        app.turn_copilot_on(1).await;
        app.settle().await;

        assert_eq!(app.messages().await[2].content, "And cheese.");
        let prompt = app.upstream.body(1)["messages"].to_string();
        assert!(prompt.contains("You write for Eve"), "{prompt}");
        assert!(prompt.contains("[Write the next message of Eve"), "{prompt}");
        app.close().await;
    }

    async fn a_user_with_an_active_copilot_posts_only_after_taking_over(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        app.turn_copilot_on(3).await;
        app.upstream.wait_for_requests(1).await;

        let refused = app.user.try_post("Me.").await;
        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::CopilotActive))), "{refused:?}");
        app.take_over().await;

        app.upstream.wait_for_disconnect(0).await;
        assert_eq!(app.runs().await[0].status, RunStatus::Canceled);
        gate.open();
        app.user.post("Me.").await;
        app.settle().await;
        assert_eq!(app.speaker_sequence().await, "EA");
        assert_eq!(app.messages().await[0].content, "Me.");
        app.close().await;
    }

    async fn a_run_of_a_dead_node_uses_no_copilot_step_and_its_second_attempt_uses_one(backend) {
        let (app, gate) = silent(backend, 2).await;
        let node = app.another_node();
        node.start().await.unwrap();

        node.run_recovery().await.unwrap();
        app.until("both steps are used", async |it| it.steps_left().await == OFF).await;
        app.until("both are answered", async |it| it.speaker_sequence().await == "EAEA").await;
        // The node that was considered dead continues, and its output is discarded.
        gate.open();
        app.upstream.finished(0).await;
        app.wait_until_idle().await;

        assert_eq!(app.speaker_sequence().await, "EAEA");
        let of_eve: Vec<_> = app.runs().await.into_iter().filter(|it| it.speaker_space_membership_id == Some(app.user.membership)).collect();
        let outcomes: Vec<_> = of_eve.iter().map(|it| (it.status, it.reason, it.attempt)).collect();
        assert_eq!(
            outcomes,
            [
                (RunStatus::Failed, RunReason::CopilotStart, 1),
                (RunStatus::Succeeded, RunReason::Recovered, 2),
                (RunStatus::Succeeded, RunReason::CopilotFollowup, 1),
            ]
        );
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn two_nodes_use_each_copilot_step_once(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).not_started().open().await;
        let mut facts = app.facts().await;
        transitions::record(&mut facts).await;
        let nodes = [app.another_node(), app.another_node()];
        for node in &nodes {
            node.start().await.unwrap();
        }
        app.enable_copilot(10).await;

        // Enabled on both nodes at the same time.
        let starts = nodes.iter().map(|it| it.start_copilot(app.conversation, app.user.membership));
        futures::future::join_all(starts).await;
        poll::until("all steps are used and answered", async || {
            nodes.iter().for_each(|it| it.context().wakeup.notify());
            let is_over = app.steps_left().await == OFF && app.runtime().await.state() == ConversationState::Idle;
            is_over.then_some(())
        })
        .await;

        assert_eq!(app.speaker_sequence().await, "EA".repeat(10));
        assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
        for node in &nodes {
            app.stop(node).await;
        }
        app.close_without_events().await;
    }

    async fn disabling_the_copilot_during_a_run_does_not_make_its_steps_negative(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        app.turn_copilot_on(1).await;
        app.upstream.wait_for_requests(1).await;
        // Disabled during the commit: the scheduler has not been notified yet.
        app.change_membership("Eve", |it| {
            it.copilot_mode = CopilotMode::None;
            it.copilot_remaining_steps = None;
        })
        .await;
        gate.open();
        app.settle().await;

        assert_eq!(app.speaker_sequence().await, "EA");
        assert_eq!(app.steps_left().await, OFF);
        app.close().await;
    }
}
