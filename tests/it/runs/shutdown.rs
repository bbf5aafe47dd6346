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
    let app = EngineTest::builder(backend).open().await;
    let gate = HoldPoint::closed();
    app.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    (app, gate)
}

on_sqlite! {
    async fn a_draining_node_finishes_its_running_replies(backend) {
        let (app, gate) = writing(backend).await;
        let draining = app.engine.context().shutdown.draining.clone();

        let finish = async {
            draining.cancelled().await;
            gate.open();
        };
        tokio::join!(app.engine.drain(LONG), finish);
        app.stop(&app.engine).await;

        assert_eq!(app.answers().await, ["One two three."]);
        assert_eq!(app.only_run().await.status, RunStatus::Succeeded);
        app.close().await;
    }

    async fn an_idle_node_shuts_down_immediately(backend) {
        let app = EngineTest::builder(backend).open().await;

        app.engine.drain(LONG).await;
        app.stop(&app.engine).await;

        app.close().await;
    }

    async fn a_draining_node_claims_no_runs(backend) {
        let (app, gate) = writing(backend).await;
        let draining = app.engine.context().shutdown.draining.clone();

        let finish = async {
            draining.cancelled().await;
            app.user.post("And then?").await;
            gate.open();
        };
        tokio::join!(app.engine.drain(LONG), finish);
        app.stop(&app.engine).await;

        let runs = app.runs().await;
        let statuses: Vec<_> = runs.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Queued]);
        assert_eq!(app.runtime().await.state(), ConversationState::Queued);
        app.close().await;
    }

    async fn after_the_grace_period_a_run_is_requeued_and_continues_on_another_node(backend) {
        let (app, gate) = writing(backend).await;
        let began = app.only_run().await;

        app.engine.drain(Duration::ZERO).await;
        app.stop(&app.engine).await;
        app.upstream.wait_for_disconnect(0).await;
        let back = app.only_run().await;
        gate.open();
        let next = app.another_node();
        next.start().await.unwrap();
        app.until("the next node has answered", async |it| {
            it.answers().await == ["Hello."]
        })
        .await;

        assert_eq!((back.id, back.status), (began.id, RunStatus::Queued));
        assert_eq!((back.attempt, back.lease), (1, began.lease));
        assert_eq!((&back.worker_id, back.heartbeat_at), (&None, None));
        let run = app.only_run().await;
        assert_eq!((run.attempt, run.lease), (1, began.lease + 1));
        app.stop(&next).await;
        app.close_without_events().await;
    }

    async fn a_queued_run_supersedes_a_run_interrupted_by_shutdown(backend) {
        let (app, gate) = writing(backend).await;
        app.user.post("And then?").await;

        app.engine.drain(Duration::ZERO).await;
        app.stop(&app.engine).await;

        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Queued]);
        gate.open();
        app.close().await;
    }
}
