//! Tests of threads under `/v1`: they are created with messages, changed and deleted.

use serde_json::json;

use super::support::{create_assistant, create_thread, insert_run, text_of, texts, user};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::expect;
use crate::support::v1_client::{V1Client, error_of};
use crate::v1::fixture::{V1Fixture, id};

on_both! {
    async fn a_thread_is_created_with_messages_changed_and_deleted(backend) {
        let fixture = V1Fixture::open(backend).await;
        let answer = json!({ "role": "assistant", "content": [{ "type": "text", "text": "two" }] });
        let body = json!({ "messages": [user("one"), answer], "metadata": { "a": "b" } });

        let made = expect(200, fixture.program.post("/threads", body).await);

        let path = format!("/threads/{}", id(&made));
        assert!(id(&made).starts_with("thread_"), "{made}");
        assert_eq!((&made["object"], &made["metadata"]), (&json!("thread"), &json!({ "a": "b" })));
        assert_eq!(texts(&fixture, id(&made)).await, ["one", "two"]);
        assert_eq!(fixture.program.get(&path).await, (200, made.clone()));
        let kept = expect(200, fixture.program.post(&path, json!({})).await);
        assert_eq!(kept, made);
        let changed = expect(200, fixture.program.post(&path, json!({ "metadata": { "c": "d" } })).await);
        assert_eq!(changed["metadata"], json!({ "c": "d" }));
        assert_eq!(fixture.program.get(&path).await.1, changed);
        let deleted = json!({ "id": made["id"], "object": "thread.deleted", "deleted": true });
        assert_eq!(fixture.program.delete(&path).await, (200, deleted));
        for path in [path.clone(), format!("{path}/messages")] {
            assert_eq!(fixture.program.get(&path).await.0, 404, "{path}");
            assert_eq!(fixture.program.post(&path, user("x")).await.0, 404, "{path}");
        }
        assert_eq!(fixture.program.delete(&path).await.0, 404);
        fixture.close().await;
    }

    async fn rows_of_a_deleted_user_are_removed(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ben = fixture.app.register("ben").await;
        let ben = V1Client::new(&ben).await;
        expect(200, ben.post("/assistants", json!({ "model": "scripted" })).await);
        let thread = expect(200, ben.post("/threads", json!({ "messages": [user("Hi.")] })).await);
        insert_run(&fixture, id(&thread), "run_1").await;
        create_assistant(&fixture, json!({})).await;
        create_thread(&fixture, &["Hi."]).await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;

        facts.execute("DELETE FROM users WHERE username = 'ben'").await;

        for (table, n) in [("assistants", 1), ("threads", 1), ("thread_messages", 1), ("thread_runs", 0)] {
            assert_eq!(fixture.n_rows(table).await, n, "{table}");
        }
        drop(facts);
        fixture.close().await;
    }

    async fn a_deleted_thread_requests_the_end_of_its_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["Hi."]).await;
        insert_run(&fixture, &thread, "run_1").await;

        expect(200, fixture.program.delete(&format!("/threads/{thread}")).await);

        let canceled = "thread_runs WHERE cancel_requested_at IS NOT NULL OR status = 'cancelled'";
        assert_eq!(fixture.n_rows(canceled).await, 1);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_thread_may_be_created_without_a_body(backend) {
        let fixture = V1Fixture::open(backend).await;

        let made = fixture.program.post_untyped("/threads", "").await;

        assert_eq!(made.0, 200, "{}", made.1);
        assert_eq!(made.1["metadata"], json!({}));
        let untyped = fixture.program.post_untyped("/threads", "{}").await;
        assert_eq!(untyped.0, 415);
        fixture.close().await;
    }

    async fn an_invalid_thread_stores_nothing(backend) {
        let fixture = V1Fixture::open(backend).await;

        for (body, code, param) in [
            (json!({ "wobble": 1 }), "unknown_parameter", "wobble"),
            (json!({ "messages": "Hi." }), "invalid_type", "messages"),
            (json!({ "messages": [user("a"), { "role": "system", "content": "b" }] }), "invalid_value", "messages[1].role"),
            (json!({ "messages": [{ "role": "user" }] }), "missing_required_parameter", "messages[0].content"),
            (json!({ "tool_resources": { "code_interpreter": {} } }), "unsupported_tool", "tool_resources"),
        ] {
            let refused = error_of(&fixture.program.post("/threads", body.clone()).await);
            assert_eq!(refused, (400, code.into(), json!(param)), "{body}");
        }
        assert_eq!(fixture.n_rows("threads").await, 0);
        assert_eq!(fixture.n_rows("thread_messages").await, 0);
        fixture.close().await;
    }

    async fn a_thread_may_begin_with_many_messages(backend) {
        let fixture = V1Fixture::open(backend).await;
        let all: Vec<String> = (0..1_200).map(|it| it.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();

        let thread = create_thread(&fixture, &all).await;

        let path = format!("/threads/{thread}/messages?limit=100");
        let newest = expect(200, fixture.program.get(&path).await);
        assert_eq!(newest["data"].as_array().map(Vec::len), Some(100));
        assert_eq!(text_of(&newest["data"][0]), "1199");
        assert_eq!(fixture.n_rows("thread_messages").await, 1_200);
        fixture.close().await;
    }
}
