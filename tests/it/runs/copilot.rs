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
    async fn copilot(&self, steps: i64) {
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
        self.copilot(steps).await;
        let started = self
            .engine
            .start_copilot(self.conversation, self.user.membership);
        started.await.expect("the database answers");
    }

    /// Disables Eve's copilot as the endpoint does.
    async fn take_over(&self) {
        self.change_membership("Eve", |it| {
            it.copilot_mode = CopilotMode::None;
            it.copilot_remaining_steps = None;
        })
        .await;
        let told = self.engine.member_changed(self.space, self.user.membership);
        told.await.expect("the database answers");
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

    async fn reasons(&self) -> Vec<RunReason> {
        self.runs().await.iter().map(|it| it.reason).collect()
    }
}

const OFF: (CopilotMode, Option<i64>) = (CopilotMode::None, None);

/// The events on Eve's own user topic.
async fn eves_events(room: &EngineTest) -> EventRecorder {
    let eve: membership::Model = room.membership("Eve").await;
    let user: UserId = eve.user_id.expect("a person");
    EventRecorder::subscribe(&room.engine.context().hub, Topic::User(user))
}

fn numbered(room: &EngineTest) {
    let mut n = 0;
    room.upstream.answer_with(move |_| {
        n += 1;
        ResponseScript::say(&format!("Text {n}."))
    });
}

/// Eve's copilot has produced "One" of "One two three." when its node stops sending heartbeats.
async fn silent(backend: TestBackend, steps: i64) -> (EngineTest, HoldPoint) {
    let room = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    room.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    room.turn_copilot_on(steps).await;
    gate.step();
    room.events.wait_for_text("One").await;
    // The node claims nothing more, so the second attempt runs on another node.
    room.engine.context().shutdown.draining.cancel();
    room.last_heard(60_000).await;
    (room, gate)
}

