//! A subscriber that subscribes again and is rejected: a temporary error keeps the existing
//! subscription, a permanent one ends it.

use realtime::envelope::Envelope;
use realtime::topic::Topic;
use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, Note, code};
use crate::support::backends::TestBackend;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::expect;
use crate::support::poll;
use crate::support::ws_client::WsClient;

fn publish_text(fixture: &LiveFixture, text: &str) {
    fixture.publish(&Note { text: text.into() });
}

fn note_texts(client: &WsClient) -> Vec<String> {
    let notes = client.log().into_iter().filter(|it| it["type"] == "note");
    notes
        .map(|it| {
            it["text"]
                .as_str()
                .expect("the note has no text")
                .to_owned()
        })
        .collect()
}

async fn wait_for_note(client: &WsClient, text: &str) {
    client.wait_for("the note", |it| it["text"] == text).await;
}

/// A query that waits for a lock.
const WAITING: &str = "FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";

async fn wait_for_blocked_query(facts: &mut DatabaseFacts) {
    let sql = format!("SELECT '1' {WAITING}");
    poll::until("a query waits for the lock", async || {
        (!facts.rows(&sql).await.is_empty()).then_some(())
    })
    .await;
}

fn is_present(fixture: &LiveFixture) -> bool {
    let presence = &fixture.house.app.presence;
    !presence.members(fixture.conversation).is_empty()
}

#[tokio::test]
async fn a_temporary_rejection_keeps_the_subscription() {
    for backend in TestBackend::all() {
        let fixture = LiveFixture::open_on(backend, &[], |_| {}).await;
        let client = fixture.bobs_ws_client().await;
        let mut facts = DatabaseFacts::open(&fixture.house.database).await;

        facts
            .execute("ALTER TABLE space_memberships RENAME TO away")
            .await;
        let refused = client.subscribe(fixture.conversation.0, None).await;
        publish_text(&fixture, "meanwhile");
        wait_for_note(&client, "meanwhile").await;
        facts
            .execute("ALTER TABLE away RENAME TO space_memberships")
            .await;

        assert_eq!(code(&refused), "internal");
        assert!(is_present(&fixture));
        // Durable events still arrive, too.
        fixture.post(&fixture.ann, "Back again.").await;
        let is_said = |it: &Value| it["message"]["content"] == "Back again.";
        client.wait_for("the message", is_said).await;
        assert!(client.log().iter().all(|it| it["type"] != "resync"));
        fixture.close().await;
    }
}

#[tokio::test]
async fn events_before_the_rejection_arrive_after_it() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = LiveFixture::open_on(TestBackend::Postgres, &[], |_| {}).await;
    let client = fixture.bobs_ws_client().await;
    let mut holder = DatabaseFacts::open(&fixture.house.database).await;
    let mut facts = DatabaseFacts::open(&fixture.house.database).await;

    holder.execute("BEGIN; LOCK TABLE space_memberships").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": fixture.conversation});
    client.send_text(&again.to_string()).await;
    wait_for_blocked_query(&mut facts).await;
    publish_text(&fixture, "one");
    publish_text(&fixture, "two");
    let cut = format!("SELECT CAST(pg_terminate_backend(pid) AS text) {WAITING}");
    facts.rows(&cut).await;
    let refused = client.wait_for("the answer", |it| it["re"] == 77).await;
    holder.execute("COMMIT").await;
    publish_text(&fixture, "three");

    wait_for_note(&client, "three").await;
    assert_eq!(code(&refused), "internal");
    assert_eq!(note_texts(&client), ["one", "two", "three"]);
    let position = |fits: &dyn Fn(&Value) -> bool| client.log().iter().position(fits);
    let answer = position(&|it| it["re"] == 77);
    assert!(answer < position(&|it| it["text"] == "one"));
    fixture.close().await;
}

