//! Who hears a conversation, and subscribes it once more in vain: a trouble that passes takes
//! nothing away, a refusal for good does.

use crate::realtime::stage::Note;
use crate::realtime::stage::Stage;
use crate::realtime::stage::code;
use crate::support::backends::TestBackend;
use crate::support::ear::Ear;
use crate::support::facts::Facts;
use crate::support::person::expect;
use crate::support::wait;
use serde_json::Value;
use serde_json::json;
use troupe::realtime::event::Envelope;
use troupe::realtime::topic::Topic;

fn tells(stage: &Stage, text: &str) {
    stage.tell(&Note { text: text.into() });
}

fn notes(ear: &Ear) -> Vec<String> {
    let heard = ear.log().into_iter().filter(|it| it["type"] == "note");
    heard
        .map(|it| it["text"].as_str().expect("a note has a text").to_owned())
        .collect()
}

async fn hears(ear: &Ear, text: &str) {
    ear.wait_for("the note", |it| it["text"] == text).await;
}

/// Who waits for a lock.
const WAITING: &str = "FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";

async fn somebody_waits(facts: &mut Facts) {
    let sql = format!("SELECT '1' {WAITING}");
    wait::until("somebody waits for the lock", async || {
        (!facts.rows(&sql).await.is_empty()).then_some(())
    })
    .await;
}

fn is_present(stage: &Stage) -> bool {
    let presence = &stage.house.app.presence;
    !presence.members(stage.conversation).is_empty()
}

#[tokio::test]
async fn who_is_refused_for_now_goes_on_hearing() {
    for backend in TestBackend::all() {
        let stage = Stage::open_on(backend, &[], |_| {}).await;
        let ear = stage.bobs_ear().await;
        let mut facts = Facts::open(&stage.house.database).await;

        facts
            .execute("ALTER TABLE space_memberships RENAME TO away")
            .await;
        let refused = ear.subscribe(stage.conversation.0, None).await;
        tells(&stage, "meanwhile");
        hears(&ear, "meanwhile").await;
        facts
            .execute("ALTER TABLE away RENAME TO space_memberships")
            .await;

        assert_eq!(code(&refused), "internal");
        assert!(is_present(&stage));
        // What is durable goes on where it was, too.
        stage.says(&stage.ann, "Back again.").await;
        let is_said = |it: &Value| it["message"]["content"] == "Back again.";
        ear.wait_for("the message", is_said).await;
        assert!(ear.log().iter().all(|it| it["type"] != "resync"));
        stage.close().await;
    }
}

#[tokio::test]
async fn what_is_told_until_the_refusal_is_heard_behind_it() {
    if !TestBackend::Postgres.is_given() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let stage = Stage::open_on(TestBackend::Postgres, &[], |_| {}).await;
    let ear = stage.bobs_ear().await;
    let mut holder = Facts::open(&stage.house.database).await;
    let mut facts = Facts::open(&stage.house.database).await;

    holder.execute("BEGIN; LOCK TABLE space_memberships").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": stage.conversation});
    ear.say(&again.to_string()).await;
    somebody_waits(&mut facts).await;
    tells(&stage, "one");
    tells(&stage, "two");
    let cut = format!("SELECT CAST(pg_terminate_backend(pid) AS text) {WAITING}");
    facts.rows(&cut).await;
    let refused = ear.wait_for("the answer", |it| it["re"] == 77).await;
    holder.execute("COMMIT").await;
    tells(&stage, "three");

    hears(&ear, "three").await;
    assert_eq!(code(&refused), "internal");
    assert_eq!(notes(&ear), ["one", "two", "three"]);
    let place = |fits: &dyn Fn(&Value) -> bool| ear.log().iter().position(fits);
    let answer = place(&|it| it["re"] == 77);
    assert!(answer < place(&|it| it["text"] == "one"));
    stage.close().await;
}

#[tokio::test]
async fn who_is_removed_while_the_answer_is_made_gets_none() {
    if !TestBackend::Postgres.is_given() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let stage = Stage::open_on(TestBackend::Postgres, &[], |_| {}).await;
    stage.says(&stage.ann, "Between us.").await;
    let ear = stage.bobs_ear().await;
    let mut holder = Facts::open(&stage.house.database).await;
    let mut facts = Facts::open(&stage.house.database).await;

    holder.execute("BEGIN; LOCK TABLE message_swipes").await;
    let again = json!({"id": 77, "op": "subscribe", "conversation_id": stage.conversation});
    ear.say(&again.to_string()).await;
    somebody_waits(&mut facts).await;
    let seat = format!("/api/memberships/{}", stage.bobs_seat);
    expect(204, stage.ann.delete(&seat).await);
    ear.wait_for("the news", |it| it["type"] == "unsubscribed")
        .await;
    holder.execute("COMMIT").await;

    let answer = ear.wait_for("the answer", |it| it["re"] == 77).await;
    assert_eq!(code(&answer), "not_found");
    // The socket lives, and is answered.
    assert_eq!(ear.call(json!({"op": "ping"})).await["ok"], true);
    let answers = ear.log().into_iter().filter(|it| it["re"] == 77);
    assert_eq!(answers.count(), 1);
    stage.close().await;
}

#[tokio::test]
async fn who_was_told_to_begin_again_and_is_refused_for_now_is_there_and_hears_nothing() {
    let stage = Stage::open().await;
    let ear = stage.bobs_ear().await;
    let mut facts = Facts::open(&stage.house.database).await;
    let topic = Topic::Conversation(stage.conversation);
    let far = Note { text: "far".into() };
    let far = Envelope::durable(topic, &far, 1_000);
    stage.house.app.hub.publish(far);
    ear.wait_for("a resync", |it| it["type"] == "resync").await;

    facts
        .execute("ALTER TABLE space_memberships RENAME TO away")
        .await;
    let refused = ear.subscribe(stage.conversation.0, None).await;
    tells(&stage, "unheard");
    facts
        .execute("ALTER TABLE away RENAME TO space_memberships")
        .await;
    let again = ear.subscribe(stage.conversation.0, None).await;
    tells(&stage, "heard");

    hears(&ear, "heard").await;
    assert_eq!(code(&refused), "internal");
    assert_eq!(again["ok"], true);
    assert_eq!(notes(&ear), ["heard"]);
    stage.close().await;
}

#[tokio::test]
async fn who_is_refused_for_good_hears_nothing_more() {
    for backend in TestBackend::all() {
        let stage = Stage::open_on(backend, &[], |_| {}).await;
        let ear = stage.bobs_ear().await;
        let mut facts = Facts::open(&stage.house.database).await;

        // Behind the server's back, so that no order comes before the answer.
        let seat = format!(
            "UPDATE space_memberships SET status = 'removed' WHERE id = {}",
            stage.bobs_seat
        );
        facts.execute(&seat).await;
        let refused = ear.subscribe(stage.conversation.0, None).await;
        tells(&stage, "secret");

        ear.call(json!({"op": "ping"})).await;
        assert_eq!(code(&refused), "not_found");
        assert_eq!(notes(&ear), [""; 0]);
        assert!(!is_present(&stage));
        stage.close().await;
    }
}