on_sqlite! {
    async fn every_step_is_a_text_and_the_last_one_is_answered_too(backend) {
        let room = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        numbered(&room);
        let (own, space) = (eves_events(&room).await, EventRecorder::subscribe(&room.engine.context().hub, Topic::Space(room.space)));

        room.turn_copilot_on(3).await;
        room.settle().await;

        assert_eq!(room.speaker_sequence().await, "EAEAEA");
        assert_eq!(room.steps_left().await, OFF);
        let runs = room.runs().await;
        let of_eve: Vec<_> = runs.iter().filter(|it| it.speaker_space_membership_id == room.user.membership).collect();
        let reasons: Vec<_> = of_eve.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [RunReason::CopilotStart, RunReason::CopilotFollowup, RunReason::CopilotFollowup]);
        assert!(of_eve.iter().all(|it| it.kind == run::RunKind::UserTurn && it.round_id.is_none()));
        let told: Vec<Value> = own.log();
        let left: Vec<&Value> = told.iter().map(|it| &it["copilot_remaining_steps"]).collect();
        assert_eq!(left, [&json!(2), &json!(1), &Value::Null]);
        assert_eq!(told[2]["copilot_mode"], "none");
        let mut seats = space.log().into_iter().filter(|it| it["type"] == "membership_updated");
        let last = seats.next_back().expect("the space hears of it");
        assert_eq!(last["membership"]["copilot_mode"], "none");
        room.close().await;
    }

    async fn the_prompt_of_a_copilot_is_the_persons(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.user.post("I love bread.").await;
        room.settle().await;
        room.upstream.next(ResponseScript::say("Eve: And cheese.\nAda: Me too."));

        room.turn_copilot_on(1).await;
        room.settle().await;

        assert_eq!(room.messages().await[2].content, "And cheese.");
        let prompt = room.upstream.body(1)["messages"].to_string();
        assert!(prompt.contains("You write for Eve"), "{prompt}");
        assert!(prompt.contains("[Write the next message of Eve"), "{prompt}");
        room.close().await;
    }

    async fn a_user_with_an_active_copilot_posts_only_after_taking_over(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.turn_copilot_on(3).await;
        room.upstream.wait_for_requests(1).await;

        let refused = room.user.try_post("Me.").await;
        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::CopilotActive))), "{refused:?}");
        room.take_over().await;

        room.upstream.wait_for_disconnect(0).await;
        assert_eq!(room.runs().await[0].status, RunStatus::Canceled);
        gate.open();
        room.user.post("Me.").await;
        room.settle().await;
        assert_eq!(room.speaker_sequence().await, "EA");
        assert_eq!(room.messages().await[0].content, "Me.");
        room.close().await;
    }

    async fn taking_over_cancels_what_waits(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        room.turn_copilot_on(3).await;

        room.take_over().await;

        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn out_of_steps_at_the_claim_its_run_is_skipped(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        room.turn_copilot_on(1).await;
        room.change_membership("Eve", |it| {
            it.copilot_mode = CopilotMode::None;
            it.copilot_remaining_steps = None;
        })
        .await;

        room.engine.start().await.unwrap();
        room.settle().await;

        let run = room.only_run().await;
        assert_eq!((run.status, run.debug.skipped_because.as_deref()), (RunStatus::Skipped, Some("speaker_unavailable")));
        assert_eq!(room.upstream.n_requests(), 0);
        room.close().await;
    }

    async fn a_failed_answer_makes_it_rest_and_a_retry_lets_it_go_on(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.next(ResponseScript::say("Hi."));
        room.upstream.next(ResponseScript::status(400));
        room.turn_copilot_on(2).await;
        room.settle().await;
        assert_eq!((room.speaker_sequence().await.as_str(), room.runtime().await.state()), ("E", ConversationState::Failed));

        room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(room.speaker_sequence().await, "EAEA");
        assert_eq!(room.steps_left().await, OFF);
        room.close().await;
    }

    async fn its_own_failed_text_costs_no_step_and_is_tried_again(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.next(ResponseScript::status(400));
        room.turn_copilot_on(1).await;
        room.settle().await;
        assert_eq!(room.steps_left().await, (CopilotMode::Full, Some(1)));

        let run = room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(run.reason, RunReason::CopilotContinue);
        assert_eq!(room.speaker_sequence().await, "EA");
        assert_eq!(room.steps_left().await, OFF);
        room.close().await;
    }

    async fn a_stopped_copilot_waits_until_resumed(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.turn_copilot_on(1).await;
        room.upstream.wait_for_requests(1).await;
        room.engine.stop(room.conversation, false).await.unwrap();
        gate.open();
        room.settle().await;
        assert_eq!((room.speaker_sequence().await.as_str(), room.steps_left().await), ("", (CopilotMode::Full, Some(1))));

        room.engine.resume(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(room.speaker_sequence().await, "EA");
        assert_eq!(room.reasons().await[1], RunReason::CopilotContinue);
        room.close().await;
    }

    async fn a_dead_node_costs_no_step_and_its_second_attempt_one(backend) {
        let (room, gate) = silent(backend, 2).await;
        let node = room.another_node();
        node.start().await.unwrap();

        node.run_recovery().await.unwrap();
        room.until("both steps are spent", async |it| it.steps_left().await == OFF).await;
        room.until("both are answered", async |it| it.speaker_sequence().await == "EAEA").await;
        // The node that was considered dead continues, and its output is discarded.
        gate.open();
        room.upstream.finished(0).await;
        room.wait_until_idle().await;

        assert_eq!(room.speaker_sequence().await, "EAEA");
        let of_eve: Vec<_> = room.runs().await.into_iter().filter(|it| it.speaker_space_membership_id == room.user.membership).collect();
        let told: Vec<_> = of_eve.iter().map(|it| (it.status, it.reason, it.attempt)).collect();
        assert_eq!(
            told,
            [
                (RunStatus::Failed, RunReason::CopilotStart, 1),
                (RunStatus::Succeeded, RunReason::Recovered, 2),
                (RunStatus::Succeeded, RunReason::CopilotFollowup, 1),
            ]
        );
        room.stop(&node).await;
        room.close_without_events().await;
    }

    async fn two_nodes_spend_no_step_twice(backend) {
        let room = EngineTest::builder(backend).cast(&["Ada", "Bob"]).not_started().open().await;
        let mut facts = room.facts().await;
        transitions::record(&mut facts).await;
        let nodes = [room.another_node(), room.another_node()];
        for node in &nodes {
            node.start().await.unwrap();
        }
        room.copilot(10).await;

        // Enabled on both nodes at the same time.
        let starts = nodes.iter().map(|it| it.start_copilot(room.conversation, room.user.membership));
        futures::future::join_all(starts).await;
        poll::until("all steps are spent and answered", async || {
            nodes.iter().for_each(|it| it.context().wakeup.notify());
            let is_over = room.steps_left().await == OFF && room.runtime().await.state() == ConversationState::Idle;
            is_over.then_some(())
        })
        .await;

        assert_eq!(room.speaker_sequence().await, "EA".repeat(10));
        assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
        for node in &nodes {
            room.stop(node).await;
        }
        room.close_without_events().await;
    }

    async fn a_step_that_was_taken_back_in_between_is_not_spent_below_nothing(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.turn_copilot_on(1).await;
        room.upstream.wait_for_requests(1).await;
        // Disabled during the commit: the scheduler has not been notified yet.
        room.change_membership("Eve", |it| {
            it.copilot_mode = CopilotMode::None;
            it.copilot_remaining_steps = None;
        })
        .await;
        gate.open();
        room.settle().await;

        assert_eq!(room.speaker_sequence().await, "EA");
        assert_eq!(room.steps_left().await, OFF);
        room.close().await;
    }

    async fn another_persons_words_come_before_the_copilots(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        room.turn_copilot_on(2).await;
        room.copilot(2).await;
        let gus = room.another_user("Gus").await;
        gus.post("Wait.").await;
        assert_eq!(room.reasons().await, [RunReason::UserMessage]);

        room.engine.start().await.unwrap();
        room.settle().await;

        assert_eq!(room.speaker_sequence().await, "EAEAEA");
        assert_eq!(room.messages().await[0].content, "Wait.");
        room.close().await;
    }
}
