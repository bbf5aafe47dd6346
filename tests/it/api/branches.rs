//! Tests of branches and threads over HTTP: creation, lists, and how they prevent a deletion.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{HttpClient, expect, id, root_of};

fn refusal(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer.1["error"]["code"].as_str().unwrap_or_default(),
    )
}

/// Creates a space; returns its id, its root conversation and the message in it.
async fn create_space_with_message(ann: &HttpClient) -> (i64, i64, i64) {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    let root = root_of(&space);
    let note = json!({"author_note": {"text": "rain", "depth": 4}});
    let path = format!("/api/conversations/{root}");
    expect(200, ann.patch(&path, json!({"settings": note})).await);
    let posted = expect(
        201,
        ann.post_message(root, "Good evening.", Some("c-1")).await,
    );
    (id(&space), root, id(&posted["message"]))
}

async fn branch(person: &HttpClient, of: i64, body: Value) -> (u16, Value) {
    person
        .post(&format!("/api/conversations/{of}/branch"), body)
        .await
}

on_sqlite! {
    async fn a_branch_is_created_announced_and_listed(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, root, message) = create_space_with_message(&ann).await;

        let body = json!({"message_id": message, "title": "Another way"});
        let made = expect(201, branch(&ann, root, body).await)["conversation"].clone();

        assert_eq!((made["kind"].as_str(), made["title"].as_str()), (Some("branch"), Some("Another way")));
        assert_eq!(made["parent_conversation_id"], root);
        assert_eq!(made["forked_from_message_id"], message);
        assert_eq!(made["settings"]["author_note"]["text"], "rain");
        assert_eq!((made["state"].as_str(), made["last_seq"].as_i64()), (Some("idle"), Some(1)));
        let clone = ann.messages(id(&made)).await.remove(0);
        assert_eq!((clone["seq"].as_i64(), clone["content"].as_str()), (Some(1), Some("Good evening.")));
        assert_eq!(clone["origin_message_id"], message);
        assert!(clone["client_id"].is_null());
        let listed = expect(200, ann.get(&format!("/api/spaces/{space}/conversations")).await);
        assert_eq!(listed["data"].as_array().unwrap().len(), 2);
        app.close().await;
    }

    async fn a_client_id_can_be_reused_in_a_branch(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, root, message) = create_space_with_message(&ann).await;
        let made = expect(201, branch(&ann, root, json!({"message_id": message})).await);

        let posted = ann.post_message(id(&made["conversation"]), "Something else.", Some("c-1")).await;

        assert_eq!(posted.0, 201, "{}", posted.1);
        app.close().await;
    }

    async fn a_conversation_or_message_with_branches_cannot_be_deleted(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, root, message) = create_space_with_message(&ann).await;
        let first = expect(201, branch(&ann, root, json!({"message_id": message})).await);
        let first = id(&first["conversation"]);
        let clone = id(&ann.messages(first).await[0]);
        let second = expect(201, branch(&ann, first, json!({"message_id": clone})).await);
        let delete = |it: i64| format!("/api/conversations/{it}");

        let refused = ann.delete(&delete(first)).await;
        let message = ann.delete(&format!("/api/messages/{message}")).await;
        expect(204, ann.delete(&delete(id(&second["conversation"]))).await);
        expect(204, ann.delete(&delete(first)).await);

        assert_eq!(refusal(&refused), (409, "has_children"));
        assert_eq!(refusal(&message), (409, "fork_point"));
        app.close().await;
    }

    async fn a_branch_begins_at_a_message_of_its_conversation(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, root, _) = create_space_with_message(&ann).await;
        let (_, _, elsewhere) = create_space_with_message(&ann).await;

        assert_eq!(refusal(&branch(&ann, root, json!({"message_id": elsewhere})).await), (404, "not_found"));
        assert_eq!(refusal(&branch(&ann, root, json!({})).await), (400, "missing_field"));
        let blank = json!({"message_id": elsewhere, "title": " "});
        assert_eq!(refusal(&branch(&ann, root, blank).await), (422, "invalid_value"));
        app.close().await;
    }

    async fn an_earlier_reply_is_regenerated_in_a_branch_that_the_response_names(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({"reply_order": "manual"})).await;
        let ada = ann.create_character("Ada", Some("Welcome.")).await;
        ann.add_character(&space, &ada).await;
        let root = root_of(&space);
        let greeting = id(&ann.messages(root).await[0]);
        expect(201, ann.post_message(root, "Good evening.", None).await);

        let path = format!("/api/conversations/{root}/regenerate");
        let planned = expect(202, ann.post(&path, json!({"message_id": greeting})).await);

        let made = ann.conversation(planned["conversation_id"].as_i64().unwrap()).await;
        assert_eq!(made["forked_from_message_id"], greeting);
        assert_eq!(planned["run"]["conversation_id"], made["id"]);
        assert_eq!(ann.messages(root).await.len(), 2);
        app.close().await;
    }

    async fn a_thread_belongs_to_a_conversation_and_copies_no_messages(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, root, _) = create_space_with_message(&ann).await;
        let ada = ann.create_character("Ada", Some("Welcome.")).await;
        ann.add_character(&json!({"id": space}), &ada).await;
        let path = format!("/api/spaces/{space}/conversations");

        let body = json!({"kind": "thread", "parent_conversation_id": root, "title": "Aside"});
        let thread = expect(201, ann.post(&path, body).await);

        assert_eq!((thread["kind"].as_str(), thread["parent_conversation_id"].as_i64()), (Some("thread"), Some(root)));
        assert!(thread["forked_from_message_id"].is_null());
        assert!(ann.messages(id(&thread)).await.is_empty(), "a greeting was posted in a thread");
        let posted = expect(201, ann.post_message(id(&thread), "By the way.", None).await);
        let made = expect(201, branch(&ann, id(&thread), json!({"message_id": posted["message"]["id"]})).await);
        assert_eq!(made["conversation"]["parent_conversation_id"], thread["id"]);
        let refused = ann.delete(&format!("/api/conversations/{}", thread["id"])).await;
        assert_eq!(refusal(&refused), (409, "has_children"));
        app.close().await;
    }

    async fn a_thread_requires_its_parent_and_a_branch_is_not_created_as_a_conversation(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, _, _) = create_space_with_message(&ann).await;
        let (_, elsewhere, _) = create_space_with_message(&ann).await;
        let path = format!("/api/spaces/{space}/conversations");

        for (body, param) in [
            (json!({"kind": "thread"}), "parent_conversation_id"),
            (json!({"kind": "thread", "parent_conversation_id": elsewhere}), "parent_conversation_id"),
            (json!({"kind": "root", "parent_conversation_id": elsewhere}), "parent_conversation_id"),
            (json!({"kind": "branch"}), "kind"),
        ] {
            let answer = ann.post(&path, body.clone()).await;
            assert_eq!(refusal(&answer), (422, "invalid_value"), "{body}");
            assert_eq!(answer.1["error"]["param"], param, "{body}");
        }
        app.close().await;
    }
}
