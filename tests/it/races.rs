//! Tests of races: of two concurrent operations exactly one must succeed, repeated many times.
//! Wrong statements are raced as well, to show that the tests detect them.

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
    /// Reads whether the run is queued, then claims it by its id alone.
    ReadThenWrite,
}

async fn claim(db: &Db, id: RunId, method: Claim, fixture: &QueueFixture) -> bool {
    let (now, backend) = (fixture.now(), fixture.backend());
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            match method {
                Claim::Right => queue::claim(tx, id, "racer", now, backend)
                    .await
                    .map(|it| it.is_some()),
                Claim::ReadThenWrite => read_then_claim(tx, id, now).await,
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
    let claimed = run::Entity::update_many()
        .col_expr(run::Column::Status, Expr::value(RunStatus::Running))
        .col_expr(run::Column::WorkerId, Expr::value("racer"))
        .col_expr(run::Column::Lease, Expr::col(run::Column::Lease).add(1))
        .col_expr(run::Column::StartedAt, Expr::value(now))
        .col_expr(run::Column::HeartbeatAt, Expr::value(now))
        .filter(run::Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(claimed.rows_affected == 1)
}

/// Lets four nodes claim one run concurrently, `n_rounds` times; counts the claims after the first.
async fn double_claims(fixture: &QueueFixture, n_rounds: usize, method: Claim) -> usize {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(fixture.engine_test.another_db().await);
    }
    let mut n_double = 0;
    for _ in 0..n_rounds {
        let run = fixture.new_run();
        fixture.insert(&run).await;
        let barrier = Barrier::new(nodes.len());
        let racers = nodes.iter().map(async |db| {
            barrier.wait().await;
            claim(db, run.id, method, fixture).await
        });
        let results = join_all(racers).await;
        let n_winners = results.iter().filter(|it| **it).count();
        assert!(n_winners >= 1, "no node succeeded");
        n_double += n_winners - 1;
        fixture.clear().await;
    }
    for db in nodes {
        db.close().await;
    }
    n_double
}

/// How a node reads the newest message.
#[derive(Clone, Copy)]
enum Cutoff {
    /// With the statement that claims the run, under the lock of the conversation.
    UnderTheLock,
    /// Before the node claims the run; the conversation is not locked.
    WithoutLock,
}

/// Increments the message number and enqueues a run, as a post does; returns both.
async fn post(fixture: &QueueFixture, db: &Db) -> (RunId, i64) {
    let plan = fixture.new_run();
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

/// Claims the queued run, if there is one, and ends it.
async fn claim_queued(fixture: &QueueFixture, db: &Db, order: Cutoff) {
    let queued = run::Entity::find()
        .filter(run::Column::Status.eq(RunStatus::Queued))
        .one(db.reader())
        .await;
    let Some(queued) = queued.expect("the database answers") else {
        return;
    };
    let (now, backend) = (fixture.now(), fixture.backend());
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            if let Cutoff::UnderTheLock = order {
                conversation::lock(tx, queued.conversation_id).await?;
            }
            let early = newest(tx, queued.conversation_id).await?;
            let Some(mut run) = queue::claim(tx, queued.id, "racer", now, backend).await? else {
                return Ok(());
            };
            if let Cutoff::WithoutLock = order {
                run.cutoff_seq = Some(early);
            }
            let ended = queue::finish(tx, &run, run.lease, &RunEnd::Succeeded, now).await?;
            assert!(ended.is_some(), "the claimed run was not ended");
            Ok(())
        })
    });
    claimed.await.unwrap_or_else(|it: DbErr| panic!("{it}"));
}

async fn newest(tx: &DatabaseTransaction, id: ConversationId) -> Result<i64, DbErr> {
    let row = conversation::Entity::find_by_id(id).one(tx).await?;
    Ok(row.map_or(0, |it| it.last_seq))
}

/// Races posts against claims; counts the messages that are newer than the cutoff of the run that
/// they queued.
async fn lost_messages(backend: TestBackend, n_posts: usize, order: Cutoff) -> usize {
    let fixture = QueueFixture::new(backend).await;
    let (posting, claiming) = (
        fixture.engine_test.another_db().await,
        fixture.engine_test.another_db().await,
    );
    let mut planned = Vec::new();
    for _ in 0..n_posts {
        let barrier = Arc::new(Barrier::new(2));
        let (posted, ()) = tokio::join!(
            async {
                barrier.wait().await;
                post(&fixture, &posting).await
            },
            async {
                barrier.wait().await;
                claim_queued(&fixture, &claiming, order).await;
            }
        );
        planned.push(posted);
    }
    claim_queued(&fixture, &claiming, order).await;
    let mut n_lost = 0;
    for (id, seq) in planned {
        let cutoff = fixture
            .row(id)
            .await
            .cutoff_seq
            .expect("every run was claimed");
        n_lost += usize::from(cutoff < seq);
    }
    posting.close().await;
    claiming.close().await;
    n_lost
}

