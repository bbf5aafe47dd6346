//! Tests that a response shows one committed state, whatever changes while it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::ids::ConversationId;
use sea_orm::{DbErr, EntityTrait};
use serde_json::{Value, json};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::conversation;
use troupe::db::connect::Db;
use troupe::rounds::round;
use troupe::runs::reading::views::{ConversationState, RoundDocument};
use troupe::spaces::space::InputPolicy;

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::http_client::id;
use crate::support::test_space::TestSpace;

/// How many times the test posts, pauses, resumes and stops during the reads.
const ROUNDS_OF_CHANGES: usize = 40;
const READERS: usize = 4;

/// Returns why a document shows a state that was never committed, if it does.
fn inconsistency(document: &Value) -> Option<String> {
    let state = document["state"].as_str().unwrap_or_default();
    let round = &document["round"];
    let is_paused = round["state"] == "paused";
    let queued_slot = &document["queued_run"]["round_id"];
    let fault = match () {
        () if state == "idle" && !round.is_null() => "`idle` with an active round",
        () if is_paused && !queued_slot.is_null() && *queued_slot == round["id"] => {
            "a paused round with its queued run"
        }
        () if state == "paused" && !is_paused => "`paused` without a paused round",
        () => return None,
    };
    Some(format!("{fault}: {document}"))
}

/// Reads as fast as possible until `done`; returns the number of responses and the inconsistent
/// ones.
async fn poll(
    done: Arc<AtomicBool>,
    mut read: impl AsyncFnMut() -> Vec<Value>,
) -> (usize, Vec<String>) {
    let mut n_responses = 0;
    let mut faults = Vec::new();
    while !done.load(Ordering::Relaxed) {
        for document in read().await {
            n_responses += 1;
            faults.extend(inconsistency(&document));
        }
    }
    (n_responses, faults)
}

async fn title_of(tx: &sea_orm::DatabaseTransaction, id: ConversationId) -> Result<String, DbErr> {
    let row = conversation::Entity::find_by_id(id).one(tx).await?;
    Ok(row.map(|it| it.title).unwrap_or_default())
}

async fn rename(db: &Db, id: ConversationId, title: &str) {
    let renamed = conversation::update(db, id, Some(title.to_owned()), None).await;
    renamed
        .expect("the query failed")
        .expect("the conversation is missing");
}

