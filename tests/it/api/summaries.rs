//! Tests of summaries: listed, changed, restored and requested by people.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;

/// A conversation with a running summary of two versions and one part.
struct SummaryFixture {
    app: TestApp,
    owner: HttpClient,
    space: Value,
    conversation: i64,
}

impl SummaryFixture {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, &[("TROUPE_OPEN_REGISTRATION", "true")]).await;
        let owner = app.admin().await;
        let space = owner.create_space("Harbor", json!({})).await;
        let conversation = space["root_conversation_id"].as_i64().expect("an id");
        let mut facts = DatabaseFacts::open(&app.database).await;
        for (level, version, status, content) in [
            (0, 1, "current", "They met."),
            (1, 1, "superseded", "They met at sea."),
            (1, 2, "current", "They met in the harbor."),
        ] {
            facts
                .execute(&format!(
                    "INSERT INTO conversation_summaries (conversation_id, level, version, status, \
                     from_seq, to_seq, content, token_count, created_at) \
                     VALUES ({conversation}, {level}, {version}, '{status}', 1, 2, '{content}', 3, 0)"
                ))
                .await;
        }
        Self {
            app,
            owner,
            space,
            conversation,
        }
    }

    fn path(&self) -> String {
        format!("/api/conversations/{}/summaries", self.conversation)
    }

    async fn list(&self) -> Vec<Value> {
        let list = expect(200, self.owner.get(&self.path()).await);
        list["data"].as_array().expect("a list").clone()
    }

    async fn patch(&self, of: &Value, body: Value) -> (u16, Value) {
        self.owner
            .patch(&format!("/api/summaries/{}", of["id"]), body)
            .await
    }
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn contents(list: &[Value]) -> Vec<&str> {
    list.iter()
        .map(|it| it["content"].as_str().expect("a text"))
        .collect()
}

on_both! {
    async fn the_running_summary_comes_first_then_its_older_versions_then_the_parts(backend) {
        let it = SummaryFixture::open(backend).await;

        let list = it.list().await;

        assert_eq!(contents(&list), ["They met in the harbor.", "They met at sea.", "They met."]);
        assert_eq!((&list[0]["level"], &list[2]["level"]), (&json!(1), &json!(0)));
        let one = expect(200, it.owner.get(&format!("/api/summaries/{}", list[1]["id"])).await);
        assert_eq!(one, list[1]);
        it.app.close().await;
    }

    async fn an_edit_is_a_new_version_and_a_stale_one_returns_the_version_in_use(backend) {
        let it = SummaryFixture::open(backend).await;
        let old = it.list().await[0].clone();

        let body = json!({"content": " They never met. ", "pinned_facts": ["Ann\n is tall."], "expected_version": 2});
        let new = expect(200, it.patch(&old, body).await);

        assert_eq!((&new["content"], &new["pinned_facts"]), (&json!("They never met."), &json!(["Ann is tall."])));
        assert_eq!((&new["version"], &new["origin"], &new["status"]), (&json!(3), &json!("person"), &json!("current")));
        let late = it.patch(&old, json!({"content": "Too late.", "expected_version": 2})).await;
        assert_eq!(refusal(&late), refused(409, "edit_conflict"));
        assert_eq!(late.1["error"]["current"], new);
        assert_eq!(contents(&it.list().await)[..2], ["They never met.", "They met in the harbor."]);
        it.app.close().await;
    }

    async fn a_version_is_restored_as_a_new_one(backend) {
        let it = SummaryFixture::open(backend).await;
        let old = it.list().await[1].clone();

        let path = format!("/api/summaries/{}/restore", old["id"]);
        let new = expect(200, it.owner.post(&path, Value::Null).await);

        assert_eq!((&new["content"], &new["version"]), (&old["content"], &json!(3)));
        assert_eq!(it.list().await[0], new);
        let part = it.list().await.pop().expect("a part");
        let path = format!("/api/summaries/{}/restore", part["id"]);
        assert_eq!(refusal(&it.owner.post(&path, Value::Null).await), refused(422, "invalid_value"));
        it.app.close().await;
    }
}

