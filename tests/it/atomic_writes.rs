//! Tests of atomic writes: message numbers are assigned under the conversation's lock, a message is
//! stored with its queued run, and a writer locks before it reads. Each incorrect order must fail.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId};
use futures::future::join_all;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect, TransactionTrait,
};
use tokio::sync::Barrier;
use troupe::conversations::{conversation, message, timeline};
use troupe::db::backend::Backend;
use troupe::db::connect::Db;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::{Command, ExecutionEnd, GeneratedText};
use troupe::runs::scheduling::scheduler;
use troupe::runs::store::run;
use troupe::runs::store::run::RunStatus;
use troupe::spaces::space::{RepliesPerTurn, ReplyOrder};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::invariants;
use crate::support::queue_fixture::QueueFixture;

/// How a message gets its number.
#[derive(Clone, Copy)]
enum Number {
    /// Locks the conversation's row and increments its counter, as the server does.
    UnderTheLock,
    /// One more than the greatest existing number.
    ByTheGreatest,
}

#[derive(Clone, Copy)]
struct NewText {
    conversation: ConversationId,
    author: MembershipId,
    now: Timestamp,
}

async fn append(db: &Db, new: NewText, method: Number) -> Result<i64, DbErr> {
    db.write(move |tx| Box::pin(async move { append_in(tx, new, method).await }))
        .await
}

async fn append_in(tx: &DatabaseTransaction, new: NewText, method: Number) -> Result<i64, DbErr> {
    let seq = match method {
        Number::UnderTheLock => {
            let row = conversation::lock(tx, new.conversation).await?;
            let seq = row.expect("the conversation exists").last_seq + 1;
            conversation::Entity::update_many()
                .col_expr(conversation::Column::LastSeq, Expr::value(seq))
                .col_expr(conversation::Column::LastUserSeq, Expr::value(seq))
                .filter(conversation::Column::Id.eq(new.conversation))
                .exec(tx)
                .await?;
            seq
        }
        Number::ByTheGreatest => {
            let greatest: Option<Option<i64>> = message::Entity::find()
                .select_only()
                .column_as(message::Column::Seq.max(), "greatest")
                .filter(message::Column::ConversationId.eq(new.conversation))
                .into_tuple()
                .one(tx)
                .await?;
            greatest.flatten().unwrap_or_default() + 1
        }
    };
    let role = message::MessageRole::User;
    let text = "Hi.".to_owned();
    let mut row = timeline::new_model(new.conversation, new.author, role, text, new.now);
    row.seq = seq;
    timeline::append(tx, row).await.map(|it| it.seq)
}

/// Lets four writers append concurrently for `n_rounds`; returns the numbers and the count of
/// failures.
async fn numbers(app: &EngineTest, n_rounds: usize, method: Number) -> (Vec<i64>, usize) {
    let new = NewText {
        conversation: app.conversation,
        author: app.user.membership,
        now: app.clock.now(),
    };
    let mut writers = Vec::new();
    for _ in 0..4 {
        writers.push(app.another_db().await);
    }
    let (mut assigned, mut n_refused) = (Vec::new(), 0);
    for _ in 0..n_rounds {
        let barrier = Barrier::new(writers.len());
        let all = writers.iter().map(async |db| {
            barrier.wait().await;
            append(db, new, method).await
        });
        for outcome in join_all(all).await {
            match outcome {
                Ok(seq) => assigned.push(seq),
                Err(_) => n_refused += 1,
            }
        }
    }
    for db in writers {
        db.close().await;
    }
    assigned.sort_unstable();
    (assigned, n_refused)
}

/// Reads, waits until the other writer has read too, then writes. On SQLite the transaction begins
/// in the default mode (deferred).
async fn reads_then_writes(db: &Db, id: ConversationId, both_read: &Barrier) -> Result<(), DbErr> {
    let tx = db.heartbeat_connection().begin().await?;
    let row = conversation::Entity::find_by_id(id).one(&tx).await?;
    both_read.wait().await;
    let rev = row.expect("the conversation exists").rev + 1;
    conversation::Entity::update_many()
        .col_expr(conversation::Column::Rev, Expr::value(rev))
        .filter(conversation::Column::Id.eq(id))
        .exec(&tx)
        .await?;
    tx.commit().await
}

