//! What must be atomic: message numbers are assigned under the conversation's lock, a message is
//! stored with its plan, and a writer locks before it reads. Each incorrect order is also shown to
//! fail.

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
    /// As the server does: the conversation's row is locked and its counter incremented.
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

async fn append(db: &Db, new: NewText, how: Number) -> Result<i64, DbErr> {
    db.write(move |tx| Box::pin(async move { append_in(tx, new, how).await }))
        .await
}

async fn append_in(tx: &DatabaseTransaction, new: NewText, how: Number) -> Result<i64, DbErr> {
    let seq = match how {
        Number::UnderTheLock => {
            let row = conversation::lock(tx, new.conversation).await?;
            let seq = row.expect("the conversation").last_seq + 1;
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
async fn numbers(room: &EngineTest, n_rounds: usize, how: Number) -> (Vec<i64>, usize) {
    let new = NewText {
        conversation: room.conversation,
        author: room.user.membership,
        now: room.clock.now(),
    };
    let mut writers = Vec::new();
    for _ in 0..4 {
        writers.push(room.another_db().await);
    }
    let (mut given, mut n_refused) = (Vec::new(), 0);
    for _ in 0..n_rounds {
        let barrier = Barrier::new(writers.len());
        let all = writers.iter().map(async |db| {
            barrier.wait().await;
            append(db, new, how).await
        });
        for outcome in join_all(all).await {
            match outcome {
                Ok(seq) => given.push(seq),
                Err(_) => n_refused += 1,
            }
        }
    }
    for db in writers {
        db.close().await;
    }
    given.sort_unstable();
    (given, n_refused)
}

/// Reads, waits until the other writer has read too, then writes. On SQLite the transaction begins
/// in the default mode (deferred).
async fn reads_then_writes(db: &Db, id: ConversationId, both_read: &Barrier) -> Result<(), DbErr> {
    let tx = db.heartbeat_connection().begin().await?;
    let row = conversation::Entity::find_by_id(id).one(&tx).await?;
    both_read.wait().await;
    let rev = row.expect("the conversation").rev + 1;
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

fn written(text: &str) -> GeneratedText {
    GeneratedText {
        content: text.to_owned(),
        token_count: 1,
        usage: None,
        metadata: serde_json::json!({}),
        prompt: None,
    }
}

async fn allow_runs(room: &EngineTest) {
    let trigger = match room.db.backend() {
        Backend::Sqlite => "DROP TRIGGER no_run",
        Backend::Postgres => "DROP TRIGGER no_run ON conversation_runs",
    };
    room.facts().await.execute(trigger).await;
}

async fn forbid_runs(room: &EngineTest) {
    let trigger = match room.db.backend() {
        Backend::Sqlite => NO_RUN_ON_SQLITE,
        Backend::Postgres => NO_RUN_ON_POSTGRES,
    };
    room.facts().await.execute(trigger).await;
}

on_both! {
    async fn messages_at_once_are_numbered_without_gaps(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;

        let (given, n_refused) = numbers(&room, 25, Number::UnderTheLock).await;

        assert_eq!(n_refused, 0);
        assert_eq!(given, (1..=100).collect::<Vec<_>>());
        room.close_without_events().await;
    }

    async fn posts_at_once_at_several_nodes_are_numbered_without_gaps(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        let nodes = [room.another_node(), room.another_node(), room.another_node()];
        let humans: Vec<_> = nodes.iter().map(|it| room.user_at_node(it)).collect();

        let posts = (0..30).map(async |n| humans[n % 3].post("Hi.").await.message.seq);
        let mut given = join_all(posts).await;

        given.sort_unstable();
        assert_eq!(given, (1..=30).collect::<Vec<_>>());
        room.close_without_events().await;
    }

    async fn an_upsert_finds_the_queued_place_only_by_the_literal(backend) {
        let bench = QueueFixture::new(backend).await;
        if bench.dialect() == Backend::Postgres {
            // PostgreSQL chooses this itself from the sixth execution on by default.
            let generic = "SET plan_cache_mode = force_generic_plan";
            bench.db().execute_unprepared(generic).await.unwrap();
        }

        enqueue_by_parameter(bench.db(), bench.new_run()).await.unwrap_err();
        enqueue_by_column(bench.db(), bench.new_run()).await.unwrap_err();

        troupe::runs::store::queue::enqueue(bench.db(), bench.new_run()).await.unwrap();
    }

    async fn a_message_is_stored_with_its_plan_or_not_at_all(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        forbid_runs(&room).await;

        let refused = room.user.try_post("Hi.").await;

        assert!(matches!(refused, Err(EngineError::Database(_))), "{refused:?}");
        assert!(room.messages().await.is_empty(), "it waits for an answer that nobody planned");
        assert_eq!(room.row().await.last_seq, 0);
        room.close_without_events().await;
    }

    async fn a_reply_and_what_follows_it_are_stored_together_or_not_at_all(backend) {
        let room = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| {
                it.reply_order = ReplyOrder::List;
                it.replies_per_turn = RepliesPerTurn::Activated;
            })
            .not_started()
            .open()
            .await;
        let step = |command| scheduler::step(room.engine.context(), room.conversation, command);
        let run = room.user.post("Hi.").await.run.expect("Ada will answer").id;
        let claimed = step(Command::Claim { run }).await.unwrap().claimed.expect("it is due");
        let ended = Command::RunEnded {
            run: claimed.id,
            lease: claimed.lease,
            end: Box::new(ExecutionEnd::Succeeded(written("Hello."))),
        };

        forbid_runs(&room).await;
        let refused = step(ended.clone()).await;

        assert!(matches!(refused, Err(EngineError::Database(_))), "{refused:?}");
        assert_eq!(room.only_run().await.status, RunStatus::Running, "nor has it ended");
        assert!(room.answers().await.is_empty(), "nor is its text there");

        allow_runs(&room).await;
        step(ended).await.unwrap();

        assert_eq!(room.answers().await, ["Hello."]);
        let statuses: Vec<_> = room.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Queued], "Bob is next");
        room.close_without_events().await;
    }

    async fn a_plan_apart_from_its_round_is_seen_to_leave_it_adrift(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        room.user.post("Hi.").await;
        let mut facts = room.facts().await;
        assert_eq!(invariants::at_any_instant(&mut facts).await, Vec::<String>::new());

        // The state after a crash between two transactions: the run has ended, but nothing follows.
        let end = "UPDATE conversation_runs SET status = 'canceled', canceled_because = 'stopped', finished_at = 1";
        facts.execute(end).await;

        let found = invariants::at_any_instant(&mut facts).await;
        assert!(found.len() == 1 && found[0].starts_with("I2"), "{found:?}");
        room.close_broken().await;
    }

    async fn writers_that_read_first_wait_for_each_other(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        let id = room.conversation;
        let writers = [room.another_db().await, room.another_db().await];

        for n in 1..=25 {
            let all = writers.iter().map(async |db| {
                db.write(move |tx| {
                    Box::pin(async move {
                        let row = conversation::lock(tx, id).await?.expect("the conversation");
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
            assert_eq!(room.row().await.rev, 2 * n, "no change is lost");
        }
        for db in writers {
            db.close().await;
        }
        room.close_without_events().await;
    }

    async fn writers_that_lock_too_late_are_seen_to_lose_a_change(backend) {
        let room = EngineTest::builder(backend).not_started().open().await;
        let writers = [room.another_db().await, room.another_db().await];
        let both_read = Barrier::new(2);

        let all = writers.iter().map(|db| reads_then_writes(db, room.conversation, &both_read));
        let n_done = join_all(all).await.into_iter().filter(Result::is_ok).count();

        match backend {
            // The second write fails immediately, whatever the busy timeout is.
            TestBackend::Sqlite => assert_eq!(n_done, 1),
            // The second write overwrites the first.
            TestBackend::Postgres => assert_eq!(n_done, 2),
        }
        assert_eq!(room.row().await.rev, 1, "two writers, one change");
        for db in writers {
            db.close().await;
        }
        room.close_without_events().await;
    }
}

/// PostgreSQL only: on SQLite a writing transaction locks the whole file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_by_the_greatest_are_seen_to_collide() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres)
        .not_started()
        .open()
        .await;

    let (_, n_refused) = numbers(&room, 25, Number::ByTheGreatest).await;

    assert!(n_refused > 0, "four writers never asked at once");
    room.close_broken().await;
}
