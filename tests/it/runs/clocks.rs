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
    async fn a_clock_that_jumps_ahead_ends_none_of_our_runs(backend) {
        let room = EngineTest::builder(backend).open().await;
        let gate = room.upstream.gate();
        room.user.post("Count.").await;
        room.upstream.wait_for_requests(1).await;

        room.clock.advance_ms(HOURS);
        let report = room.engine.run_recovery().await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(report, RecoveryReport::default());
        let run = room.only_run().await;
        assert_eq!((run.status, run.attempt), (RunStatus::Succeeded, 1));
        room.close().await;
    }

    /// A run that was planned before is now due hours in the future.
    async fn a_clock_that_is_set_back_delays_no_run(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        room.user.post("Hi.").await;

        room.clock.advance_ms(-HOURS);
        room.engine.context().wakeup.notify();
        room.until("it is answered", async |it| it.answers().await == ["Hello."]).await;

        room.user.post("And now?").await;
        room.clock.advance_ms(500);
        room.until("as ever", async |it| it.answers().await.len() == 2).await;
        room.wait_until_idle().await;
        room.close().await;
    }
}

/// The interval at which the other node looks for stale runs.
const OFTEN: Duration = Duration::from_millis(100);
/// The slowest allowed heartbeat, for which other nodes have to be patient.
const SLOWLY: Duration = Duration::from_secs(1);

/// Starts another node that only runs recovery, with the proxy that counts its queries.
async fn start_recovering_node(
    room: &EngineTest,
    stale_after: Duration,
    clock: &Clock,
) -> (RunEngine, PostgresProxy) {
    let wire = PostgresProxy::start(room.database.url()).await;
    let settings = RunSettings {
        workers: 0,
        heartbeat: SLOWLY,
        reaper_interval: OFTEN,
        stale_after,
        ..room.engine.context().settings
    };
    let models = room.engine.context().models.clone();
    let db = connect(wire.url()).await;
    let engine = start_node(&db, &Hub::new(), clock, models, settings);
    engine.start().await.expect("there is nothing to heal");
    (engine, wire)
}

/// Waits for `n` more recovery queries.
async fn wait_for_recovery_queries(room: &EngineTest, wire: &PostgresProxy, n: usize) {
    wire.take_statements();
    let mut n_looks = 0;
    room.until("the guardian has looked", async |_| {
        let is_look = |it: &String| it.starts_with("SELECT") && it.contains("heartbeat_at\" <=");
        n_looks += wire.take_statements().into_iter().filter(is_look).count();
        n_looks >= n
    })
    .await;
}

/// By that clock every heartbeat is an hour old.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_clock_that_jumps_ahead_ends_no_run() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres)
        .settings(|it| it.heartbeat = SLOWLY)
        .with_settable_clock()
        .open()
        .await;
    let (other, wire) = start_recovering_node(&room, 5 * SLOWLY, &room.clock).await;
    let mut facts = room.facts().await;
    transitions::record(&mut facts).await;
    let gate = room.upstream.gate();
    room.user.post("Count.").await;
    room.upstream.wait_for_requests(1).await;
    wait_for_recovery_queries(&room, &wire, 3).await;
    let before = room.heartbeats().await;

    fake_postgres_clock::set(&mut facts, 1).await;
    wait_for_recovery_queries(&room, &wire, 3).await;
    room.until("the heart beats by the new time", async |it| {
        let now = it.heartbeats().await;
        now[0] > before[0].map(|it| it.plus_ms(3_000_000))
    })
    .await;
    gate.open();
    room.settle().await;

    let run = room.only_run().await;
    assert_eq!((run.status, run.attempt), (RunStatus::Succeeded, 1));
    assert_eq!(room.answers().await, ["Hello."]);
    assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
    room.stop(&other).await;
    room.close().await;
}

/// By that clock the last heartbeat of the dead node is in the future.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_clock_that_is_set_back_does_not_hide_stale_runs() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    // It sends no heartbeat during the test.
    let room = EngineTest::builder(TestBackend::Postgres)
        .with_settable_clock()
        .open()
        .await;
    let mut facts = room.facts().await;
    let gate = room.upstream.gate();
    room.user.post("Count.").await;
    room.upstream.wait_for_requests(1).await;
    room.engine.context().shutdown.draining.cancel();
    let (other, wire) = start_recovering_node(&room, 10 * SLOWLY, &room.clock).await;
    wait_for_recovery_queries(&room, &wire, 1).await;

    fake_postgres_clock::set(&mut facts, -1).await;
    room.until("the turn is planned again", async |it| {
        it.runs().await.len() == 2
    })
    .await;

    let runs = room.runs().await;
    assert_eq!((runs[0].status, runs[0].attempt), (RunStatus::Failed, 1));
    assert_eq!((runs[1].status, runs[1].attempt), (RunStatus::Queued, 2));
    assert_eq!(runs[1].reason, RunReason::Recovered);
    gate.open();
    room.wait_until_idle().await;
    assert!(room.answers().await.is_empty(), "the dead add nothing");
    room.stop(&other).await;
    room.close_without_events().await;
}

