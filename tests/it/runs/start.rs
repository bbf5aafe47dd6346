//! Tests the recovery of runs at startup.

use serde_json::Value;
use troupe::runs::scheduling::command::Command;
use troupe::runs::scheduling::scheduler;
use troupe::runs::store::run::RunStatus;

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_recovered_although_the_clock_was_set_back_since_its_last_heartbeat() {
    let app = EngineTest::builder(TestBackend::Sqlite)
        .not_started()
        .open()
        .await;
    app.user.post("Hi.").await;
    let run = app.only_run().await.id;
    let gone = app.another_node();
    scheduler::step(gone.context(), app.conversation, Command::Claim { run })
        .await
        .unwrap();
    app.clock.advance_ms(-7_200_000);

    app.engine.start().await.unwrap();

    // The stopped node sent the first delta of this stream, so the deltas are incomplete here.
    let succeeded = |it: &Value| it["type"] == "stream_complete" && it["status"] == "succeeded";
    app.events.wait_for("the reply", succeeded).await;
    let runs = app.runs().await;
    let states: Vec<RunStatus> = runs.iter().map(|it| it.status).collect();
    assert_eq!(states, [RunStatus::Failed, RunStatus::Succeeded]);
    assert_eq!(runs[1].attempt, 2);
}
