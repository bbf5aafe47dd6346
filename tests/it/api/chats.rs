//! Tests of chat files of other frontends: import and export.

use base::clock::Timestamp;
use base::ids::ImportId;
use serde_json::{Value, json};
use troupe::conversations::chats::import_job;

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::{bring, ended, fetch, import, import_as_previewed};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../fixtures/chats/", $name))
    };
}

const FIXTURES: [(&str, &[u8], i64, i64); 12] = [
    ("solo", fixture!("solo.jsonl"), 3, 0),
    ("group", fixture!("group.jsonl"), 4, 0),
    ("bom_crlf", fixture!("bom_crlf.jsonl"), 2, 0),
    ("no_header", fixture!("no_header.jsonl"), 2, 0),
    ("broken_lines", fixture!("broken_lines.jsonl"), 2, 6),
    ("chub_nested", fixture!("chub_nested.jsonl"), 3, 0),
    ("dates", fixture!("dates.jsonl"), 6, 0),
    ("swipes_odd", fixture!("swipes_odd.jsonl"), 6, 0),
    ("system", fixture!("system.jsonl"), 4, 0),
    ("reasoning", fixture!("reasoning.jsonl"), 1, 0),
    ("halves", fixture!("halves.jsonl"), 2, 0),
    ("old", fixture!("old.jsonl"), 2, 0),
];

/// In milliseconds.
const STALE_AFTER_MS: i64 = 600_000;

/// The space of the test and the sample space from the setup.
const SPACES: i64 = 2;

async fn n_spaces(facts: &mut DatabaseFacts) -> i64 {
    facts
        .number("SELECT CAST(count(*) AS TEXT) FROM spaces")
        .await
}

/// Inserts the rows that a process leaves when it dies during an import of the first user: a hidden
/// space with a conversation, and the import. Returns their ids.
async fn leave_import(facts: &mut DatabaseFacts, heartbeat_at: Timestamp) -> (i64, ImportId) {
    let space = "INSERT INTO spaces (name, created_at) VALUES ('', 1)";
    facts.execute(space).await;
    let hidden = "SELECT CAST(max(id) AS TEXT) FROM spaces";
    let hidden = facts.number(hidden).await;
    let conversation =
        format!("INSERT INTO conversations (space_id, created_at) VALUES ({hidden}, 1)");
    facts.execute(&conversation).await;
    let import = format!(
        "INSERT INTO imports (user_id, hidden_space_id, heartbeat_at, created_at) \
         SELECT min(id), {hidden}, {}, 1 FROM users",
        heartbeat_at.0
    );
    facts.execute(&import).await;
    let import = "SELECT CAST(max(id) AS TEXT) FROM imports";
    (hidden, ImportId(facts.number(import).await))
}

/// Creates a space with Ada, who has a greeting.
async fn create_space(ann: &HttpClient) -> (Value, String) {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    let ada = ann.create_character("Ada", Some("Welcome.")).await;
    ann.add_character(&space, &ada).await;
    let import_path = format!("/api/spaces/{}/import", id(&space));
    (space, import_path)
}

fn conversation(import: &Value) -> i64 {
    assert_eq!(import["status"], "succeeded", "{import}");
    import["conversation_id"]
        .as_i64()
        .expect("the import created a conversation")
}

/// Returns the messages of a timeline without their ids, which differ between conversations.
async fn timeline_without_ids(ann: &HttpClient, conversation: i64) -> Vec<Value> {
    let mut timeline = Vec::new();
    for message in ann.messages(conversation).await {
        let swipes = ann
            .get(&format!("/api/messages/{}/swipes", id(&message)))
            .await;
        let swipes = expect(200, swipes)["data"].clone();
        let texts: Vec<Value> = swipes
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["content"].clone())
            .collect();
        let keys = [
            "seq",
            "author_name",
            "role",
            "content",
            "visibility",
            "swipes",
            "created_at",
            "metadata",
        ];
        let mut one: serde_json::Map<String, Value> = keys
            .iter()
            .map(|it| ((*it).to_owned(), message[*it].clone()))
            .collect();
        one.insert("texts".to_owned(), json!(texts));
        timeline.push(Value::Object(one));
    }
    timeline
}

