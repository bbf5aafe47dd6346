//! Tests that a node which lost its run writes nothing more of it. Each wrong statement is tried as
//! well and must write, so that the test shows a difference.

use futures::future::join_all;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter};
use tokio::sync::Barrier;
use troupe::db::connect::Db;
use troupe::runs::store::queue::RunEnd;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{queue, run};

use crate::support::backends::on_both;
use crate::support::queue_fixture::{NODE, QueueFixture, STALE_MS, run_error};

/// What an end compares.
#[derive(Clone, Copy, Debug)]
enum Fence {
    /// The statement of the queue: run, state and lease.
    Right,
    /// Run and state.
    ByState,
    /// The run alone; so does who compared the lease in a transaction before this one.
    ById,
}

/// How a node loses a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Reaped,
    Canceled,
    /// It gave the run back and does not know; another node has taken it.
    Reclaimed,
}

const EVERY_LOSS: [Loss; 3] = [Loss::Reaped, Loss::Canceled, Loss::Reclaimed];

/// A run that this node holds, silent for too long.
async fn held(bench: &QueueFixture) -> run::Model {
    bench.clear().await;
    let run = bench.in_status(RunStatus::Running);
    bench.insert(&run).await;
    run
}

async fn lose(bench: &QueueFixture, run: &run::Model, how: Loss) {
    match how {
        Loss::Reaped => assert!(bench.try_transition("expire", run, run.lease).await),
        Loss::Canceled => {
            let (db, now) = (bench.db(), bench.now());
            let canceled = queue::finish(db, run, run.lease, &RunEnd::Canceled, now).await;
            assert!(canceled.expect("the database answers"));
        }
        Loss::Reclaimed => {
            assert!(bench.try_transition("hand_back", run, run.lease).await);
            assert!(bench.try_transition("claim", run, 0).await);
        }
    }
}

