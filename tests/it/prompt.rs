//! Tests how much of the database a prompt reads.
#![allow(clippy::print_stdout)] // the figures are for readers of the test's output

use std::time::{Duration, Instant};

use base::ids::ConversationId;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DbErr};
use troupe::conversations::message::MessageRole;
use troupe::conversations::{conversation, timeline};
use troupe::prompt::blocks::BlockKind;
use troupe::runs::execution::preparation;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::statements::Statements;

/// Writes `n` short messages without the engine.
async fn write_history(room: &EngineTest, n_messages: i64) {
    let (id, seat, now) = (room.conversation, room.user.membership, room.clock.now());
    let written: Result<(), DbErr> = room
        .db
        .write(move |tx| {
            Box::pin(async move {
                for seq in 1..=n_messages {
                    let mut row =
                        timeline::new_model(id, seat, MessageRole::User, seq.to_string(), now);
                    (row.seq, row.rev, row.token_count) = (seq, seq, 1);
                    timeline::append(tx, row).await?;
                }
                let mut row = conversation::ActiveModel {
                    id: Unchanged(id),
                    ..Default::default()
                };
                (row.last_seq, row.rev) = (Set(n_messages), Set(n_messages));
                row.last_user_seq = Set(Some(n_messages));
                row.update(tx).await.map(|_| ())
            })
        })
        .await;
    written.unwrap();
}

on_sqlite! {
    async fn the_history_reaches_back_as_far_as_the_window_and_no_further(backend) {
        let room = EngineTest::builder(backend).open().await;
        let ada = room.membership("Ada").await.id;
        write_history(&room, 1_800).await;

        let preview = preparation::preview(room.engine.context(), room.conversation, ada, None);
        let (_, built) = preview.await.unwrap().unwrap();

        let built = built.unwrap();
        let history: Vec<_> = built.blocks.iter().filter(|it| it.kind == BlockKind::History).collect();
        let sent = history.iter().filter(|it| !it.dropped).count();
        assert!(built.limit_tokens - built.total_tokens < 20, "the window is full");
        assert!(sent > 400, "{sent} messages are sent");
        assert!(history.len() < 1_800, "what cannot fit is not read");
        room.close().await;
    }
}

/// Writes `n` messages of a hundred tokens in one statement, in a conversation of their own.
async fn long_conversation(room: &EngineTest, n_messages: i64) -> ConversationId {
    let id = room.another_conversation().await;
    let (seat, now) = (room.user.membership, room.clock.now());
    let said = "Rain. ".repeat(90);
    let sql = format!(
        "WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < {n_messages}) \
         INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, \
         active_swipe, created_at, rev, token_count, metadata) \
         SELECT {id}, seq, {seat}, 'user', '{said}', 'normal', 0, {now}, seq, 100, '{{}}' FROM n",
        now = now.0,
    );
    let update = format!(
        "UPDATE conversations SET last_seq = {n_messages}, last_user_seq = {n_messages} WHERE id = {id}"
    );
    let written: Result<(), DbErr> = room
        .db
        .write(move |tx| {
            Box::pin(async move {
                tx.execute_unprepared(&sql).await?;
                tx.execute_unprepared(&update).await.map(|_| ())
            })
        })
        .await;
    written.unwrap();
    // As autovacuum leaves the table a minute later: a plan is made from what is known of it.
    let counted: Result<(), DbErr> = room
        .db
        .write(|tx| Box::pin(async { tx.execute_unprepared("ANALYZE messages").await.map(|_| ()) }))
        .await;
    counted.unwrap();
    id
}

/// What it costs to make a prompt: the statements, the rows of its history and their bytes, and the
/// time of the fastest of some.
async fn cost_of_prompt(
    room: &EngineTest,
    id: ConversationId,
    take: &impl Fn(&EngineTest) -> Vec<String>,
) -> (usize, usize, usize, Duration) {
    let ada = room.membership("Ada").await.id;
    let make = async || {
        let preview = preparation::preview(room.engine.context(), id, ada, None);
        preview.await.unwrap().unwrap().1.unwrap()
    };
    make().await;
    take(room);
    let built = make().await;
    // In addition the engine queries for due runs at every wake-up signal.
    let is_read = |it: &&String| it.contains("FROM \"messages\"");
    let n_statements = take(room).iter().filter(is_read).count();
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let began = Instant::now();
        make().await;
        fastest = fastest.min(began.elapsed());
    }
    let history = built
        .blocks
        .iter()
        .filter(|it| it.kind == BlockKind::History);
    let bytes: Vec<usize> = history.map(|it| it.text.len()).collect();
    (n_statements, bytes.len(), bytes.iter().sum(), fastest)
}

async fn a_long_conversation_costs_what_a_short_one_costs(
    backend: TestBackend,
    take: impl Fn(&EngineTest) -> Vec<String>,
) {
    let room = EngineTest::builder(backend)
        .with_postgres_proxy()
        .open()
        .await;
    let short = long_conversation(&room, 100).await;
    let long = long_conversation(&room, 100_000).await;

    let (of_short, of_long) = (
        cost_of_prompt(&room, short, &take).await,
        cost_of_prompt(&room, long, &take).await,
    );

    println!(
        "{backend:?}: statements, rows, bytes, time: 100 messages {of_short:?}, 100 000 {of_long:?}"
    );
    assert!(of_short.0 > 0, "statements are counted");
    assert_eq!(
        (of_short.0, of_short.1, of_short.2),
        (of_long.0, of_long.1, of_long.2)
    );
    room.close_broken().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_prompt_of_100_000_messages_costs_what_one_of_100_costs() {
    let name = "prompt::on_sqlite_a_prompt_of_100_000_messages_costs_what_one_of_100_costs";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    a_long_conversation_costs_what_a_short_one_costs(TestBackend::Sqlite, |_| statements.take())
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_prompt_of_100_000_messages_costs_what_one_of_100_costs() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    a_long_conversation_costs_what_a_short_one_costs(TestBackend::Postgres, |room| {
        room.postgres_proxy
            .as_ref()
            .expect("a wired room")
            .take_statements()
    })
    .await;
}