/// Inserts or updates the queued run; the condition of the index is a bound value, not a literal.
async fn enqueue_by_parameter(db: &impl ConnectionTrait, plan: run::Model) -> Result<(), DbErr> {
    let mut conflict = OnConflict::column(run::Column::ConversationId);
    conflict
        .target_and_where(run::Column::Status.eq(RunStatus::Queued))
        .update_column(run::Column::RunAfter);
    run::Entity::insert(plan.into_active_model())
        .on_conflict(conflict)
        .exec_without_returning(db)
        .await
        .map(|_| ())
}

/// The same without a condition.
async fn enqueue_by_column(db: &impl ConnectionTrait, plan: run::Model) -> Result<(), DbErr> {
    let mut conflict = OnConflict::column(run::Column::ConversationId);
    conflict.update_column(run::Column::RunAfter);
    run::Entity::insert(plan.into_active_model())
        .on_conflict(conflict)
        .exec_without_returning(db)
        .await
        .map(|_| ())
}

/// Makes every insertion of a run fail.
const NO_RUN_ON_SQLITE: &str = "CREATE TRIGGER no_run BEFORE INSERT ON conversation_runs \
    BEGIN SELECT RAISE(ABORT, 'no run today'); END";
const NO_RUN_ON_POSTGRES: &str = "CREATE FUNCTION no_run() RETURNS trigger LANGUAGE plpgsql AS \
    $$ BEGIN RAISE EXCEPTION 'no run today'; END $$; \
    CREATE TRIGGER no_run BEFORE INSERT ON conversation_runs FOR EACH ROW EXECUTE FUNCTION no_run()";

fn generated_text(text: &str) -> GeneratedText {
    GeneratedText {
        content: text.to_owned(),
        token_count: 1,
        usage: None,
        metadata: serde_json::json!({}),
        prompt: None,
        memory_changes: Arc::default(),
    }
}

async fn allow_runs(app: &EngineTest) {
    let trigger = match app.db.backend() {
        Backend::Sqlite => "DROP TRIGGER no_run",
        Backend::Postgres => "DROP TRIGGER no_run ON conversation_runs",
    };
    app.facts().await.execute(trigger).await;
}

async fn forbid_runs(app: &EngineTest) {
    let trigger = match app.db.backend() {
        Backend::Sqlite => NO_RUN_ON_SQLITE,
        Backend::Postgres => NO_RUN_ON_POSTGRES,
    };
    app.facts().await.execute(trigger).await;
}

