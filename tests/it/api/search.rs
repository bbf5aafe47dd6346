//! Tests of the message search: access, freshness, and that no query text is interpreted as syntax.

use proptest::prelude::any;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

fn encoded(text: &str) -> String {
    text.bytes().map(|it| format!("%{it:02X}")).collect()
}

async fn search(person: &HttpClient, q: &str) -> Vec<Value> {
    let found = person.get(&format!("/api/search?q={}", encoded(q))).await;
    let found = expect(200, found);
    found["data"].as_array().expect("data is a list").clone()
}

async fn seqs(person: &HttpClient, q: &str) -> Vec<i64> {
    let found = search(person, q).await;
    found.iter().map(|it| it["seq"].as_i64().unwrap()).collect()
}

async fn create_space(ann: &HttpClient) -> (i64, i64) {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    (id(&space), root_of(&space))
}

async fn post(ann: &HttpClient, conversation: i64, text: &str) -> i64 {
    let posted = ann.post_message(conversation, text, None).await;
    id(&expect(201, posted)["message"])
}

on_both! {
    async fn words_are_found_in_any_script_the_newest_first(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, conversation) = create_space(&ann).await;
        for text in ["The lantern burns.", "我们去月亮湖吧", "LANTERNS and a door", "100% of snake_case", "C:\\path"] {
            post(&ann, conversation, text).await;
        }

        assert_eq!(seqs(&ann, "lantern").await, [3, 1]);
        assert_eq!(seqs(&ann, "door lantern").await, [3]);
        assert_eq!(seqs(&ann, "door burns").await, Vec::<i64>::new());
        assert_eq!(seqs(&ann, "月亮").await, [2], "words shorter than an index entry are not found");
        assert_eq!(seqs(&ann, "月亮湖").await, [2]);
        assert_eq!(seqs(&ann, "0%").await, [4]);
        assert_eq!(seqs(&ann, "%").await, [4], "a wildcard was interpreted");
        assert_eq!(seqs(&ann, "e_c").await, [4]);
        assert_eq!(seqs(&ann, "eXc").await, Vec::<i64>::new());
        assert_eq!(seqs(&ann, "\\path").await, [5]);
        let found = search(&ann, "door").await.remove(0);
        assert_eq!((found["space_id"].as_i64(), found["conversation_id"].as_i64()), (Some(space), Some(conversation)));
        assert_eq!((found["author_name"].as_str(), found["snippet"].as_str()), (Some("admin"), Some("LANTERNS and a door")));
        assert_eq!(found["marks"], json!([[15, 19]]));
        app.close().await;
    }

    async fn search_finds_only_the_current_visible_text(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, conversation) = create_space(&ann).await;
        let message = post(&ann, conversation, "A secret garden").await;
        let path = format!("/api/messages/{message}");

        expect(200, ann.patch(&path, json!({"content": "A public square", "expected_version": 1})).await);
        assert_eq!((seqs(&ann, "garden").await, seqs(&ann, "square").await), (vec![], vec![1]));
        expect(200, ann.patch(&path, json!({"visibility": "hidden"})).await);
        assert_eq!(seqs(&ann, "square").await, Vec::<i64>::new());
        expect(200, ann.patch(&path, json!({"visibility": "excluded"})).await);
        assert_eq!(seqs(&ann, "square").await, [1], "an excluded message is not found");
        let branch = ann.post(&format!("/api/conversations/{conversation}/branch"), json!({"message_id": message})).await;
        let branch = id(&expect(201, branch)["conversation"]);
        assert_eq!(seqs(&ann, "square").await, [1, 1], "the copy in the branch is not found");
        assert_eq!(ann.delete(&format!("/api/conversations/{branch}")).await.0, 204);
        assert_eq!(seqs(&ann, "square").await, [1]);
        app.close().await;
    }

    async fn search_finds_only_accessible_messages(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        post(&users.owner, root_of(&users.document), "The canary sings.").await;
        let of_space = format!("/api/search?q=canary&space_id={}", users.space);

        let mut found = Vec::new();
        for (_, person) in users.all_roles() {
            found.push(search(person, "canary").await.len());
        }
        assert_eq!(found, [0, 1, 1, 1, 1, 0], "an admin without a membership found a message");
        for ((who, person), status) in users.all_roles().into_iter().zip([404, 200, 200, 200, 200, 200]) {
            assert_eq!(person.get(&of_space).await.0, status, "{who}");
        }
        assert_eq!(
            users
                .owner
                .delete(&format!("/api/memberships/{}", memberships.member))
                .await
                .0,
            204
        );
        assert_eq!(search(&users.member, "canary").await.len(), 0);
        assert_eq!(refusal(&users.member.get(&of_space).await), (404, "not_found".to_owned()));
        users.app.close().await;
    }

    async fn search_results_are_paginated(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, conversation) = create_space(&ann).await;
        for n in 1..=5 {
            post(&ann, conversation, &format!("Line {n}")).await;
        }

        let first = expect(200, ann.get("/api/search?q=line&limit=2").await);
        let cursor = first["data"][1]["message_id"].as_i64().unwrap();
        let second = expect(200, ann.get(&format!("/api/search?q=line&limit=3&before={cursor}")).await);

        let seqs = |page: &Value| page["data"].as_array().unwrap().iter().map(|it| it["seq"].as_i64().unwrap()).collect::<Vec<_>>();
        assert_eq!((seqs(&first), first["has_more"].as_bool()), (vec![5, 4], Some(true)));
        assert_eq!((seqs(&second), second["has_more"].as_bool()), (vec![3, 2, 1], Some(false)));
        app.close().await;
    }

    async fn a_search_query_is_never_interpreted_as_syntax(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, conversation) = create_space(&ann).await;
        post(&ann, conversation, "Nothing to see.").await;
        let mut queries: Vec<String> = ["\"", "'", "a\"b\"", "content:see", "see*", "NEAR(a b)", "NOT AND OR", "^see", "(", "{a}:b", "a;--", "\\", "\\\\\\", "$1", "?", "-see", "+"]
            .map(str::to_owned).to_vec();
        let mut runner = TestRunner::deterministic();
        let texts = proptest::collection::vec(any::<char>(), 0..40);
        for _ in 0..150 {
            let chars = texts.new_tree(&mut runner).unwrap().current();
            queries.push(chars.into_iter().filter(|it| *it != '\0').collect());
        }

        for q in queries {
            let (status, answer) = ann.get(&format!("/api/search?q={}", encoded(&q))).await;
            assert_eq!(status, 200, "{q:?}: {answer}");
        }
        let too_long = ann.get(&format!("/api/search?q={}", "a".repeat(201))).await;
        assert_eq!(refusal(&too_long), (400, "invalid_value".to_owned()));
        assert_eq!(expect(200, ann.get("/api/search").await)["data"], json!([]));
        app.close().await;
    }

    async fn every_match_among_ten_thousand_messages_is_found(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, conversation) = create_space(&ann).await;
        post(&ann, conversation, "First.").await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        facts.execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
             INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
             SELECT conversation_id, i, space_membership_id, 'user', 'Line number ' || CAST(i AS TEXT) || ' of a long evening, 月亮 and all.', 'normal', 0, 0, 1, 12, '{{}}' FROM n, messages WHERE conversation_id = {conversation}"
        )).await;

        for (q, n) in [("evening", 50), ("9999", 1), ("月亮", 50), ("nowhere", 0), ("无处", 0)] {
            assert_eq!(search(&ann, q).await.len(), n, "{q}");
        }
        app.close().await;
    }
}