async fn memberships(ann: &HttpClient, space: &Value) -> Vec<Value> {
    let path = format!("/api/spaces/{}/memberships", id(space));
    expect(200, ann.get(&path).await)["data"]
        .as_array()
        .unwrap()
        .clone()
}

on_both! {
    /// Such a heartbeat was written before the clock was set back.
    async fn an_import_with_a_heartbeat_in_the_future_is_ended(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let now = app.app.clock.now();
        let (_, import_id) = leave_import(&mut facts, now).await;

        for (heartbeat_at, status) in [(now, "running"), (now.plus_ms(2 * STALE_AFTER_MS), "failed")] {
            facts.execute(&format!("UPDATE imports SET heartbeat_at = {}", heartbeat_at.0)).await;
            import_job::end_abandoned(&app.app.db, STALE_AFTER_MS, Vec::new(), now).await.unwrap();
            assert_eq!(expect(200, ann.get(&format!("/api/imports/{import_id}")).await)["status"], status);
        }

        assert_eq!(n_spaces(&mut facts).await, SPACES - 1);
        app.close().await;
    }

    async fn an_import_that_is_running_is_in_no_statistics(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        create_space(&ann).await;
        let totals = async || expect(200, ann.get("/api/admin/stats").await)["totals"].clone();
        let before = totals().await;
        let mut facts = DatabaseFacts::open(&app.database).await;

        leave_import(&mut facts, app.app.clock.now()).await;
        facts.execute(
            "INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, active_swipe, created_at, rev, token_count, metadata) \
             SELECT max(conversations.id), 1, max(space_memberships.id), 'user', 'Hi.', 'normal', 0, 1, 1, 1, '{}' FROM conversations, space_memberships"
        ).await;

        assert_eq!(totals().await, before);
        app.close().await;
    }
}

on_both! {
    async fn the_preview_of_a_chat_shows_to_whom_names_are_assigned_and_stores_nothing(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, import_path) = create_space(&ann).await;
        let before = memberships(&ann, &space).await;
        let mut facts = DatabaseFacts::open(&app.database).await;

        let path = format!("{import_path}/preview");
        let shown = expect(200, bring(&ann, &path, "An old evening.jsonl", fixture!("group.jsonl")).await);

        let member = |name: &str| before.iter().find(|it| it["display_name"] == name).map(id);
        let author = |name: &str, is_user, n_messages, member: Option<i64>| {
            json!({"name": name, "is_user": is_user, "n_messages": n_messages, "membership_id": member})
        };
        assert_eq!(shown["authors"], json!([
            author("Ada", false, 2, member("Ada")),
            author("Bo", false, 1, None),
            author("Kai", true, 1, member("admin")),
        ]));
        assert_eq!(shown["conversations"], json!([{
            "title": "An old evening", "n_messages": 4, "lorebook": null, "author_note": "It rains.",
            "scenario": "A harbour at night.", "n_variables": 0,
        }]));
        assert_eq!(memberships(&ann, &space).await, before);
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM imports").await, 0);
        app.close().await;
    }
}

