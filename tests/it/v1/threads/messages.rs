//! Tests of the messages of threads under `/v1`.

use futures::future::join_all;
use serde_json::{Value, json};

use super::support::{
    answer_of, append_as_run, complete_run, create_thread, insert_run, objects, texts, user,
};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::expect;
use crate::support::v1_client::error_of;
use crate::v1::fixture::{V1Fixture, id};

/// The shortest data URL with the first bytes of a GIF.
const GIF: &str = "data:image/gif;base64,R0lGODdh";

on_both! {
    async fn a_message_is_appended_changed_and_deleted(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["one"]).await;
        let path = format!("/threads/{thread}/messages");

        let mut made = expect(200, fixture.program.post(&path, user("two")).await);

        let own = format!("{path}/{}", id(&made));
        assert_eq!(fixture.program.get(&own).await, (200, made.clone()));
        assert_eq!(texts(&fixture, &thread).await, ["one", "two"]);
        let change = json!({ "metadata": { "a": "b" } });
        let changed = expect(200, fixture.program.post(&own, change).await);
        made["metadata"] = json!({ "a": "b" });
        assert_eq!(changed, made);
        let kept = expect(200, fixture.program.post(&own, json!({})).await);
        assert_eq!(kept, made);
        let deleted = json!({ "id": made["id"], "object": "thread.message.deleted", "deleted": true });
        assert_eq!(fixture.program.delete(&own).await, (200, deleted));
        assert_eq!(fixture.program.get(&own).await.0, 404);
        assert_eq!(fixture.program.post(&own, json!({})).await.0, 404);
        assert_eq!(fixture.program.delete(&own).await.0, 404);
        assert_eq!(texts(&fixture, &thread).await, ["one"]);
        expect(200, fixture.program.post(&path, user("three")).await);
        assert_eq!(texts(&fixture, &thread).await, ["one", "three"]);
        fixture.close().await;
    }

    async fn messages_do_not_change_while_a_run_is_active(backend) {
        let fixture = V1Fixture::open(backend).await;
        let (thread, other) = (create_thread(&fixture, &["one"]).await, create_thread(&fixture, &[]).await);
        let path = format!("/threads/{thread}/messages");
        let message = objects(&fixture, &path).await.remove(0);
        let own = format!("{path}/{}", id(&message));
        let change = json!({ "metadata": { "a": "b" } });
        insert_run(&fixture, &thread, "run_1").await;

        let refused = [
            fixture.program.post(&path, user("two")).await,
            fixture.program.post(&own, change.clone()).await,
            fixture.program.delete(&own).await,
        ];

        for refused in refused {
            let message = refused.1["error"]["message"].to_string();
            assert!(message.contains("run_1"), "{message}");
            assert_eq!(error_of(&refused), (400, "thread_has_active_run".into(), Value::Null));
        }
        assert_eq!(objects(&fixture, &path).await, [message]);
        expect(200, fixture.program.post(&format!("/threads/{thread}"), change.clone()).await);
        expect(200, fixture.program.post(&format!("/threads/{other}/messages"), user("x")).await);
        complete_run(&fixture, "run_1").await;
        expect(200, fixture.program.post(&path, user("two")).await);
        expect(200, fixture.program.post(&own, change).await);
        expect(200, fixture.program.delete(&own).await);
        assert_eq!(texts(&fixture, &thread).await, ["two"]);
        fixture.close().await;
    }

    async fn a_list_can_be_limited_to_the_messages_of_a_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["one"]).await;
        insert_run(&fixture, &thread, "run_1").await;

        append_as_run(&fixture, &thread, vec![answer_of("run_1", "two")]).await;

        complete_run(&fixture, "run_1").await;
        let path = format!("/threads/{thread}/messages");
        let of_run = objects(&fixture, &format!("{path}?run_id=run_1")).await;
        assert_eq!(of_run.len(), 1);
        let names = ["id", "run_id", "assistant_id", "role"].map(|it| of_run[0][it].clone());
        assert_eq!(names, ["msg_of_run_1", "run_1", "asst_1", "assistant"].map(|it| json!(it)));
        assert!(objects(&fixture, &format!("{path}?run_id=run_2")).await.is_empty());
        assert_eq!(texts(&fixture, &thread).await, ["one", "two"]);
        let own = format!("{path}/msg_of_run_1");
        let text = fixture.program.post(&own, json!({ "content": "three" })).await;
        assert_eq!(error_of(&text), (400, "unknown_parameter".into(), json!("content")));
        let noted = expect(200, fixture.program.post(&own, json!({ "metadata": { "a": "b" } })).await);
        assert_eq!(noted["metadata"], json!({ "a": "b" }));
        assert_eq!(noted["content"], of_run[0]["content"]);
        fixture.close().await;
    }

    async fn a_hidden_message_is_in_no_list(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["one"]).await;
        insert_run(&fixture, &thread, "run_1").await;
        let mut hidden = answer_of("run_1", "Psst.");
        hidden.id = "msg_hidden".to_owned();
        hidden.run_id = None;
        hidden.hidden_for_run_id = Some("run_1".to_owned());

        let appended = append_as_run(&fixture, &thread, vec![hidden, answer_of("run_1", "two")]).await;

        assert_eq!(appended.iter().map(|it| it.seq).collect::<Vec<_>>(), [1, 2]);
        complete_run(&fixture, "run_1").await;
        assert_eq!(texts(&fixture, &thread).await, ["one", "two"]);
        let path = format!("/threads/{thread}/messages");
        assert_eq!(objects(&fixture, &format!("{path}?run_id=run_1")).await.len(), 1);
        let own = format!("{path}/msg_hidden");
        assert_eq!(fixture.program.get(&own).await.0, 404);
        assert_eq!(fixture.program.post(&own, json!({})).await.0, 404);
        assert_eq!(fixture.program.delete(&own).await.0, 404);
        let cursor = fixture.program.get(&format!("{path}?after=msg_hidden")).await;
        assert_eq!(error_of(&cursor).0, 400);
        fixture.close().await;
    }

    async fn messages_that_are_appended_concurrently_have_different_positions(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &[]).await;
        let path = format!("/threads/{thread}/messages");
        let sent: Vec<String> = (0..8).map(|it| it.to_string()).collect();

        let posts = sent.iter().map(|it| fixture.program.post(&path, user(it)));
        let answers = join_all(posts).await;

        assert!(answers.iter().all(|it| it.0 == 200), "{answers:?}");
        let mut found = texts(&fixture, &thread).await;
        found.sort();
        assert_eq!(found, sent);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_message_has_every_field_of_the_api(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &[]).await;
        let picture = json!({ "type": "image_url", "image_url": { "url": GIF } });
        let content = json!([{ "type": "text", "text": "Look." }, picture]);
        let body = json!({ "role": "user", "content": content, "attachments": [] });

        let mut made = expect(200, fixture.program.post(&format!("/threads/{thread}/messages"), body).await);

        assert!(id(&made).starts_with("msg_"), "{made}");
        assert!(made["created_at"].is_i64(), "{made}");
        assert_eq!(made["completed_at"], made["created_at"]);
        for name in ["id", "created_at", "completed_at"] {
            made[name] = json!(null);
        }
        assert_eq!(made, json!({
            "id": null, "object": "thread.message", "created_at": null, "assistant_id": null,
            "thread_id": thread, "run_id": null, "role": "user", "status": "completed",
            "incomplete_details": null, "completed_at": null, "incomplete_at": null,
            "content": [
                { "type": "text", "text": { "value": "Look.", "annotations": [] } },
                { "type": "image_url", "image_url": { "url": GIF, "detail": "auto" } },
            ],
            "attachments": [], "metadata": {},
        }));
        fixture.close().await;
    }

    async fn an_invalid_message_is_rejected_with_the_path_of_its_field(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &[]).await;
        let part = |part: Value| json!({ "role": "user", "content": [part] });
        let url = |url: &str| part(json!({ "type": "image_url", "image_url": { "url": url } }));
        let file = json!({ "type": "image_file", "image_file": { "file_id": "f" } });
        let search = json!([{ "file_id": "f", "tools": [{ "type": "file_search" }] }]);

        for (body, code, param) in [
            (json!({ "content": "x" }), "missing_required_parameter", "role"),
            (json!({ "role": "user", "content": "x", "hidden": true }), "unknown_parameter", "hidden"),
            (url("data:image/gif;base64,AAAA"), "invalid_image", "content[0].image_url.url"),
            (url("http://127.0.0.1:1/a.gif"), "invalid_image", "content[0].image_url.url"),
            (part(file), "unsupported_parameter", "content[0].type"),
            (json!({ "role": "user", "content": "x", "attachments": search }), "unsupported_tool", "attachments"),
        ] {
            let refused = fixture.program.post(&format!("/threads/{thread}/messages"), body.clone()).await;
            assert_eq!(error_of(&refused), (400, code.into(), json!(param)), "{body}");
        }
        let remote = json!({ "messages": [user("a"), url("http://127.0.0.1:1/a.gif")] });
        let refused = fixture.program.post("/threads", remote).await;
        assert_eq!(error_of(&refused).2, "messages[1].content[0].image_url.url");
        assert_eq!(fixture.n_rows("thread_messages").await, 0);
        fixture.close().await;
    }
}
