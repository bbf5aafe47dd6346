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
    let room = EngineTest::builder(TestBackend::Postgres).open().await;
    let other = room.another_conversation().await;
    let far = ConversationId(room.conversation.0 + DISTANCE);
    let mut facts = room.facts().await;
    let moved = format!("UPDATE conversations SET id = {far} WHERE id = {other}");
    facts.execute(&moved).await;
    let row_lock = format!(
        "BEGIN; SELECT 1 FROM conversations WHERE id = {} FOR UPDATE",
        room.conversation
    );
    facts.execute(&row_lock).await;
    let engine = room.engine.clone();
    let here = room.user_at_node(&engine);
    let waits = here.post("Hello?");
    tokio::pin!(waits);

    let elsewhere = room.user_in_conversation(&engine, far);
    let posted = tokio::select! {
        biased;
        _ = &mut waits => panic!("it is posted although the row is locked"),
        posted = elsewhere.post("Hi.") => posted,
    };

    assert_eq!(posted.message.conversation_id, far);
    facts.execute("ROLLBACK").await;
    (&mut waits).await;
    room.settle().await;
    let context = engine.context().clone();
    room.until("no lock is left", async |_| context.n_step_locks() == 0)
        .await;
    room.close_without_events().await;
}
