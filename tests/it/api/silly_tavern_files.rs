//! Tests of what files of SillyTavern have besides messages and texts: the variables of a chat, the
//! avatars of a group, the timed effects of World Info, and the pictures of personas.

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use tavern::cards::avatar_image;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::{fetch, import_as_previewed};
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::multipart::upload;

/// Imports the lines of a chat into a new space and returns the import.
async fn import_lines(ann: &HttpClient, lines: &[Value]) -> Value {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    let file: String = lines.iter().map(|it| format!("{it}\n")).collect();
    let path = format!("/api/spaces/{}/import", id(&space));
    let done = import_as_previewed(ann, &path, "chat.jsonl", file.as_bytes()).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    done
}

async fn exported_lines(ann: &HttpClient, import: &Value) -> Vec<Value> {
    let path = format!("/api/conversations/{}/export", import["conversation_id"]);
    let file = fetch(ann, &path).await;
    let lines = file.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines
        .map(|it| serde_json::from_slice(it).expect("a line"))
        .collect()
}

/// Returns the variables of the imported conversation, as they are stored.
async fn stored_variables(app: &TestApp, import: &Value) -> Value {
    let mut facts = DatabaseFacts::open(&app.database).await;
    let conversation = &import["conversation_id"];
    let column = facts.text("variables");
    let rows = facts
        .rows(&format!(
            "SELECT {column} FROM conversations WHERE id = {conversation}"
        ))
        .await;
    let stored = rows[0][0].as_deref().expect("the column is not null");
    serde_json::from_str(stored).expect("the column is JSON")
}

