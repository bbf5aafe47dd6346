//! Tests of character card files: import and export as JSON, PNG and archive, and avatars.

use std::collections::HashSet;
use std::io::{Cursor, Write};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, http_client};
use crate::support::http_response::{Answer, refusal};
use crate::support::multipart::{multipart_body, send, upload};
use crate::support::space_content::unpacked;

const IMPORT: &str = "/api/characters/import";
/// A PNG of one pixel, in base64.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PREVIEW: &str = "/api/characters/preview";

on_sqlite! {
    async fn a_json_card_is_imported_into_the_library(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
            "name": "Ada", "description": "d", "tags": "maths, engines", "extensions": {"x": [1]},
        }});

        let made = expect(201, upload(&admin, IMPORT, "ada.json", card.to_string().as_bytes()).await);

        assert_eq!(made["character"]["name"], "Ada");
        assert_eq!(made["character"]["card"]["data"]["tags"], json!(["maths", "engines"]));
        assert_eq!(made["warnings"], json!(["`tags` was text; it is kept as a list."]));
        assert_eq!(made["warnings_coded"], json!([
            {"code": "kept_as_list", "params": {"field": "tags", "found": "text"}},
        ]));
        let library = expect(200, admin.get("/api/characters").await);
        assert!(library["data"].as_array().unwrap().contains(&made["character"]));
        app.close().await;
    }

    async fn a_file_that_is_not_a_card_is_rejected_with_the_reason(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let before = expect(200, admin.get("/api/characters").await);

        for (bytes, reason) in [
            ("", "empty"),
            ("{\"entries\": {}}", "lorebook"),
            ("[1]", "a list"),
        ] {
            let refused = upload(&admin, IMPORT, "x.json", bytes.as_bytes()).await;
            assert_eq!(refusal(&refused), (422, "not_a_card".to_owned()), "{bytes}");
            assert!(refused.1.to_string().contains(reason), "{}", refused.1);
        }
        let other = send(&admin, Method::POST, IMPORT, multipart_body("picture", "x.json", b"{}")).await;
        assert_eq!(refusal(&other), (400, "unknown_field".to_owned()));
        let (kind, _) = multipart_body("file", "x", b"");
        let nothing = send(&admin, Method::POST, IMPORT, (kind, b"------a-boundary-of-the-tests--\r\n".to_vec())).await;
        assert_eq!(refusal(&nothing), (400, "missing_field".to_owned()));
        let json = admin.post(IMPORT, json!({})).await;
        assert_eq!(refusal(&json), (415, "unsupported_media_type".to_owned()));

        assert_eq!(expect(200, admin.get("/api/characters").await), before);
        app.close().await;
    }

    async fn a_png_card_is_previewed_imported_shown_and_exported(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let png = fixture("text.png");

        let seen = expect(200, upload(&admin, PREVIEW, "maren.png", &png).await);

        assert_eq!(seen["greeting"], format!("Mind the stairs, {}. I am Maren.", admin_name(&admin).await));
        assert_eq!((&seen["name"], &seen["greetings"], &seen["duplicate_of"]), (&json!("Maren"), &json!(1), &json!(null)));
        assert!(seen["avatar"].as_str().unwrap().starts_with("data:image/webp;base64,"));
        let none = expect(200, admin.get("/api/characters").await);
        assert!(none["data"].as_array().unwrap().iter().all(|it| it["name"] != "Maren"), "the preview stored a character");

        let made = expect(201, upload(&admin, IMPORT, "maren.png", &png).await)["character"].clone();
        let url = made["avatar_url"].as_str().expect("the character has an avatar").to_owned();
        let picture = fetch(&admin, &url).await;
        assert_eq!(picture.header("content-type"), "image/webp");
        assert_eq!(picture.header("x-content-type-options"), "nosniff");
        assert!(picture.header("content-security-policy").contains("sandbox"));
        assert!(picture.header("cache-control").contains("immutable"));
        let thumbnail = fetch(&admin, &format!("{url}&size=thumbnail")).await;
        assert_eq!((thumbnail.status, thumbnail.header("content-type")), (200, "image/jpeg"));
        assert!(thumbnail.header("cache-control").contains("immutable"));
        assert_ne!(thumbnail.header("etag"), picture.header("etag"));
        let other = admin.get(&format!("{url}&size=huge")).await;
        assert_eq!(refusal(&other), (400, "invalid_value".to_owned()));
        let again = get(&admin, &url).header("if-none-match", picture.header("etag"));
        assert_eq!(Answer::to(again).await.status, 304);

        let same = expect(200, upload(&admin, IMPORT, "other.png", &png).await);
        assert_eq!(same["character"], made);
        assert!(same["warnings"][0].as_str().unwrap().contains("already"), "{same}");
        assert_eq!(same["warnings_coded"][0]["code"], "card_already_there");
        let seen = expect(200, upload(&admin, PREVIEW, "maren.png", &png).await);
        assert_eq!(seen["duplicate_of"], made["id"]);

        for format in ["png", "charx", "json"] {
            let path = format!("/api/characters/{}/export?format={format}", made["id"]);
            let file = bytes_of(&admin, &path).await;
            let known = expect(200, upload(&admin, PREVIEW, "x", &file).await);
            assert_eq!(known["name"], "Maren", "{format}");
            assert_eq!(known["duplicate_of"] == made["id"], format != "charx", "{format}");
        }
        app.close().await;
    }

    async fn a_card_too_large_for_a_png_is_exported_as_an_archive(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let noise: Vec<u8> = (0..16_000_000_u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let made = expect(201, upload(&admin, IMPORT, "x.charx", &archive_with(&noise)).await);
        let path = format!("/api/characters/{}/export?format=", made["character"]["id"]);

        let refused = admin.get(&format!("{path}png")).await;

        assert_eq!(refusal(&refused), (422, "too_large_for_png".to_owned()));
        assert!(refused.1.to_string().contains("CHARX"), "{}", refused.1);
        let file = bytes_of(&admin, &format!("{path}charx")).await;
        let again = expect(200, upload(&admin, IMPORT, "y.charx", &file).await);
        assert_eq!(again["character"], made["character"]);
        assert!(unpacked(&file).get("s.ogg") == Some(&noise), "the large asset is incomplete");
        let space = admin.create_space("Hall", json!({})).await;
        admin.add_character(&space, &made["character"]).await;
        let exported_space = bytes_of(&admin, &format!("/api/spaces/{}/export", space["id"])).await;
        assert!(
            unpacked(&exported_space).values().any(|it| *it == noise),
            "the large asset is missing in the exported space"
        );
        app.close().await;
    }

    async fn a_changed_or_removed_picture_is_visible_to_all_members(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = admin.create_character("Ada", None).await;
        let space = admin.create_space("Room", json!({})).await;
        admin.add_character(&space, &card).await;
        let path = format!("/api/characters/{}/avatar", card["id"]);
        let roster = format!("/api/spaces/{}/memberships", space["id"]);
        let file = multipart_body("file", "x.png", &fixture("no_card.png"));

        let changed = expect(200, send(&admin, Method::PUT, &path, file).await);

        assert!(changed["avatar_url"].as_str().unwrap().starts_with(&format!("{path}?v=")));
        let memberships = expect(200, admin.get(&roster).await);
        assert_eq!(memberships["data"][1]["avatar_url"], changed["avatar_url"]);
        let svg = multipart_body("file", "x.png", b"<svg/>");
        let refused = send(&admin, Method::PUT, &path, svg).await;
        assert_eq!(refusal(&refused), (422, "not_a_picture".to_owned()));
        let gone = expect(200, admin.delete(&path).await);
        assert_eq!(gone["avatar_url"], json!(null));
        assert_eq!(admin.get(&path).await.0, 404);
        let memberships = expect(200, admin.get(&roster).await);
        assert_eq!(memberships["data"][1]["avatar_url"], json!(null));
        app.close().await;
    }

    async fn importing_a_card_again_adds_its_missing_picture(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let png = fixture("text.png");
        let with_picture = expect(201, upload(&admin, IMPORT, "maren.png", &png).await)["character"].clone();
        let path = format!("/api/characters/{}/export?format=json", with_picture["id"]);
        let card = bytes_of(&admin, &path).await;
        let other = app.register("other").await;
        let without_picture = expect(201, upload(&other, IMPORT, "maren.json", &card).await)["character"].clone();
        assert_eq!(without_picture["avatar_url"], Value::Null);

        let again = expect(200, upload(&other, IMPORT, "maren.png", &png).await);

        assert_eq!(again["character"]["id"], without_picture["id"]);
        let url = again["character"]["avatar_url"].as_str().expect("the character has an avatar");
        assert_eq!(fetch(&other, url).await.status, 200);
        app.close().await;
    }

    async fn a_deleted_character_keeps_its_avatar_in_the_space(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let made = expect(201, upload(&admin, IMPORT, "maren.png", &fixture("text.png")).await);
        let card = &made["character"];
        let space = admin.create_space("Room", json!({})).await;
        admin.add_character(&space, card).await;

        expect(204, admin.delete(&format!("/api/characters/{}", card["id"])).await);

        let url = card["avatar_url"].as_str().expect("the character has an avatar");
        assert_eq!(fetch(&admin, url).await.status, 200);
        app.close().await;
    }
}

