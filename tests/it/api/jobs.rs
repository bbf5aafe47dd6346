//! Tests of background jobs over HTTP: start, hidden rows, progress, cancellation and quota.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;

/// More messages than a request copies or deletes without a job.
const LONG: i64 = 2_500;
const MIB: usize = 1024 * 1024;

async fn create_space(ann: &HttpClient) -> (i64, i64) {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    (id(&space), root_of(&space))
}

/// Fills a conversation in which one message was posted; returns the last message.
async fn fill(ann: &HttpClient, facts: &mut DatabaseFacts, conversation: i64, n: i64) -> i64 {
    expect(
        201,
        ann.post_message(conversation, "Once upon a lantern.", None)
            .await,
    );
    let series = format!(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) \
         INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
         SELECT conversation_id, i, space_membership_id, 'user', 'Line number ' || CAST(i AS TEXT), 'normal', 0, created_at, i, 12, '{{}}' \
         FROM n CROSS JOIN messages WHERE conversation_id = {conversation} AND seq = 1"
    );
    facts.execute(&series).await;
    facts
        .execute(&format!(
            "UPDATE conversations SET last_seq = {n}, rev = {n}, text_bytes = 50000 WHERE id = {conversation}"
        ))
        .await;
    id(ann.messages(conversation).await.last().unwrap())
}

async fn branch(ann: &HttpClient, of: i64, message: i64) -> (u16, Value) {
    let path = format!("/api/conversations/{of}/branch");
    ann.post(&path, json!({"message_id": message})).await
}

async fn wait_until_ended(ann: &HttpClient, job: &Value) -> Value {
    let path = format!("/api/jobs/{}", job["id"]);
    poll::until("the job has ended", async || {
        let job = expect(200, ann.get(&path).await);
        (job["status"] != "running").then_some(job)
    })
    .await
}

async fn n_listed(ann: &HttpClient, space: i64) -> usize {
    let path = format!("/api/spaces/{space}/conversations");
    let conversations = expect(200, ann.get(&path).await);
    conversations["data"].as_array().unwrap().len()
}

on_both! {
    async fn a_long_branch_is_a_job_that_ends_in_a_conversation(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, root) = create_space(&ann).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let last = fill(&ann, &mut facts, root, LONG).await;

        let job = expect(202, branch(&ann, root, last).await)["job"].clone();
        let ended = wait_until_ended(&ann, &job).await;

        assert_eq!((job["kind"].as_str(), job["n_total"].as_i64()), (Some("branch"), Some(LONG)));
        assert_eq!((ended["status"].as_str(), ended["n_done"].as_i64()), (Some("succeeded"), Some(LONG)));
        let made = ann.conversation(ended["conversation_id"].as_i64().unwrap()).await;
        assert_eq!(made["last_seq"], LONG);
        assert_eq!(n_listed(&ann, space).await, 2);
        let jobs = expect(200, ann.get("/api/jobs").await);
        assert_eq!(jobs["data"][0]["id"], job["id"]);
        let again = ann.delete(&format!("/api/jobs/{}", job["id"])).await;
        assert_eq!(refusal(&again), (409, "already_finished".to_owned()));
        app.close().await;
    }

    async fn a_conversation_hidden_by_a_job_is_visible_nowhere(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, root) = create_space(&ann).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let last = fill(&ann, &mut facts, root, 3).await;
        let made = id(&expect(201, branch(&ann, root, last).await)["conversation"]);
        let message = id(&ann.messages(made).await[0]);
        let totals = async || expect(200, ann.get("/api/admin/stats").await)["totals"].clone();
        let (before, hide) = (totals().await, format!("UPDATE conversations SET is_hidden = true WHERE id = {made}"));

        facts.execute(&hide).await;

        assert_eq!(n_listed(&ann, space).await, 1);
        let after = totals().await;
        assert_eq!(after["conversations"].as_i64(), before["conversations"].as_i64().map(|it| it - 1));
        assert_eq!(after["messages"].as_i64(), before["messages"].as_i64().map(|it| it - 3));
        let found = expect(200, ann.get("/api/search?q=lantern").await);
        assert_eq!(found["data"].as_array().unwrap().len(), 1);
        for path in [
            format!("/api/conversations/{made}"),
            format!("/api/conversations/{made}/messages"),
            format!("/api/conversations/{made}/runs"),
            format!("/api/conversations/{made}/export?format=txt"),
            format!("/api/messages/{message}/swipes"),
        ] {
            assert_eq!(ann.get(&path).await.0, 404, "{path}");
        }
        assert_eq!(ann.post_message(made, "Hello?", None).await.0, 404);
        assert_eq!(ann.delete(&format!("/api/conversations/{made}")).await.0, 404);
        app.close().await;
    }

    async fn a_deleted_long_conversation_or_space_is_invisible_at_once(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, root) = create_space(&ann).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let last = fill(&ann, &mut facts, root, LONG).await;
        let job = expect(202, branch(&ann, root, last).await)["job"].clone();
        let made = wait_until_ended(&ann, &job).await["conversation_id"].clone();

        let deleted = expect(202, ann.delete(&format!("/api/conversations/{made}")).await)["job"].clone();
        assert_eq!(ann.get(&format!("/api/conversations/{made}")).await.0, 404);
        let refused = ann.delete(&format!("/api/jobs/{}", deleted["id"])).await;
        assert_eq!(refusal(&refused), (409, "already_finished".to_owned()));
        assert_eq!(wait_until_ended(&ann, &deleted).await["status"], "succeeded");

        let deleted = expect(202, ann.delete(&format!("/api/spaces/{space}")).await)["job"].clone();
        assert_eq!(ann.get(&format!("/api/spaces/{space}")).await.0, 404);
        assert_eq!(ann.get(&format!("/api/conversations/{root}")).await.0, 404);
        assert_eq!(wait_until_ended(&ann, &deleted).await["status"], "succeeded");
        assert_eq!(facts.number(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM messages WHERE conversation_id = {root}")).await, 0);
        app.close().await;
    }

    async fn text_beyond_the_quota_of_the_owner_is_not_stored(backend) {
        let app = TestApp::start_with(backend, &[("LIMIT_STORED_MIB_PER_USER", "1")]).await;
        let ann = app.admin().await;
        let (_, root) = create_space(&ann).await;
        let text = "x".repeat(60 * 1024);
        let mut last = 0;
        for _ in 0..10 {
            last = id(&expect(201, ann.post_message(root, &text, None).await)["message"]);
        }

        let refused = branch(&ann, root, last).await;
        assert_eq!(refusal(&refused), (413, "storage_full".to_owned()));
        let mut n_posts = 10;
        let refused = loop {
            let posted = ann.post_message(root, &text, None).await;
            if posted.0 != 201 {
                break posted;
            }
            n_posts += 1;
        };
        assert_eq!(refusal(&refused), (413, "storage_full".to_owned()));
        assert!(
            (n_posts + 1) * text.len() > MIB - 2 * text.len(),
            "only {n_posts} posts were accepted"
        );

        assert_eq!(ann.messages(root).await.len(), n_posts);
        let (_, elsewhere) = create_space(&ann).await;
        assert_eq!(refusal(&ann.post_message(elsewhere, &text, None).await), (413, "storage_full".to_owned()));
        app.close().await;
    }
}
