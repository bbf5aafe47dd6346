//! Tests that a response shows one committed state, whatever changes while it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::ids::ConversationId;
use sea_orm::{DbErr, EntityTrait};
use serde_json::{Value, json};
use troupe::conversations::conversation;
use troupe::db::connect::Db;
use troupe::rounds::round;
use troupe::runs::reading::views::ConversationState;
use troupe::spaces::space::InputPolicy;

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::http_client::id;
use crate::support::test_space::TestSpace;

/// How many times the test posts, pauses, resumes and stops during the reads.
const ROUNDS_OF_CHANGES: usize = 40;
const READERS: usize = 4;

/// Why a document shows a state that was never committed; `None` if it is consistent.
fn torn(document: &Value) -> Option<String> {
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
    let mut n_answers = 0;
    let mut faults = Vec::new();
    while !done.load(Ordering::Relaxed) {
        for document in read().await {
            n_answers += 1;
            faults.extend(torn(&document));
        }
    }
    (n_answers, faults)
}

async fn title_of(tx: &sea_orm::DatabaseTransaction, id: ConversationId) -> Result<String, DbErr> {
    let row = conversation::Entity::find_by_id(id).one(tx).await?;
    Ok(row.map(|it| it.title).unwrap_or_default())
}

async fn rename(db: &Db, id: ConversationId, title: &str) {
    let renamed = conversation::update(db, id, Some(title.to_owned()), None).await;
    renamed
        .expect("the database answers")
        .expect("a conversation");
}

on_both! {
    async fn a_commit_between_two_reads_of_one_transaction_is_not_seen_by_the_second(backend) {
        let room = EngineTest::builder(backend).open().await;
        let (db, id) = (room.db.clone(), room.conversation);
        rename(&db, id, "before").await;

        let writer = db.clone();
        let read = db.read(move |tx| {
            Box::pin(async move {
                let first = title_of(tx, id).await?;
                rename(&writer, id, "after").await;
                Ok::<_, DbErr>((first, title_of(tx, id).await?))
            })
        });
        let seen = read.await.expect("the database answers");
        let next = db.read(move |tx| Box::pin(title_of(tx, id))).await;

        assert_eq!(seen, ("before".to_owned(), "before".to_owned()));
        assert_eq!(next, Ok("after".to_owned()));
        room.close().await;
    }

    async fn no_conversation_and_no_list_shows_two_states_in_one_answer(backend) {
        let settings = json!({"during_generation_user_input_policy": "restart", "replies_per_turn": "activated", "reply_order": "list"});
        let room = TestSpace::open(backend, settings, &["Ada", "Bea"]).await;
        let done = Arc::new(AtomicBool::new(false));
        let (conversation, space) = (room.conversation, id(&room.space));
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                let person = room.person.with_base(room.person.base());
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
            room.post(&format!("{n}")).await;
            room.person.pause(conversation).await;
            room.person.resume(conversation).await;
            room.person.stop(conversation).await;
        }
        done.store(true, Ordering::Relaxed);
        let mut n_answers = 0;
        for reader in readers {
            let (n, faults) = reader.await.expect("the reader ends");
            n_answers += n;
            assert!(faults.is_empty(), "{} torn, e.g. {}", faults.len(), faults[0]);
        }

        assert!(n_answers > ROUNDS_OF_CHANGES, "{n_answers}");
        room.settle().await;
    }

    async fn no_snapshot_shows_two_states_at_once(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.during_generation_user_input_policy = InputPolicy::Restart)
            .open()
            .await;
        let done = Arc::new(AtomicBool::new(false));
        let (engine, conversation) = (room.engine.clone(), room.conversation);
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(poll(done.clone(), async move || {
                    let found = engine.snapshot(conversation, None).await;
                    let found = found.expect("the database answers").expect("a conversation");
                    vec![serde_json::to_value(&found).expect("a document")]
                }))
            })
            .collect();

        for n in 0..ROUNDS_OF_CHANGES {
            room.user.post(&format!("{n}")).await;
            let _ = room.engine.pause(conversation).await;
            let _ = room.engine.resume(conversation).await;
            let _ = room.engine.stop(conversation, false).await;
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            let (_, faults) = reader.await.expect("the reader ends");
            assert!(faults.is_empty(), "{} torn, e.g. {}", faults.len(), faults[0]);
        }

        room.until("nothing runs", async |room| {
            let runtime = room.runtime().await;
            runtime.running.is_none() && runtime.queued.is_none()
        })
        .await;
        room.wait_until_idle().await;
        // The recorder is not drained here and would overflow its queue.
        room.close_without_events().await;
    }
}

/// The table of rounds is locked during the read: the runs are read before a stop commits, the
/// round after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_between_the_reads_of_one_snapshot_is_seen_whole_or_not_at_all() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = EngineTest::builder(TestBackend::Postgres)
        .rules(|it| it.user_turn_debounce_ms = 60_000)
        .open()
        .await;
    room.user.post("Hi.").await;
    let (engine, conversation) = (room.engine.clone(), room.conversation);
    assert_eq!(room.runtime().await.state(), ConversationState::Queued);
    let mut other = room.facts().await;
    other.execute("BEGIN").await;
    other
        .execute("LOCK TABLE conversation_rounds IN ACCESS EXCLUSIVE MODE")
        .await;

    let reading = tokio::spawn(async move { engine.snapshot(conversation, None).await });
    let mut watch = room.facts().await;
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
    let found = reading.await.expect("the reader ends");
    let found = found.expect("the database answers").expect("a snapshot");

    let is_paused = found.round.as_ref().map(|it| it.state) == Some(round::RoundState::Paused);
    assert_eq!(
        (found.queued_run.is_some(), is_paused, found.state),
        (true, false, ConversationState::Queued)
    );
    room.close_broken().await;
}