/// How an endpoint consumes a use of an invite.
#[derive(Clone, Copy)]
enum Use {
    /// The statement of the invites table.
    Right,
    /// Reads whether a use is left, then counts the use by the id alone.
    ReadThenWrite,
}

async fn claim_use(db: &Db, id: InviteId, method: Use, now: Timestamp) -> bool {
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            if let Use::Right = method {
                return invite::consume_use(tx, id, now).await;
            }
            let found = invite::Entity::find_by_id(id).one(tx).await?;
            if found.is_none_or(|it| it.is_used_up(now)) {
                return Ok(false);
            }
            let count = Expr::col(invite::Column::Uses).add(1);
            let claimed = invite::Entity::update_many()
                .col_expr(invite::Column::Uses, count)
                .filter(invite::Column::Id.eq(id))
                .exec(tx)
                .await?;
            Ok(claimed.rows_affected == 1)
        })
    });
    claimed.await.unwrap_or_else(|it: DbErr| panic!("{it}"))
}

/// Lets four nodes consume the last use of an invite concurrently, `n_rounds` times; counts the
/// excess uses. The space is not locked.
async fn uses_too_many(fixture: &QueueFixture, n_rounds: usize, method: Use) -> usize {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(fixture.engine_test.another_db().await);
    }
    let mut n_too_many = 0;
    for _ in 0..n_rounds {
        let new = NewInvite {
            space: fixture.engine_test.space,
            role: MembershipRole::Guest,
            max_uses: Some(1),
            expires_at: fixture.now().plus_ms(1),
            created_by: UserId(1),
        };
        let created = invite::create(&fixture.engine_test.db, new, fixture.now()).await;
        let (created, _) = created.expect("the invite is created");
        let barrier = Barrier::new(nodes.len());
        let racers = nodes.iter().map(async |db| {
            barrier.wait().await;
            claim_use(db, created.id, method, fixture.now()).await
        });
        let results = join_all(racers).await;
        let n_winners = results.iter().filter(|it| **it).count();
        assert!(n_winners >= 1, "no node succeeded");
        n_too_many += n_winners - 1;
    }
    for db in nodes {
        db.close().await;
    }
    n_too_many
}

on_both! {
    async fn the_last_use_of_an_invite_is_consumed_once(backend) {
        let fixture = QueueFixture::new(backend).await;

        assert_eq!(uses_too_many(&fixture, 50, Use::Right).await, 0);
    }

    async fn a_run_is_claimed_once_by_concurrent_nodes(backend) {
        let fixture = QueueFixture::new(backend).await;

        assert_eq!(double_claims(&fixture, 100, Claim::Right).await, 0);
    }

    async fn two_runs_of_a_conversation_are_never_claimed_at_once(backend) {
        let fixture = QueueFixture::new(backend).await;
        let (one, two) = (fixture.engine_test.another_db().await, fixture.engine_test.another_db().await);

        for _ in 0..50 {
            // The second run can be queued only after the first is claimed.
            let first = fixture.new_run();
            fixture.insert(&first).await;
            let (_, second) = tokio::join!(
                claim(&one, first.id, Claim::Right, &fixture),
                post(&fixture, &two)
            );
            let racers = [&one, &two].map(|db| claim(db, second.0, Claim::Right, &fixture));
            join_all(racers).await;

            let running = run::Entity::find()
                .filter(run::Column::Status.eq(RunStatus::Running))
                .all(fixture.db())
                .await
                .unwrap();
            assert_eq!(running.len(), 1, "{running:?}");
            fixture.clear().await;
        }
        one.close().await;
        two.close().await;
    }

    async fn a_message_is_within_the_cutoff_of_the_run_that_it_queued(backend) {
        assert_eq!(lost_messages(backend, 300, Cutoff::UnderTheLock).await, 0);
    }
}

/// PostgreSQL only: a writing SQLite transaction locks the whole file from its first statement on,
/// so no other transaction can run between its read and its write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_reads_before_it_writes_succeeds_twice() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let fixture = QueueFixture::new(TestBackend::Postgres).await;

    assert!(double_claims(&fixture, 100, Claim::ReadThenWrite).await > 0);
}

/// PostgreSQL only, for the same reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cutoff_read_without_the_lock_loses_messages() {
    if !TestBackend::Postgres.is_available() {
        return;
    }

    assert!(lost_messages(TestBackend::Postgres, 300, Cutoff::WithoutLock).await > 0);
}

/// PostgreSQL only, for the same reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_use_read_before_it_is_counted_is_consumed_twice() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let fixture = QueueFixture::new(TestBackend::Postgres).await;

    assert!(uses_too_many(&fixture, 50, Use::ReadThenWrite).await > 0);
}