/// Each of two nodes judges heartbeats by the database's clock, so it does not matter which
/// node's clock is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_clocks_are_hours_apart_leave_each_others_runs_alone() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    for off in [HOURS, -HOURS] {
        let room = EngineTest::builder(TestBackend::Postgres)
            .settings(|it| it.heartbeat = OFTEN)
            .open()
            .await;
        let wrong = Clock::manual();
        wrong.advance_ms(off);
        let (other, wire) = start_recovering_node(&room, 5 * SLOWLY, &wrong).await;
        let gate = room.upstream.gate();
        room.user.post("Count.").await;
        room.upstream.wait_for_requests(1).await;

        wait_for_recovery_queries(&room, &wire, 5).await;
        // A post through the other node is planned for a different time but still answered.
        room.user_at_node(&other).post("Go on.").await;
        gate.open();
        room.until("both are answered", async |it| {
            it.engine.context().wakeup.notify();
            it.answers().await.len() == 2
        })
        .await;

        let runs = room.runs().await;
        let ended = runs.iter().map(|it| (it.status, it.attempt));
        assert!(
            ended.clone().all(|it| it == (RunStatus::Succeeded, 1)),
            "{runs:?}"
        );
        assert_eq!(ended.count(), 2, "{runs:?}");
        room.wait_until_idle().await;
        room.stop(&other).await;
        room.close_without_events().await;
    }
}

/// The clocks of two nodes differ by 80 s. Each node corrects its clock by the database's,
/// so stored times are in order and a post through either is answered immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_through_a_node_whose_clock_is_wrong_is_answered_without_waiting() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres)
        .not_started()
        .open()
        .await;
    let models = room.engine.context().models.clone();
    let mut nodes = Vec::new();
    for off_by in [40_000, -40_000] {
        let clock = Clock::system_with_offset(off_by);
        let settings = room.engine.context().settings;
        let engine = start_node(&room.db, &Hub::new(), &clock, models.clone(), settings);
        engine.start().await.expect("there is nothing to heal");
        nodes.push(engine);
    }

    for n in 0..6 {
        let posted = room.user_at_node(&nodes[n % 2]).post("Hi.").await;
        let run = posted.run.expect("Ada will answer");
        assert_eq!(run.run_after, None, "due at once on every node");
        room.until("it is answered", async |it| {
            it.answers().await.len() == n + 1
        })
        .await;
    }

    let runs = room.runs().await;
    let numbers: Vec<i64> = runs.iter().map(|it| it.run_seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let times: Vec<i64> = runs.iter().map(|it| it.created_at.0).collect();
    assert!(times.is_sorted(), "{times:?}");
    let right = Clock::system().now();
    let off = runs.iter().map(|it| right.ms_since(it.created_at).abs());
    assert!(
        off.max() < Some(40_000),
        "the time of the database is stored"
    );
    for node in &nodes {
        room.stop(node).await;
    }
    room.close_without_events().await;
}

/// While every response of the database needs longer than a second, the offset is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_measure_its_clock_claims_nothing_until_it_can() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres)
        .with_settable_clock()
        .not_started()
        .open()
        .await;
    let mut facts = room.facts().await;
    fake_postgres_clock::delay(&mut facts, 1.5).await;
    let settings = RunSettings {
        heartbeat: OFTEN,
        ..room.engine.context().settings
    };
    let models = room.engine.context().models.clone();
    let clock = Clock::system_with_offset(40_000);
    let engine = start_node(&room.db, &Hub::new(), &clock, models, settings);

    engine.start().await.expect("there is nothing to heal");
    assert!(!engine.context().is_clock_synchronized());
    room.user_at_node(&room.engine).post("Hi.").await;
    engine.context().wakeup.notify();
    assert!(room.runtime().await.queued.is_some(), "nobody claims it");

    fake_postgres_clock::delay(&mut facts, 0.0).await;
    room.until("it is answered", async |it| {
        it.answers().await == ["Hello."]
    })
    .await;
    assert!(engine.context().is_clock_synchronized());
    room.stop(&engine).await;
    room.close_without_events().await;
}

on_both! {
    // Run ids contain the time of the process; nothing is ordered by it.
    async fn runs_are_in_order_however_the_clock_is_set(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.always(ResponseScript::status(400));
        let mut planned = Vec::new();

        for back_ms in [0, 300_000, 600_000] {
            room.clock.advance_ms(-back_ms);
            planned.push(room.user.post("Hello?").await.run.expect("Ada will answer").id);
            room.settle().await;
        }
        let again = room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;

        planned.push(again.id);
        let runs = room.runs().await;
        let in_order: Vec<_> = runs.iter().map(|it| it.id).collect();
        assert_eq!(in_order, planned);
        let numbers: Vec<i64> = runs.iter().map(|it| it.run_seq).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let row = room.row().await;
        assert_eq!(row.last_run_seq, 4);
        let newest = run::find_newest(room.db.reader(), room.conversation).await.unwrap();
        assert_eq!(newest.map(|it| it.id), Some(again.id));
        room.close().await;
    }

    async fn an_upserted_run_keeps_its_id_and_gets_a_new_number(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;

        let first = room.user.post("One.").await.run.expect("Ada will answer");
        let second = room.user.post("Two.").await.run.expect("Ada will answer");

        assert_eq!(first.id, second.id);
        assert_eq!((first.run_seq, second.run_seq), (1, 2));
        room.close().await;
    }
}
