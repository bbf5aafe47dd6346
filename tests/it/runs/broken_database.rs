//! Tests database outages: committed work is stored once and announced, uncommitted work is
//! repeated, and no live run is treated as stale.

use std::time::Duration;

use futures::future::join_all;
use realtime::hub::Hub;
use troupe::db::backend;
use troupe::runs::error::EngineError;
use troupe::runs::execution::recovery::RecoveryReport;
use troupe::runs::services::RunSettings;
use troupe::runs::store::run::RunStatus;

use crate::support::backends::TestBackend;
use crate::support::engine_test::{EngineTest, TestUser};
use crate::support::engine_test_builder::{connect, start_node};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::postgres_proxy::{CutPoint, PostgresProxy};
use crate::support::{poll, transitions};

fn is_passing(error: &EngineError) -> bool {
    matches!(error, EngineError::Database(it) if backend::is_transient(it))
}

/// Returns whether no PostgreSQL is available. An SQLite file cannot disconnect.
fn no_server() -> bool {
    !TestBackend::Postgres.is_available()
}

/// Posts like a client that gets no response: it retries with the same `client_id`.
async fn post_until_accepted(human: &TestUser, text: &str, client_id: &str) {
    for _ in 0..100 {
        match human.post_with_client_id(text, Some(client_id)).await {
            Ok(_) => return,
            Err(EngineError::Database(error)) => {
                assert!(
                    backend::is_transient(&error) || backend::is_rolled_back(&error),
                    "{error}"
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the database did not recover");
}

/// The first three COMMITs of an exchange are the post, the claim, and the end of the run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_response_is_lost_is_verified_and_announced() {
    if no_server() {
        return;
    }
    for n_commits in 0..3 {
        let app = EngineTest::builder(TestBackend::Postgres)
            .with_postgres_proxy()
            .open()
            .await;
        let proxy = app
            .postgres_proxy
            .as_ref()
            .expect("the proxy was not started");
        proxy.cut_after(n_commits, CutPoint::AfterCommit);

        let posted = app.user.post_with_client_id("Hi.", Some("c-1")).await;
        app.settle().await;

        assert!(proxy.is_cut(), "COMMIT {n_commits}");
        assert!(!posted.expect("the post was rejected").is_repeated);
        assert_eq!(app.answers().await, ["Hello."]);
        assert_eq!(app.messages().await.len(), 2);
        let run = app.only_run().await;
        assert_eq!(
            (run.status, run.lease),
            (RunStatus::Succeeded, 1),
            "the run was not executed once"
        );
        // Closing compares the recorded events with the database: all were sent, in order.
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_did_not_reach_the_database_is_repeated() {
    if no_server() {
        return;
    }
    for n_commits in 0..3 {
        let app = EngineTest::builder(TestBackend::Postgres)
            .with_postgres_proxy()
            .open()
            .await;
        let proxy = app
            .postgres_proxy
            .as_ref()
            .expect("the proxy was not started");
        proxy.cut_after(n_commits, CutPoint::BeforeCommit);

        let posted = app.user.post_with_client_id("Hi.", Some("c-1")).await;
        assert_eq!(
            posted.is_err(),
            n_commits == 0,
            "an uncommitted post was confirmed"
        );
        post_until_accepted(&app.user, "Hi.", "c-1").await;
        app.settle().await;

        assert!(proxy.is_cut(), "COMMIT {n_commits}");
        assert_eq!(app.answers().await, ["Hello."]);
        assert_eq!(app.messages().await.len(), 2);
        assert_eq!(app.only_run().await.status, RunStatus::Succeeded);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_hidden_conversation_whose_cancellation_fails_is_canceled_again() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .with_postgres_proxy()
        .open()
        .await;
    let proxy = app
        .postgres_proxy
        .as_ref()
        .expect("the proxy was not started");
    let gate = app.upstream.gate();
    let script = ResponseScript::stream().role().words("One").held_at(&gate);
    app.upstream.next(script.finish("stop").usage(7, 3).done());
    app.user.post("Count.").await;
    app.upstream.wait_for_requests(1).await;
    // As the job that deletes the conversation does.
    let mut facts = app.facts().await;
    facts
        .execute("UPDATE conversations SET is_hidden = TRUE")
        .await;
    // The end of the run is rejected and rolled back, so the next COMMIT is that of its
    // cancellation.
    proxy.cut_after(0, CutPoint::BeforeCommit);

    gate.open();

    app.until("the reply is charged", async |it| {
        it.tokens_used().await == 10
    })
    .await;
    assert!(proxy.is_cut(), "no COMMIT was cut");
    let run = app.only_run().await;
    assert_eq!(run.status, RunStatus::Canceled, "{run:?}");
    app.close_without_events().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn randomly_terminated_connections_lose_and_duplicate_nothing() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let mut facts = app.facts().await;
    transitions::record(&mut facts).await;
    let mut conversations = Vec::new();
    for _ in 0..8 {
        conversations.push(app.another_conversation().await);
    }

    let talk = join_all(conversations.iter().map(async |id| {
        let human = app.user_in_conversation(&app.engine, *id);
        for n in 0..6 {
            post_until_accepted(&human, &format!("Hi {n}."), &format!("c-{n}")).await;
        }
    }));
    // One fault for each change that is committed: a busy machine gets fewer faults a second.
    let cut = async {
        let mut rev = -1;
        loop {
            rev = poll::until("a conversation has changed", async || {
                let now = facts
                    .number("SELECT CAST(sum(rev) AS text) FROM conversations")
                    .await;
                (now > rev).then_some(now)
            })
            .await;
            facts.rows("SELECT CAST(pg_terminate_backend(pid) AS text) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1").await;
        }
    };
    tokio::select! {
        _ = talk => {}
        () = cut => unreachable!("the loop has no end"),
    }
    poll::until("all work is done", async || {
        app.engine.context().wakeup.notify();
        let rows = facts
            .rows("SELECT '1' FROM conversation_runs WHERE status IN ('queued', 'running')")
            .await;
        rows.is_empty().then_some(())
    })
    .await;

    assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
    let posts = facts
        .rows("SELECT CAST(count(*) AS text) FROM messages WHERE role = 'user'")
        .await;
    assert_eq!(
        posts[0][0].as_deref(),
        Some("48"),
        "a post is missing or duplicated"
    );
    let twice = facts.rows("SELECT '1' FROM messages WHERE conversation_run_id IS NOT NULL GROUP BY conversation_run_id HAVING count(*) > 1").await;
    assert!(twice.is_empty());
    app.close_without_events().await;
}

/// Tests the node only, not whether PostgreSQL keeps committed rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_continues_after_a_database_outage() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .with_postgres_proxy()
        .open()
        .await;
    let proxy = app
        .postgres_proxy
        .as_ref()
        .expect("the proxy was not started");
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    app.upstream.wait_for_requests(1).await;

    proxy.disconnect();
    gate.open();
    let refused = app.user.try_post("Are you there?").await;
    proxy.reconnect();
    post_until_accepted(&app.user, "Are you there?", "c-2").await;
    app.settle().await;

    assert!(refused.as_ref().is_err_and(is_passing), "{refused:?}");
    assert_eq!(app.answers().await, ["Hello.", "Hello."]);
    let runs = app.runs().await;
    assert!(
        runs.iter()
            .all(|it| (it.status, it.attempt) == (RunStatus::Succeeded, 1)),
        "{runs:?}"
    );
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_continue_while_all_pool_connections_are_in_use() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .settings(|it| it.heartbeat = Duration::from_millis(50))
        .open()
        .await;
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    app.upstream.wait_for_requests(1).await;
    let (release, _) = tokio::sync::watch::channel(false);
    let holders: Vec<_> = (0..20)
        .map(|_| {
            let (db, mut until) = (app.db.clone(), release.subscribe());
            tokio::spawn(async move {
                let held = db.write(move |_| {
                    Box::pin(async move {
                        let _ = until.wait_for(|it| *it).await;
                        Ok::<(), sea_orm::DbErr>(())
                    })
                });
                held.await
            })
        })
        .collect();
    let mut facts = app.facts().await;
    poll::until("all connections are in use", async || {
        let idle = facts.rows("SELECT CAST(count(*) AS text) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'").await;
        (idle[0][0].as_deref() == Some("20")).then_some(())
    })
    .await;

    let heartbeat_sql =
        "SELECT CAST(heartbeat_at AS text) FROM conversation_runs WHERE status = 'running'";
    let before = facts.rows(heartbeat_sql).await;
    let refused = app.user.try_post("Are you there?").await;
    poll::until("the heartbeat is newer", async || {
        (facts.rows(heartbeat_sql).await > before).then_some(())
    })
    .await;
    let other = start_node(
        &app.another_db().await,
        &Hub::new(),
        &app.clock,
        app.engine.context().models.clone(),
        RunSettings {
            stale_after: Duration::from_secs(2),
            ..app.engine.context().settings
        },
    );
    let report = other.run_recovery().await.unwrap();

    assert!(refused.as_ref().is_err_and(is_passing), "{refused:?}");
    assert_eq!(
        report,
        RecoveryReport::default(),
        "a live run was recovered"
    );
    release.send_replace(true);
    for held in join_all(holders).await {
        held.expect("the task panicked").expect("the commit failed");
    }
    gate.open();
    app.settle().await;
    assert_eq!(app.answers().await, ["Hello."]);
    app.close().await;
}

/// A statement waits at most ten seconds for a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_locked_for_long_fails_one_request_and_blocks_no_worker() {
    let is_long = std::env::var("TROUPE_SLOW_TESTS").is_ok_and(|value| value == "1");
    if no_server() || !is_long {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let mut other = app.facts().await;

    other.execute("BEGIN; LOCK TABLE messages").await;
    let refused = app.user.try_post("Hi.").await;
    other.execute("COMMIT").await;
    app.user.post("Hi again.").await;
    app.settle().await;

    assert!(refused.as_ref().is_err_and(is_passing), "{refused:?}");
    assert_eq!(app.answers().await, ["Hello."]);
    app.close().await;
}

/// The server pauses for longer than the stale time. When it continues, the recovery queries of
/// the other node arrive before the heartbeat that was waiting with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_database_pause_no_run_counts_as_stale() {
    const OFTEN: Duration = Duration::from_millis(100);
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .settings(|it| it.heartbeat = OFTEN)
        .with_postgres_proxy()
        .open()
        .await;
    let proxy = app
        .postgres_proxy
        .as_ref()
        .expect("the proxy was not started");
    let other_proxy = PostgresProxy::start(app.database.url()).await;
    let other = start_node(
        &connect(other_proxy.url()).await,
        &Hub::new(),
        &app.clock,
        app.engine.context().models.clone(),
        RunSettings {
            workers: 0,
            reaper_interval: OFTEN,
            // Otherwise the node's own heartbeat would end the run after the same time.
            stale_after: 40 * OFTEN,
            ..app.engine.context().settings
        },
    );
    other.start().await.unwrap();
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    app.upstream.wait_for_requests(1).await;
    let mut facts = app.facts().await;

    proxy.hold();
    other_proxy.hold();
    poll::until("the heartbeat is old", async || {
        let silent = facts.rows("SELECT '1' FROM conversation_runs WHERE status = 'running' AND heartbeat_at < extract(epoch from clock_timestamp()) * 1000 - 6000").await;
        (!silent.is_empty()).then_some(())
    })
    .await;
    other_proxy.release();
    // Until then only the other node uses the server; it must not recover anything.
    other_proxy.wait_for_recovery_queries(5).await;
    proxy.release();
    gate.open();
    app.settle().await;

    assert_eq!(app.only_run().await.status, RunStatus::Succeeded);
    assert_eq!(app.answers().await, ["Hello."]);
    app.stop(&other).await;
    app.close().await;
}