on_both! {
    async fn a_card_imported_concurrently_is_stored_once(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let charx = fixture("whole.charx");

        for name in ["Maren", "Ines", "Odo"] {
            let card = json!({"name": name, "description": "d"}).to_string();
            let file = if name == "Maren" { charx.clone() } else { card.into_bytes() };
            let all = (0..6).map(|_| upload(&admin, IMPORT, "x", &file));
            let answers = futures::future::join_all(all).await;

            let mut statuses: Vec<u16> = answers.iter().map(|it| it.0).collect();
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 200, 200, 200, 200, 201], "{name}");
            let ids: HashSet<_> = answers.iter().map(|it| it.1["character"]["id"].as_i64()).collect();
            assert_eq!(ids.len(), 1, "{name}: the responses contain different characters");
            let library = expect(200, admin.get("/api/characters").await);
            let library = library["data"].as_array().unwrap();
            assert_eq!(library.iter().filter(|it| it["name"] == name).count(), 1, "{name}");
        }
        app.close().await;
    }
}

on_sqlite! {
    async fn a_removed_picture_is_not_exported_with_the_card(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let made = expect(201, upload(&admin, IMPORT, "x.charx", &fixture("whole.charx")).await);
        let id = &made["character"]["id"];

        let without_avatar = expect(
            200,
            admin.delete(&format!("/api/characters/{id}/avatar")).await,
        );

        assert_eq!(without_avatar["avatar_url"], json!(null));
        let assets = without_avatar["card"]["data"]["assets"].as_array().unwrap();
        assert_eq!((assets.len(), &assets[0]["uri"]), (2, &json!("ccdefault:")));
        let facts = DatabaseFacts::open(&app.database).await.rows("SELECT name FROM character_assets").await;
        assert_eq!(facts, [[Some("assets/background/images/coast.png".to_owned())]]);
        for format in ["charx", "png", "json"] {
            let path = format!("/api/characters/{id}/export?format={format}");
            let file = bytes_of(&admin, &path).await;
            let text = String::from_utf8_lossy(&file);
            assert!(!text.contains("assets/icon/"), "{format}");
            assert!(format == "png" || text.contains("assets/background/"), "{format}: the other assets are missing");
        }
        app.close().await;
    }

    async fn a_card_exported_without_its_picture_is_imported_without_it(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let made = expect(201, upload(&admin, IMPORT, "x.charx", &fixture("whole.charx")).await);
        let id = &made["character"]["id"];
        let without_avatar = expect(
            200,
            admin.delete(&format!("/api/characters/{id}/avatar")).await,
        );
        let charx = charx_of(&admin, &without_avatar).await;
        expect(204, admin.delete(&format!("/api/characters/{id}")).await);

        let again = expect(201, upload(&admin, IMPORT, "y.charx", &charx).await);

        assert_eq!(again["warnings"], json!([]));
        assert_eq!(again["character"]["avatar_url"], json!(null));
        assert_eq!(again["character"]["card"], without_avatar["card"]);
        app.close().await;
    }

    async fn an_avatar_replaces_the_one_inside_the_card(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {"name": "Ada", "description": "d", "assets": [
            {"type": "icon", "name": "main", "ext": "png", "uri": format!("data:image/png;base64,{DOT}")},
        ]}});
        let made = expect(201, upload(&admin, IMPORT, "ada.json", card.to_string().as_bytes()).await);
        let id = &made["character"]["id"];

        let file = multipart_body("file", "x.png", &fixture("no_card.png"));
        let path = format!("/api/characters/{id}/avatar");
        let with_avatar = expect(200, send(&admin, Method::PUT, &path, file).await);

        assert_ne!(with_avatar["avatar_url"], made["character"]["avatar_url"]);
        let charx = charx_of(&admin, &with_avatar).await;
        expect(204, admin.delete(&format!("/api/characters/{id}")).await);
        let again = expect(201, upload(&admin, IMPORT, "y.charx", &charx).await);
        let shown = |it: &Value| it["avatar_url"].as_str().map(|it| it.split('=').next_back().map(str::to_owned));
        assert_eq!(shown(&again["character"]), shown(&with_avatar), "the old avatar was exported");
        app.close().await;
    }

    async fn assets_of_an_archive_are_kept_and_exported_again(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let made = expect(201, upload(&admin, IMPORT, "x.charx", &fixture("whole.charx")).await);
        assert_eq!(made["warnings"], json!([]));

        let path = format!("/api/characters/{}/export?format=charx", made["character"]["id"]);
        let again = expect(200, upload(&admin, IMPORT, "y.zip", &bytes_of(&admin, &path).await).await);

        assert_eq!(again["character"], made["character"], "the card differs");
        assert_eq!(again["warnings"].as_array().unwrap().len(), 1, "unexpected warnings: {again}");
        app.close().await;
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/cards/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the fixture can be read")
}

