//! Tests deadlocks: the transaction that the database aborts is repeated, and locks are acquired in
//! one order so that this is rare.

use troupe::characters::character;
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::spaces::{lifecycle, roster_changes};

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;

/// SQLite has one writer.
fn no_server() -> bool {
    !TestBackend::Postgres.is_available()
}

/// The end of a run holds its conversation and waits for the run's row; another transaction holds
/// that row and waits for the conversation, with a longer deadlock timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_aborted_by_a_deadlock_is_repeated() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let gate = app.upstream.gate();
    app.upstream.always(
        ResponseScript::stream()
            .role()
            .text("Hello.")
            .finish("stop")
            .usage(7, 1)
            .done()
            .held_at(&gate),
    );
    app.user.post("Hi.").await;
    app.upstream.wait_for_requests(1).await;
    let mut other = app.facts().await;
    let mut facts = app.facts().await;

    other.execute("SET deadlock_timeout = '60s'; BEGIN").await;
    other
        .execute(&format!(
            "UPDATE conversation_runs SET waiting_for = NULL WHERE conversation_id = {}",
            app.conversation
        ))
        .await;
    gate.open();
    poll::until("the step waits for the run's row", async || {
        let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
        (!waiting.is_empty()).then_some(())
    })
    .await;
    other
        .execute(&format!(
            "UPDATE conversations SET title = 'Held' WHERE id = {}; COMMIT",
            app.conversation
        ))
        .await;
    app.settle().await;

    assert_eq!(app.answers().await, ["Hello."]);
    assert_eq!(
        app.tokens_used().await,
        8,
        "the tokens were not charged once"
    );
    app.close().await;
}

/// Deleting a conversation locks it and then writes to its space, which keeps the tokens. Another
/// transaction does this here while the space is deleted. If the deletion locked the space first, the
/// two would deadlock, and the other transaction would be aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_of_a_space_waits_for_its_conversations_before_it_locks_the_space() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let mut other = app.facts().await;
    let mut facts = app.facts().await;

    other.execute(&format!(
        "SET deadlock_timeout = '100ms'; BEGIN; UPDATE conversations SET title = 'Held' WHERE id = {}",
        app.conversation
    ))
    .await;
    let (db, space) = (app.db.clone(), app.space);
    let deletion = tokio::spawn(async move { lifecycle::delete(&db, space).await });
    poll::until("the deletion waits for the conversation", async || {
        let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
        (!waiting.is_empty()).then_some(())
    })
    .await;
    other
        .execute(&format!(
            "UPDATE spaces SET unattributed_tokens = 1 WHERE id = {}; COMMIT",
            app.space
        ))
        .await;

    assert!(
        deletion
            .await
            .expect("the deletion panicked")
            .expect("the deletion failed")
    );
    app.close_without_events().await;
}

/// Another transaction locks the space first, and then a member.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_card_waits_for_its_spaces_before_it_locks_their_members() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let mut other = app.facts().await;
    let mut facts = app.facts().await;
    let ada = app.membership("Ada").await;
    let character = ada.character_id.expect("a membership of a character");
    let card = character::find_active(app.db.reader(), character).await;
    let card = card.expect("the query failed").expect("the card exists");

    other.execute(&format!(
        "SET deadlock_timeout = '100ms'; BEGIN; UPDATE spaces SET unattributed_tokens = 1 WHERE id = {}",
        app.space
    ))
    .await;
    let db = app.db.clone();
    let change =
        tokio::spawn(async move { roster_changes::update_character_display(&db, &card).await });
    poll::until("the change waits for the space", async || {
        let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
        (!waiting.is_empty()).then_some(())
    })
    .await;
    other
        .execute(&format!(
            "SELECT id FROM space_memberships WHERE id = {} FOR KEY SHARE; COMMIT",
            ada.id
        ))
        .await;

    let changed = change.await.expect("the change panicked");
    assert_eq!(changed.expect("the change failed").len(), 1);
    app.close_without_events().await;
}

/// Another transaction locks the conversation, requests to learn from it, and changes its tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_waits_for_the_conversations_before_it_deletes_their_tasks() {
    if no_server() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres).open().await;
    let mut other = app.facts().await;
    let mut facts = app.facts().await;
    other.execute("SET deadlock_timeout = '100ms'").await;
    for scope in [
        DeletionScope::All,
        DeletionScope::Conversation(app.conversation),
    ] {
        app.user.post("My dog is called Pixel.").await;
        app.settle().await;

        other
            .execute(&format!(
                "BEGIN; UPDATE conversations SET title = 'Held' WHERE id = {}",
                app.conversation
            ))
            .await;
        let (db, space, now) = (app.db.clone(), app.space, app.clock.now());
        let forgetting =
            tokio::spawn(async move { memory_deletion::delete(&db, space, scope, now).await });
        poll::until("forgetting waits for the conversation", async || {
            let waiting = facts.rows("SELECT '1' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await;
            (!waiting.is_empty()).then_some(())
        })
        .await;
        other
            .execute(
                "INSERT INTO memory_tasks (kind, space_id, conversation_id, from_seq, to_seq, status, run_after, created_at) \
                 SELECT kind, space_id, conversation_id, 1, 2, status, run_after, created_at FROM memory_tasks; \
                 UPDATE memory_tasks SET run_after = 0; COMMIT",
            )
            .await;

        let forgotten = forgetting.await.expect("forgetting panicked");
        forgotten.expect("forgetting failed");
        let n_tasks = facts.number("SELECT CAST(count(*) AS TEXT) FROM memory_tasks");
        assert_eq!(n_tasks.await, 0, "{scope:?}");
        assert_eq!(app.row().await.unlearned_from_seq, None);
    }
    app.close_without_events().await;
}
