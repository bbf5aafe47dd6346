//! Tests how many rows of the database are read to build a prompt.
#![allow(clippy::print_stdout)] // prints measurements for the reader of the output

use std::time::{Duration, Instant};

use base::ids::ConversationId;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DbErr};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::MessageRole;
use troupe::conversations::{conversation, timeline};
use troupe::prompt::blocks::BlockKind;
use troupe::runs::reading::prompt_preview;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::statements::Statements;

/// Writes `n_messages` short messages without the engine.
async fn write_history(app: &EngineTest, n_messages: i64) {
    let (id, author, now) = (app.conversation, app.user.membership, app.clock.now());
    let written: Result<(), DbErr> = app
        .db
        .write(move |tx| {
            Box::pin(async move {
                for seq in 1..=n_messages {
                    let mut row =
                        timeline::new_model(id, author, MessageRole::User, seq.to_string(), now);
                    (row.seq, row.rev, row.token_count) = (seq, seq, 60);
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
    async fn the_history_is_read_only_as_far_as_the_context_window_reaches(backend) {
        let app = EngineTest::builder(backend).open().await;
        let ada = app.membership("Ada").await.id;
        write_history(&app, 1_800).await;

        let preview = prompt_preview::load(app.engine.context(), app.conversation, (ada, Viewer::Server), None);
        let (_, built) = preview.await.unwrap().unwrap();

        let built = built.unwrap();
        let history: Vec<_> = built.blocks.iter().filter(|it| it.kind == BlockKind::History).collect();
        let sent = history.iter().filter(|it| !it.dropped).count();
        let used = built.total_tokens * 100 / built.limit_tokens;
        assert!((74..=78).contains(&used), "a cut history uses three quarters, not {used} %");
        assert!(sent > 60, "only {sent} messages are sent");
        assert!(history.len() < 1_800, "messages that cannot fit were read");
        app.close().await;
    }
}

/// Executes `sql` in a write transaction.
async fn execute(app: &EngineTest, sql: String) {
    let written: Result<(), DbErr> = app
        .db
        .write(move |tx| Box::pin(async move { tx.execute_unprepared(&sql).await.map(|_| ()) }))
        .await;
    written.unwrap();
}

/// Creates a conversation with `n_messages` messages of 100 tokens, written in batches: on a busy
/// machine a single statement for all of them exceeds the time limit of a statement.
async fn long_conversation(app: &EngineTest, n_messages: i64) -> ConversationId {
    const BATCH: i64 = 1_000;
    let id = app.another_conversation().await;
    let (author, now) = (app.user.membership, app.clock.now());
    let text = "Rain. ".repeat(90);
    let mut first = 1;
    while first <= n_messages {
        let last = n_messages.min(first + BATCH - 1);
        let sql = format!(
            "WITH RECURSIVE n(seq) AS (SELECT {first} UNION ALL SELECT seq + 1 FROM n WHERE seq < {last}) \
             INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, \
             active_swipe, created_at, rev, token_count, metadata) \
             SELECT {id}, seq, {author}, 'user', '{text}', 'normal', 0, {now}, seq, 100, '{{}}' FROM n",
            now = now.0,
        );
        execute(app, sql).await;
        first = last + 1;
    }
    let update = format!(
        "UPDATE conversations SET last_seq = {n_messages}, last_user_seq = {n_messages} WHERE id = {id}"
    );
    execute(app, update).await;
    // Autovacuum would do this a minute later; the query plan depends on the statistics.
    execute(app, "ANALYZE messages".to_owned()).await;
    id
}

/// Returns the cost of building a prompt whose messages are not cached: its statements, the rows and
/// bytes of its history, and the time of the fastest of ten builds.
async fn cost_of_prompt(
    app: &EngineTest,
    id: ConversationId,
    take_statements: &impl Fn(&EngineTest) -> Vec<String>,
) -> (usize, usize, usize, Duration) {
    let ada = app.membership("Ada").await.id;
    let build = async || {
        // Has the effect of a change on another node: the cached messages are no longer used.
        execute(
            app,
            format!("UPDATE conversations SET rev = rev + 1 WHERE id = {id}"),
        )
        .await;
        let started = Instant::now();
        let preview = prompt_preview::load(app.engine.context(), id, (ada, Viewer::Server), None);
        let built = preview.await.unwrap().unwrap().1.unwrap();
        (built, started.elapsed())
    };
    build().await;
    take_statements(app);
    let (built, _) = build().await;
    // Excludes the engine's queries for due runs after each wake-up signal.
    let is_read = |it: &&String| it.contains("FROM \"messages\"");
    let n_statements = take_statements(app).iter().filter(is_read).count();
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let (_, took) = build().await;
        fastest = fastest.min(took);
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
    take_statements: impl Fn(&EngineTest) -> Vec<String>,
) {
    let app = EngineTest::builder(backend)
        .with_postgres_proxy()
        .open()
        .await;
    let short = long_conversation(&app, 100).await;
    let long = long_conversation(&app, 100_000).await;

    let (of_short, of_long) = (
        cost_of_prompt(&app, short, &take_statements).await,
        cost_of_prompt(&app, long, &take_statements).await,
    );

    println!(
        "{backend:?}: statements, rows, bytes, time: 100 messages {of_short:?}, 100 000 {of_long:?}"
    );
    assert!(of_short.0 > 0, "no statements were recorded");
    assert_eq!(
        (of_short.0, of_short.1, of_short.2),
        (of_long.0, of_long.1, of_long.2)
    );
    app.close_broken().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_prompt_of_100_000_messages_costs_what_one_of_100_costs() {
    let name = "prompt::on_sqlite_a_prompt_of_100_000_messages_costs_what_one_of_100_costs";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    a_long_conversation_costs_what_a_short_one_costs(TestBackend::Sqlite, |_| {
        statements.take_statements()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_prompt_of_100_000_messages_costs_what_one_of_100_costs() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    a_long_conversation_costs_what_a_short_one_costs(TestBackend::Postgres, |app| {
        app.postgres_proxy
            .as_ref()
            .expect("the test uses a proxy")
            .take_statements()
    })
    .await;
}