on_sqlite! {
    async fn unusual_chat_files_can_be_imported_exported_and_imported_again(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, import_path) = create_space(&ann).await;

        for (name, file, n_messages, n_skipped) in FIXTURES {
            let first = import_as_previewed(&ann, &import_path, &format!("{name}.jsonl"), file).await;
            assert_eq!((first["n_messages"].as_i64(), first["report"]["n_skipped"].as_i64()), (Some(n_messages), Some(n_skipped)), "{name}: {first}");
            let first = conversation(&first);
            let exported = fetch(&ann, &format!("/api/conversations/{first}/export?format=jsonl")).await;
            let second = import(&ann, &import_path, "again.jsonl", &exported).await;
            assert_eq!(second["report"]["n_skipped"], 0, "{name}: {second}");
            assert_eq!(second["report"]["n_repaired"], 0, "{name}: {second}");
            let second = conversation(&second);
            assert_eq!(
                timeline_without_ids(&ann, first).await,
                timeline_without_ids(&ann, second).await,
                "{name}"
            );
            let settings = |it: Value| it["settings"].clone();
            assert_eq!(settings(ann.conversation(first).await), settings(ann.conversation(second).await), "{name}");
        }
        app.close().await;
    }

    async fn imported_names_match_members_and_no_greeting_is_repeated(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, import_path) = create_space(&ann).await;
        let before = memberships(&ann, &space).await;

        let done = import(
            &ann,
            &import_path,
            "An old evening.jsonl",
            fixture!("group.jsonl"),
        )
        .await;
        let conversation = conversation(&done);

        let made = ann.conversation(conversation).await;
        assert_eq!((made["title"].as_str(), made["kind"].as_str(), made["last_seq"].as_i64()), (Some("An old evening"), Some("root"), Some(4)));
        assert_eq!(made["settings"]["author_note"]["text"], "It rains.");
        let all = ann.messages(conversation).await;
        let authors: Vec<_> = all.iter().map(|it| it["author_name"].as_str().unwrap()).collect();
        assert_eq!(authors, ["Ada", "Bo", "admin", "Ada"], "the first unknown user was not mapped to the importing user");
        let after = memberships(&ann, &space).await;
        assert_eq!(after.len(), before.len() + 1);
        let bo = after.last().unwrap();
        assert_eq!((bo["display_name"].as_str(), bo["status"].as_str(), bo["kind"].as_str()), (Some("Bo"), Some("removed"), Some("character")));
        let mut facts = DatabaseFacts::open(&app.database).await;
        let uncounted = format!("SELECT CAST(count(*) AS TEXT) FROM messages WHERE conversation_id = {conversation} AND token_count < 1");
        assert_eq!(facts.number(&uncounted).await, 0, "messages without a token count exist");
        assert_eq!(n_spaces(&mut facts).await, SPACES, "a hidden space is left");
        let found = expect(200, ann.get("/api/search?q=wind").await);
        assert_eq!(found["data"][0]["conversation_id"], conversation);
        // The conversation continues after the import.
        expect(201, ann.post_message(conversation, "We go on.", None).await);
        assert_eq!(ann.messages(conversation).await.last().unwrap()["seq"], 5);
        app.close().await;
    }

    async fn the_importing_user_maps_names_to_members(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, import_path) = create_space(&ann).await;
        let ada = memberships(&ann, &space).await.last().unwrap().clone();
        let names = json!({"Bo": id(&ada), "Ada": "new", "Kai": "new"}).to_string();
        let encoded: String = names.bytes().map(|it| format!("%{it:02X}")).collect();

        let done = import(&ann, &format!("{import_path}?names={encoded}"), "a.jsonl", fixture!("group.jsonl")).await;

        let all = ann.messages(conversation(&done)).await;
        let is_ada: Vec<bool> = all
            .iter()
            .map(|it| it["space_membership_id"] == ada["id"])
            .collect();
        assert_eq!(is_ada, [false, true, false, false]);
        assert_eq!(all[2]["author_name"], "Kai");
        for wrong in ["{", "[]", "{\"Bo\":0}", "{\"Bo\":\"old\"}"] {
            let encoded: String = wrong.bytes().map(|it| format!("%{it:02X}")).collect();
            let answer = bring(
                &ann,
                &format!("{import_path}?names={encoded}"),
                "a.jsonl",
                b"{}",
            )
            .await;
            assert_eq!(refusal(&answer), (400, "invalid_value".to_owned()), "{wrong}");
        }
        app.close().await;
    }

    async fn a_file_that_is_not_a_chat_stores_nothing(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, import_path) = create_space(&ann).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let before = facts.number("SELECT CAST(count(*) AS TEXT) FROM conversations").await;

        for (name, file) in [("empty", &b""[..]), ("noise", b"\x89PNG\r\n\x1a\n"), ("header", b"{\"user_name\":\"A\",\"chat_metadata\":{}}")] {
            let done = import(&ann, &import_path, "x.jsonl", file).await;
            assert_eq!((done["status"].as_str(), done["error"]["code"].as_str()), (Some("failed"), Some("not_a_chat")), "{name}: {done}");
        }
        let preview = bring(&ann, &format!("{import_path}/preview"), "x.jsonl", b"noise").await;
        assert_eq!(refusal(&preview), (422, "not_a_chat".to_owned()));
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM conversations").await, before);
        assert_eq!(n_spaces(&mut facts).await, SPACES);
        assert_eq!(memberships(&ann, &space).await.len(), 2);
        let json = ann.post(&import_path, json!({})).await;
        assert_eq!(refusal(&json), (415, "unsupported_media_type".to_owned()));
        app.close().await;
    }

    async fn an_import_interrupted_by_a_crash_is_cleaned_up_and_never_visible(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, import_path) = create_space(&ann).await;
        import(&ann, &import_path, "a.jsonl", fixture!("solo.jsonl")).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        // The heartbeat is fresh, because the recovery of this node must not be faster than the test.
        let (hidden, import_id) = leave_import(&mut facts, app.app.clock.now()).await;

        let all = expect(200, ann.get("/api/spaces?all=true").await);
        assert_eq!(all["data"].as_array().unwrap().len() as i64, SPACES, "an incomplete import is visible to an admin");
        assert_eq!(ann.get(&format!("/api/spaces/{hidden}")).await.0, 404);
        let second = bring(&ann, &import_path, "b.jsonl", fixture!("old.jsonl")).await;
        assert_eq!(refusal(&second), (409, "import_running".to_owned()));
        for (held_ids, status) in [(vec![import_id], "running"), (Vec::new(), "failed")] {
            import_job::end_abandoned(&app.app.db, 0, held_ids, app.app.clock.now()).await.unwrap();
            assert_eq!(expect(200, ann.get(&format!("/api/imports/{import_id}")).await)["status"], status);
        }

        let failed = expect(200, ann.get(&format!("/api/imports/{import_id}")).await);
        assert_eq!((failed["status"].as_str(), failed["error"]["code"].as_str()), (Some("failed"), Some("interrupted")));
        assert_eq!(n_spaces(&mut facts).await, SPACES);
        import(&ann, &import_path, "b.jsonl", fixture!("old.jsonl")).await;
        assert_eq!(root_of(&expect(200, ann.get(&format!("/api/spaces/{}", id(&space))).await)), root_of(&space));
        app.close().await;
    }

    async fn an_import_is_canceled_and_visible_only_to_its_user(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let ben = app.register("ben").await;
        let (space, import_path) = create_space(&ann).await;
        let mut long = Vec::new();
        for n in 0..20_000 {
            long.extend(format!("{{\"name\":\"Ada\",\"is_user\":false,\"mes\":\"Line {n} of a long evening.\"}}\n").bytes());
        }

        let import_id = id(&expect(202, bring(&ann, &import_path, "long.jsonl", &long).await));
        let path = format!("/api/imports/{import_id}");
        assert_eq!((ben.get(&path).await.0, ben.delete(&path).await.0), (404, 404));
        assert_eq!(ann.delete(&path).await.0, 204);

        assert_eq!(ended(&ann, import_id).await["status"], "canceled");
        assert_eq!(refusal(&ann.delete(&path).await), (409, "already_finished".to_owned()));
        let listed = expect(200, ann.get(&format!("/api/spaces/{}/conversations", id(&space))).await);
        assert_eq!(listed["data"].as_array().unwrap().len(), 1);
        // The next import is accepted immediately and contains nothing of the canceled one.
        let next = import(&ann, &import_path, "a.jsonl", fixture!("solo.jsonl")).await;
        assert_eq!(next["n_messages"], 3);
        let mut facts = DatabaseFacts::open(&app.database).await;
        assert_eq!(n_spaces(&mut facts).await, SPACES);
        app.close().await;
    }

    async fn a_conversation_is_exported_as_readable_text(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, import_path) = create_space(&ann).await;
        let conversation = conversation(&import(&ann, &import_path, "Evening.jsonl", fixture!("solo.jsonl")).await);
        let hidden = &ann.messages(conversation).await[1];
        expect(204, ann.delete(&format!("/api/messages/{}", id(hidden))).await);

        let text = fetch(&ann, &format!("/api/conversations/{conversation}/export?format=txt")).await;

        assert_eq!(
            String::from_utf8(text).unwrap(),
            "# Evening\n\nAda (2024-06-03 13:02 UTC):\nGood evening.\n\nAda (2024-06-03 13:03 UTC):\nThen we light another.\n\n"
        );
        assert_eq!(ann.get(&format!("/api/conversations/{conversation}/export?format=pdf")).await.0, 400);
        app.close().await;
    }
}
