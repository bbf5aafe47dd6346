//! Tests that a node that lost a run cannot write it any more. Wrong statements are tried as well
//! and must write, to show that the tests detect them.

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

/// What the statement that ends a run compares.
#[derive(Clone, Copy, Debug)]
enum Fence {
    /// Id, status and lease, as the queue does.
    Right,
    /// Id and status.
    ByState,
    /// The id alone; also if the lease was compared in an earlier transaction.
    ById,
}

/// How a node loses a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Reaped,
    Canceled,
    /// The run was released and claimed by another node.
    Reclaimed,
}

const EVERY_LOSS: [Loss; 3] = [Loss::Reaped, Loss::Canceled, Loss::Reclaimed];

/// Inserts a running run of this node with a stale heartbeat.
async fn insert_stale_run(fixture: &QueueFixture) -> run::Model {
    fixture.clear().await;
    let run = fixture.in_status(RunStatus::Running);
    fixture.insert(&run).await;
    run
}

async fn lose_run(fixture: &QueueFixture, run: &run::Model, how: Loss) {
    match how {
        Loss::Reaped => assert!(fixture.try_transition("expire", run, run.lease).await),
        Loss::Canceled => {
            let (db, now) = (fixture.db(), fixture.now());
            let canceled = queue::finish(db, run, run.lease, &RunEnd::Canceled, now).await;
            assert!(canceled.expect("the database answers").is_some());
        }
        Loss::Reclaimed => {
            assert!(fixture.try_transition("hand_back", run, run.lease).await);
            assert!(fixture.try_transition("claim", run, 0).await);
        }
    }
}

