//! Tests of attachments in messages: posts, what others see, changes, branches, quotations, and space
//! files.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::pictures::{UPLOAD, clear_png, post, upload, uploaded};
use crate::support::space_content::{unpacked, with_file, without_files};
use crate::support::ws_client::WsClient;

struct Room {
    app: TestApp,
    ann: HttpClient,
    ben: HttpClient,
    space: i64,
    root: i64,
}

impl Room {
    /// Creates a space of Ann, with Ben as a member.
    async fn create(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let space = ann.create_space("Room", json!({})).await;
        ann.add_member(id(&space), &ben, "member").await;
        Self {
            app,
            space: id(&space),
            root: root_of(&space),
            ann,
            ben,
        }
    }
}

fn ids(message: &Value) -> Vec<i64> {
    let pictures = message["attachments"].as_array().unwrap().iter();
    pictures.map(id).collect()
}

fn path_of(attachment: &Value) -> String {
    format!("{UPLOAD}/{}", attachment["id"])
}

on_both! {
    async fn others_see_the_pictures_of_a_message_in_their_order_without_reload(backend) {
        let room = Room::create(backend).await;
        let socket = WsClient::subscribed(&room.ann, room.root).await;
        let outsider = room.app.register("cyd").await;
        let (one, two) = (uploaded(&room.ben, 1, "One.").await, uploaded(&room.ben, 2, "").await);

        let posted = expect(201, post(&room.ben, room.root, " ", &[&two, &one]).await)["message"].clone();

        assert_eq!((&posted["content"], ids(&posted)), (&json!(""), vec![id(&two), id(&one)]));
        let event = socket.wait_for("the message", |it| it["type"] == "message_created").await;
        assert_eq!(event["message"]["attachments"], posted["attachments"]);
        assert_eq!(room.ann.messages(room.root).await[0]["attachments"], posted["attachments"]);
        for picture in posted["attachments"].as_array().unwrap() {
            for size in ["url", "thumbnail_url"] {
                let path = picture[size].as_str().unwrap();
                assert_eq!(room.ann.get(path).await.0, 200);
                assert_eq!(outsider.get(path).await.0, 404);
            }
        }
        room.app.close().await;
    }

    async fn a_post_takes_only_pictures_that_are_the_authors_and_were_not_posted(backend) {
        let room = Room::create(backend).await;
        let (own, used, foreign) = (
            uploaded(&room.ben, 1, "").await,
            uploaded(&room.ben, 2, "").await,
            uploaded(&room.ann, 3, "").await,
        );
        expect(201, post(&room.ben, room.root, "First.", &[&used]).await);

        for (pictures, code) in [
            (vec![&own, &used], "invalid_value"),
            (vec![&own, &foreign], "invalid_value"),
            (vec![&own, &own], "invalid_value"),
            (vec![&json!({"id": 999}), &own], "invalid_value"),
            (vec![&json!({"id": 0})], "invalid_value"),
            (vec![&own; 5], "too_many"),
        ] {
            let refused = post(&room.ben, room.root, "No.", &pictures).await;
            assert_eq!(refusal(&refused), (422, code.to_owned()), "{pictures:?}");
            assert_eq!(refused.1["error"]["param"], "attachment_ids");
        }
        let blank = post(&room.ben, room.root, " ", &[]).await;
        assert_eq!(refusal(&blank), (422, "blank_message".to_owned()));
        assert_eq!(room.ann.messages(room.root).await.len(), 1);
        expect(201, post(&room.ben, room.root, "", &[&own]).await);
        room.app.close().await;
    }

    async fn of_two_posts_at_once_one_gets_the_picture(backend) {
        let room = Room::create(backend).await;
        let thread = json!({"kind": "thread", "parent_conversation_id": room.root});
        let path = format!("/api/spaces/{}/conversations", room.space);
        let other = id(&expect(201, room.ann.post(&path, thread).await));
        for seed in 0..6 {
            let (one, two) = (uploaded(&room.ben, seed, "").await, uploaded(&room.ben, seed, "").await);

            let (here, there) = ([&one, &two], [&two, &one]);
            let answers = tokio::join!(
                post(&room.ben, room.root, "Here.", &here),
                post(&room.ben, other, "There.", &there),
            );

            let mut statuses = [answers.0.0, answers.1.0];
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 422], "{answers:?}");
        }
        let all = [room.ann.messages(room.root).await, room.ann.messages(other).await].concat();
        assert!(all.iter().all(|it| ids(it).len() == 2), "{all:?}");
        room.app.close().await;
    }

    async fn a_repeated_post_returns_the_same_message_with_its_pictures(backend) {
        let room = Room::create(backend).await;
        let (one, two) = (uploaded(&room.ben, 1, "").await, uploaded(&room.ben, 2, "").await);
        let path = format!("/api/conversations/{}/messages", room.root);
        let body = |pictures: &[&Value]| {
            let ids: Vec<&Value> = pictures.iter().map(|it| &it["id"]).collect();
            json!({"content": "", "client_id": "c1", "attachment_ids": ids})
        };
        let first = expect(201, room.ben.post(&path, body(&[&one])).await);

        let again = expect(200, room.ben.post(&path, body(&[&one])).await);

        assert_eq!(again["message"], first["message"]);
        for other in [body(&[&two]), body(&[&one, &two])] {
            let refused = room.ben.post(&path, other).await;
            assert_eq!(refusal(&refused), (422, "client_id_reused".to_owned()));
        }
        let text = json!({"content": "Hi.", "client_id": "c1"});
        assert_eq!(refusal(&room.ben.post(&path, text).await), (422, "client_id_reused".to_owned()));
        assert_eq!(room.ann.messages(room.root).await.len(), 1);
        room.app.close().await;
    }

    async fn a_posted_picture_is_described_and_deleted_with_an_event(backend) {
        let room = Room::create(backend).await;
        let (one, two) = (uploaded(&room.ben, 1, "").await, uploaded(&room.ben, 2, "").await);
        let posted = expect(201, post(&room.ben, room.root, "", &[&one, &two]).await)["message"].clone();
        let socket = WsClient::subscribed(&room.ann, room.root).await;
        let is_update = |it: &Value| it["type"] == "message_updated";

        let changed = expect(200, room.ben.patch(&path_of(&one), json!({"alt": "A tree"})).await);
        let event = socket.wait_for("the description", is_update).await;

        assert_eq!((&changed["alt"], &event["message"]["attachments"][0]), (&json!("A tree"), &changed));
        assert_eq!(event["rev"].as_i64(), posted["rev"].as_i64().map(|it| it + 1));
        assert_eq!(event["message"]["version"], posted["version"]);
        // A moderator may delete the message, and so the picture.
        assert_eq!(room.ann.delete(&path_of(&one)).await.0, 204);
        let event = socket.wait_for("the deletion", |it| is_update(it) && ids(&it["message"]).len() == 1).await;
        assert_eq!(ids(&event["message"]), [id(&two)]);
        let last = room.ben.delete(&path_of(&two)).await;
        assert_eq!(refusal(&last), (422, "blank_message".to_owned()));
        let message = format!("/api/messages/{}", posted["id"]);
        expect(200, room.ben.patch(&message, json!({"content": "A text.", "expected_version": 1})).await);
        let blank = room.ben.patch(&message, json!({"content": " ", "expected_version": 2})).await;
        assert_eq!(expect(200, blank)["content"], "");
        expect(200, room.ben.patch(&message, json!({"content": "A text.", "expected_version": 3})).await);
        assert_eq!(room.ben.delete(&path_of(&two)).await.0, 204);
        let blank = room.ben.patch(&message, json!({"content": " ", "expected_version": 4})).await;
        assert_eq!(refusal(&blank), (422, "blank_message".to_owned()));
        assert_eq!(ids(&room.ann.messages(room.root).await[0]), [] as [i64; 0]);
        room.app.close().await;
    }

    async fn a_branch_shows_the_pictures_without_storing_them_again(backend) {
        let room = Room::create(backend).await;
        let picture = uploaded(&room.ben, 1, "A cat").await;
        let posted = expect(201, post(&room.ben, room.root, "", &[&picture]).await)["message"].clone();
        let mut facts = DatabaseFacts::open(&room.app.database).await;
        let assets = facts.number("SELECT CAST(count(*) AS TEXT) FROM assets").await;

        let path = format!("/api/conversations/{}/branch", room.root);
        let made = expect(201, room.ann.post(&path, json!({"message_id": posted["id"]})).await);

        let copy = room.ann.messages(id(&made["conversation"])).await[0]["attachments"][0].clone();
        assert_ne!(copy["id"], picture["id"]);
        assert_eq!(copy["alt"], "A cat");
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM assets").await, assets);
        assert_eq!(room.ben.delete(&format!("/api/messages/{}", posted["id"])).await.0, 409);
        let url = |it: &Value| it["url"].as_str().unwrap().to_owned();
        assert_eq!(fetch(&room.ben, &url(&copy)).await, fetch(&room.ben, &url(&picture)).await);
        room.app.close().await;
    }

    async fn a_reply_quotes_the_picture_of_a_message_without_a_text(backend) {
        let room = Room::create(backend).await;
        let (cat, plain) = (uploaded(&room.ben, 1, "A grey\ncat").await, uploaded(&room.ben, 2, "").await);
        let posted = expect(201, post(&room.ben, room.root, "", &[&cat, &plain]).await)["message"].clone();

        let path = format!("/api/conversations/{}/messages", room.root);
        let reply = json!({"content": "Nice.", "reply_to_id": posted["id"]});
        let reply = expect(201, room.ann.post(&path, reply).await);

        assert_eq!(reply["message"]["reply_to"]["excerpt"], "[Picture: A grey cat] [Picture: cat.png, 64×48]");
        room.app.close().await;
    }
}

