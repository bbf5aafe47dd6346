//! Tests of the export and import of memories.

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::file_uploads::{bring, fetch, import};
use crate::support::http_client::{HttpClient, expect, http_client, id};
use crate::support::http_response::refusal;
use crate::support::space_content::{unpacked, with_file};

/// A space of Ann's with the character Ada and the member Ben.
struct TransferFixture {
    app: TestApp,
    ann: HttpClient,
    ben: HttpClient,
    space: Value,
    path: String,
    ada: i64,
}

impl TransferFixture {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let space = ann.create_space("Harbor", json!({})).await;
        ann.add_member(id(&space), &ben, "member").await;
        let ada = ann.create_character("Ada", None).await;
        Self {
            ada: id(&ann.add_character(&space, &ada).await),
            path: format!("/api/spaces/{}/memories", id(&space)),
            app,
            ann,
            ben,
            space,
        }
    }

    /// Returns the membership with this name.
    async fn member(&self, name: &str) -> i64 {
        let path = format!("/api/spaces/{}/memberships", id(&self.space));
        let roster = expect(200, self.ann.get(&path).await);
        let mut all = roster["data"].as_array().unwrap().iter();
        id(all.find(|it| it["display_name"] == name).expect(name))
    }

    async fn remember(&self, person: &HttpClient, content: &str, more: Value) -> Value {
        let mut body = json!({"content": content, "kind": "event"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        expect(201, person.post(&self.path, body).await)
    }

    /// Returns the lines of an export.
    async fn exported(&self, person: &HttpClient) -> Vec<Value> {
        lines_of(&fetch(person, &format!("{}/export", self.path)).await)
    }

    async fn import(&self, person: &HttpClient, file: &str) -> (u16, Value) {
        let path = format!("{}/import", self.path);
        bring(person, &path, "memories.jsonl", file.as_bytes()).await
    }

    /// Returns the contents of the list that a person sees, in alphabetical order.
    async fn contents(&self, person: &HttpClient) -> Vec<String> {
        contents_in(person, id(&self.space)).await
    }
}

fn lines_of(file: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(file).expect("a file of memories is UTF-8");
    text.lines()
        .map(|it| serde_json::from_str(it).expect("a line is JSON"))
        .collect()
}

async fn contents_in(person: &HttpClient, space: i64) -> Vec<String> {
    let path = format!("/api/spaces/{space}/memories?limit=200");
    let list = expect(200, person.get(&path).await);
    let all = list["data"].as_array().unwrap().iter();
    let mut contents: Vec<_> = all
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect();
    contents.sort();
    contents
}

fn problems(report: &Value) -> Vec<(u64, &str)> {
    let lines = report["lines"].as_array().unwrap().iter();
    lines
        .map(|it| (it["line"].as_u64().unwrap(), it["code"].as_str().unwrap()))
        .collect()
}

on_both! {
    async fn exported_memories_are_the_same_after_an_import_elsewhere(backend) {
        let it = TransferFixture::open(backend).await;
        let me = it.member("admin").await;
        it.remember(&it.ann, "The mill burned down.", json!({"pinned": true, "importance": 0.25})).await;
        it.remember(&it.ann, "Ada fears \"the sea\".", json!({"membership_id": it.ada, "kind": "preference"})).await;
        it.remember(&it.ann, "Rain.", json!({"membership_id": me, "about_membership_id": it.ada})).await;
        let before = it.exported(&it.ann).await;
        let file = fetch(&it.ann, &format!("{}/export", it.path)).await;
        expect(200, it.ann.post(&format!("{}/forget", it.path), json!({"all": true})).await);

        let report = expect(200, it.import(&it.ann, std::str::from_utf8(&file).unwrap()).await);

        assert_eq!((&report["n_imported"], &report["lines"]), (&json!(3), &json!([])));
        assert_eq!(before[0]["owner"], json!(null));
        assert_eq!((&before[1]["owner"], &before[2]["about"]), (&json!("Ada"), &json!("Ada")));
        assert_eq!(it.exported(&it.ann).await, before);
        let found = expect(200, it.ann.get(&format!("{}?q=who%20fears%20the%20sea&membership_id={}", it.path, it.ada)).await);
        assert_eq!((&found["data"][0]["origin"], &found["data"][0]["content"]), (&json!("imported"), &json!("Ada fears \"the sea\".")));
        it.app.close().await;
    }

    async fn the_same_content_is_stored_once_and_reported_as_a_duplicate(backend) {
        let it = TransferFixture::open(backend).await;
        it.remember(&it.ann, "The mill burned down.", json!({})).await;

        let file = "{\"content\": \"a\"}\n{\"content\": \"b\"}\n{\"content\": \"A \"}\n{\"content\": \"a\", \"owner\": \"Ada\"}\n{\"content\": \"the MILL burned down.\"}";
        let report = expect(200, it.import(&it.ann, file).await);

        let counts = (&report["n_imported"], &report["n_duplicates"], &report["n_skipped"]);
        assert_eq!(counts, (&json!(3), &json!(2), &json!(0)));
        assert_eq!(problems(&report), [(3, "memory_duplicate"), (5, "memory_duplicate")]);
        assert_eq!(it.contents(&it.ann).await, ["The mill burned down.", "a", "a", "b"]);
        let again = expect(200, it.import(&it.ann, file).await);
        assert_eq!((&again["n_imported"], &again["n_duplicates"]), (&json!(0), &json!(5)));
        it.app.close().await;
    }

    async fn a_bad_line_does_not_affect_the_others(backend) {
        let it = TransferFixture::open(backend).await;
        let long = format!("{{\"content\": \"{}\"}}", "x".repeat(70_000));
        let lines = [
            "\u{feff}{\"content\": \" One\\n line.\", \"unknown\": 1}",
            "",
            "no JSON",
            "{\"kind\": \"event\"}",
            "{\"content\": \"x\", \"importance\": 2}",
            "{\"content\": \"x\", \"kind\": \"dream\"}",
            "{\"content\": \"x\", \"owner\": \"Zoe\"}",
            "{\"content\": \"x\", \"audience\": [\"Ada\"]}",
            &long,
            "{\"content\": \"About her.\", \"about\": \"Zoe\"}",
            "{\"content\": \"a \\u0000 b\", \"created_at\": \"9000-01-01T00:00:00Z\", \"pinned\": true}",
        ];

        let report = expect(200, it.import(&it.ann, &lines.join("\r\n")).await);

        assert_eq!(problems(&report), [
            (3, "memory_line_broken"),
            (4, "memory_line_content"),
            (5, "memory_line_field"),
            (6, "memory_line_field"),
            (7, "memory_owner_unknown"),
            (8, "memory_line_audience"),
            (9, "memory_line_too_long"),
            (10, "memory_about_unknown"),
        ]);
        let counts = (&report["n_imported"], &report["n_skipped"], &report["n_unlinked"]);
        assert_eq!(counts, (&json!(3), &json!(7), &json!(1)));
        assert!(report["lines"][2]["reason"].as_str().unwrap().contains("importance"), "{report}");
        assert_eq!(it.contents(&it.ann).await, ["About her.", "One line.", "a b"]);
        let list = expect(200, it.ann.get(&it.path).await);
        assert!(list["data"][0]["created_at"].as_str().unwrap() < "2100", "a memory of the future was stored");
        it.app.close().await;
    }

    async fn nobody_exports_or_imports_the_memories_of_another_person(backend) {
        let it = TransferFixture::open(backend).await;
        let ben = it.member("ben").await;
        it.remember(&it.ben, "Ben's secret.", json!({"membership_id": ben})).await;
        it.remember(&it.ann, "It rained.", json!({})).await;
        let of = |lines: Vec<Value>| lines.into_iter().map(|it| it["content"].clone()).collect::<Vec<_>>();

        assert_eq!(of(it.exported(&it.ann).await), ["It rained."]);
        assert_eq!(of(it.exported(&it.ben).await), ["Ben's secret.", "It rained."]);
        let report = expect(200, it.import(&it.ann, "{\"content\": \"False.\", \"owner\": \"ben\"}").await);

        assert_eq!(problems(&report), [(1, "memory_owner_other")]);
        assert_eq!(it.contents(&it.ben).await, ["Ben's secret.", "It rained."]);
        it.app.close().await;
    }

    async fn the_archive_of_a_space_contains_the_memories_that_its_owner_may_see(backend) {
        let it = TransferFixture::open(backend).await;
        let (ann, ben) = (it.member("admin").await, it.member("ben").await);
        it.remember(&it.ben, "Ben's secret.", json!({"membership_id": ben})).await;
        it.remember(&it.ann, "Ann's note.", json!({"membership_id": ann, "about_membership_id": ben})).await;
        it.remember(&it.ann, "Ada fears the sea.", json!({"membership_id": it.ada})).await;
        it.remember(&it.ann, "It rained.", json!({"pinned": true})).await;
        let gone = it.remember(&it.ann, "The canary.", json!({})).await;
        assert_eq!(it.ann.delete(&format!("{}/{}", it.path, id(&gone))).await.0, 204);
        let before = it.exported(&it.ann).await;
        let file = fetch(&it.ann, &format!("/api/spaces/{}/export", id(&it.space))).await;
        assert_eq!(lines_of(&unpacked(&file)["memories.jsonl"]), before);

        let done = import(&it.ann, "/api/spaces/import", "harbor.zip", &file).await;

        assert_eq!((&done["status"], &done["report"]["lines"]), (&json!("succeeded"), &json!([])));
        let copy = done["space_id"].as_i64().unwrap();
        assert_eq!(lines_of(&fetch(&it.ann, &format!("/api/spaces/{copy}/memories/export")).await), before);
        assert_eq!(contents_in(&it.ann, copy).await, ["Ada fears the sea.", "Ann's note.", "It rained."]);
        it.app.close().await;
    }
}

on_sqlite! {
    async fn what_has_no_place_in_an_imported_space_is_reported(backend) {
        let it = TransferFixture::open(backend).await;
        let file = fetch(&it.ann, &format!("/api/spaces/{}/export", id(&it.space))).await;
        let memories = "{\"content\": \"Ben's secret.\", \"owner\": \"ben\"}\nnoise\n{\"content\": \"Kept.\", \"about\": \"ben\"}\n{\"content\": \"Zoe's.\", \"owner\": \"Zoe\"}";
        let changed = with_file(&file, "memories.jsonl", memories.as_bytes());

        let done = import(&it.ann, "/api/spaces/import", "harbor.zip", &changed).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        assert_eq!(problems(&done["report"]), [(1, "memory_owner_other"), (2, "memory_line_broken"), (4, "memory_owner_unknown")]);
        assert_eq!(done["report"]["n_skipped"], 3);
        assert_eq!(contents_in(&it.ann, done["space_id"].as_i64().unwrap()).await, ["Kept."]);
        it.app.close().await;
    }

    async fn an_export_is_a_download_of_json_lines(backend) {
        let it = TransferFixture::open(backend).await;
        it.remember(&it.ann, "It rained.", json!({})).await;

        let request = http_client().get(format!("{}{}/export", it.ann.base(), it.path));
        let answer = request.header("cookie", it.ann.cookie()).send().await.unwrap();

        assert_eq!(answer.headers()[CONTENT_TYPE], "application/x-ndjson");
        assert_eq!(answer.headers()[CONTENT_DISPOSITION], "attachment; filename=\"Harbor.memories.jsonl\"");
        let line: Value = serde_json::from_str(answer.text().await.unwrap().trim_end()).unwrap();
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["content", "kind", "importance", "owner", "about", "created_at", "pinned"]);
        it.app.close().await;
    }

    async fn members_export_and_moderators_import(backend) {
        let it = TransferFixture::open(backend).await;
        let (guest, _) = HttpClient::join_by_link(&it.app.base, it.ann.invite(id(&it.space), json!({"role": "guest"})).await["token"].as_str().unwrap(), "Gil").await;

        assert_eq!(it.import(&it.ben, "{\"content\": \"x\"}").await.0, 403);
        assert_eq!(it.import(&guest, "{\"content\": \"x\"}").await.0, 403);
        assert_eq!(guest.get(&format!("{}/export", it.path)).await.0, 403);

        assert_eq!(it.exported(&it.ben).await, Vec::<Value>::new());
        it.app.close().await;
    }

    async fn a_file_that_is_too_large_stores_nothing(backend) {
        let it = TransferFixture::open(backend).await;
        let mut file = "{\"content\": \"First.\"}\n".to_owned();
        file.push_str(&" ".repeat(64 * 1024 * 1024));

        let refused = it.import(&it.ann, &file).await;

        assert_eq!(refusal(&refused), (413, "too_large".to_owned()));
        assert_eq!(it.contents(&it.ann).await, Vec::<String>::new());
        it.app.close().await;
    }

    async fn an_import_ends_within_the_maximum_of_the_space(backend) {
        let it = TransferFixture::open(backend).await;
        let settings = json!({"settings": {"memory": {"max_memories": 150}}});
        expect(200, it.ann.patch(&format!("/api/spaces/{}", id(&it.space)), settings).await);
        let line = |n: usize| json!({"content": format!("Fact {n}."), "importance": n as f64 / 1_000.0}).to_string();
        let file: Vec<String> = (0..250).map(line).collect();

        let report = expect(200, it.import(&it.ann, &file.join("\n")).await);

        assert_eq!(report["n_imported"], 250);
        let lines = it.exported(&it.ann).await;
        assert_eq!((lines.len(), &lines[0]["content"]), (150, &json!("Fact 100.")));
        it.app.close().await;
    }
}
