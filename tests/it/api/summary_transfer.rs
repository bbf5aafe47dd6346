//! Tests of the summaries in the export file of a space.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::space_content::{unpacked, with_file};

/// A space of Ann's with the member Ben.
struct ArchiveFixture {
    app: TestApp,
    ann: HttpClient,
    space: Value,
}

impl ArchiveFixture {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let space = ann.create_space("Harbor", json!({})).await;
        ann.add_member(id(&space), &ben, "member").await;
        Self { app, ann, space }
    }

    async fn exported(&self, space: i64) -> Vec<u8> {
        fetch(&self.ann, &format!("/api/spaces/{space}/export")).await
    }

    async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.app.database).await
    }

    /// Posts messages to the root conversation of a space that never answers. Returns its id.
    async fn conversation_of_messages(&self, space: &Value, n: usize) -> i64 {
        let manual = json!({"reply_order": "manual"});
        expect(
            200,
            self.ann
                .patch(&format!("/api/spaces/{}", id(space)), manual)
                .await,
        );
        let conversation = self.root_of(id(space)).await;
        for i in 1..=n {
            let path = format!("/api/conversations/{conversation}/messages");
            let (status, answer) = self
                .ann
                .post(&path, json!({"content": format!("Line {i}.")}))
                .await;
            assert!((200..300).contains(&status), "{answer}");
        }
        conversation
    }

    async fn root_of(&self, space: i64) -> i64 {
        let space = expect(200, self.ann.get(&format!("/api/spaces/{space}")).await);
        space["root_conversation_id"].as_i64().expect("an id")
    }

    /// Stores summaries; each is the values of level, status, range, text, facts, origin, model, author and
    /// whether it is usable.
    async fn summarize(&self, conversation: i64, rows: &[&str]) {
        let mut facts = self.facts().await;
        for row in rows {
            facts
                .execute(&format!(
                    "INSERT INTO conversation_summaries (conversation_id, version, token_count, created_at, \
                     level, status, from_seq, to_seq, content, pinned_facts, origin, model, created_by, is_usable) \
                     VALUES ({conversation}, 1, 3, 1000, {row})"
                ))
                .await;
        }
    }

    async fn summaries(&self, conversation: i64) -> Vec<Value> {
        let path = format!("/api/conversations/{conversation}/summaries");
        let list = expect(200, self.ann.get(&path).await);
        list["data"].as_array().expect("a list").clone()
    }
}

fn lines_of(file: &[u8]) -> Vec<Value> {
    let archive = unpacked(file);
    let text = std::str::from_utf8(&archive["summaries.jsonl"]).expect("UTF-8");
    text.lines()
        .map(|it| serde_json::from_str(it).expect("a line is JSON"))
        .collect()
}

fn contents(list: &[Value]) -> Vec<&str> {
    list.iter()
        .map(|it| it["content"].as_str().expect("a text"))
        .collect()
}

fn problems(report: &Value) -> Vec<(u64, &str)> {
    let lines = report["lines"].as_array().unwrap().iter();
    lines
        .map(|it| (it["line"].as_u64().unwrap(), it["code"].as_str().unwrap()))
        .collect()
}

on_both! {
    async fn the_archive_of_a_space_contains_the_summaries_in_use(backend) {
        let it = ArchiveFixture::open(backend).await;
        let conversation = it.conversation_of_messages(&it.space, 6).await;
        it.summarize(conversation, &[
            "0, 'current', 1, 3, 'They met.', '[]', 'model', 'gpt', NULL, true",
            "0, 'stale', 4, 6, 'They parted.', '[]', 'person', NULL, (SELECT id FROM users WHERE username = 'ben'), true",
            "1, 'superseded', 1, 3, 'They met.', '[]', 'model', 'gpt', NULL, true",
            "1, 'current', 1, 6, 'They met and parted.', '[\"Ada is a smith.\"]', 'person', NULL, (SELECT id FROM users WHERE username = 'admin'), true",
        ]).await;
        let before = it.summaries(conversation).await;
        let file = it.exported(id(&it.space)).await;
        let lines = lines_of(&file);
        assert_eq!(contents(&lines), ["They met.", "They parted.", "They met and parted."]);
        assert_eq!((&lines[1]["author"], &lines[0]["model"]), (&json!("ben"), &json!("gpt")));

        let done = import(&it.ann, "/api/spaces/import", "harbor.zip", &file).await;

        assert_eq!((&done["status"], &done["report"]["lines"]), (&json!("succeeded"), &json!([])));
        let copy = it.root_of(done["space_id"].as_i64().unwrap()).await;
        let after = it.summaries(copy).await;
        let kept = |all: &[Value]| all.iter().filter(|it| it["status"] != "superseded").map(|it| {
            let fields = ["level", "status", "from_seq", "to_seq", "content", "pinned_facts", "origin", "model"];
            fields.map(|name| it[name].clone())
        }).collect::<Vec<_>>();
        assert_eq!(kept(&after), kept(&before));
        let authors: Vec<&Value> = after.iter().map(|it| &it["created_by"]).collect();
        assert_eq!(authors, [&before[0]["created_by"], &Value::Null, &Value::Null], "only the importer is known");
        let again = it.exported(done["space_id"].as_i64().unwrap()).await;
        assert_eq!(lines_of(&again).len(), 3);
        let sql = format!("SELECT CAST(summary_goal_seq AS TEXT) FROM conversations WHERE id = {copy}");
        assert_eq!(it.facts().await.number(&sql).await, 6);
        it.app.close().await;
    }
}