on_sqlite! {
    async fn a_change_that_is_not_valid_changes_nothing(backend) {
        let it = SummaryFixture::open(backend).await;
        let before = it.list().await;
        let long = "a".repeat(8_001);
        let many = vec!["A fact."; 21];
        for (body, expected) in [
            (json!({"content": "  ", "expected_version": 2}), refused(422, "invalid_value")),
            (json!({"content": long, "expected_version": 2}), refused(422, "invalid_value")),
            (json!({"content": "a\u{0}b", "expected_version": 2}), refused(422, "invalid_value")),
            (json!({"pinned_facts": many, "expected_version": 2}), refused(422, "invalid_value")),
            (json!({"pinned_facts": ["a".repeat(301)], "expected_version": 2}), refused(422, "invalid_value")),
            (json!({"pinned_facts": [" "], "expected_version": 2}), refused(422, "invalid_value")),
            (json!({"content": "No version."}), refused(400, "missing_field")),
            (json!({"content": 5, "expected_version": 2}), refused(400, "invalid_type")),
            (json!({"text": "Unknown.", "expected_version": 2}), refused(400, "unknown_field")),
        ] {
            assert_eq!(refusal(&it.patch(&before[0], body.clone()).await), expected, "{body}");
        }
        let of_part = it.patch(&before[2], json!({"pinned_facts": ["A fact."], "expected_version": 1})).await;
        assert_eq!(refusal(&of_part), refused(422, "invalid_value"));

        assert_eq!(it.list().await, before);
        it.app.close().await;
    }

    async fn a_summary_is_requested_only_with_a_model_and_while_they_are_on(backend) {
        let it = SummaryFixture::open(backend).await;
        assert_eq!(refusal(&it.owner.post(&it.path(), Value::Null).await), refused(409, "no_model"));

        let settings = json!({"memory": {"summaries": {"enabled": false}}});
        let path = format!("/api/spaces/{}", id(&it.space));
        expect(200, it.owner.patch(&path, json!({"settings": settings})).await);

        assert_eq!(refusal(&it.owner.post(&it.path(), Value::Null).await), refused(409, "memory_off"));
        it.app.close().await;
    }

    async fn the_settings_of_summaries_are_validated(backend) {
        let it = SummaryFixture::open(backend).await;
        let path = format!("/api/spaces/{}", id(&it.space));
        for (summaries, expected) in [
            (json!({"enabled": true, "chunk_messages": 10, "max_tokens": 2_000, "model": null}), 200),
            (json!({"chunk_messages": 9}), 422),
            (json!({"chunk_messages": 101}), 422),
            (json!({"max_tokens": 99}), 422),
            (json!({"max_tokens": 2_001}), 422),
            (json!({"enabled": "yes"}), 400),
            (json!({"model": {"model": "small"}}), 400),
            (json!({"model": {"provider_id": 999_999}}), 422),
        ] {
            let body = json!({"settings": {"memory": {"summaries": summaries}}});
            let (status, answer) = it.owner.patch(&path, body).await;
            assert_eq!(status, expected, "{summaries}: {answer}");
        }
        it.app.close().await;
    }

    async fn a_summary_of_another_space_is_not_found(backend) {
        let it = SummaryFixture::open(backend).await;
        let summary = it.list().await[0].clone();
        let other = it.app.register("bob").await;

        let path = format!("/api/summaries/{}", summary["id"]);
        assert_eq!(other.get(&path).await.0, 404);
        assert_eq!(other.patch(&path, json!({"content": "Mine.", "expected_version": 2})).await.0, 404);
        assert_eq!(other.post(&format!("{path}/restore"), Value::Null).await.0, 404);
        assert_eq!(other.get(&it.path()).await.0, 404);
        it.app.close().await;
    }
}
