//! Tests of the import of characters and chats of other programs, and of documents of no known kind.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::{bring, fetch, import_as_previewed};
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::multipart::upload;

const CHARACTERS: &str = "/api/characters/import";

fn fixture(path: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the fixture can be read")
}

/// Creates a space and returns the path of its imports.
async fn import_path(ann: &HttpClient) -> String {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    format!("/api/spaces/{}/import", id(&space))
}

/// Imports a chat of the fixtures into a new space.
async fn import_chat(ann: &HttpClient, name: &str) -> Value {
    let file = fixture(&format!("chats/other_programs/{name}"));
    let done = import_as_previewed(ann, &import_path(ann).await, name, &file).await;
    assert_eq!(done["status"], "succeeded", "{name}: {done}");
    done
}

/// Returns role, author and text of each message of the imported conversation.
async fn messages(ann: &HttpClient, import: &Value) -> Vec<(String, String, String)> {
    let conversation = import["conversation_id"].as_i64().expect("a conversation");
    let all = ann.messages(conversation).await;
    let text = |it: &Value, field: &str| it[field].as_str().expect("a text").to_owned();
    let read = all.iter().map(|it| {
        (
            text(it, "role"),
            text(it, "author_name"),
            text(it, "content"),
        )
    });
    read.collect()
}

async fn imported(ann: &HttpClient, import: &Value) -> Value {
    ann.conversation(import["conversation_id"].as_i64().expect("a conversation"))
        .await
}

fn turn(role: &str, author: &str, text: &str) -> (String, String, String) {
    (role.to_owned(), author.to_owned(), text.to_owned())
}

async fn linked_lorebook(ann: &HttpClient, import: &Value) -> Value {
    let path = format!("/api/conversations/{}/lorebooks", import["conversation_id"]);
    let links = expect(200, ann.get(&path).await);
    let book = links["lorebook_ids"][0]
        .as_i64()
        .unwrap_or_else(|| panic!("{links}"));
    expect(200, ann.get(&format!("/api/lorebooks/{book}")).await)
}

