//! Tests races: two operations at the same time of which one must win, many times over. Where a
//! wrong statement could pass by chance, it is raced as well, to show that the test detects it.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{ConversationId, InviteId, RunId, UserId};
use futures::future::join_all;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter};
use tokio::sync::Barrier;
use troupe::conversations::conversation;
use troupe::db::connect::Db;
use troupe::runs::store::queue::RunEnd;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{queue, run};
use troupe::spaces::invites::invite;
use troupe::spaces::invites::invite::NewInvite;
use troupe::spaces::membership::MembershipRole;

use crate::support::backends::{TestBackend, on_both};
use crate::support::queue_fixture::QueueFixture;

/// How a node claims a run.
#[derive(Clone, Copy)]
enum Claim {
    /// The statement of the queue.
    Right,
    /// Reads first whether it is queued, then claims it by its id alone.
    LookThenTake,
}

async fn claim(db: &Db, id: RunId, how: Claim, bench: &QueueFixture) -> bool {
    let (now, dialect) = (bench.now(), bench.dialect());
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            match how {
                Claim::Right => queue::claim(tx, id, "racer", now, dialect)
                    .await
                    .map(|it| it.is_some()),
                Claim::LookThenTake => read_then_claim(tx, id, now).await,
            }
        })
    });
    claimed.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

async fn read_then_claim(
    tx: &DatabaseTransaction,
    id: RunId,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let found = run::Entity::find_by_id(id).one(tx).await?;
    if found.is_none_or(|it| it.status != RunStatus::Queued) {
        return Ok(false);
    }
    let taken = run::Entity::update_many()
        .col_expr(run::Column::Status, Expr::value(RunStatus::Running))
        .col_expr(run::Column::WorkerId, Expr::value("racer"))
        .col_expr(run::Column::Lease, Expr::col(run::Column::Lease).add(1))
        .col_expr(run::Column::StartedAt, Expr::value(now))
        .col_expr(run::Column::HeartbeatAt, Expr::value(now))
        .filter(run::Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(taken.rows_affected == 1)
}

/// Lets four nodes claim the same run concurrently, `n` times; counts the claims after the first.
async fn double_claims(bench: &QueueFixture, n_rounds: usize, how: Claim) -> usize {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(bench.engine_test.another_db().await);
    }
    let mut n_double = 0;
    for _ in 0..n_rounds {
        let run = bench.new_run();
        bench.insert(&run).await;
        let barrier = Barrier::new(nodes.len());
        let racers = nodes.iter().map(async |db| {
            barrier.wait().await;
            claim(db, run.id, how, bench).await
        });
        let won = join_all(racers).await;
        let n_winners = won.iter().filter(|it| **it).count();
        assert!(n_winners >= 1, "somebody takes it");
        n_double += n_winners - 1;
        bench.clear().await;
    }
    for db in nodes {
        db.close().await;
    }
    n_double
}

/// When a claimer looks for the newest message.
#[derive(Clone, Copy)]
enum Cutoff {
    /// As the queue does: the run is ours first.
    AfterTheClaim,
    /// Before the run is ours; no lock of the conversation is held.
    BeforeTheClaim,
}

