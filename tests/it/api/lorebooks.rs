//! Tests of lorebooks: the user's library, entries, where lorebooks apply, and the activation test.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;
use crate::support::{file_uploads, poll};

async fn make(person: &HttpClient, name: &str, entries: Value) -> Value {
    let body = json!({"name": name, "entries": entries});
    expect(201, person.post("/api/lorebooks", body).await)
}

fn path_of(lorebook: &Value) -> String {
    format!("/api/lorebooks/{}", id(lorebook))
}

/// Returns the entries that a text activates, and the others as `name: because`.
async fn test_activation(
    person: &HttpClient,
    lorebook: &Value,
    text: &str,
) -> (Vec<String>, Vec<String>) {
    let path = format!("{}/test", path_of(lorebook));
    let result = expect(200, person.post(&path, json!({"text": text})).await);
    let describe = |field: &str| {
        let all = result[field].as_array().unwrap().iter();
        all.map(|it| {
            format!(
                "{}: {}",
                it["name"].as_str().unwrap(),
                it["because"].as_str().unwrap()
            )
        })
        .collect()
    };
    (describe("fired"), describe("not_fired"))
}

on_sqlite! {
    async fn a_lorebook_can_be_created_changed_and_deleted(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let made = expect(201, admin.post("/api/lorebooks", json!({
            "name": " Harbor ", "scan_depth": 4, "token_budget": 300, "recursive_scanning": true,
            "entries": [{"keys": ["quay"], "content": "Grey stone.", "extensions": {"position": 4, "x": [1]}}],
        })).await);

        assert_eq!((&made["name"], &made["scan_depth"], &made["n_entries"]), (&json!("Harbor"), &json!(4), &json!(1)));
        assert_eq!(made["entries"][0]["keys"], json!(["quay"]));
        assert_eq!(made["entries"][0]["extensions"]["x"], json!([1]));
        let list = expect(200, admin.get("/api/lorebooks").await);
        assert_eq!((&list["data"][0]["name"], &list["data"][0]["n_entries"]), (&json!("Harbor"), &json!(1)));
        assert!(list["data"][0].get("entries").is_none(), "the list contains entries");

        let changed = expect(200, admin.patch(&path_of(&made), json!({"name": "Port", "scan_depth": null})).await);
        assert_eq!((&changed["name"], &changed["scan_depth"], &changed["token_budget"]), (&json!("Port"), &Value::Null, &json!(300)));
        assert_eq!(admin.delete(&path_of(&made)).await.0, 204);
        assert_eq!(admin.get(&path_of(&made)).await.0, 404);
        app.close().await;
    }

    async fn entries_can_be_created_changed_field_by_field_and_deleted(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let lorebook = make(&admin, "Harbor", json!([])).await;
        let path = format!("{}/entries", path_of(&lorebook));

        let made = expect(201, admin.post(&path, json!({"keys": ["gull"], "content": "They steal.", "extensions": {"sticky": 3}})).await);
        let one = format!("{path}/{}", id(&made));
        let changed = expect(200, admin.patch(&one, json!({"name": "Gulls", "extensions": {"cooldown": 2}})).await);

        assert_eq!((&changed["name"], &changed["content"]), (&json!("Gulls"), &json!("They steal.")));
        assert_eq!((&changed["extensions"]["sticky"], &changed["extensions"]["cooldown"]), (&json!(3), &json!(2)));
        let list = expect(200, admin.get(&path).await);
        assert_eq!(list["data"], json!([changed]));
        let other = make(&admin, "Other", json!([])).await;
        assert_eq!(admin.get(&format!("{}/entries/{}", path_of(&other), id(&made))).await.0, 404, "an entry of another lorebook was returned");
        assert_eq!(admin.delete(&one).await.0, 204);
        assert_eq!(admin.get(&one).await.0, 404);
        app.close().await;
    }

    async fn an_invalid_lorebook_is_rejected_with_the_field_named(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let lorebook = make(&admin, "Harbor", json!([])).await;
        let path = format!("{}/entries", path_of(&lorebook));
        let cases = [
            (admin.post("/api/lorebooks", json!({"entries": []})).await, 400, "missing_field", "name"),
            (admin.post("/api/lorebooks", json!({"name": " "})).await, 422, "invalid_value", "name"),
            (admin.post("/api/lorebooks", json!({"name": "A", "scan_depth": 1_001})).await, 422, "invalid_value", "scan_depth"),
            (admin.post("/api/lorebooks", json!({"name": "A", "entries": [{}, {"keys": 5}]})).await, 400, "invalid_type", "entries.1.keys"),
            (admin.post(&path, json!({"keys": ["a"], "made_up": 1})).await, 400, "unknown_field", "made_up"),
            (admin.post(&path, json!({"position": "above"})).await, 422, "invalid_value", "position"),
            (admin.post(&path, json!({"content": "x".repeat(300_000)})).await, 422, "too_large", "entries"),
            (admin.post(&format!("{}/test", path_of(&lorebook)), json!({"text": "x".repeat(70_000)})).await, 422, "too_long", "text"),
        ];

        for (answer, status, code, param) in cases {
            assert_eq!(refusal(&answer), (status, code.to_owned()), "{}", answer.1);
            assert_eq!(answer.1["error"]["param"], param);
        }
        assert_eq!(expect(200, admin.get(&path_of(&lorebook)).await)["n_entries"], 0);
        app.close().await;
    }

    async fn testing_a_text_shows_activated_entries_and_why_others_are_not(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let lorebook = make(&admin, "Harbor", json!([
            {"keys": ["gull"], "content": "They steal.", "name": "Gulls"},
            {"keys": ["/ships?/i"], "content": "Tall.", "name": "Ships"},
            {"keys": [], "constant": true, "content": "Salt.", "name": "Salt"},
            {"keys": ["whale"], "name": "Whales"},
            {"keys": ["gull"], "secondary_keys": ["bread"], "name": "Bread"},
            {"keys": ["gull"], "enabled": false, "name": "Off"},
            {"keys": ["/(/"], "name": "Broken"},
        ])).await;

        let (fired, not_fired) = test_activation(&admin, &lorebook, "A GULL on a Ship").await;

        assert_eq!(fired, ["Salt: constant", "Ships: key: /ships?/i", "Gulls: key: gull"]);
        assert_eq!(not_fired, ["Whales: no_key", "Bread: secondary_keys", "Off: disabled", "Broken: bad_pattern: /(/"]);
        let answer = expect(200, admin.post(&format!("{}/test", path_of(&lorebook)), json!({"text": "Hm."})).await);
        assert_eq!(answer["warnings"].as_array().unwrap().len(), 1);
        assert_eq!(answer["warnings_coded"], json!([
            {"code": "lore_key_no_pattern", "params": {"entry": "Broken", "book": "Harbor", "key": "/(/", "reason": "unterminated group at 1"}},
        ]));
        app.close().await;
    }

    async fn a_lorebook_is_exported_as_a_world_info_file(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let lorebook = make(&admin, "Harbor", json!([{"keys": ["gull"], "secondary_keys": ["sea"], "content": "They steal.", "enabled": false, "insertion_order": 7}])).await;

        let world = expect(200, admin.get(&format!("{}/export", path_of(&lorebook))).await);

        let entry = &world["entries"]["0"];
        assert_eq!((&world["name"], &entry["key"], &entry["keysecondary"]), (&json!("Harbor"), &json!(["gull"]), &json!(["sea"])));
        assert_eq!((&entry["disable"], &entry["order"], &entry["uid"]), (&json!(true), &json!(7), &json!(0)));
        assert_eq!((&entry["probability"], &entry["scanDepth"]), (&json!(100), &Value::Null));
        app.close().await;
    }

    async fn a_world_info_file_is_imported_and_an_invalid_file_stores_nothing(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let import_path = "/api/lorebooks/import";
        let world = include_bytes!("../../fixtures/lore/world_array.json");

        let imported = expect(
            201,
            file_uploads::bring(&admin, import_path, "The coast.json", world).await,
        );

        assert_eq!((&imported["lorebook"]["name"], &imported["lorebook"]["n_entries"]), (&json!("The coast"), &json!(3)));
        assert_eq!(imported["warnings"].as_array().unwrap().len(), 3);
        assert!(imported["warnings_coded"][2]["code"].is_string(), "{imported}");
        let exported = expect(200, admin.get(&format!("{}/export", path_of(&imported["lorebook"]))).await);
        let again = file_uploads::bring(&admin, import_path, "x.json", exported.to_string().as_bytes()).await;
        assert_eq!(expect(201, again)["lorebook"]["entries"][0]["keys"], json!(["lamp", "lantern"]));
        let picture = file_uploads::bring(&admin, import_path, "x.json", b"\x89PNG\r\n").await;
        assert_eq!(refusal(&picture), (422, "not_a_lorebook".to_owned()));
        let large = file_uploads::bring(&admin, import_path, "x.json", &vec![b' '; 5 * 1024 * 1024 + 1]).await;
        assert_eq!(refusal(&large), (413, "too_large".to_owned()));
        assert_eq!(expect(200, admin.get("/api/lorebooks").await)["data"].as_array().unwrap().len(), 2);
        app.close().await;
    }

    async fn lorebooks_apply_in_the_order_set_by_authorized_users(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let one = make(&users.moderator, "One", json!([{"keys": ["a"]}])).await;
        let two = make(&users.moderator, "Two", json!([])).await;
        let of_admin = make(&users.admin, "Strange", json!([])).await;
        let path = format!("/api/spaces/{}/lorebooks", id(&users.document));
        let put = |ids: Value| users.moderator.put(&path, json!({"lorebook_ids": ids}));

        let linked = expect(200, put(json!([id(&two), id(&one), id(&two)])).await);
        assert_eq!(linked["lorebook_ids"], json!([id(&two), id(&one)]));
        assert_eq!(linked["lorebooks"][1], json!({"id": id(&one), "name": "One", "n_entries": 1}));
        assert_eq!(refusal(&put(json!([id(&of_admin)])).await), (422, "invalid_value".to_owned()));
        // A lorebook that another member added can stay and be moved in the order.
        expect(
            200,
            users
                .admin
                .put(&path, json!({"lorebook_ids": [id(&one), id(&of_admin)]}))
                .await,
        );
        let kept = expect(200, put(json!([id(&of_admin), id(&one)])).await);
        assert_eq!(kept["lorebook_ids"], json!([id(&of_admin), id(&one)]));
        // A deleted lorebook applies nowhere.
        assert_eq!(users.moderator.delete(&path_of(&one)).await.0, 204);
        assert_eq!(expect(200, users.moderator.get(&path).await)["lorebook_ids"], json!([id(&of_admin)]));
        users.app.close().await;
    }

    async fn a_message_activates_lorebooks_of_the_space_and_of_the_card(backend) {
        let (app, upstream) = (TestApp::start(backend).await, FakeProvider::start().await);
        let admin = app.admin().await;
        let model = json!({"name": "M", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, admin.post("/api/providers", model).await);
        let space = admin.create_space("Room", json!({"user_turn_debounce_ms": 0})).await;
        let of_space = make(&admin, "The coast", json!([
            {"keys": ["gull"], "content": "Gulls steal.", "name": "Gulls"},
            {"keys": ["whale"], "content": "Whales sing.", "name": "Whales"},
            {"keys": ["/(/"], "content": "Never.", "name": "Broken"},
        ])).await;
        let links = json!({"lorebook_ids": [id(&of_space)]});
        expect(200, admin.put(&format!("/api/spaces/{}/lorebooks", id(&space)), links).await);
        let card = json!({"name": "Ada", "character_book": {"name": "Ada's", "entries": [
            {"keys": ["quay"], "content": "The quay is grey.", "name": "Quay", "enabled": true, "insertion_order": 1, "extensions": {}},
            {"keys": ["tower"], "content": "The tower leans.", "name": "Tower", "enabled": true, "insertion_order": 1, "extensions": {}},
        ]}});
        let card = expect(201, admin.post("/api/characters", card).await);
        admin.add_character(&space, &card).await;
        let conversation = root_of(&space);

        let posted = expect(
            201,
            admin
                .post_message(conversation, "A gull on the quay.", None)
                .await,
        );
        upstream.wait_for_requests(1).await;
        let sent = format!("/api/runs/{}/prompt", posted["run"]["id"].as_str().unwrap());
        let sent = poll::until("the prompt of the run is stored", async || {
            let (status, sent) = admin.get(&sent).await;
            (status == 200).then_some(sent)
        }).await;

        let seen = expect(
            200,
            admin
                .get(&format!("/api/conversations/{conversation}/prompt"))
                .await,
        );
        for prompt in [&sent, &seen] {
            assert_eq!(prompt["warnings"].as_array().unwrap().len(), 1, "{prompt}");
            assert_eq!(prompt["warnings_coded"], json!([
                {"code": "lore_key_no_pattern", "params": {"entry": "Broken", "book": "The coast", "key": "/(/", "reason": "unterminated group at 1"}},
            ]));
        }
        let mut activated: Vec<_> = sent["lore"].as_array().unwrap().iter().map(|it| {
            let word = |field: &str| it[field].as_str().unwrap().to_owned();
            (word("book"), word("name"), word("because"))
        }).collect();
        activated.sort();
        let describe = |lorebook: &str, name: &str, because: &str| (lorebook.to_owned(), name.to_owned(), because.to_owned());
        assert_eq!(activated, [describe("Ada's", "Quay", "key: quay"), describe("The coast", "Gulls", "key: gull")]);
        let requested = upstream.body(0)["messages"].to_string();
        for (text, is_sent) in [("Gulls steal.", true), ("The quay is grey.", true), ("Whales sing.", false), ("The tower leans.", false)] {
            assert_eq!(sent["messages"].to_string().contains(text), is_sent, "{text} in the stored prompt");
            assert_eq!(requested.contains(text), is_sent, "{text} in the request to the model");
        }
        app.close().await;
    }
}
