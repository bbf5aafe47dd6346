//! Tests shutdown: the node claims nothing new, running replies may finish, and the rest is
//! re-queued unchanged.

use std::time::Duration;

use troupe::runs::reading::views::ConversationState;
use troupe::runs::store::run::RunStatus;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

const LONG: Duration = Duration::from_secs(60);

/// Ada has produced "One" of "One two three."
async fn writing(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let room = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    room.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    (room, gate)
}

on_sqlite! {
    async fn a_draining_node_lets_what_runs_finish(backend) {
        let (room, gate) = writing(backend).await;
        let draining = room.engine.context().shutdown.draining.clone();

        let finish = async {
            draining.cancelled().await;
            gate.open();
        };
        tokio::join!(room.engine.drain(LONG), finish);
        room.stop(&room.engine).await;

        assert_eq!(room.answers().await, ["One two three."]);
        assert_eq!(room.only_run().await.status, RunStatus::Succeeded);
        room.close().await;
    }

    async fn an_idle_node_closes_at_once(backend) {
        let room = EngineTest::builder(backend).open().await;

        room.engine.drain(LONG).await;
        room.stop(&room.engine).await;

        room.close().await;
    }

    async fn a_draining_node_claims_no_runs(backend) {
        let (room, gate) = writing(backend).await;
        let draining = room.engine.context().shutdown.draining.clone();

        let finish = async {
            draining.cancelled().await;
            room.user.post("And then?").await;
            gate.open();
        };
        tokio::join!(room.engine.drain(LONG), finish);
        room.stop(&room.engine).await;

        let runs = room.runs().await;
        let statuses: Vec<_> = runs.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Queued]);
        assert_eq!(room.runtime().await.state(), ConversationState::Queued);
        room.close().await;
    }

    async fn after_the_grace_the_rest_is_handed_back_and_goes_on_elsewhere(backend) {
        let (room, gate) = writing(backend).await;
        let began = room.only_run().await;

        room.engine.drain(Duration::ZERO).await;
        room.stop(&room.engine).await;
        room.upstream.wait_for_disconnect(0).await;
        let back = room.only_run().await;
        gate.open();
        let next = room.another_node();
        next.start().await.unwrap();
        room.until("the next node has answered", async |it| {
            it.answers().await == ["Hello."]
        })
        .await;

        assert_eq!((back.id, back.status), (began.id, RunStatus::Queued));
        assert_eq!((back.attempt, back.lease), (1, began.lease));
        assert_eq!((&back.worker_id, back.heartbeat_at), (&None, None));
        let run = room.only_run().await;
        assert_eq!((run.attempt, run.lease), (1, began.lease + 1));
        room.stop(&next).await;
        room.close_without_events().await;
    }

    async fn what_waits_supersedes_what_is_handed_back(backend) {
        let (room, gate) = writing(backend).await;
        room.user.post("And then?").await;

        room.engine.drain(Duration::ZERO).await;
        room.stop(&room.engine).await;

        let statuses: Vec<_> = room.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Queued]);
        gate.open();
        room.close().await;
    }

    async fn a_paused_reply_is_not_handed_back(backend) {
        let (room, gate) = writing(backend).await;
        room.engine.pause(room.conversation).await.unwrap();

        room.engine.drain(Duration::ZERO).await;
        room.stop(&room.engine).await;

        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        assert_eq!(room.runtime().await.state(), ConversationState::Paused);
        gate.open();
        room.close().await;
    }
}
