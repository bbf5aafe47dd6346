//! Tests of space files: export from one installation and import into another.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::{bring, fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::space_content::{
    assets_in, create_full_space, unpacked, visible_content, with_file,
};

const IMPORT: &str = "/api/spaces/import";

on_sqlite! {
    async fn a_space_is_identical_after_import_into_an_empty_installation(backend) {
        let old = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = old.admin().await;
        let ben = old.register("ben").await;
        let space = create_full_space(&ann, &ben).await;
        let before = visible_content(&ann, id(&space)).await;
        let file = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        old.close().await;

        let new = TestApp::start(backend).await;
        let ann = new.admin().await;
        let done = import(&ann, IMPORT, "inn.troupe.zip", &file).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        let imported = done["space_id"].as_i64().expect("the import created a space");

        assert_eq!(visible_content(&ann, imported).await, before);
        let mut facts = DatabaseFacts::open(&new.database).await;
        let forks = "SELECT CAST(count(*) AS TEXT) FROM conversations c JOIN messages m ON m.id = c.forked_from_message_id AND m.conversation_id = c.parent_conversation_id AND m.content = 'Two.'";
        assert_eq!(facts.number(forks).await, 1, "the branch has another fork point");
        let memberships = expect(
            200,
            ann.get(&format!("/api/spaces/{imported}/memberships"))
                .await,
        );
        let memberships: Vec<_> = memberships["data"].as_array().unwrap().iter().map(|it| (it["display_name"].as_str().unwrap(), it["role"].as_str().unwrap(), it["status"].as_str().unwrap())).collect();
        assert_eq!(memberships, [("admin", "owner", "active"), ("Ada", "member", "active"), ("ben", "member", "removed"), ("Maren", "member", "active")]);
        // The conversation continues after the import.
        let root = root_of(&expect(200, ann.get(&format!("/api/spaces/{imported}")).await));
        let next = expect(201, ann.post_message(root, "We go on.", None).await);
        assert_eq!(next["message"]["seq"], 6);
        let again = fetch(&ann, &format!("/api/spaces/{imported}/export")).await;
        assert_eq!(assets_in(&again), assets_in(&file));
        assert!(assets_in(&file).len() > 2, "the export has too few assets");
        let second_import = import(&ann, IMPORT, "again.zip", &again).await;
        assert_eq!(second_import["status"], "succeeded", "{second_import}");
        new.close().await;
    }

    async fn an_export_contains_no_keys_no_passwords_and_nothing_deleted(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let ben = app.register("ben").await;
        let space = create_full_space(&ann, &ben).await;
        let path = format!("/api/spaces/{}/export", id(&space));

        assert_eq!(refusal(&ben.get(&path).await), (403, "forbidden".to_owned()));
        let file = fetch(&ann, &path).await;

        let documents = unpacked(&file).into_iter().filter(|(name, _)| !name.starts_with("assets/"));
        let all: String = documents.map(|(_, bytes)| String::from_utf8(bytes).expect("the document is UTF-8")).collect();
        assert!(all.contains("Another way.") && all.contains("made_up"));
        for secret in ["canary", "$argon2", "password", "token_hash", "api_key", "email"] {
            assert!(!all.contains(secret), "{secret} was exported");
        }
        app.close().await;
    }

    async fn an_imported_preset_survives_the_export_and_import_of_a_space(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let file = include_bytes!("../../fixtures/presets/modern.json");
        let imported_preset = expect(201, bring(&ann, "/api/presets/import", "Small theatre.json", file).await);
        let space = ann.create_space("The inn", json!({})).await;
        let settings =
            json!({"settings": {"preset": {"preset_id": imported_preset["preset"]["id"]}}});
        expect(200, ann.patch(&format!("/api/spaces/{}", id(&space)), settings).await);
        let export = async |preset: &Value| expect(200, ann.get(&format!("/api/presets/{preset}/export")).await);

        let packed = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        let done = import(&ann, IMPORT, "inn.zip", &packed).await;

        let imported = expect(200, ann.get(&format!("/api/spaces/{}", done["space_id"])).await);
        let copy = &imported["settings"]["preset"]["preset_id"];
        assert_ne!(copy, &imported_preset["preset"]["id"]);
        assert_eq!(export(copy).await, export(&imported_preset["preset"]["id"]).await);
        app.close().await;
    }

    async fn a_lorebook_of_another_user_is_not_exported(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let ben = app.register("ben").await;
        let space = ben.create_space("The inn", json!({})).await;
        let at = format!("/api/spaces/{}", id(&space));
        let lorebook = json!({"name": "Secrets", "entries": [{"keys": ["x"], "content": "The canary."}]});
        let theirs = id(&expect(201, admin.post("/api/lorebooks", lorebook.clone()).await));
        let own = id(&expect(201, ben.post("/api/lorebooks", json!({"name": "Own"})).await));
        let mut facts = DatabaseFacts::open(&app.database).await;
        facts.execute(&format!("INSERT INTO lorebook_links (lorebook_id, priority, space_id) VALUES ({theirs}, 0, {}), ({own}, 1, {})", id(&space), id(&space))).await;

        let file = fetch(&ben, &format!("{at}/export")).await;

        let lorebooks: Value = serde_json::from_slice(&unpacked(&file)["lorebooks.json"]).unwrap();
        let names: Vec<_> = lorebooks.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["Own"]);
        let done = import(&ben, IMPORT, "inn.zip", &file).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        app.close().await;
    }

    async fn a_file_that_is_not_a_space_stores_nothing(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let ben = app.register("ben").await;
        let space = create_full_space(&ann, &ben).await;
        let good = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let count = "SELECT CAST((SELECT count(*) FROM spaces) + (SELECT count(*) FROM messages) + (SELECT count(*) FROM characters) + (SELECT count(*) FROM space_memberships) + (SELECT count(*) FROM lorebooks) + (SELECT count(*) FROM lorebook_links) + (SELECT count(*) FROM assets) + (SELECT count(*) FROM character_assets) AS TEXT)";
        let before = facts.number(count).await;

        let asset = |character: i64, path: &str, sha256: &str| json!([{"character": character, "path": path, "sha256": sha256}]).to_string().into_bytes();
        let (pictures, kept) = (assets_in(&good), unpacked(&good));
        let listed: Value = serde_json::from_slice(&kept["assets.json"]).unwrap();
        let first = pictures.keys().next().unwrap();
        let picture = listed.as_array().unwrap().iter().find(|it| it["path"] == "").unwrap();
        let (character, sha256) = (picture["character"].as_i64().unwrap(), picture["sha256"].as_str().unwrap());
        let lorebook = |entries: Value| json!([{"key": 1, "name": "B", "document": {}, "entries": entries, "created_at": "2024-01-01T00:00:00Z"}]).to_string().into_bytes();
        for (name, file) in [
            ("a file that is not a picture", with_file(&good, &format!("assets/{sha256}"), b"<svg/>")),
            ("a picture of a character that does not exist", with_file(&good, "assets.json", &asset(0, "", sha256))),
            ("an asset that is not there", with_file(&good, "assets.json", &asset(character, "x", &"0".repeat(64)))),
            ("a path that leads out", with_file(&good, "assets.json", &asset(character, "../x", sha256))),
            ("an asset of 30 MiB", with_file(&good, first, &vec![b' '; 30 * 1024 * 1024])),
            ("links of no book", with_file(&good, "lorebooks.json", b"[]")),
            ("a book that is none", with_file(&good, "lorebooks.json", &lorebook(json!("x")))),
            ("too many entries", with_file(&good, "lorebooks.json", &lorebook(json!(vec![json!({"keys": [], "content": ""}); 5_001])))),
            ("a book twice in a place", with_file(&good, "lorebook_links.json", &{
                let mut links: Vec<Value> = serde_json::from_slice(&kept["lorebook_links.json"]).unwrap();
                links.push(links[0].clone());
                serde_json::to_vec(&links).unwrap()
            })),
            ("noise", b"noise".to_vec()),
            ("another zip", with_file(&[], "readme.txt", b"hello")),
            ("another manifest", with_file(&[], "manifest.json", br#"{"format":"x","version":1,"exported_at":"2024-01-01T00:00:00Z"}"#)),
            ("a newer one", with_file(&[], "manifest.json", br#"{"format":"troupe-space","version":9,"exported_at":"2024-01-01T00:00:00Z"}"#)),
            ("half of it", good[..good.len() / 2].to_vec()),
            ("no seats", with_file(&good, "seats.json", b"[]")),
            ("a nul", with_file(&good, "presets.json", br#"[{"key":1,"name":"\u0000","document":{}}]"#)),
            ("a card that is none", with_file(&good, "characters.json", br#"[{"key":1,"status":"active","card":[],"created_at":"2024-01-01T00:00:00Z"}]"#)),
            ("a bomb", with_file(&good, "presets.json", &vec![b' '; 40 * 1024 * 1024])),
        ] {
            let done = import(&ann, IMPORT, "x.zip", &file).await;
            assert_eq!((done["status"].as_str(), done["error"]["code"].as_str()), (Some("failed"), Some("not_a_space")), "{name}: {done}");
            assert_eq!(facts.number(count).await, before, "{name} stored rows");
        }
        assert_eq!(refusal(&ann.post(IMPORT, json!({})).await), (415, "unsupported_media_type".to_owned()));
        let (guest, _) = HttpClient::join_by_link(&app.base, ann.invite(id(&space), json!({"role": "guest"})).await["token"].as_str().unwrap(), "Gil").await;
        assert_eq!(bring(&guest, IMPORT, "x.zip", &good).await.0, 403);
        app.close().await;
    }
}
