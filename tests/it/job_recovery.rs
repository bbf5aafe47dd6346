//! Background jobs survive `kill -9`: partial results are never visible, and the job completes in
//! the end.

use serde_json::{Value, json};

use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::support::test_space::TestSpace;

const N: i64 = 20_000;
const N_KILLS: usize = 3;

/// Fills the conversation of a space; returns its last message.
async fn fill(room: &TestSpace, facts: &mut DatabaseFacts) -> i64 {
    let conversation = room.conversation;
    expect(
        201,
        room.person
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
            "UPDATE conversations SET last_seq = {N}, last_user_seq = {N}, rev = {N}, text_bytes = 400000 WHERE id = {conversation}"
        ))
        .await;
    id(room.person.messages(conversation).await.last().unwrap())
}

async fn count(facts: &mut DatabaseFacts, from: &str) -> i64 {
    facts
        .number(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM {from}"))
        .await
}

async fn job(person: &HttpClient, job: &Value) -> Value {
    expect(200, person.get(&format!("/api/jobs/{}", job["id"])).await)
}

async fn ends(person: &HttpClient, begun: &Value) -> Value {
    // 20,000 messages, and a node pauses after each batch for as long as the batch took.
    poll::until_within(4 * poll::DEADLINE, "the job has ended", async || {
        let now = job(person, begun).await;
        (now["status"] != "running").then_some(now)
    })
    .await
}

on_both! {
    async fn a_branch_is_whole_or_not_there_through_kills(backend) {
        let mut room = TestSpace::open(backend, json!({"reply_order": "manual"}), &["Ada"]).await;
        let mut facts = DatabaseFacts::open(&room.database).await;
        let last = fill(&room, &mut facts).await;
        let path = format!("/api/conversations/{}/branch", room.conversation);

        let begun = expect(202, room.person.post(&path, json!({"message_id": last})).await)["job"].clone();
        let branch = begun["conversation_id"].as_i64().unwrap();
        for _ in 0..N_KILLS {
            room.server.kill9();
            let is_seen = count(&mut facts, &format!("conversations WHERE id = {branch} AND NOT is_hidden")).await == 1;
            let n = count(&mut facts, &format!("messages WHERE conversation_id = {branch}")).await;
            assert!(!is_seen || n == N, "{n} messages of a branch that is seen");
            room.server.restart().await;
        }
        let ended = ends(&room.person, &begun).await;

        assert_eq!(ended["status"], "succeeded", "{ended}");
        assert_eq!(room.person.conversation(branch).await["last_seq"], N);
        assert_eq!(count(&mut facts, &format!("messages WHERE conversation_id = {branch}")).await, N);
        room.settle().await;
    }

    async fn a_deletion_is_finished_through_kills(backend) {
        let mut room = TestSpace::open(backend, json!({"reply_order": "manual"}), &["Ada"]).await;
        let mut facts = DatabaseFacts::open(&room.database).await;
        let last = fill(&room, &mut facts).await;
        let path = format!("/api/conversations/{}/branch", room.conversation);
        let begun = expect(202, room.person.post(&path, json!({"message_id": last})).await)["job"].clone();
        let branch = ends(&room.person, &begun).await["conversation_id"].clone();
        let path = format!("/api/conversations/{branch}");

        let begun = expect(202, room.person.delete(&path).await)["job"].clone();
        for _ in 0..N_KILLS {
            assert_eq!(room.person.get(&path).await.0, 404);
            room.server.kill9();
            room.server.restart().await;
        }

        assert_eq!(ends(&room.person, &begun).await["status"], "succeeded");
        assert_eq!(count(&mut facts, &format!("conversations WHERE id = {branch}")).await, 0);
        assert_eq!(count(&mut facts, &format!("messages WHERE conversation_id = {branch}")).await, 0);
        assert_eq!(count(&mut facts, &format!("messages WHERE conversation_id = {}", room.conversation)).await, N);
        room.settle().await;
    }
}