on_sqlite! {
    async fn a_space_file_contains_the_pictures(backend) {
        let room = Room::create(backend).await;
        let clear = expect(201, upload(&room.ben, "clear.png", &clear_png(700, 30), "Fog").await);
        let photo = uploaded(&room.ben, 1, "").await;
        let gone = uploaded(&room.ben, 2, "Secret").await;
        let posted = expect(201, post(&room.ben, room.root, "", &[&clear, &photo]).await)["message"].clone();
        let deleted = expect(201, post(&room.ben, room.root, "", &[&gone]).await)["message"].clone();
        let path = format!("/api/conversations/{}/branch", room.root);
        expect(201, room.ann.post(&path, json!({"message_id": posted["id"]})).await);
        assert_eq!(room.ben.delete(&format!("/api/messages/{}", deleted["id"])).await.0, 204);

        let file = fetch(&room.ann, &format!("/api/spaces/{}/export", room.space)).await;
        let done = import(&room.ann, "/api/spaces/import", "room.zip", &file).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        let listed = String::from_utf8(unpacked(&file)["pictures.json"].clone()).unwrap();
        assert!(!listed.contains("Secret"), "{listed}");
        let path = format!("/api/spaces/{}/conversations", done["space_id"]);
        let conversations = expect(200, room.ann.get(&path).await);
        let conversations = conversations["data"].as_array().unwrap().clone();
        assert_eq!(conversations.len(), 2);
        for it in conversations {
            let message = room.ann.messages(id(&it)).await[0].clone();
            let pictures = message["attachments"].as_array().unwrap();
            let shown = |it: &Value| json!([it["file_name"], it["alt"], it["width"], it["height"], it["media_type"]]);
            let shown: Vec<Value> = pictures.iter().map(shown).collect();
            assert_eq!(shown, [
                json!(["clear.png", "Fog", 700, 30, "image/png"]),
                json!(["cat.png", "", 64, 48, "image/jpeg"]),
            ]);
            // A picture without loss is drawn in the same way each time.
            let bytes = fetch(&room.ann, pictures[0]["url"].as_str().unwrap()).await;
            assert_eq!(bytes, fetch(&room.ben, clear["url"].as_str().unwrap()).await);
            // They belong to the person who imported them.
            assert_eq!(room.ben.get(pictures[1]["url"].as_str().unwrap()).await.0, 404);
        }
        let older = without_files(&file, |it| it == "pictures.json");
        let done = import(&room.ann, "/api/spaces/import", "older.zip", &older).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        room.app.close().await;
    }

    async fn a_chat_file_describes_the_pictures(backend) {
        let room = Room::create(backend).await;
        let (cat, plain) = (uploaded(&room.ben, 1, "A cat").await, uploaded(&room.ben, 2, "").await);
        expect(201, post(&room.ben, room.root, "Look.", &[&cat]).await);
        expect(201, post(&room.ben, room.root, "", &[&plain]).await);

        let path = format!("/api/conversations/{}/export?format=jsonl", room.root);
        let file = String::from_utf8(fetch(&room.ann, &path).await).unwrap();

        let lines: Vec<Value> = file.lines().skip(1).map(|it| serde_json::from_str(it).unwrap()).collect();
        let texts: Vec<&str> = lines.iter().map(|it| it["mes"].as_str().unwrap()).collect();
        assert_eq!(texts, ["Look.\n[Picture: A cat]", "[Picture: cat.png, 64×48]"]);
        room.app.close().await;
    }

    async fn a_space_file_with_invalid_pictures_is_refused(backend) {
        let room = Room::create(backend).await;
        let picture = uploaded(&room.ben, 1, "").await;
        expect(201, post(&room.ben, room.root, "", &[&picture]).await);
        let good = fetch(&room.ann, &format!("/api/spaces/{}/export", room.space)).await;
        let listed: Value = serde_json::from_slice(&unpacked(&good)["pictures.json"]).unwrap();
        let with = |key: &str, value: Value| {
            let mut changed = listed.clone();
            changed[0][key] = value;
            with_file(&good, "pictures.json", changed.to_string().as_bytes())
        };
        let sha256 = listed[0]["sha256"].as_str().unwrap();
        let twice = json!([listed[0], listed[0]]).to_string();
        for (name, file) in [
            ("a fifth picture", with("position", json!(4))),
            ("an unknown file", with("sha256", json!("0".repeat(64)))),
            ("a path", with("sha256", json!("../../etc/passwd"))),
            ("a long description", with("alt", json!("x".repeat(1_001)))),
            ("two at one place", with_file(&good, "pictures.json", twice.as_bytes())),
            ("no picture", with_file(&good, &format!("assets/{sha256}"), b"<svg/>")),
        ] {
            let done = import(&room.ann, "/api/spaces/import", "x.zip", &file).await;
            assert_eq!((done["status"].as_str(), done["error"]["code"].as_str()), (Some("failed"), Some("not_a_space")), "{name}: {done}");
        }
        let stray = with("seq", json!(99));
        let done = import(&room.ann, "/api/spaces/import", "x.zip", &stray).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        room.app.close().await;
    }
}