/// What a post does to the schedule: the next number, and the queued place. Gives both.
async fn post(bench: &QueueFixture, db: &Db) -> (RunId, i64) {
    let plan = bench.new_run();
    let posted = db.write(move |tx| {
        Box::pin(async move {
            let row = conversation::Entity::update_many()
                .col_expr(
                    conversation::Column::LastSeq,
                    Expr::col(conversation::Column::LastSeq).add(1),
                )
                .filter(conversation::Column::Id.eq(plan.conversation_id))
                .exec_with_returning(tx)
                .await?;
            let run = queue::enqueue(tx, plan).await?;
            Ok((run.id, row[0].last_seq))
        })
    });
    posted.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

/// Claims every queued run and ends it.
async fn claim_queued(bench: &QueueFixture, db: &Db, order: Cutoff) {
    let queued = run::Entity::find()
        .filter(run::Column::Status.eq(RunStatus::Queued))
        .one(db.reader())
        .await;
    let Some(queued) = queued.expect("the database answers") else {
        return;
    };
    let (now, dialect) = (bench.now(), bench.dialect());
    let taken = db.write(move |tx| {
        Box::pin(async move {
            let early = newest(tx, queued.conversation_id).await?;
            let Some(mut run) = queue::claim(tx, queued.id, "racer", now, dialect).await? else {
                return Ok(());
            };
            let late = queue::set_cutoff(tx, run.id).await?;
            run.cutoff_seq = Some(match order {
                Cutoff::AfterTheClaim => late,
                Cutoff::BeforeTheClaim => early,
            });
            let ended = queue::finish(tx, &run, run.lease, &RunEnd::Succeeded, now).await?;
            assert!(ended, "nobody else holds it");
            Ok(())
        })
    });
    taken.await.unwrap_or_else(|it: DbErr| panic!("{it}"));
}

async fn newest(tx: &DatabaseTransaction, id: ConversationId) -> Result<i64, DbErr> {
    let row = conversation::Entity::find_by_id(id).one(tx).await?;
    Ok(row.map_or(0, |it| it.last_seq))
}

/// Races posts against claims; counts the messages that were planned into a run which does not
/// have them in sight.
async fn lost_messages(backend: TestBackend, n_posts: usize, order: Cutoff) -> usize {
    let bench = QueueFixture::new(backend).await;
    let (posting, taking) = (
        bench.engine_test.another_db().await,
        bench.engine_test.another_db().await,
    );
    let mut planned = Vec::new();
    for _ in 0..n_posts {
        let barrier = Arc::new(Barrier::new(2));
        let (posted, ()) = tokio::join!(
            async {
                barrier.wait().await;
                post(&bench, &posting).await
            },
            async {
                barrier.wait().await;
                claim_queued(&bench, &taking, order).await;
            }
        );
        planned.push(posted);
    }
    claim_queued(&bench, &taking, order).await;
    let mut n_lost = 0;
    for (id, seq) in planned {
        let cutoff = bench.row(id).await.cutoff_seq.expect("every run was taken");
        n_lost += usize::from(cutoff < seq);
    }
    posting.close().await;
    taking.close().await;
    n_lost
}

/// How an endpoint consumes a use of an invite.
#[derive(Clone, Copy)]
enum Use {
    /// The statement of the invites.
    Right,
    /// Looks first whether one is left, then counts it by the id alone.
    LookThenTake,
}

async fn claim_use(db: &Db, id: InviteId, how: Use, now: Timestamp) -> bool {
    let taken = db.write(move |tx| {
        Box::pin(async move {
            if let Use::Right = how {
                return invite::consume_use(tx, id, now).await;
            }
            let found = invite::Entity::find_by_id(id).one(tx).await?;
            if found.is_none_or(|it| it.is_used_up(now)) {
                return Ok(false);
            }
            let count = Expr::col(invite::Column::Uses).add(1);
            let taken = invite::Entity::update_many()
                .col_expr(invite::Column::Uses, count)
                .filter(invite::Column::Id.eq(id))
                .exec(tx)
                .await?;
            Ok(taken.rows_affected == 1)
        })
    });
    taken.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

/// Lets four nodes consume the last use of an invite concurrently, `n` times; counts the uses
/// beyond the last. Nothing else separates them: no lock of the space is held here.
async fn uses_too_many(bench: &QueueFixture, n_rounds: usize, how: Use) -> usize {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(bench.engine_test.another_db().await);
    }
    let mut n_too_many = 0;
    for _ in 0..n_rounds {
        let new = NewInvite {
            space: bench.engine_test.space,
            role: MembershipRole::Guest,
            max_uses: Some(1),
            expires_at: bench.now().plus_ms(1),
            created_by: UserId(1),
        };
        let made = invite::create(&bench.engine_test.db, new, bench.now()).await;
        let (made, _) = made.expect("an invite can be made");
        let barrier = Barrier::new(nodes.len());
        let racers = nodes.iter().map(async |db| {
            barrier.wait().await;
            claim_use(db, made.id, how, bench.now()).await
        });
        let won = join_all(racers).await;
        let n_winners = won.iter().filter(|it| **it).count();
        assert!(n_winners >= 1, "somebody takes it");
        n_too_many += n_winners - 1;
    }
    for db in nodes {
        db.close().await;
    }
    n_too_many
}

on_both! {
    async fn the_last_use_of_an_invite_is_taken_once(backend) {
        let bench = QueueFixture::new(backend).await;

        assert_eq!(uses_too_many(&bench, 50, Use::Right).await, 0);
    }

    async fn a_run_is_claimed_once_however_many_want_it(backend) {
        let bench = QueueFixture::new(backend).await;

        assert_eq!(double_claims(&bench, 100, Claim::Right).await, 0);
    }

    async fn two_runs_of_a_conversation_are_never_claimed_at_once(backend) {
        let bench = QueueFixture::new(backend).await;
        let (one, two) = (bench.engine_test.another_db().await, bench.engine_test.another_db().await);

        for _ in 0..50 {
            // The second run can be queued as soon as the first is taken, not before.
            let first = bench.new_run();
            bench.insert(&first).await;
            let (_, second) = tokio::join!(
                claim(&one, first.id, Claim::Right, &bench),
                post(&bench, &two)
            );
            let racers = [&one, &two].map(|db| claim(db, second.0, Claim::Right, &bench));
            join_all(racers).await;

            let running = run::Entity::find()
                .filter(run::Column::Status.eq(RunStatus::Running))
                .all(bench.db())
                .await
                .unwrap();
            assert_eq!(running.len(), 1, "{running:?}");
            bench.clear().await;
        }
        one.close().await;
        two.close().await;
    }

    async fn a_message_is_in_sight_of_the_run_it_was_planned_into(backend) {
        assert_eq!(lost_messages(backend, 300, Cutoff::AfterTheClaim).await, 0);
    }
}

/// Only on PostgreSQL: a writing SQLite transaction locks the whole file from its first statement
/// on, so no other can come between the read and the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_looks_first_is_seen_to_claim_twice() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let bench = QueueFixture::new(TestBackend::Postgres).await;

    assert!(double_claims(&bench, 100, Claim::LookThenTake).await > 0);
}

/// On PostgreSQL alone, for the same reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cutoff_that_is_read_first_is_seen_to_lose_messages() {
    if !TestBackend::Postgres.is_available() {
        return;
    }

    assert!(lost_messages(TestBackend::Postgres, 300, Cutoff::BeforeTheClaim).await > 0);
}

/// On PostgreSQL alone, for the same reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_use_that_is_looked_at_first_is_seen_to_be_taken_twice() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let bench = QueueFixture::new(TestBackend::Postgres).await;

    assert!(uses_too_many(&bench, 50, Use::LookThenTake).await > 0);
}