/// Ends a run with this result; returns whether it changed the row.
async fn finish(bench: &QueueFixture, db: &Db, run: &run::Model, fence: Fence) -> bool {
    let (run, now) = (run.clone(), bench.now());
    let finished = db.write(move |tx| {
        Box::pin(async move {
            match fence {
                Fence::Right => queue::finish(tx, &run, run.lease, &RunEnd::Succeeded, now).await,
                Fence::ByState => end_loosely(tx, &run, Some(RunStatus::Running)).await,
                Fence::ById => end_loosely(tx, &run, None).await,
            }
        })
    });
    finished.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

async fn end_loosely(
    tx: &DatabaseTransaction,
    run: &run::Model,
    from: Option<RunStatus>,
) -> Result<bool, DbErr> {
    let mut update = run::Entity::update_many()
        .col_expr(run::Column::Status, Expr::value(RunStatus::Succeeded))
        .col_expr(run::Column::FinishedAt, Expr::value(run.created_at))
        .filter(run::Column::Id.eq(run.id));
    if let Some(from) = from {
        update = update.filter(run::Column::Status.eq(from));
    }
    Ok(update.exec(tx).await?.rows_affected == 1)
}

/// How a reaper ends what it has seen silent.
#[derive(Clone, Copy)]
enum Reap {
    /// The statement of the queue: still running, under that lease, still silent.
    Right,
    /// Still running is enough.
    ByState,
}

async fn reap(bench: &QueueFixture, db: &Db, run: &run::Model, how: Reap) -> bool {
    let (run, now, stale) = (run.clone(), bench.now(), bench.stale());
    let reaped = db.write(move |tx| {
        Box::pin(async move {
            match how {
                Reap::Right => {
                    let end = RunEnd::Failed(run_error());
                    queue::expire(tx, &run, run.lease, &end, now, &stale).await
                }
                Reap::ByState => end_loosely(tx, &run, Some(RunStatus::Running)).await,
            }
        })
    });
    reaped.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

/// One heartbeat of the node; says whether the run is still its own.
async fn beats(bench: &QueueFixture, db: &Db, run: &run::Model) -> bool {
    let beat = queue::heartbeat(
        db.heartbeat_connection(),
        NODE,
        &[run.id],
        bench.now(),
        bench.dialect(),
    )
    .await;
    let alive = beat.expect("the database answers");
    alive.iter().any(|it| it.id == run.id)
}

on_both! {
    async fn a_node_that_lost_a_run_writes_nothing_of_it(backend) {
        let bench = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = held(&bench).await;
            lose(&bench, &run, loss).await;
            let before = bench.row(run.id).await;

            let won = finish(&bench, &bench.engine_test.db, &run, Fence::Right).await;

            assert!(!won, "{loss:?}");
            assert_eq!(bench.row(run.id).await, before, "{loss:?}");
        }
    }

    async fn an_end_by_the_id_alone_is_seen_to_write_after_every_loss(backend) {
        let bench = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = held(&bench).await;
            lose(&bench, &run, loss).await;

            assert!(finish(&bench, &bench.engine_test.db, &run, Fence::ById).await, "{loss:?}");
        }
    }

    async fn an_end_without_the_lease_is_seen_to_end_the_run_of_another(backend) {
        let bench = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = held(&bench).await;
            lose(&bench, &run, loss).await;

            let won = finish(&bench, &bench.engine_test.db, &run, Fence::ByState).await;

            assert_eq!(won, loss == Loss::Reclaimed, "{loss:?}");
        }
    }

    async fn a_lease_compared_in_an_earlier_transaction_is_seen_to_protect_nothing(backend) {
        let bench = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = held(&bench).await;
            let row = bench.row(run.id).await;
            let is_ours = row.status == RunStatus::Running && row.lease == run.lease;
            lose(&bench, &run, loss).await;

            assert!(is_ours, "the look itself was right");
            assert!(finish(&bench, &bench.engine_test.db, &run, Fence::ById).await, "{loss:?}");
        }
    }

    async fn of_a_commit_and_a_reaper_at_once_one_wins(backend) {
        let bench = QueueFixture::new(backend).await;
        let (node, reaper) = (bench.engine_test.another_db().await, bench.engine_test.another_db().await);

        for _ in 0..50 {
            let run = held(&bench).await;
            let barrier = Barrier::new(2);
            let (finished, reaped) = tokio::join!(
                async {
                    barrier.wait().await;
                    finish(&bench, &node, &run, Fence::Right).await
                },
                async {
                    barrier.wait().await;
                    reap(&bench, &reaper, &run, Reap::Right).await
                }
            );

            assert!(finished != reaped, "finished: {finished}, reaped: {reaped}");
            let expected = if finished { RunStatus::Succeeded } else { RunStatus::Failed };
            assert_eq!(bench.row(run.id).await.status, expected);
        }
        node.close().await;
        reaper.close().await;
    }

    async fn of_two_reapers_at_once_one_heals(backend) {
        let bench = QueueFixture::new(backend).await;
        let reapers = [bench.engine_test.another_db().await, bench.engine_test.another_db().await];

        for _ in 0..50 {
            let run = held(&bench).await;
            let barrier = Barrier::new(2);
            let sweeps = reapers.iter().map(async |db| {
                barrier.wait().await;
                reap(&bench, db, &run, Reap::Right).await
            });
            let reaped = join_all(sweeps).await;

            assert_eq!(reaped.iter().filter(|it| **it).count(), 1);
        }
        for db in reapers {
            db.close().await;
        }
    }

    async fn a_run_with_a_renewed_heartbeat_is_not_recovered(backend) {
        let bench = QueueFixture::new(backend).await;
        let (node, reaper) = (bench.engine_test.another_db().await, bench.engine_test.another_db().await);

        for _ in 0..50 {
            let run = held(&bench).await;
            let barrier = Barrier::new(2);
            let (alive, reaped) = tokio::join!(
                async {
                    barrier.wait().await;
                    beats(&bench, &node, &run).await
                },
                async {
                    barrier.wait().await;
                    reap(&bench, &reaper, &run, Reap::Right).await
                }
            );

            assert!(alive != reaped, "alive: {alive}, reaped: {reaped}");
        }
        node.close().await;
        reaper.close().await;
    }

    async fn a_reaper_that_does_not_compare_is_seen_to_end_a_living_run(backend) {
        let bench = QueueFixture::new(backend).await;
        let run = held(&bench).await;
        let now = bench.now();
        assert!(now.plus_ms(-STALE_MS) > run.heartbeat_at.expect("it beat once"));

        // The reaper saw it silent; then it beats, and then the reaper acts.
        assert!(beats(&bench, &bench.engine_test.db, &run).await);

        assert!(!reap(&bench, &bench.engine_test.db, &run, Reap::Right).await);
        assert!(reap(&bench, &bench.engine_test.db, &run, Reap::ByState).await);
    }

    async fn a_reaper_that_puts_the_row_back_is_seen_to_meet_the_queued_one(backend) {
        let bench = QueueFixture::new(backend).await;
        let run = held(&bench).await;
        let newer = bench.new_run();
        bench.insert(&newer).await;
        let put_back = || {
            run::Entity::update_many()
                .col_expr(run::Column::Status, Expr::value(RunStatus::Queued))
                .filter(run::Column::Id.eq(run.id))
                .exec(bench.db())
        };

        // However often it tries: a person has posted, and the queued place is taken.
        for _ in 0..2 {
            let refused = put_back().await.unwrap_err();
            assert!(troupe::db::backend::is_unique_violation(&refused), "{refused}");
        }

        assert!(bench.try_transition("expire", &run, run.lease).await, "the right one heals it");
        assert_eq!(bench.row(newer.id).await, newer);
    }
}
