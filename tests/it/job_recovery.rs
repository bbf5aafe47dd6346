//! Background jobs survive `kill -9`: partial results are never visible, and the job completes
//! eventually.

use serde_json::{Value, json};

use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::support::test_space::TestSpace;

/// The number of messages: above 2,000, so that a job copies them, and enough for several batches.
const N: i64 = 5_000;
const N_KILLS: usize = 3;

/// Fills the conversation of a space; returns its last message.
async fn fill(space: &TestSpace, facts: &mut DatabaseFacts) -> i64 {
    let conversation = space.conversation;
    expect(
        201,
        space
            .person
            .post_message(conversation, "Once upon a time.", None)
            .await,
    );
    facts
        .execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {N}) \
             INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
             SELECT conversation_id, i, space_membership_id, 'user', 'Line number ' || CAST(i AS TEXT), 'normal', 0, created_at, i, 12, '{{}}' \
             FROM n CROSS JOIN messages WHERE conversation_id = {conversation} AND seq = 1"
        ))
        .await;
    facts
        .execute(&format!(
            "UPDATE conversations SET last_seq = {N}, last_user_seq = {N}, rev = {N}, text_bytes = 100000 WHERE id = {conversation}"
        ))
        .await;
    id(space.person.messages(conversation).await.last().unwrap())
}

async fn count(facts: &mut DatabaseFacts, from: &str) -> i64 {
    facts
        .number(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM {from}"))
        .await
}

async fn job(person: &HttpClient, job: &Value) -> Value {
    expect(200, person.get(&format!("/api/jobs/{}", job["id"])).await)
}

async fn wait_until_ended(person: &HttpClient, started: &Value) -> Value {
    // A node pauses after each batch for as long as the batch took.
    poll::until_within(4 * poll::DEADLINE, "the job has ended", async || {
        let now = job(person, started).await;
        (now["status"] != "running").then_some(now)
    })
    .await
}

on_both! {
    async fn an_incomplete_branch_is_never_visible_when_the_server_is_killed(backend) {
        let mut space = TestSpace::open(backend, json!({"reply_order": "manual"}), &["Ada"]).await;
        let mut facts = DatabaseFacts::open(&space.database).await;
        let last = fill(&space, &mut facts).await;
        let path = format!("/api/conversations/{}/branch", space.conversation);

        let started = expect(202, space.person.post(&path, json!({"message_id": last})).await)["job"].clone();
        let branch = started["conversation_id"].as_i64().unwrap();
        for _ in 0..N_KILLS {
            space.server.kill9();
            let is_visible = count(&mut facts, &format!("conversations WHERE id = {branch} AND NOT is_hidden")).await == 1;
            let n = count(&mut facts, &format!("messages WHERE conversation_id = {branch}")).await;
            assert!(!is_visible || n == N, "the visible branch has {n} messages");
            space.server.restart().await;
        }
        let ended = wait_until_ended(&space.person, &started).await;

        assert_eq!(ended["status"], "succeeded", "{ended}");
        assert_eq!(space.person.conversation(branch).await["last_seq"], N);
        assert_eq!(count(&mut facts, &format!("messages WHERE conversation_id = {branch}")).await, N);
        space.settle().await;
    }

    async fn a_deletion_completes_although_the_server_is_killed(backend) {
        let mut space = TestSpace::open(backend, json!({"reply_order": "manual"}), &["Ada"]).await;
        let mut facts = DatabaseFacts::open(&space.database).await;
        let last = fill(&space, &mut facts).await;
        let path = format!("/api/conversations/{}/branch", space.conversation);
        let started = expect(202, space.person.post(&path, json!({"message_id": last})).await)["job"].clone();
        let branch = wait_until_ended(&space.person, &started).await["conversation_id"].clone();
        let path = format!("/api/conversations/{branch}");

        let started = expect(202, space.person.delete(&path).await)["job"].clone();
        for _ in 0..N_KILLS {
            assert_eq!(space.person.get(&path).await.0, 404);
            space.server.kill9();
            space.server.restart().await;
        }

        assert_eq!(wait_until_ended(&space.person, &started).await["status"], "succeeded");
        assert_eq!(count(&mut facts, &format!("conversations WHERE id = {branch}")).await, 0);
        assert_eq!(count(&mut facts, &format!("messages WHERE conversation_id = {branch}")).await, 0);
        assert_eq!(count(&mut facts, &format!("messages WHERE conversation_id = {}", space.conversation)).await, N);
        space.settle().await;
    }
}
