//! Tests deadlocks: the transaction that the database aborts is repeated, and locks are acquired in
//! one order so that this is rare.

use troupe::spaces::lifecycle;

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;

/// SQLite has one writer.
fn no_server() -> bool {
    !TestBackend::Postgres.is_available()
}

/// The end of a run holds its conversation and waits for the space; another transaction holds
/// the space and waits for the conversation, with a longer deadlock timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_undone_by_a_deadlock_is_taken_again() {
    if no_server() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres).open().await;
    let gate = room.upstream.gate();
    room.upstream.always(
        ResponseScript::stream()
            .role()
            .text("Hello.")
            .finish("stop")
            .usage(7, 1)
            .done()
            .held_at(&gate),
    );
    room.user.post("Hi.").await;
    room.upstream.wait_for_requests(1).await;
    let mut other = room.facts().await;
    let mut facts = room.facts().await;

    other.execute("SET deadlock_timeout = '60s'; BEGIN").await;
    other
        .execute(&format!(
            "UPDATE spaces SET name = 'Held' WHERE id = {}",
            room.space
        ))
        .await;
    gate.open();
    poll::until("the step waits for the space", async || {
        let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
        (!waiting.is_empty()).then_some(())
    })
    .await;
    other
        .execute(&format!(
            "UPDATE conversations SET title = 'Held' WHERE id = {}; COMMIT",
            room.conversation
        ))
        .await;
    room.settle().await;

    assert_eq!(room.answers().await, ["Hello."]);
    assert_eq!(room.tokens_used().await, 8, "spent once");
    room.close().await;
}

/// A step locks its conversation and then writes to the space. Here another transaction does
/// the same during a deletion, and would be the first to be aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_of_a_space_waits_for_its_conversations_before_it_locks_the_space() {
    if no_server() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres).open().await;
    let mut step = room.facts().await;
    let mut facts = room.facts().await;

    step.execute(&format!(
        "SET deadlock_timeout = '100ms'; BEGIN; UPDATE conversations SET title = 'Held' WHERE id = {}",
        room.conversation
    ))
    .await;
    let (db, space) = (room.db.clone(), room.space);
    let deletion = tokio::spawn(async move { lifecycle::delete(&db, space).await });
    poll::until("the deletion waits for the conversation", async || {
        let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
        (!waiting.is_empty()).then_some(())
    })
    .await;
    step.execute(&format!(
        "UPDATE spaces SET tokens_used = 1 WHERE id = {}; COMMIT",
        room.space
    ))
    .await;

    assert!(deletion.await.expect("it ended").expect("it was deleted"));
    room.close_without_events().await;
}