on_sqlite! {
    async fn characters_of_other_programs_are_imported_and_exported_as_cards(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        for (name, description) in [("agnai_character.json", "species(\"human\")"), ("webui_character.yaml", "lighthouse on the Skerries")] {
            let file = fixture(&format!("cards/{name}"));
            let made = expect(201, upload(&ann, CHARACTERS, name, &file).await);
            let character = &made["character"];
            assert_eq!(made["warnings"], json!([]), "{name}");
            assert_eq!(character["card"]["data"]["first_mes"], "The lamp is lit.\nCome in.", "{name}");
            let described = character["card"]["data"]["description"].as_str().unwrap();
            assert!(described.contains(description), "{name}: {described}");
            let exported = fetch(&ann, &format!("/api/characters/{}/export", character["id"])).await;
            let again = expect(200, upload(&ann, CHARACTERS, "again.json", &exported).await);
            assert_eq!(again["character"]["id"], character["id"], "{name}: the export is another card");
        }
        app.close().await;
    }

    async fn no_document_is_imported_as_an_empty_character(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let before = expect(200, ann.get("/api/characters").await);

        for (document, reason) in [
            ("{\"alpha\": 1, \"beta\": 2}", "`alpha`, `beta`"),
            ("alpha: 1\nbeta: [2]", "`alpha`, `beta`"),
            ("{\"spec\": \"chara_card_v2\", \"data\": {\"name\": \"Ada\"}}", "no description, personality"),
            ("{\"spec\": \"chara_card_v2\", \"data\": {\"description\": \"x\"}}", "no name"),
            ("{\"type\": \"risuChat\", \"data\": {}}", "chat of Risu"),
            ("name: &a Ada\ngreeting: Hi.", "anchor"),
        ] {
            let refused = upload(&ann, CHARACTERS, "x", document.as_bytes()).await;
            assert_eq!(refusal(&refused), (422, "not_a_card".to_owned()), "{document}");
            assert!(refused.1.to_string().contains(reason), "{}", refused.1);
        }
        for (path, code) in [("/api/lorebooks/import", "not_a_lorebook"), ("/api/personas/import", "unknown_file")] {
            let refused = upload(&ann, path, "x.json", b"{\"alpha\": 1, \"beta\": 2}").await;
            assert_eq!(refusal(&refused), (422, code.to_owned()));
            assert!(refused.1.to_string().contains("`alpha`, `beta`"), "{}", refused.1);
        }
        assert_eq!(expect(200, ann.get("/api/characters").await), before);
        app.close().await;
    }

    async fn a_binary_file_of_risu_is_refused_by_name_by_every_import(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let chats = import_path(&ann).await;
        let module = [111, 0, 4, 0, 0, 0, 250, 251, 252, 253, 0];
        let preset = [0x9C, 0xE1, 0, 7];

        for path in [
            "/api/characters/preview",
            CHARACTERS,
            "/api/lorebooks/import",
            "/api/presets/preview",
            "/api/presets/import",
            &format!("{chats}/preview"),
            &chats,
        ] {
            for (name, bytes, code, kind) in [
                ("Tavern.risum", &module[..], "risu_module", "module of Risu"),
                ("Tavern.json", &module[..], "risu_module", "module of Risu"),
                ("Calm.risup", &preset[..], "risu_preset", "preset of Risu"),
            ] {
                let refused = bring(&ann, path, name, bytes).await;
                assert_eq!(refusal(&refused), (422, code.to_owned()), "{path} {name}");
                let sentence = refused.1["error"]["message"].as_str().expect("a sentence");
                assert!(sentence.contains(kind) && sentence.contains("not read"), "{sentence}");
            }
        }
        app.close().await;
    }

    async fn a_json_document_that_is_not_a_chat_is_refused_before_anything_is_stored(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let path = import_path(&ann).await;
        let mut facts = DatabaseFacts::open(&app.database).await;

        for (document, code, reason) in [
            ("{\"alpha\": 1,\n\"beta\": 2}", "unknown_file", "`alpha`, `beta`"),
            ("{\"internal\": [], \"visible\": []}", "not_a_chat", "no readable message"),
            (&format!("{{\"messages\": [\n{}0]}}", "0,".repeat(300_000)), "too_large", "values"),
        ] {
            for path in [path.clone(), format!("{path}/preview")] {
                let refused = bring(&ann, &path, "x.json", document.as_bytes()).await;
                assert_eq!(refusal(&refused), (422, code.to_owned()), "{}", refused.1);
                assert!(refused.1.to_string().contains(reason), "{}", refused.1);
            }
        }
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM imports").await, 0);
        app.close().await;
    }

    async fn a_chat_of_agnai_keeps_its_retries_as_swipes(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let done = import_chat(&ann, "agnai.json").await;

        assert_eq!(messages(&ann, &done).await, [
            turn("assistant", "Ada", "Good day.\nThe engine is warm."),
            turn("user", "admin", "May I see it?"),
            turn("user", "admin", "Shall we stop here?"),
        ]);
        let conversation = imported(&ann, &done).await;
        assert_eq!(conversation["title"], "At the mill");
        assert_eq!(conversation["settings"]["scenario_override"], "A mill in London.");
        let all = ann.messages(id(&conversation)).await;
        assert_eq!((&all[0]["swipes"]["count"], &all[2]["is_ooc"]), (&json!(2), &json!(true)), "{}", all[0]);
        assert_eq!(all[0]["created_at"], "2024-06-03T13:02:05.678Z");
        let report = &done["report"];
        assert_eq!((&report["n_skipped"], &report["lines"][0]["line"]), (&json!(1), &json!(4)));
        assert_eq!(report["warnings_coded"], json!([{"code": "chat_parts_left_out", "params": {"names": "sampleChat"}}]));
        assert!(report["warnings"][0].as_str().unwrap().contains("sampleChat"));
        app.close().await;
    }

    async fn saves_of_koboldai_are_split_into_turns(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let instruct = import_chat(&ann, "kobold_instruct.json").await;
        let chat = import_chat(&ann, "kobold_chat.json").await;

        assert_eq!(messages(&ann, &instruct).await, [
            turn("user", "admin", "Describe the mill."),
            turn("assistant", "KoboldAI", "The wheel turns."),
            turn("user", "admin", "And inside?"),
            turn("assistant", "KoboldAI", "Brass and steam."),
        ]);
        assert_eq!(messages(&ann, &chat).await, [
            turn("user", "admin", "Hello."),
            turn("assistant", "Ada", "Good day, Ben.\nPlease come in."),
            turn("user", "admin", "Thank you."),
        ]);
        let settings = &imported(&ann, &instruct).await["settings"];
        assert_eq!(settings["scenario_override"], "Ada runs a mill.");
        assert_eq!(settings["author_note"]["text"], "[Author's note: Short sentences.]");
        let book = linked_lorebook(&ann, &instruct).await;
        assert_eq!(book["name"], "World Info");
        assert_eq!(book["entries"][0]["keys"], json!(["engine", "mill"]));
        app.close().await;
    }

    async fn the_shown_texts_of_text_generation_webui_are_imported(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let done = import_chat(&ann, "webui.json").await;

        assert_eq!(messages(&ann, &done).await, [
            turn("assistant", "Character", "Good day."),
            turn("user", "admin", "May I see \"it\"?"),
            turn("assistant", "Character", "Of course, <em>shown</em>."),
            turn("user", "admin", "Thanks"),
        ]);
        app.close().await;
    }
}

