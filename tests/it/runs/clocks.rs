//! Tests that clock changes, forward or back, neither end nor delay runs: of the process, of the
//! database, and of two nodes that disagree.

use std::time::Duration;

use base::clock::Clock;
use realtime::hub::Hub;
use troupe::runs::engine::RunEngine;
use troupe::runs::execution::recovery::RecoveryReport;
use troupe::runs::services::RunSettings;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunReason, RunStatus};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::{connect, start_node};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::{fake_postgres_clock, transitions};

const HOURS: i64 = 2 * 3_600_000;

on_both! {
    /// On SQLite this process's own clock also times its heartbeats.
    async fn a_node_clock_that_jumps_ahead_ends_no_run(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        app.user.post("Count.").await;
        app.upstream.wait_for_requests(1).await;

        app.clock.advance_ms(HOURS);
        let report = app.engine.run_recovery().await.unwrap();
        gate.open();
        app.settle().await;

        assert_eq!(report, RecoveryReport::default());
        let run = app.only_run().await;
        assert_eq!((run.status, run.attempt), (RunStatus::Succeeded, 1));
        app.close().await;
    }

    /// A run that was planned before is now due hours in the future.
    async fn a_clock_that_is_set_back_delays_no_run(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        app.user.post("Hi.").await;

        app.clock.advance_ms(-HOURS);
        app.engine.context().wakeup.notify();
        app.until("it is answered", async |it| it.answers().await == ["Hello."]).await;

        app.user.post("And now?").await;
        app.clock.advance_ms(500);
        app.until("the second post is answered", async |it| it.answers().await.len() == 2).await;
        app.wait_until_idle().await;
        app.close().await;
    }
}

/// The interval at which the other node looks for stale runs.
const OFTEN: Duration = Duration::from_millis(100);
/// The longest allowed heartbeat interval.
const SLOWLY: Duration = Duration::from_secs(1);

/// Starts another node that only runs recovery, with the proxy that counts its queries.
async fn start_recovering_node(
    app: &EngineTest,
    stale_after: Duration,
    clock: &Clock,
) -> (RunEngine, PostgresProxy) {
    let proxy = PostgresProxy::start(app.database.url()).await;
    let settings = RunSettings {
        workers: 0,
        heartbeat: SLOWLY,
        reaper_interval: OFTEN,
        stale_after,
        ..app.engine.context().settings
    };
    let models = app.engine.context().models.clone();
    let db = connect(proxy.url()).await;
    let engine = start_node(&db, &Hub::new(), clock, models, settings);
    engine.start().await.expect("the node did not start");
    (engine, proxy)
}

/// Measured by that clock, every heartbeat is an hour old.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_clock_that_jumps_ahead_ends_no_run() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .settings(|it| it.heartbeat = SLOWLY)
        .with_settable_clock()
        .open()
        .await;
    let (other, proxy) = start_recovering_node(&app, 5 * SLOWLY, &app.clock).await;
    let mut facts = app.facts().await;
    transitions::record(&mut facts).await;
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    app.upstream.wait_for_requests(1).await;
    proxy.wait_for_recovery_queries(3).await;
    let before = app.heartbeats().await;

    fake_postgres_clock::set(&mut facts, 1).await;
    proxy.wait_for_recovery_queries(3).await;
    app.until("the heartbeat uses the new time", async |it| {
        let now = it.heartbeats().await;
        now[0] > before[0].map(|it| it.plus_ms(3_000_000))
    })
    .await;
    gate.open();
    app.settle().await;

    let run = app.only_run().await;
    assert_eq!((run.status, run.attempt), (RunStatus::Succeeded, 1));
    assert_eq!(app.answers().await, ["Hello."]);
    assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
    app.stop(&other).await;
    app.close().await;
}

/// Measured by that clock, the last heartbeat of the dead node is in the future.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_clock_that_is_set_back_does_not_hide_stale_runs() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    // It sends no heartbeat during the test.
    let app = EngineTest::builder(TestBackend::Postgres)
        .with_settable_clock()
        .open()
        .await;
    let mut facts = app.facts().await;
    let gate = app.upstream.gate();
    app.user.post("Count.").await;
    app.upstream.wait_for_requests(1).await;
    app.engine.context().shutdown.draining.cancel();
    let (other, proxy) = start_recovering_node(&app, 10 * SLOWLY, &app.clock).await;
    proxy.wait_for_recovery_queries(1).await;

    fake_postgres_clock::set(&mut facts, -1).await;
    app.until("the turn is queued again", async |it| {
        it.runs().await.len() == 2
    })
    .await;

    let runs = app.runs().await;
    assert_eq!((runs[0].status, runs[0].attempt), (RunStatus::Failed, 1));
    assert_eq!((runs[1].status, runs[1].attempt), (RunStatus::Queued, 2));
    assert_eq!(runs[1].reason, RunReason::Recovered);
    gate.open();
    app.wait_until_idle().await;
    assert!(
        app.answers().await.is_empty(),
        "the dead node stored a reply"
    );
    app.stop(&other).await;
    app.close_without_events().await;
}

