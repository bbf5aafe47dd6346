//! Tests that a conversation whose row is locked does not delay other conversations.

use base::ids::ConversationId;

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;

/// Ids this far apart would share a lock if locks were chosen by the id modulo 256.
const DISTANCE: i64 = 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_whose_row_is_locked_delays_no_other() {
    if !TestBackend::Postgres.is_available() {
        return; // an SQLite transaction locks the whole file, not a row
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let other = app.another_conversation().await;
    let far = ConversationId(app.conversation.0 + DISTANCE);
    let mut facts = app.facts().await;
    let moved = format!("UPDATE conversations SET id = {far} WHERE id = {other}");
    facts.execute(&moved).await;
    let row_lock = format!(
        "BEGIN; SELECT 1 FROM conversations WHERE id = {} FOR UPDATE",
        app.conversation
    );
    facts.execute(&row_lock).await;
    let engine = app.engine.clone();
    let here = app.user_at_node(&engine);
    let waits = here.post("Hello?");
    tokio::pin!(waits);

    let elsewhere = app.user_in_conversation(&engine, far);
    let posted = tokio::select! {
        biased;
        _ = &mut waits => panic!("the message was posted although the row is locked"),
        posted = elsewhere.post("Hi.") => posted,
    };

    assert_eq!(posted.message.conversation_id, far);
    facts.execute("ROLLBACK").await;
    (&mut waits).await;
    app.settle().await;
    let context = engine.context().clone();
    app.until("no lock is left", async |_| context.n_step_locks() == 0)
        .await;
    app.close_without_events().await;
}