on_both! {
    async fn the_variables_of_a_chat_are_imported_and_exported_again(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let variables = json!({"hp": "3", "place": "the mill"});
        let lines = [
            json!({"user_name": "Ben", "chat_metadata": {"variables": variables}}),
            json!({"name": "Ben", "is_user": true, "mes": "Hi."}),
        ];

        let done = import_lines(&ann, &lines).await;
        let exported = exported_lines(&ann, &done).await;
        let again = exported_lines(&ann, &import_lines(&ann, &exported).await).await;

        assert_eq!(exported[0]["chat_metadata"]["variables"], variables);
        assert_eq!(again[0]["chat_metadata"]["variables"], variables);
        let stored = stored_variables(&app, &done).await;
        assert_eq!(stored["macros"], variables);
        app.close().await;
    }

    async fn the_avatars_of_a_group_are_kept_whichever_swipe_is_shown(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let lines = [json!({
            "name": "Ada", "is_user": false, "mes": "One.", "swipes": ["One.", "Two."], "swipe_id": 0,
            "original_avatar": "ada.png", "force_avatar": "/thumbnail?type=avatar&file=ada.png",
        })];

        let done = import_lines(&ann, &lines).await;
        let message = id(&ann.messages(done["conversation_id"].as_i64().unwrap()).await[0]);
        expect(200, ann.patch(&format!("/api/messages/{message}/swipe"), json!({"position": 1})).await);
        let exported = exported_lines(&ann, &done).await;

        assert_eq!(exported[1]["mes"], "Two.");
        for field in ["original_avatar", "force_avatar"] {
            assert_eq!(exported[1][field], lines[0][field], "{field}");
            assert_eq!(exported[1]["swipe_info"][0].get(field), None, "{field}");
        }
        app.close().await;
    }

    async fn timed_effects_are_assigned_to_entries_of_the_library(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let world = json!({"name": "Mill", "entries": {
            "7": {"uid": 7, "key": ["engine"], "content": "Brass.", "sticky": 3},
        }});
        let book = expect(201, upload(&ann, "/api/lorebooks/import", "Mill.json", world.to_string().as_bytes()).await);
        let effect = json!({"hash": 1, "start": 1, "end": 4, "protected": false});
        let lines = [
            json!({"user_name": "Ben", "chat_metadata": {"timedWorldInfo": {
                "sticky": {"Mill.7": effect, "Mill.8": effect}, "cooldown": {"Other.7": effect},
            }}}),
            json!({"name": "Ben", "is_user": true, "mes": "Hi."}),
        ];

        let done = import_lines(&ann, &lines).await;

        assert_eq!(done["report"]["warnings_coded"], json!([{"code": "timed_effects_left_out", "params": {"n": 2}}]));
        let stored = stored_variables(&app, &done).await;
        let sticky = stored["lore"]["sticky"].as_object().unwrap_or_else(|| panic!("{stored}"));
        let effects: Vec<(&String, &Value)> = sticky.iter().collect();
        let [(key, effect)] = effects[..] else {
            panic!("one effect is assigned: {stored}");
        };
        assert_eq!((effect["start"].as_i64(), effect["end"].as_i64()), (Some(1), Some(4)), "{stored}");
        let books = expect(200, ann.get("/api/lorebooks").await);
        assert_eq!(key.split('.').next(), Some(books["data"][0]["id"].to_string().as_str()), "{book} {stored}");
        app.close().await;
    }

    async fn timed_effects_are_exported_for_the_lorebooks_of_the_user_who_exports(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let world = json!({"name": "The Old. Mill", "entries": {
            "7": {"uid": 7, "key": ["engine"], "content": "Brass.", "sticky": 3},
            "8": {"uid": 8, "key": ["wheel"], "content": "Oak.", "cooldown": 9},
        }});
        expect(201, upload(&ann, "/api/lorebooks/import", "Mill.json", world.to_string().as_bytes()).await);
        let effects = json!({
            "sticky": {"The Old. Mill.7": {"start": 1, "end": 4, "protected": false}},
            "cooldown": {"The Old. Mill.8": {"start": 1, "end": 10, "protected": true}},
        });
        let lines = [
            json!({"user_name": "Ben", "chat_metadata": {"timedWorldInfo": effects}}),
            json!({"name": "Ben", "is_user": true, "mes": "Hi."}),
        ];
        let done = import_lines(&ann, &lines).await;

        let exported = exported_lines(&ann, &done).await;
        let again = import_lines(&ann, &exported).await;

        assert_eq!(exported[0]["chat_metadata"]["timedWorldInfo"], effects);
        assert_eq!(again["report"]["warnings_coded"], json!([]));
        assert_eq!(stored_variables(&app, &again).await, stored_variables(&app, &done).await);
        let space = ann.conversation(done["conversation_id"].as_i64().unwrap()).await["space_id"].clone();
        let ben = app.register("ben").await;
        ann.add_member(space.as_i64().unwrap(), &ben, "moderator").await;
        let of_ben = exported_lines(&ben, &done).await;
        assert_eq!(of_ben[0]["chat_metadata"].get("timedWorldInfo"), None, "another user's library was read");
        app.close().await;
    }

    async fn exported_timed_effects_count_the_messages_of_the_file(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let world = json!({"name": "Mill", "entries": {
            "7": {"uid": 7, "key": ["engine"], "content": "Brass.", "sticky": 3},
            "8": {"uid": 8, "key": ["wheel"], "content": "Oak.", "sticky": 9},
        }});
        expect(201, upload(&ann, "/api/lorebooks/import", "Mill.json", world.to_string().as_bytes()).await);
        let effects = json!({"sticky": {
            "Mill.7": {"start": 3, "end": 6, "protected": false},
            "Mill.8": {"start": 2, "end": 9, "protected": false},
        }});
        let mut lines = vec![json!({"user_name": "Ben", "chat_metadata": {"timedWorldInfo": effects}})];
        lines.extend((1..5).map(|n| json!({"name": "Ben", "is_user": true, "mes": format!("Line {n}.")})));
        let done = import_lines(&ann, &lines).await;
        let messages = ann.messages(done["conversation_id"].as_i64().unwrap()).await;

        expect(204, ann.delete(&format!("/api/messages/{}", messages[1]["id"])).await);
        let exported = exported_lines(&ann, &done).await;

        assert_eq!(exported.len(), 4);
        let left = json!({"Mill.7": {"start": 2, "end": 5, "protected": false}});
        assert_eq!(exported[0]["chat_metadata"]["timedWorldInfo"]["sticky"], left);
        app.close().await;
    }

    async fn an_archive_brings_the_pictures_of_personas(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let backup = json!({
            "personas": {"a.png": "Cara", "b.png": "Dora"},
            "persona_descriptions": {"a.png": {"description": "Tall.\r\nCalm.", "position": 0, "title": "Sailor"}},
            "default_persona": "a.png",
        });
        let picture = avatar_image::plain_png("Cara").expect("a picture");
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in [("personas.json", backup.to_string().as_bytes()), ("User Avatars/a.png", &picture)] {
            zip.start_file(name, SimpleFileOptions::default()).expect("the entry is started");
            zip.write_all(bytes).expect("the entry is written");
        }
        let file = zip.finish().expect("the archive is finished").into_inner();

        let imported = expect(201, upload(&ann, "/api/personas/import", "personas.zip", &file).await);

        assert_eq!((&imported["n_imported"], &imported["warnings_coded"]), (&json!(2), &json!([])));
        let all = expect(200, ann.get("/api/personas").await);
        let named = |name: &str| {
            let all = all["data"].as_array().unwrap();
            all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{all:?}")).clone()
        };
        let (cara, dora) = (named("Cara"), named("Dora"));
        assert_eq!((&cara["description"], &cara["is_default"]), (&json!("Tall.\nCalm."), &json!(true)));
        assert_eq!(cara["title"], "Sailor");
        assert_eq!(ann.get(cara["avatar_url"].as_str().expect("a picture")).await.0, 200);
        assert_eq!(dora["avatar_url"], Value::Null);
        app.close().await;
    }
}
