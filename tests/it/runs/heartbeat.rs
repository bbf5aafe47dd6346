//! Tests a node's heartbeat: it renews every run that the node holds and reports the runs that it
//! lost.

use std::time::Duration;

use troupe::runs::store::run::RunStatus;

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::HoldPoint;

const OFTEN: Duration = Duration::from_millis(30);

/// Ada has produced "One" of "One two three." on a node with a short heartbeat interval.
async fn writing(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let app = EngineTest::builder(backend)
        .settings(|it| it.heartbeat = OFTEN)
        .open()
        .await;
    app.upstream.reply_with("One two three.");
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    (app, gate)
}

on_both! {
    async fn heartbeats_continue_while_the_model_sends_nothing(backend) {
        let (app, gate) = writing(backend).await;
        let before = app.only_run().await.heartbeat_at;

        app.clock.advance_ms(5_000);
        app.until("the heartbeat is newer", async |it| {
            it.only_run().await.heartbeat_at > before
        })
        .await;

        gate.open();
        app.settle().await;
        assert_eq!(app.answers().await, ["One two three."]);
        app.close().await;
    }

    async fn a_stop_on_another_node_aborts_the_model_call(backend) {
        let (app, gate) = writing(backend).await;

        app.another_node().stop(app.conversation, false).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.wait_until_idle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        assert!(app.answers().await.is_empty());
        assert!(app.engine.live_text(app.conversation).is_none());
        app.close_without_events().await;
    }

    async fn the_heartbeat_of_a_run_without_an_executor_is_not_renewed(backend) {
        let (app, gate) = writing(backend).await;
        let there = app.another_conversation().await;
        app.user_in_conversation(&app.engine, there).post("Hi.").await;
        app.upstream.wait_for_requests(2).await;
        let orphan = app.engine.runtime(there).await.unwrap().running.unwrap();
        let next_beat = async || {
            let before = app.heartbeats().await;
            app.clock.advance_ms(1_000);
            app.until("the first heartbeat is newer", async |it| it.heartbeats().await[0] > before[0]).await;
        };

        // As after a claim whose response was lost: the row names this node, but no task executes
        // the run.
        app.engine.context().leases.release(orphan.id);
        next_beat().await; // a heartbeat may have been in progress
        let before = app.heartbeats().await[1];
        next_beat().await;

        assert_eq!(app.heartbeats().await[1], before);
        gate.open();
        app.wait_until_idle().await;
        app.close_without_events().await;
    }

    async fn a_stop_on_another_node_can_keep_the_partial_text(backend) {
        let (app, gate) = writing(backend).await;

        app.another_node().stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.wait_until_idle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        assert_eq!(app.answers().await, ["One"]);
        app.close_without_events().await;
    }
}

/// Counted by the PostgreSQL proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_statement_renews_all_runs_of_a_node() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .settings(|it| it.heartbeat = Duration::from_millis(500))
        .with_postgres_proxy()
        .open()
        .await;
    let gate = app.upstream.gate();
    for n in 0..8 {
        let conversation = app.another_conversation().await;
        app.user_in_conversation(&app.engine, conversation)
            .post("Hi.")
            .await;
        app.upstream.wait_for_requests(n + 1).await;
    }
    let proxy = app
        .postgres_proxy
        .as_ref()
        .expect("the proxy was not started");
    proxy.take_statements();
    let before = app.heartbeats().await;

    app.until("each run was renewed", async |it| {
        let now = it.heartbeats().await;
        now.iter().zip(&before).all(|(now, before)| now > before)
    })
    .await;

    let statements = proxy.take_statements();
    let renews = |sql: &&String| sql.starts_with("UPDATE") && sql.contains("heartbeat_at");
    let n_beats = statements.iter().filter(renews).count();
    assert_eq!(before.len(), 8);
    assert!((1..8).contains(&n_beats), "{statements:#?}");
    gate.open();
    app.wait_until_idle().await;
    app.close_without_events().await;
}