on_both! {
    async fn each_history_of_character_ai_becomes_a_conversation(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let path = import_path(&ann).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let n_before = facts.number("SELECT CAST(count(*) AS TEXT) FROM conversations").await;

        let file = fixture("chats/other_programs/character_ai.json");
        let preview = format!("{path}/preview");
        let shown = expect(200, bring(&ann, &preview, "Ada.json", &file).await);
        let done = import_as_previewed(&ann, &path, "Ada.json", &file).await;

        assert_eq!(shown["n_conversations"], 2);
        let titles: Vec<&Value> = shown["conversations"].as_array().unwrap().iter().map(|it| &it["title"]).collect();
        assert_eq!(titles, ["Ada 1", "Ada 2"]);

        assert_eq!((&done["status"], &done["n_messages"]), (&json!("succeeded"), &json!(3)), "{done}");
        assert_eq!(messages(&ann, &done).await, [
            turn("assistant", "Ada", "Good day."),
            turn("user", "admin", "Hello, Ada."),
        ]);
        assert_eq!(imported(&ann, &done).await["title"], "Ada 1");
        let n_after = facts.number("SELECT CAST(count(*) AS TEXT) FROM conversations").await;
        assert_eq!(n_after - n_before, 2);
        let second = "SELECT CAST(count(*) AS TEXT) FROM conversations WHERE title = 'Ada 2' AND last_seq = 1 \
                      AND space_id = (SELECT space_id FROM conversations WHERE title = 'Ada 1')";
        assert_eq!(facts.number(second).await, 1);
        app.close().await;
    }

    async fn a_chat_of_risu_brings_its_note_and_lorebook(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let file = fixture("chats/other_programs/risu.json");
        let path = format!("{}/preview", import_path(&ann).await);
        let shown = expect(200, bring(&ann, &path, "risu.json", &file).await);
        let shown = &shown["conversations"][0];
        assert_eq!((&shown["title"], &shown["author_note"]), (&json!("Evening"), &json!("It rains.")));
        assert_eq!(shown["lorebook"], json!({"name": "Evening", "n_entries": 1}));
        assert_eq!(expect(200, ann.get("/api/lorebooks").await)["data"], json!([]));

        let done = import_chat(&ann, "risu.json").await;

        assert_eq!(messages(&ann, &done).await, [
            turn("assistant", "Character", "Good evening."),
            turn("user", "admin", "Is it late?"),
            turn("assistant", "Character", "A hidden remark."),
        ]);
        let conversation = imported(&ann, &done).await;
        assert_eq!(conversation["settings"]["author_note"]["text"], "It rains.");
        assert_eq!(ann.messages(id(&conversation)).await[2]["visibility"], "excluded");
        let book = linked_lorebook(&ann, &done).await;
        assert_eq!(book["entries"][0]["content"], "The clock strikes ten.");
        assert_eq!(done["report"]["warnings_coded"][0]["params"]["names"], "scriptstate");
        app.close().await;
    }
}
