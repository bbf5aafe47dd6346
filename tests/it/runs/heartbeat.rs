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
    let room = EngineTest::builder(backend)
        .settings(|it| it.heartbeat = OFTEN)
        .open()
        .await;
    room.upstream.reply_with("One two three.");
    let gate = room.upstream.gate();
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    (room, gate)
}

on_both! {
    async fn it_goes_on_while_the_model_says_nothing(backend) {
        let (room, gate) = writing(backend).await;
        let before = room.only_run().await.heartbeat_at;

        room.clock.advance_ms(5_000);
        room.until("the heartbeat is newer", async |it| {
            it.only_run().await.heartbeat_at > before
        })
        .await;

        gate.open();
        room.settle().await;
        assert_eq!(room.answers().await, ["One two three."]);
        room.close().await;
    }

    async fn a_run_that_another_node_stopped_leaves_its_model(backend) {
        let (room, gate) = writing(backend).await;

        room.another_node().stop(room.conversation, false).await.unwrap();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.wait_until_idle().await;

        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        assert!(room.answers().await.is_empty());
        assert!(room.engine.live_text(room.conversation).is_none());
        room.close_without_events().await;
    }

    async fn a_run_without_an_executor_is_left_to_the_reaper(backend) {
        let (room, gate) = writing(backend).await;
        let there = room.another_conversation().await;
        room.user_in_conversation(&room.engine, there).post("Hi.").await;
        room.upstream.wait_for_requests(2).await;
        let orphan = room.engine.runtime(there).await.unwrap().running.unwrap();
        let next_beat = async || {
            let before = room.heartbeats().await;
            room.clock.advance_ms(1_000);
            room.until("the first heartbeat is newer", async |it| it.heartbeats().await[0] > before[0]).await;
        };

        // As after a claim whose response was lost: the row names this node, but no task executes
        // the run.
        room.engine.context().leases.release(orphan.id);
        next_beat().await; // a heartbeat may have been in progress
        let before = room.heartbeats().await[1];
        next_beat().await;

        assert_eq!(room.heartbeats().await[1], before);
        gate.open();
        room.wait_until_idle().await;
        room.close_without_events().await;
    }

    async fn a_stop_of_another_node_may_keep_the_text(backend) {
        let (room, gate) = writing(backend).await;

        room.another_node().stop(room.conversation, true).await.unwrap();
        room.upstream.wait_for_disconnect(0).await;
        gate.open();
        room.wait_until_idle().await;

        assert_eq!(room.only_run().await.status, RunStatus::Canceled);
        assert_eq!(room.answers().await, ["One"]);
        room.close_without_events().await;
    }
}

/// Counted by the PostgreSQL proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_statement_renews_all_runs_of_a_node() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres)
        .settings(|it| it.heartbeat = Duration::from_millis(500))
        .with_postgres_proxy()
        .open()
        .await;
    let gate = room.upstream.gate();
    for n in 0..8 {
        let conversation = room.another_conversation().await;
        room.user_in_conversation(&room.engine, conversation)
            .post("Hi.")
            .await;
        room.upstream.wait_for_requests(n + 1).await;
    }
    let wire = room.postgres_proxy.as_ref().expect("a wired room");
    wire.take_statements();
    let before = room.heartbeats().await;

    room.until("each run was renewed", async |it| {
        let now = it.heartbeats().await;
        now.iter().zip(&before).all(|(now, before)| now > before)
    })
    .await;

    let statements = wire.take_statements();
    let renews = |sql: &&String| sql.starts_with("UPDATE") && sql.contains("heartbeat_at");
    let n_beats = statements.iter().filter(renews).count();
    assert_eq!(before.len(), 8);
    assert!((1..8).contains(&n_beats), "{statements:#?}");
    gate.open();
    room.wait_until_idle().await;
    room.close_without_events().await;
}