/// Each of two nodes judges heartbeats by the database's clock, so it does not matter which
/// node's clock is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_clocks_differ_by_hours_do_not_end_each_others_runs() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    for off in [HOURS, -HOURS] {
        let app = EngineTest::builder(TestBackend::Postgres)
            .settings(|it| it.heartbeat = OFTEN)
            .open()
            .await;
        let wrong = Clock::manual();
        wrong.advance_ms(off);
        let (other, proxy) = start_recovering_node(&app, 5 * SLOWLY, &wrong).await;
        let gate = app.upstream.gate();
        app.user.post("Count.").await;
        app.upstream.wait_for_requests(1).await;

        proxy.wait_for_recovery_queries(5).await;
        // A post through the other node is planned for a different time but still answered.
        app.user_at_node(&other).post("Go on.").await;
        gate.open();
        app.until("both are answered", async |it| {
            it.engine.context().wakeup.notify();
            it.answers().await.len() == 2
        })
        .await;

        let runs = app.runs().await;
        let ended = runs.iter().map(|it| (it.status, it.attempt));
        assert!(
            ended.clone().all(|it| it == (RunStatus::Succeeded, 1)),
            "{runs:?}"
        );
        assert_eq!(ended.count(), 2, "{runs:?}");
        app.wait_until_idle().await;
        app.stop(&other).await;
        app.close_without_events().await;
    }
}

/// The clocks of two nodes differ by 80 s. Each node corrects its clock by the database's,
/// so stored times are in order and a post through either is answered immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_through_a_node_whose_clock_is_wrong_is_answered_without_waiting() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .not_started()
        .open()
        .await;
    let models = app.engine.context().models.clone();
    let mut nodes = Vec::new();
    for off_by in [40_000, -40_000] {
        let clock = Clock::system_with_offset(off_by);
        let settings = app.engine.context().settings;
        let engine = start_node(&app.db, &Hub::new(), &clock, models.clone(), settings);
        engine.start().await.expect("the node did not start");
        nodes.push(engine);
    }

    for n in 0..6 {
        let posted = app.user_at_node(&nodes[n % 2]).post("Hi.").await;
        let run = posted.run.expect("no run was planned");
        assert_eq!(run.run_after, None, "due at once on every node");
        app.until("it is answered", async |it| {
            it.answers().await.len() == n + 1
        })
        .await;
    }

    let runs = app.runs().await;
    let numbers: Vec<i64> = runs.iter().map(|it| it.run_seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let times: Vec<i64> = runs.iter().map(|it| it.created_at.0).collect();
    assert!(times.is_sorted(), "{times:?}");
    let right = Clock::system().now();
    let off = runs.iter().map(|it| right.ms_since(it.created_at).abs());
    assert!(
        off.max() < Some(40_000),
        "a stored time is not the database's"
    );
    for node in &nodes {
        app.stop(node).await;
    }
    app.close_without_events().await;
}

/// While every response of the database needs longer than a second, the offset is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_measure_its_clock_offset_claims_no_runs() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .with_settable_clock()
        .not_started()
        .open()
        .await;
    let mut facts = app.facts().await;
    fake_postgres_clock::delay(&mut facts, 1.5).await;
    let settings = RunSettings {
        heartbeat: OFTEN,
        ..app.engine.context().settings
    };
    let models = app.engine.context().models.clone();
    let clock = Clock::system_with_offset(40_000);
    let engine = start_node(&app.db, &Hub::new(), &clock, models, settings);

    engine.start().await.expect("the node did not start");
    assert!(!engine.context().is_clock_synchronized());
    app.user_at_node(&app.engine).post("Hi.").await;
    engine.context().wakeup.notify();
    assert!(app.runtime().await.queued.is_some(), "the run was claimed");

    fake_postgres_clock::delay(&mut facts, 0.0).await;
    app.until("it is answered", async |it| {
        it.answers().await == ["Hello."]
    })
    .await;
    assert!(engine.context().is_clock_synchronized());
    app.stop(&engine).await;
    app.close_without_events().await;
}

on_both! {
    // Run ids contain the time of the process; nothing is ordered by it.
    async fn runs_are_ordered_by_number_when_the_clock_is_set_back(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.always(ResponseScript::status(400));
        let mut planned = Vec::new();

        for back_ms in [0, 300_000, 600_000] {
            app.clock.advance_ms(-back_ms);
            planned.push(app.user.post("Hello?").await.run.expect("no run was planned").id);
            app.settle().await;
        }
        let again = app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;

        planned.push(again.id);
        let runs = app.runs().await;
        let in_order: Vec<_> = runs.iter().map(|it| it.id).collect();
        assert_eq!(in_order, planned);
        let numbers: Vec<i64> = runs.iter().map(|it| it.run_seq).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let row = app.row().await;
        assert_eq!(row.last_run_seq, 4);
        let newest = run::find_newest(app.db.reader(), app.conversation).await.unwrap();
        assert_eq!(newest.map(|it| it.id), Some(again.id));
        app.close().await;
    }

    async fn an_upserted_run_keeps_its_id_and_gets_a_new_number(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;

        let first = app.user.post("One.").await.run.expect("no run was planned");
        let second = app.user.post("Two.").await.run.expect("no run was planned");

        assert_eq!(first.id, second.id);
        assert_eq!((first.run_seq, second.run_seq), (1, 2));
        app.close().await;
    }
}
