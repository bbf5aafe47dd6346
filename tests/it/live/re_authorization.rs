//! A subscriber that subscribes again and is rejected: a temporary error keeps the existing
//! subscription, a permanent one ends it.

use realtime::event::Envelope;
use realtime::topic::Topic;
use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, Note, code};
use crate::support::backends::TestBackend;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::expect;
use crate::support::poll;
use crate::support::ws_client::WsClient;

fn publish_text(stage: &LiveFixture, text: &str) {
    stage.publish(&Note { text: text.into() });
}

fn note_texts(ear: &WsClient) -> Vec<String> {
    let heard = ear.log().into_iter().filter(|it| it["type"] == "note");
    heard
        .map(|it| it["text"].as_str().expect("a note has a text").to_owned())
        .collect()
}

async fn wait_for_note(ear: &WsClient, text: &str) {
    ear.wait_for("the note", |it| it["text"] == text).await;
}

/// A query that waits for a lock.
const WAITING: &str = "FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";

async fn wait_for_blocked_query(facts: &mut DatabaseFacts) {
    let sql = format!("SELECT '1' {WAITING}");
    poll::until("somebody waits for the lock", async || {
        (!facts.rows(&sql).await.is_empty()).then_some(())
    })
    .await;
}

fn is_present(stage: &LiveFixture) -> bool {
    let presence = &stage.house.app.presence;
    !presence.members(stage.conversation).is_empty()
}

#[tokio::test]
async fn a_temporary_rejection_keeps_the_subscription() {
    for backend in TestBackend::all() {
        let stage = LiveFixture::open_on(backend, &[], |_| {}).await;
        let ear = stage.bobs_ws_client().await;
        let mut facts = DatabaseFacts::open(&stage.house.database).await;

        facts
            .execute("ALTER TABLE space_memberships RENAME TO away")
            .await;
        let refused = ear.subscribe(stage.conversation.0, None).await;
        publish_text(&stage, "meanwhile");
        wait_for_note(&ear, "meanwhile").await;
        facts
            .execute("ALTER TABLE away RENAME TO space_memberships")
            .await;

        assert_eq!(code(&refused), "internal");
        assert!(is_present(&stage));
        // Durable events still arrive, too.
        stage.post(&stage.ann, "Back again.").await;
        let is_said = |it: &Value| it["message"]["content"] == "Back again.";
        ear.wait_for("the message", is_said).await;
        assert!(ear.log().iter().all(|it| it["type"] != "resync"));
        stage.close().await;
    }
}

#[tokio::test]
async fn events_before_the_rejection_arrive_after_it() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let stage = LiveFixture::open_on(TestBackend::Postgres, &[], |_| {}).await;
    let ear = stage.bobs_ws_client().await;
    let mut holder = DatabaseFacts::open(&stage.house.database).await;
    let mut facts = DatabaseFacts::open(&stage.house.database).await;

    holder.execute("BEGIN; LOCK TABLE space_memberships").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": stage.conversation});
    ear.send_text(&again.to_string()).await;
    wait_for_blocked_query(&mut facts).await;
    publish_text(&stage, "one");
    publish_text(&stage, "two");
    let cut = format!("SELECT CAST(pg_terminate_backend(pid) AS text) {WAITING}");
    facts.rows(&cut).await;
    let refused = ear.wait_for("the answer", |it| it["re"] == 77).await;
    holder.execute("COMMIT").await;
    publish_text(&stage, "three");

    wait_for_note(&ear, "three").await;
    assert_eq!(code(&refused), "internal");
    assert_eq!(note_texts(&ear), ["one", "two", "three"]);
    let place = |fits: &dyn Fn(&Value) -> bool| ear.log().iter().position(fits);
    let answer = place(&|it| it["re"] == 77);
    assert!(answer < place(&|it| it["text"] == "one"));
    stage.close().await;
}

#[tokio::test]
async fn a_member_removed_during_the_snapshot_gets_none() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let stage = LiveFixture::open_on(TestBackend::Postgres, &[], |_| {}).await;
    stage.post(&stage.ann, "Between us.").await;
    let ear = stage.bobs_ws_client().await;
    let mut holder = DatabaseFacts::open(&stage.house.database).await;
    let mut facts = DatabaseFacts::open(&stage.house.database).await;

    holder.execute("BEGIN; LOCK TABLE message_swipes").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": stage.conversation});
    ear.send_text(&again.to_string()).await;
    wait_for_blocked_query(&mut facts).await;
    let seat = format!("/api/memberships/{}", stage.bobs_seat);
    expect(204, stage.ann.delete(&seat).await);
    ear.wait_for("the news", |it| it["type"] == "unsubscribed")
        .await;
    holder.execute("COMMIT").await;

    let answer = ear.wait_for("the answer", |it| it["re"] == 77).await;
    assert_eq!(code(&answer), "not_found");
    // The socket stays open and gets answers.
    assert_eq!(ear.call(json!({"op": "ping"})).await["ok"], true);
    let answers = ear.log().into_iter().filter(|it| it["re"] == 77);
    assert_eq!(answers.count(), 1);
    stage.close().await;
}

#[tokio::test]
async fn a_reset_client_with_a_temporary_rejection_is_present_without_events() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;
    let mut facts = DatabaseFacts::open(&stage.house.database).await;
    let topic = Topic::Conversation(stage.conversation);
    let far = Note { text: "far".into() };
    let far = Envelope::durable(topic, &far, 1_000);
    stage.house.app.hub.publish(far);
    ear.wait_for("a resync", |it| it["type"] == "resync").await;

    facts
        .execute("ALTER TABLE space_memberships RENAME TO away")
        .await;
    let refused = ear.subscribe(stage.conversation.0, None).await;
    publish_text(&stage, "unheard");
    facts
        .execute("ALTER TABLE away RENAME TO space_memberships")
        .await;
    let again = ear.subscribe(stage.conversation.0, None).await;
    publish_text(&stage, "heard");

    wait_for_note(&ear, "heard").await;
    assert_eq!(code(&refused), "internal");
    assert_eq!(again["ok"], true);
    assert_eq!(note_texts(&ear), ["heard"]);
    stage.close().await;
}

#[tokio::test]
async fn a_permanent_rejection_ends_the_subscription() {
    for backend in TestBackend::all() {
        let stage = LiveFixture::open_on(backend, &[], |_| {}).await;
        let ear = stage.bobs_ws_client().await;
        let mut facts = DatabaseFacts::open(&stage.house.database).await;

        // Directly in the database, so that no event announces it before the answer.
        let seat = format!(
            "UPDATE space_memberships SET status = 'removed' WHERE id = {}",
            stage.bobs_seat
        );
        facts.execute(&seat).await;
        let refused = ear.subscribe(stage.conversation.0, None).await;
        publish_text(&stage, "secret");

        ear.call(json!({"op": "ping"})).await;
        assert_eq!(code(&refused), "not_found");
        assert_eq!(note_texts(&ear), [""; 0]);
        assert!(!is_present(&stage));
        stage.close().await;
    }
}
