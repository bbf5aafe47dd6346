//! Tests that a long branch needs as many statements as a short one.
#![allow(clippy::print_stdout)] // the figures are read in the test output

use sea_orm::{ConnectionTrait, DbErr};
use troupe::conversations::message;

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;
use crate::support::statements::Statements;

async fn branch(app: &EngineTest, at: &message::Model) {
    let made = app.engine.branch(app.conversation, at.id, String::new());
    made.await.expect("the branch was not created");
}

/// Fills the conversation with this many messages; every thousandth has a second swipe.
async fn fill(app: &EngineTest, n: i64) {
    let (conversation, membership) = (app.conversation, app.user.membership);
    let series = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
         INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
         SELECT {conversation}, i, {membership}, 'user', 'Line number ' || CAST(i AS TEXT) || ', and a few more words, as people say them.', 'normal', 0, 0, i, 12, '{{}}' FROM n"
    );
    let texts = format!(
        "INSERT INTO message_swipes (message_id, position, content, metadata) \
         SELECT id, 0, content, '{{}}' FROM messages WHERE conversation_id = {conversation} AND seq % 1000 = 0"
    );
    let row = format!(
        "UPDATE conversations SET last_seq = {n}, last_user_seq = {n}, rev = {n} WHERE id = {conversation}"
    );
    execute_in_one_transaction(app, vec![series, texts, row]).await;
}

async fn execute_in_one_transaction(app: &EngineTest, statements: Vec<String>) {
    let done: Result<(), DbErr> = app
        .db
        .write(|tx| {
            Box::pin(async move {
                for sql in statements {
                    tx.execute_unprepared(&sql).await?;
                }
                Ok(())
            })
        })
        .await;
    done.expect("the transaction failed");
}

/// Adds a part for every three messages, and a running summary.
async fn summarize(app: &EngineTest, n: i64) {
    let conversation = app.conversation;
    let columns = "conversation_id, level, version, status, from_seq, to_seq, content, token_count, origin, created_at";
    let parts = format!(
        "INSERT INTO conversation_summaries ({columns}) \
         SELECT conversation_id, 0, 1, 'current', seq - 2, seq, 'They met.', 3, 'model', 0 FROM messages \
         WHERE conversation_id = {conversation} AND seq % 3 = 0"
    );
    let running = format!(
        "INSERT INTO conversation_summaries ({columns}) \
         VALUES ({conversation}, 1, 1, 'current', 1, {n}, 'They met.', 3, 'model', 0)"
    );
    let row = format!("UPDATE conversations SET summary_goal_seq = {n} WHERE id = {conversation}");
    execute_in_one_transaction(app, vec![parts, running, row]).await;
}

/// Branches a short and a long conversation, without summaries and with them.
async fn costs(backend: TestBackend, take: impl Fn(&EngineTest) -> Vec<String>) {
    // One of them copies the reactions, one the pictures, and one lets the replies answer the copies.
    assert_eq!(count_statements(backend, false, &take).await, 15);
    assert_eq!(count_statements(backend, true, &take).await, 20);
}

/// Returns the number of statements of a branch.
async fn count_statements(
    backend: TestBackend,
    is_summarized: bool,
    take: impl Fn(&EngineTest) -> Vec<String>,
) -> usize {
    let mut costs = Vec::new();
    // The first iteration warms up: it opens connections and prepares statements.
    for n in [3, 3, 150] {
        let app = EngineTest::builder(backend)
            .not_started()
            .with_postgres_proxy()
            .open()
            .await;
        fill(&app, n).await;
        if is_summarized {
            summarize(&app, n).await;
        }
        let last = app.messages().await.pop().unwrap();
        take(&app);

        branch(&app, &last).await;

        let mut statements = take(&app);
        let excluded = ["BEGIN", "COMMIT", "PRAGMA"];
        statements.retain(|it| !it.is_empty() && !excluded.iter().any(|word| it.contains(word)));
        println!("{backend:?}, {n} messages: {statements:#?}");
        costs.push(statements);
        app.close_without_events().await;
    }
    assert_eq!(
        costs[1], costs[2],
        "a long branch needs other statements than a short one"
    );
    costs[2].len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_long_branch_needs_no_more_statements_than_a_short_one() {
    let name =
        "runs::branching_cost::on_sqlite_a_long_branch_needs_no_more_statements_than_a_short_one";
    if let Some(statements) = Statements::alone(name) {
        costs(TestBackend::Sqlite, |_| statements.take_statements()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_long_branch_needs_no_more_statements_than_a_short_one() {
    if TestBackend::Postgres.is_available() {
        costs(TestBackend::Postgres, |app| {
            app.postgres_proxy
                .as_ref()
                .expect("the proxy was not started")
                .take_statements()
        })
        .await;
    }
}
