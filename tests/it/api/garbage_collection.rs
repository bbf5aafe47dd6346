//! Garbage collection deletes data of cards only when nothing refers to it any more; quotas limit
//! what each user can store.

use reqwest::{Method, Response};
use serde_json::{Value, json};
use troupe::spaces::maintenance::garbage_collection;
use troupe::spaces::maintenance::garbage_collection::GcReport;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, http_client};
use crate::support::http_response::refusal;
use crate::support::multipart::{multipart_body, send, upload};
use crate::support::statements::Statements;

const IMPORT: &str = "/api/characters/import";
const HOUR_MS: i64 = 3_600_000;

on_both! {
    async fn unused_data_is_deleted_after_a_while(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = imported(&admin).await;
        let before = stored(&app).await;
        assert_eq!(before.1, 3, "a small picture, and two assets");
        expect(204, admin.delete(&path_of(&card)).await);

        let soon = sweep(&app).await;
        assert_eq!((soon.characters, soon.assets), (1, 0), "bytes are spared for an hour");
        app.app.clock.advance_ms(HOUR_MS + 1);
        let later = sweep(&app).await;

        assert_eq!((later.characters, later.assets), (0, 3));
        assert_eq!(stored(&app).await, (before.0 - 1, 0));
        assert_eq!(sweep(&app).await, GcReport::default());
        app.close().await;
    }

    async fn a_deleted_card_is_removed_with_the_last_space_that_uses_it(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = imported(&admin).await;
        let space = admin.create_space("Room", json!({})).await;
        let seat = admin.add_character(&space, &card).await;
        expect(204, admin.delete(&format!("/api/memberships/{}", seat["id"])).await);
        expect(204, admin.delete(&path_of(&card)).await);
        app.app.clock.advance_ms(2 * HOUR_MS);

        assert_eq!(sweep(&app).await, GcReport::default(), "its words are there, and have a face");
        assert_eq!(avatar(&admin, &card).await.status(), 200);
        expect(204, admin.delete(&format!("/api/spaces/{}", space["id"])).await);
        let gone = sweep(&app).await;

        assert_eq!((gone.characters, gone.assets), (1, 3));
        app.close().await;
    }

    async fn what_two_cards_share_stays_with_the_other(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let one = imported(&admin).await;
        let other = admin.create_character("Odo", None).await;
        let picture = multipart_body("file", "x.png", &fixture("no_card.png"));
        let path = format!("/api/characters/{}/avatar", other["id"]);
        expect(200, send(&admin, Method::PUT, &path, picture.clone()).await);
        let path = format!("/api/characters/{}/avatar", one["id"]);
        expect(200, send(&admin, Method::PUT, &path, picture).await);

        expect(204, admin.delete(&path_of(&one)).await);
        app.app.clock.advance_ms(2 * HOUR_MS);
        sweep(&app).await;

        assert_eq!(stored(&app).await.1, 1, "the picture of the other");
        assert_eq!(avatar(&admin, &other).await.status(), 200);
        app.close().await;
    }

    async fn garbage_collection_keeps_data_of_concurrent_imports(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        for round in 0..12 {
            let card = imported(&admin).await;
            let all = expect(200, admin.get("/api/characters").await);
            expect(204, admin.delete(&path_of(&card)).await);
            // Old and without a reference: the garbage collection would delete what the import is
            // about to use.
            app.app.clock.advance_ms(2 * HOUR_MS);

            let (_, _, again) = tokio::join!(sweep(&app), sweep(&app), imported(&admin));

            assert_eq!(avatar(&admin, &again).await.status(), 200, "round {round}");
            let charx = format!("{}/export?format=charx", path_of(&again));
            let file = get(&admin, &charx).await.bytes().await.expect("it arrives whole");
            let seen = expect(200, upload(&admin, "/api/characters/preview", "x", &file).await);
            assert_eq!(seen["warnings"], json!([]), "round {round}: nothing is missing");
            let now = expect(200, admin.get("/api/characters").await);
            assert_eq!(now["data"].as_array().map(Vec::len), all["data"].as_array().map(Vec::len));
            expect(204, admin.delete(&path_of(&again)).await);
        }
        app.close().await;
    }

    async fn there_is_an_end_to_what_one_person_may_store(backend) {
        let env = [("LIMIT_STORED_MIB_PER_USER", "1"), ("TROUPE_OPEN_REGISTRATION", "true")];
        let app = TestApp::start_with(backend, &env).await;
        let admin = app.admin().await;
        let first = expect(201, upload(&admin, IMPORT, "a.json", &large("Ada")).await);

        let second = upload(&admin, IMPORT, "b.json", &large("Bob")).await;

        assert_eq!(refusal(&second), (413, "storage_full".to_owned()));
        assert!(second.1.to_string().contains("1 MiB"), "{}", second.1);
        let small = large("Cid").len() / 2;
        let body = json!({"name": "Cid", "description": noise("Cid", small)});
        let third = admin.post("/api/characters", body.clone()).await;
        assert_eq!(refusal(&third), (413, "storage_full".to_owned()));
        let none = expect(200, admin.get("/api/characters").await);
        let is_new = |it: &&Value| it["name"] == "Bob" || it["name"] == "Cid";
        assert!(!none["data"].as_array().unwrap().iter().any(|it| is_new(&it)), "nothing was stored");
        let card = path_of(&first["character"]);
        let grown = json!({"scenario": noise("s", 600_000)});
        assert_eq!(refusal(&admin.patch(&card, grown).await), (413, "storage_full".to_owned()));
        expect(200, admin.patch(&card, json!({"description": "Short."})).await);
        expect(201, admin.post("/api/characters", body).await);

        let other = app.register("bea").await;
        expect(201, upload(&other, IMPORT, "b.json", &large("Bob")).await);
        app.close().await;
    }

    async fn two_that_come_at_once_do_not_pass_the_limit_together(backend) {
        let app = TestApp::start_with(backend, &[("LIMIT_STORED_MIB_PER_USER", "1")]).await;
        let admin = app.admin().await;
        let (one, two) = (large("Ada"), large("Bob"));

        let answers = tokio::join!(
            upload(&admin, IMPORT, "a.json", &one),
            upload(&admin, IMPORT, "b.json", &two),
        );

        let mut statuses = [answers.0.0, answers.1.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 413]);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_is_shown_without_reading_its_card() {
    let name = "api::garbage_collection::a_picture_is_shown_without_reading_its_card";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let card = imported(&admin).await;
    assert_eq!(avatar(&admin, &card).await.status(), 200);
    statements.take();

    let shown = avatar(&admin, &card).await;
    let told = statements.take();

    let tag = shown.headers()["etag"].to_str().expect("a tag").to_owned();
    let of_cards: Vec<_> = told
        .iter()
        .filter(|it| it.contains("\"characters\""))
        .collect();
    assert_eq!(of_cards.len(), 1, "{told:#?}");
    assert!(
        told.iter()
            .all(|it| !it.contains("\"characters\".\"card\"")),
        "{told:#?}"
    );
    assert_eq!(
        told.iter().filter(|it| it.contains("\"assets\"")).count(),
        1,
        "{told:#?}"
    );
    let url = card["avatar_url"].as_str().expect("a picture");
    let request = http_client().get(format!("{}{url}", admin.base()));
    let request = request
        .header("cookie", admin.cookie())
        .header("if-none-match", tag);
    let known = request.send().await.expect("the server answers");
    assert_eq!(known.status(), 304);
    let told = statements.take();
    assert!(
        told.iter().all(|it| !it.contains("\"assets\"")),
        "{told:#?}"
    );
    app.close().await;
}

async fn sweep(app: &TestApp) -> GcReport {
    let swept = garbage_collection::collect_once(&app.app.db, app.app.clock.now()).await;
    swept.expect("the database answers")
}

/// Returns the numbers of stored characters and assets.
async fn stored(app: &TestApp) -> (i64, i64) {
    let mut facts = DatabaseFacts::open(&app.database).await;
    let characters = facts
        .number("SELECT CAST(COUNT(*) AS TEXT) FROM characters")
        .await;
    (
        characters,
        facts
            .number("SELECT CAST(COUNT(*) AS TEXT) FROM assets")
            .await,
    )
}

async fn imported(person: &HttpClient) -> Value {
    let made = expect(
        201,
        upload(person, IMPORT, "x.charx", &fixture("whole.charx")).await,
    );
    made["character"].clone()
}

fn path_of(character: &Value) -> String {
    format!("/api/characters/{}", character["id"])
}

async fn avatar(person: &HttpClient, character: &Value) -> Response {
    get(person, &format!("{}/avatar", path_of(character))).await
}

async fn get(person: &HttpClient, path: &str) -> Response {
    let request = http_client().get(format!("{}{path}", person.base()));
    let request = request.header("cookie", person.cookie());
    request.send().await.expect("the server answers")
}

/// Returns a card of 700 KB that no database can compress.
fn large(name: &str) -> Vec<u8> {
    let card = json!({"name": name, "description": noise(name, 700_000)});
    card.to_string().into_bytes()
}

fn noise(seed: &str, length: usize) -> String {
    let mut state = seed
        .bytes()
        .fold(7_u64, |sum, it| sum * 131 + u64::from(it));
    let letters = (0..length).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    });
    letters.collect()
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/cards/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("a fixture")
}