/// Returns a card archive with one sound.
fn archive_with(sound: &[u8]) -> Vec<u8> {
    let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Ada", "description": "d", "assets": [{"type": "x_sound", "uri": "embeded://s.ogg", "name": "s", "ext": "ogg"}],
    }});
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("card.json", card.to_string().as_bytes()), ("s.ogg", sound)] {
        let without_picture =
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(name, without_picture)
            .expect("the entry is started");
        zip.write_all(bytes).expect("the entry is written");
    }
    zip.finish().expect("the archive is finished").into_inner()
}

async fn charx_of(person: &HttpClient, character: &Value) -> Vec<u8> {
    let path = format!("/api/characters/{}/export?format=charx", character["id"]);
    bytes_of(person, &path).await
}

fn get(person: &HttpClient, path: &str) -> RequestBuilder {
    let request = http_client().get(format!("{}{path}", person.base()));
    request.header("cookie", person.cookie())
}

async fn admin_name(person: &HttpClient) -> String {
    let session = expect(200, person.get("/api/session").await);
    let name = session["user"]["display_name"].as_str();
    name.expect("the user has a name").to_owned()
}

/// Fetches a picture as an `Answer`; the body is not text, but the tests read only the headers.
async fn fetch(person: &HttpClient, path: &str) -> Answer {
    let answer = Answer::to(get(person, path)).await;
    assert_eq!(answer.status, 200, "{path}");
    answer
}

async fn bytes_of(person: &HttpClient, path: &str) -> Vec<u8> {
    let answer = get(person, path).send().await.expect("the server answers");
    assert_eq!(answer.status(), 200, "{path}");
    answer.bytes().await.expect("the body is complete").to_vec()
}