on_both! {
    async fn a_commit_between_two_reads_of_one_transaction_is_not_seen_by_the_second(backend) {
        let app = EngineTest::builder(backend).open().await;
        let (db, id) = (app.db.clone(), app.conversation);
        rename(&db, id, "before").await;

        let writer = db.clone();
        let read = db.read(move |tx| {
            Box::pin(async move {
                let first = title_of(tx, id).await?;
                rename(&writer, id, "after").await;
                Ok::<_, DbErr>((first, title_of(tx, id).await?))
            })
        });
        let seen = read.await.expect("the query failed");
        let next = db.read(move |tx| Box::pin(title_of(tx, id))).await;

        assert_eq!(seen, ("before".to_owned(), "before".to_owned()));
        assert_eq!(next, Ok("after".to_owned()));
        app.close().await;
    }

    async fn no_response_for_a_conversation_or_a_list_mixes_two_states(backend) {
        let settings = json!({"during_generation_user_input_policy": "restart", "replies_per_turn": "activated", "reply_order": "list"});
        let test_space = TestSpace::open(backend, settings, &["Ada", "Bea"]).await;
        let done = Arc::new(AtomicBool::new(false));
        let (conversation, space) = (test_space.conversation, id(&test_space.space));
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                let person = test_space.person.with_base(test_space.person.base());
                tokio::spawn(poll(done.clone(), async move || match n % 2 {
                    0 => vec![person.conversation(conversation).await],
                    _ => {
                        let (status, list) = person.get(&format!("/api/spaces/{space}/conversations")).await;
                        assert_eq!(status, 200, "{list}");
                        list["data"].as_array().cloned().unwrap_or_default()
                    }
                }))
            })
            .collect();

        for n in 0..ROUNDS_OF_CHANGES {
            test_space.post(&format!("{n}")).await;
            test_space.person.pause(conversation).await;
            test_space.person.resume(conversation).await;
            test_space.person.stop(conversation).await;
        }
        done.store(true, Ordering::Relaxed);
        let mut n_responses = 0;
        for reader in readers {
            let (n, faults) = reader.await.expect("the reader panicked");
            n_responses += n;
            assert!(faults.is_empty(), "{} inconsistent, e.g. {}", faults.len(), faults[0]);
        }

        assert!(n_responses > ROUNDS_OF_CHANGES, "{n_responses}");
        test_space.settle().await;
    }

    async fn no_snapshot_mixes_two_states(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.during_generation_user_input_policy = InputPolicy::Restart)
            .open()
            .await;
        let done = Arc::new(AtomicBool::new(false));
        let (engine, conversation) = (app.engine.clone(), app.conversation);
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(poll(done.clone(), async move || {
                    let found = engine.snapshot(conversation, Viewer::Server, None).await;
                    let found = found.expect("the query failed").expect("no conversation");
                    vec![serde_json::to_value(&found).expect("the snapshot is not JSON")]
                }))
            })
            .collect();

        for n in 0..ROUNDS_OF_CHANGES {
            app.user.post(&format!("{n}")).await;
            let _ = app.engine.pause(conversation).await;
            let _ = app.engine.resume(conversation).await;
            let _ = app.engine.stop(conversation, false).await;
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            let (_, faults) = reader.await.expect("the reader panicked");
            assert!(faults.is_empty(), "{} inconsistent, e.g. {}", faults.len(), faults[0]);
        }

        app.until("nothing runs", async |app| {
            let runtime = app.runtime().await;
            runtime.running.is_none() && runtime.queued.is_none()
        })
        .await;
        app.wait_until_idle().await;
        // The recorder is not drained here and would overflow its queue.
        app.close_without_events().await;
    }
}

/// The table of rounds is locked during the read: the runs are read before a stop commits, the
/// round after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_between_the_reads_of_a_snapshot_is_visible_completely_or_not_at_all() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let app = EngineTest::builder(TestBackend::Postgres)
        .rules(|it| it.user_turn_debounce_ms = 60_000)
        .open()
        .await;
    app.user.post("Hi.").await;
    let (engine, conversation) = (app.engine.clone(), app.conversation);
    assert_eq!(app.runtime().await.state(), ConversationState::Queued);
    let mut other = app.facts().await;
    other.execute("BEGIN").await;
    other
        .execute("LOCK TABLE conversation_rounds IN ACCESS EXCLUSIVE MODE")
        .await;

    let reading =
        tokio::spawn(async move { engine.snapshot(conversation, Viewer::Server, None).await });
    let mut watch = app.facts().await;
    crate::support::poll::until("the reader waits for the lock", async || {
        let waiting = "SELECT CAST(count(*) AS TEXT) FROM pg_locks WHERE NOT granted AND relation = 'conversation_rounds'::regclass";
        (watch.number(waiting).await > 0).then_some(())
    })
    .await;
    other
        .execute("UPDATE conversation_runs SET status = 'canceled', finished_at = created_at")
        .await;
    other
        .execute("UPDATE conversation_rounds SET state = 'paused'")
        .await;
    other.execute("COMMIT").await;
    let found = reading.await.expect("the reader panicked");
    let found = found
        .expect("the query failed")
        .expect("the snapshot is missing");

    let state = found.round.as_ref().and_then(|it| match it {
        RoundDocument::Whole(it) => Some(it.state),
        _ => None,
    });
    let is_paused = state == Some(round::RoundState::Paused);
    assert_eq!(
        (found.queued_run.is_some(), is_paused, found.state),
        (true, false, ConversationState::Queued)
    );
    app.close_broken().await;
}
