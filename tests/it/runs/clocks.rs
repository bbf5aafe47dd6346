//! A clock that is set, forward or back, ends no run and forgets none: that of the program, that of
//! the database, and those of two nodes that do not agree.

use std::time::Duration;

use troupe::clock::Clock;
use troupe::realtime::hub::Hub;
use troupe::runs::context::Settings;
use troupe::runs::engine::Engine;
use troupe::runs::reaper::Report;
use troupe::runs::run::Reason;
use troupe::runs::run::Status;

use crate::support::backends::Backend;
use crate::support::backends::on_both;
use crate::support::blueprint::connect;
use crate::support::blueprint::node;
use crate::support::engine_room::EngineRoom;
use crate::support::own_clock;
use crate::support::transitions;
use crate::support::wire::Wire;

const HOURS: i64 = 2 * 3_600_000;

on_both! {
    /// Z4. On SQLite the heartbeats of this very process are told by that clock.
    async fn a_clock_that_jumps_ahead_ends_none_of_our_runs(backend) {
        let room = EngineRoom::on(backend).open().await;
        let gate = room.upstream.gate();
        room.human.says("Count.").await;
        room.upstream.requested(1).await;

        room.clock.advance_ms(HOURS);
        let report = room.engine.reap().await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(report, Report::default());
        let run = room.only_run().await;
        assert_eq!((run.status, run.attempt), (Status::Succeeded, 1));
        room.close().await;
    }

    /// Z5. What was planned before is due at a time that is hours away now.
    async fn a_clock_that_is_set_back_holds_up_nobody(backend) {
        let room = EngineRoom::on(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        room.human.says("Hi.").await;

        room.clock.advance_ms(-HOURS);
        room.engine.context().bell.ring();
        room.until("it is answered", async |it| it.answers().await == ["Hello."]).await;

        room.human.says("And now?").await;
        room.clock.advance_ms(500);
        room.until("as ever", async |it| it.answers().await.len() == 2).await;
        room.is_idle().await;
        room.close().await;
    }
}

/// How often the other node looks for silent runs.
const OFTEN: Duration = Duration::from_millis(100);
/// As rarely as a heart may beat that others have to be patient with.
const SLOWLY: Duration = Duration::from_secs(1);

/// Another node that only looks after others, and the wire on which its looks are counted.
async fn guardian(room: &EngineRoom, stale_after: Duration, clock: &Clock) -> (Engine, Wire) {
    let wire = Wire::before(room.database.url()).await;
    let settings = Settings {
        workers: 0,
        heartbeat: SLOWLY,
        reaper_interval: OFTEN,
        stale_after,
        ..room.engine.context().settings
    };
    let models = room.engine.context().models.clone();
    let db = connect(wire.url()).await;
    let engine = node(&db, &Hub::new(), clock, models, settings);
    engine.start().await.expect("there is nothing to heal");
    (engine, wire)
}

/// Waits until it has looked so often from now on.
async fn looks(room: &EngineRoom, wire: &Wire, n: usize) {
    wire.take();
    let mut n_looks = 0;
    room.until("the guardian has looked", async |_| {
        let is_look = |it: &String| it.starts_with("SELECT") && it.contains("heartbeat_at\" <=");
        n_looks += wire.take().into_iter().filter(is_look).count();
        n_looks >= n
    })
    .await;
}

/// Z6, ahead: by that clock every heart has been silent for an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_of_the_database_that_jumps_ahead_ends_nobody() {
    if !Backend::Postgres.is_given() {
        return;
    }
    let room = EngineRoom::on(Backend::Postgres)
        .settings(|it| it.heartbeat = SLOWLY)
        .with_a_clock_to_set()
        .open()
        .await;
    let (other, wire) = guardian(&room, 5 * SLOWLY, &room.clock).await;
    let mut facts = room.facts().await;
    transitions::record(&mut facts).await;
    let gate = room.upstream.gate();
    room.human.says("Count.").await;
    room.upstream.requested(1).await;
    looks(&room, &wire, 3).await;
    let before = room.heartbeats().await;

    own_clock::set(&mut facts, 1).await;
    looks(&room, &wire, 3).await;
    room.until("the heart beats by the new time", async |it| {
        let now = it.heartbeats().await;
        now[0] > before[0].map(|it| it.plus_ms(3_000_000))
    })
    .await;
    gate.open();
    room.settle().await;

    let run = room.only_run().await;
    assert_eq!((run.status, run.attempt), (Status::Succeeded, 1));
    assert_eq!(room.answers().await, ["Hello."]);
    assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
    room.stop(&other).await;
    room.close().await;
}

/// Z6, back: by that clock the last word of the dead is still to come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_of_the_database_that_is_set_back_keeps_nobody_dead_from_being_found() {
    if !Backend::Postgres.is_given() {
        return;
    }
    // Its heart does not beat in the span of a test.
    let room = EngineRoom::on(Backend::Postgres)
        .with_a_clock_to_set()
        .open()
        .await;
    let mut facts = room.facts().await;
    let gate = room.upstream.gate();
    room.human.says("Count.").await;
    room.upstream.requested(1).await;
    room.engine.context().shutdown.draining.cancel();
    let (other, wire) = guardian(&room, 10 * SLOWLY, &room.clock).await;
    looks(&room, &wire, 1).await;

    own_clock::set(&mut facts, -1).await;
    room.until("the turn is planned again", async |it| {
        it.runs().await.len() == 2
    })
    .await;

    let runs = room.runs().await;
    assert_eq!((runs[0].status, runs[0].attempt), (Status::Failed, 1));
    assert_eq!((runs[1].status, runs[1].attempt), (Status::Queued, 2));
    assert_eq!(runs[1].reason, Reason::Recovered);
    gate.open();
    room.is_idle().await;
    assert!(room.answers().await.is_empty(), "the dead add nothing");
    room.stop(&other).await;
    room.close_deaf().await;
}

/// Z4 with two nodes: each tells hearts by the database's clock, so it does not matter which of them
/// is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_clocks_are_hours_apart_leave_each_others_runs_alone() {
    if !Backend::Postgres.is_given() {
        return;
    }
    for off in [HOURS, -HOURS] {
        let room = EngineRoom::on(Backend::Postgres)
            .settings(|it| it.heartbeat = OFTEN)
            .open()
            .await;
        let wrong = Clock::manual();
        wrong.advance_ms(off);
        let (other, wire) = guardian(&room, 5 * SLOWLY, &wrong).await;
        let gate = room.upstream.gate();
        room.human.says("Count.").await;
        room.upstream.requested(1).await;

        looks(&room, &wire, 5).await;
        // A post by way of the other is planned at another hour, and answered all the same.
        room.human_at(&other).says("Go on.").await;
        gate.open();
        room.until("both are answered", async |it| {
            it.engine.context().bell.ring();
            it.answers().await.len() == 2
        })
        .await;

        let runs = room.runs().await;
        let ended = runs.iter().map(|it| (it.status, it.attempt));
        assert!(
            ended.clone().all(|it| it == (Status::Succeeded, 1)),
            "{runs:?}"
        );
        assert_eq!(ended.count(), 2, "{runs:?}");
        room.is_idle().await;
        room.stop(&other).await;
        room.close_deaf().await;
    }
}