#[tokio::test]
async fn a_member_removed_during_the_snapshot_gets_none() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = LiveFixture::open_on(TestBackend::Postgres, &[], |_| {}).await;
    fixture.post(&fixture.ann, "Between us.").await;
    let client = fixture.bobs_ws_client().await;
    let mut holder = DatabaseFacts::open(&fixture.house.database).await;
    let mut facts = DatabaseFacts::open(&fixture.house.database).await;

    holder.execute("BEGIN; LOCK TABLE message_swipes").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": fixture.conversation});
    client.send_text(&again.to_string()).await;
    wait_for_blocked_query(&mut facts).await;
    let path = format!("/api/memberships/{}", fixture.bobs_seat);
    expect(204, fixture.ann.delete(&path).await);
    client
        .wait_for("the event", |it| it["type"] == "unsubscribed")
        .await;
    holder.execute("COMMIT").await;

    let answer = client.wait_for("the answer", |it| it["re"] == 77).await;
    assert_eq!(code(&answer), "not_found");
    // The socket stays open and gets answers.
    assert_eq!(client.call(json!({"op": "ping"})).await["ok"], true);
    let answers = client.log().into_iter().filter(|it| it["re"] == 77);
    assert_eq!(answers.count(), 1);
    fixture.close().await;
}

#[tokio::test]
async fn an_admin_removed_during_the_snapshot_must_subscribe_again() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = LiveFixture::open_on(TestBackend::Postgres, &[], |_| {}).await;
    fixture.post(&fixture.ann, "Between us.").await;
    let path = format!("/api/admin/users/{}", fixture.bobs_id);
    expect(
        200,
        fixture.ann.patch(&path, json!({"role": "admin"})).await,
    );
    let client = fixture.bobs_ws_client().await;
    let mut holder = DatabaseFacts::open(&fixture.house.database).await;
    let mut facts = DatabaseFacts::open(&fixture.house.database).await;

    holder.execute("BEGIN; LOCK TABLE message_swipes").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": fixture.conversation});
    client.send_text(&again.to_string()).await;
    wait_for_blocked_query(&mut facts).await;
    let path = format!("/api/memberships/{}", fixture.bobs_seat);
    expect(204, fixture.ann.delete(&path).await);
    client
        .wait_for("a resync", |it| it["type"] == "resync")
        .await;
    holder.execute("COMMIT").await;

    let answer = client.wait_for("the answer", |it| it["re"] == 77).await;
    assert_eq!(code(&answer), "internal");
    let again = client.subscribe(fixture.conversation.0, None).await;
    assert_eq!(again["ok"], true);
    publish_text(&fixture, "public");
    wait_for_note(&client, "public").await;
    let answers = client.log().into_iter().filter(|it| it["re"] == 77);
    assert_eq!(answers.count(), 1);
    assert!(!is_present(&fixture));
    fixture.close().await;
}

#[tokio::test]
async fn a_reset_client_with_a_temporary_rejection_receives_no_events_until_it_resubscribes() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;
    let mut facts = DatabaseFacts::open(&fixture.house.database).await;
    let topic = Topic::Conversation(fixture.conversation);
    let far = Note { text: "far".into() };
    let far = Envelope::durable(topic, &far, 1_000);
    fixture.house.app.hub.publish(far);
    client
        .wait_for("a resync", |it| it["type"] == "resync")
        .await;

    facts
        .execute("ALTER TABLE space_memberships RENAME TO away")
        .await;
    let refused = client.subscribe(fixture.conversation.0, None).await;
    publish_text(&fixture, "unheard");
    facts
        .execute("ALTER TABLE away RENAME TO space_memberships")
        .await;
    let again = client.subscribe(fixture.conversation.0, None).await;
    publish_text(&fixture, "heard");

    wait_for_note(&client, "heard").await;
    assert_eq!(code(&refused), "internal");
    assert_eq!(again["ok"], true);
    assert_eq!(note_texts(&client), ["heard"]);
    fixture.close().await;
}

#[tokio::test]
async fn a_permanent_rejection_ends_the_subscription() {
    for backend in TestBackend::all() {
        let fixture = LiveFixture::open_on(backend, &[], |_| {}).await;
        let client = fixture.bobs_ws_client().await;
        let mut facts = DatabaseFacts::open(&fixture.house.database).await;

        // Directly in the database, so that no event announces it before the answer.
        let removal = format!(
            "UPDATE space_memberships SET status = 'removed' WHERE id = {}",
            fixture.bobs_seat
        );
        facts.execute(&removal).await;
        let refused = client.subscribe(fixture.conversation.0, None).await;
        publish_text(&fixture, "secret");

        client.call(json!({"op": "ping"})).await;
        assert_eq!(code(&refused), "not_found");
        assert_eq!(note_texts(&client), [""; 0]);
        assert!(!is_present(&fixture));
        fixture.close().await;
    }
}