/// Ends a run with this result; returns whether it changed the row.
async fn finish(fixture: &QueueFixture, db: &Db, run: &run::Model, fence: Fence) -> bool {
    let (run, now) = (run.clone(), fixture.now());
    let finished = db.write(move |tx| {
        Box::pin(async move {
            match fence {
                Fence::Right => {
                    let ended = queue::finish(tx, &run, run.lease, &RunEnd::Succeeded, now).await;
                    ended.map(|it| it.is_some())
                }
                Fence::ByState => end_without_lease(tx, &run, Some(RunStatus::Running)).await,
                Fence::ById => end_without_lease(tx, &run, None).await,
            }
        })
    });
    finished.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

async fn end_without_lease(
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

/// How a reaper ends a stale run.
#[derive(Clone, Copy)]
enum Reap {
    /// Status, lease and heartbeat, as the queue does.
    Right,
    /// The status alone.
    ByState,
}

async fn reap(fixture: &QueueFixture, db: &Db, run: &run::Model, how: Reap) -> bool {
    let (run, now, stale) = (run.clone(), fixture.now(), fixture.stale());
    let reaped = db.write(move |tx| {
        Box::pin(async move {
            match how {
                Reap::Right => {
                    let end = RunEnd::Failed(run_error());
                    queue::expire(tx, &run, run.lease, &end, now, &stale).await
                }
                Reap::ByState => end_without_lease(tx, &run, Some(RunStatus::Running)).await,
            }
        })
    });
    reaped.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

/// Renews the heartbeat; returns whether the run still belongs to the node.
async fn renew_heartbeat(fixture: &QueueFixture, db: &Db, run: &run::Model) -> bool {
    let renewed = queue::heartbeat(
        db.heartbeat_connection(),
        NODE,
        &[run.id],
        fixture.now(),
        fixture.backend(),
    )
    .await;
    let alive = renewed.expect("the database answers");
    alive.iter().any(|it| it.id == run.id)
}

on_both! {
    async fn a_node_that_lost_a_run_does_not_change_it(backend) {
        let fixture = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = insert_stale_run(&fixture).await;
            lose_run(&fixture, &run, loss).await;
            let before = fixture.row(run.id).await;

            let changed = finish(&fixture, &fixture.engine_test.db, &run, Fence::Right).await;

            assert!(!changed, "{loss:?}");
            assert_eq!(fixture.row(run.id).await, before, "{loss:?}");
        }
    }

    async fn ending_a_run_by_its_id_alone_writes_after_every_loss(backend) {
        let fixture = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = insert_stale_run(&fixture).await;
            lose_run(&fixture, &run, loss).await;

            assert!(finish(&fixture, &fixture.engine_test.db, &run, Fence::ById).await, "{loss:?}");
        }
    }

    async fn ending_a_run_without_its_lease_ends_the_run_of_another_node(backend) {
        let fixture = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = insert_stale_run(&fixture).await;
            lose_run(&fixture, &run, loss).await;

            let changed = finish(&fixture, &fixture.engine_test.db, &run, Fence::ByState).await;

            assert_eq!(changed, loss == Loss::Reclaimed, "{loss:?}");
        }
    }

    async fn a_lease_compared_in_an_earlier_transaction_does_not_protect_a_run(backend) {
        let fixture = QueueFixture::new(backend).await;

        for loss in EVERY_LOSS {
            let run = insert_stale_run(&fixture).await;
            let row = fixture.row(run.id).await;
            let is_ours = row.status == RunStatus::Running && row.lease == run.lease;
            lose_run(&fixture, &run, loss).await;

            assert!(is_ours, "the lease was already lost");
            assert!(finish(&fixture, &fixture.engine_test.db, &run, Fence::ById).await, "{loss:?}");
        }
    }

    async fn of_a_concurrent_commit_and_reaper_one_succeeds(backend) {
        let fixture = QueueFixture::new(backend).await;
        let (node, reaper) = (fixture.engine_test.another_db().await, fixture.engine_test.another_db().await);

        for _ in 0..50 {
            let run = insert_stale_run(&fixture).await;
            let barrier = Barrier::new(2);
            let (finished, reaped) = tokio::join!(
                async {
                    barrier.wait().await;
                    finish(&fixture, &node, &run, Fence::Right).await
                },
                async {
                    barrier.wait().await;
                    reap(&fixture, &reaper, &run, Reap::Right).await
                }
            );

            assert!(finished != reaped, "finished: {finished}, reaped: {reaped}");
            let expected = if finished { RunStatus::Succeeded } else { RunStatus::Failed };
            assert_eq!(fixture.row(run.id).await.status, expected);
        }
        node.close().await;
        reaper.close().await;
    }

    async fn of_two_concurrent_reapers_one_ends_the_run(backend) {
        let fixture = QueueFixture::new(backend).await;
        let reapers = [
            fixture.engine_test.another_db().await,
            fixture.engine_test.another_db().await,
        ];

        for _ in 0..50 {
            let run = insert_stale_run(&fixture).await;
            let barrier = Barrier::new(2);
            let sweeps = reapers.iter().map(async |db| {
                barrier.wait().await;
                reap(&fixture, db, &run, Reap::Right).await
            });
            let reaped = join_all(sweeps).await;

            assert_eq!(reaped.iter().filter(|it| **it).count(), 1);
        }
        for db in reapers {
            db.close().await;
        }
    }

    async fn a_run_with_a_renewed_heartbeat_is_not_recovered(backend) {
        let fixture = QueueFixture::new(backend).await;
        let (node, reaper) = (fixture.engine_test.another_db().await, fixture.engine_test.another_db().await);

        for _ in 0..50 {
            let run = insert_stale_run(&fixture).await;
            let barrier = Barrier::new(2);
            let (alive, reaped) = tokio::join!(
                async {
                    barrier.wait().await;
                    renew_heartbeat(&fixture, &node, &run).await
                },
                async {
                    barrier.wait().await;
                    reap(&fixture, &reaper, &run, Reap::Right).await
                }
            );

            assert!(alive != reaped, "alive: {alive}, reaped: {reaped}");
        }
        node.close().await;
        reaper.close().await;
    }

    async fn a_reaper_that_does_not_compare_the_heartbeat_ends_a_live_run(backend) {
        let fixture = QueueFixture::new(backend).await;
        let run = insert_stale_run(&fixture).await;
        let now = fixture.now();
        assert!(now.plus_ms(-STALE_MS) > run.heartbeat_at.expect("the run has a heartbeat"));

        // The heartbeat is renewed after the reaper has read the stale run.
        assert!(renew_heartbeat(&fixture, &fixture.engine_test.db, &run).await);

        assert!(!reap(&fixture, &fixture.engine_test.db, &run, Reap::Right).await);
        assert!(reap(&fixture, &fixture.engine_test.db, &run, Reap::ByState).await);
    }

    async fn a_reaper_that_re_queues_a_run_conflicts_with_the_queued_one(backend) {
        let fixture = QueueFixture::new(backend).await;
        let run = insert_stale_run(&fixture).await;
        let newer = fixture.new_run();
        fixture.insert(&newer).await;
        let re_queue = || {
            run::Entity::update_many()
                .col_expr(run::Column::Status, Expr::value(RunStatus::Queued))
                .filter(run::Column::Id.eq(run.id))
                .exec(fixture.db())
        };

        // Every attempt fails: another run of the conversation is already queued.
        for _ in 0..2 {
            let refused = re_queue().await.unwrap_err();
            assert!(troupe::db::backend::is_unique_violation(&refused), "{refused}");
        }

        assert!(
            fixture.try_transition("expire", &run, run.lease).await,
            "the correct statement did not end the run"
        );
        assert_eq!(fixture.row(newer.id).await, newer);
    }
}