on_both! {
    async fn concurrent_messages_are_numbered_without_gaps(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;

        let (assigned, n_refused) = numbers(&app, 25, Number::UnderTheLock).await;

        assert_eq!(n_refused, 0);
        assert_eq!(assigned, (1..=100).collect::<Vec<_>>());
        app.close_without_events().await;
    }

    async fn concurrent_posts_at_several_nodes_are_numbered_without_gaps(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        let nodes = [app.another_node(), app.another_node(), app.another_node()];
        let users: Vec<_> = nodes.iter().map(|it| app.user_at_node(it)).collect();

        let posts = (0..30).map(async |n| users[n % 3].post("Hi.").await.message.seq);
        let mut assigned = join_all(posts).await;

        assigned.sort_unstable();
        assert_eq!(assigned, (1..=30).collect::<Vec<_>>());
        app.close_without_events().await;
    }

    async fn an_upsert_finds_the_queued_run_only_if_the_index_condition_is_a_literal(backend) {
        let fixture = QueueFixture::new(backend).await;
        if fixture.backend() == Backend::Postgres {
            // PostgreSQL may choose this by itself from the sixth execution on.
            let generic = "SET plan_cache_mode = force_generic_plan";
            fixture.db().execute_unprepared(generic).await.unwrap();
        }

        enqueue_by_parameter(fixture.db(), fixture.new_run()).await.unwrap_err();
        enqueue_by_column(fixture.db(), fixture.new_run()).await.unwrap_err();

        troupe::runs::store::queue::enqueue(fixture.db(), fixture.new_run()).await.unwrap();
    }

    async fn a_message_is_not_stored_if_its_run_cannot_be_queued(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        forbid_runs(&app).await;

        let refused = app.user.try_post("Hi.").await;

        assert!(matches!(refused, Err(EngineError::Database(_))), "{refused:?}");
        assert!(app.messages().await.is_empty(), "the message was stored without a run");
        assert_eq!(app.row().await.last_seq, 0);
        app.close_without_events().await;
    }

    async fn a_reply_is_not_stored_if_the_next_run_cannot_be_queued(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| {
                it.reply_order = ReplyOrder::List;
                it.replies_per_turn = RepliesPerTurn::Activated;
            })
            .not_started()
            .open()
            .await;
        let step = |command| scheduler::step(app.engine.context(), app.conversation, command);
        let run = app.user.post("Hi.").await.run.expect("a reply is queued").id;
        let claimed = step(Command::Claim { run }).await.unwrap().claimed.expect("the run is due");
        let ended = Command::RunEnded {
            run: claimed.id,
            lease: claimed.lease,
            end: Box::new(ExecutionEnd::Succeeded(generated_text("Hello."))),
        };

        forbid_runs(&app).await;
        let refused = step(ended.clone()).await;

        assert!(matches!(refused, Err(EngineError::Database(_))), "{refused:?}");
        assert_eq!(app.only_run().await.status, RunStatus::Running, "the run ended");
        assert!(app.answers().await.is_empty(), "the text was stored");

        allow_runs(&app).await;
        step(ended).await.unwrap();

        assert_eq!(app.answers().await, ["Hello."]);
        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Queued], "the run of Bob is queued");
        app.close_without_events().await;
    }

    async fn a_run_ended_without_advancing_its_round_violates_an_invariant(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        app.user.post("Hi.").await;
        let mut facts = app.facts().await;
        assert_eq!(invariants::at_any_instant(&mut facts).await, Vec::<String>::new());

        // The state after a crash between two transactions: the run has ended, but nothing follows.
        let end = "UPDATE conversation_runs SET status = 'canceled', canceled_because = 'stopped', finished_at = 1";
        facts.execute(end).await;

        let found = invariants::at_any_instant(&mut facts).await;
        assert!(found.len() == 1 && found[0].starts_with("I2"), "{found:?}");
        app.close_broken().await;
    }

    async fn writers_that_lock_before_reading_lose_no_change(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        let id = app.conversation;
        let writers = [app.another_db().await, app.another_db().await];

        for n in 1..=25 {
            let all = writers.iter().map(async |db| {
                db.write(move |tx| {
                    Box::pin(async move {
                        let row = conversation::lock(tx, id)
                            .await?
                            .expect("the conversation exists");
                        conversation::Entity::update_many()
                            .col_expr(conversation::Column::Rev, Expr::value(row.rev + 1))
                            .filter(conversation::Column::Id.eq(id))
                            .exec(tx)
                            .await
                    })
                })
                .await
            });
            for outcome in join_all(all).await {
                outcome.unwrap_or_else(|it: DbErr| panic!("{it}"));
            }
            assert_eq!(app.row().await.rev, 2 * n, "a change was lost");
        }
        for db in writers {
            db.close().await;
        }
        app.close_without_events().await;
    }

    async fn writers_that_read_before_locking_lose_a_change(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        let writers = [app.another_db().await, app.another_db().await];
        let both_read = Barrier::new(2);

        let all = writers.iter().map(|db| reads_then_writes(db, app.conversation, &both_read));
        let n_done = join_all(all).await.into_iter().filter(Result::is_ok).count();

        match backend {
            // The second write fails immediately, whatever the busy timeout is.
            TestBackend::Sqlite => assert_eq!(n_done, 1),
            // The second write overwrites the first.
            TestBackend::Postgres => assert_eq!(n_done, 2),
        }
        assert_eq!(app.row().await.rev, 1, "expected one change of two writers");
        for db in writers {
            db.close().await;
        }
        app.close_without_events().await;
    }
}

/// PostgreSQL only: on SQLite a writing transaction locks the whole file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_assigned_from_the_maximum_collide() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .not_started()
        .open()
        .await;

    let (_, n_refused) = numbers(&app, 25, Number::ByTheGreatest).await;

    assert!(n_refused > 0, "the writers never collided");
    app.close_broken().await;
}