on_sqlite! {
    async fn the_archive_contains_no_summary_text_with_a_deleted_message(backend) {
        let it = ArchiveFixture::open(backend).await;
        let conversation = it.conversation_of_messages(&it.space, 6).await;
        it.summarize(conversation, &[
            "0, 'stale', 1, 3, 'The canary sang.', '[]', 'model', NULL, NULL, false",
            "0, 'current', 4, 6, 'They parted.', '[]', 'model', NULL, NULL, true",
            "1, 'stale', 1, 6, 'The canary sang to them.', '[\"Ada is a smith.\"]', 'model', NULL, NULL, false",
        ]).await;
        let file = it.exported(id(&it.space)).await;
        let text = String::from_utf8(unpacked(&file)["summaries.jsonl"].clone()).expect("UTF-8");
        assert!(!text.contains("canary") && text.contains("Ada is a smith."), "{text}");

        let done = import(&it.ann, "/api/spaces/import", "harbor.zip", &file).await;

        assert_eq!((&done["status"], &done["report"]["lines"]), (&json!("succeeded"), &json!([])));
        let after = it.summaries(it.root_of(done["space_id"].as_i64().unwrap()).await).await;
        assert_eq!((after.len(), &after[0]["is_usable"], &after[0]["pinned_facts"]), (2, &json!(false), &json!(["Ada is a smith."])));
        it.app.close().await;
    }

    async fn a_summary_of_messages_that_only_the_list_of_conversations_states_has_no_place(backend) {
        let it = ArchiveFixture::open(backend).await;
        let conversation = it.conversation_of_messages(&it.space, 6).await;
        let file = it.exported(id(&it.space)).await;
        let mut listed: Value = serde_json::from_slice(&unpacked(&file)["conversations.json"]).unwrap();
        listed[0]["last_seq"] = json!(i64::MAX);
        let line = |to: i64| {
            json!({"conversation": conversation, "level": 1, "from_seq": 1, "to_seq": to, "content": format!("Up to {to}."), "status": "current", "origin": "model", "is_usable": true, "created_at": "2026-11-28T10:00:00.000Z"}).to_string()
        };
        let lines = [line(i64::MAX), line(7), line(6)].join("\n");
        let changed = with_file(&file, "conversations.json", listed.to_string().as_bytes());
        let changed = with_file(&changed, "summaries.jsonl", lines.as_bytes());

        let done = import(&it.ann, "/api/spaces/import", "harbor.zip", &changed).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        assert_eq!(problems(&done["report"]), [(1, "summary_no_place"), (2, "summary_no_place")]);
        let after = it.summaries(it.root_of(done["space_id"].as_i64().unwrap()).await).await;
        assert_eq!(contents(&after), ["Up to 6."]);
        it.app.close().await;
    }

    async fn a_summary_without_a_place_is_reported_and_the_others_are_imported(backend) {
        let it = ArchiveFixture::open(backend).await;
        let conversation = it.conversation_of_messages(&it.space, 6).await;
        let file = it.exported(id(&it.space)).await;
        let line = |key: i64, level: i64, (from, to): (i64, i64), content: &str| {
            json!({"conversation": key, "level": level, "from_seq": from, "to_seq": to, "content": content, "status": "current", "origin": "model", "is_usable": true, "created_at": "2026-11-28T10:00:00.000Z"}).to_string()
        };
        let lines = [
            line(conversation, 0, (1, 3), "Kept."),
            line(conversation, 0, (3, 6), "Overlaps."),
            "noise".to_owned(),
            line(conversation, 0, (4, 7), "Covers a message that does not exist."),
            line(conversation + 99, 0, (1, 3), "Of another conversation."),
            line(conversation, 1, (1, 3), "All."),
            line(conversation, 1, (1, 6), "All again."),
        ];
        let changed = with_file(&file, "summaries.jsonl", lines.join("\n").as_bytes());

        let done = import(&it.ann, "/api/spaces/import", "harbor.zip", &changed).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        let expected = [(2, "summary_no_place"), (3, "summary_line_invalid"), (4, "summary_no_place"), (5, "summary_conversation_unknown"), (7, "summary_no_place")];
        assert_eq!(problems(&done["report"]), expected);
        assert_eq!(done["report"]["n_skipped"], 5);
        let after = it.summaries(it.root_of(done["space_id"].as_i64().unwrap()).await).await;
        assert_eq!(contents(&after), ["All.", "Kept."]);
        it.app.close().await;
    }
}
