//! Tests of garbage collection, which deletes data of cards only if nothing refers to it, and of
//! the storage quota of each user.

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
        let card = import_card(&admin).await;
        let before = count_stored(&app).await;
        assert_eq!(before.1, 3, "expected a small picture and two assets");
        expect(204, admin.delete(&path_of(&card)).await);

        let soon = sweep(&app).await;
        assert_eq!(
            (soon.characters, soon.assets),
            (1, 0),
            "unused assets were deleted within an hour"
        );
        app.app.clock.advance_ms(HOUR_MS + 1);
        let later = sweep(&app).await;

        assert_eq!((later.characters, later.assets), (0, 3));
        assert_eq!(count_stored(&app).await, (before.0 - 1, 0));
        assert_eq!(sweep(&app).await, GcReport::default());
        app.close().await;
    }

    async fn a_deleted_card_is_removed_with_the_last_space_that_uses_it(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = import_card(&admin).await;
        let space = admin.create_space("Room", json!({})).await;
        let membership = admin.add_character(&space, &card).await;
        expect(204, admin.delete(&format!("/api/memberships/{}", membership["id"])).await);
        expect(204, admin.delete(&path_of(&card)).await);
        app.app.clock.advance_ms(2 * HOUR_MS);

        assert_eq!(sweep(&app).await, GcReport::default(), "a card that is still used was deleted");
        assert_eq!(avatar(&admin, &card).await.status(), 200);
        expect(204, admin.delete(&format!("/api/spaces/{}", space["id"])).await);
        let gone = sweep(&app).await;

        assert_eq!((gone.characters, gone.assets), (1, 3));
        app.close().await;
    }

    async fn deleting_a_card_keeps_assets_that_another_card_uses(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let one = import_card(&admin).await;
        let other = admin.create_character("Odo", None).await;
        let picture = multipart_body("file", "x.png", &fixture("no_card.png"));
        let path = format!("/api/characters/{}/avatar", other["id"]);
        expect(200, send(&admin, Method::PUT, &path, picture.clone()).await);
        let path = format!("/api/characters/{}/avatar", one["id"]);
        expect(200, send(&admin, Method::PUT, &path, picture).await);

        expect(204, admin.delete(&path_of(&one)).await);
        app.app.clock.advance_ms(2 * HOUR_MS);
        sweep(&app).await;

        assert_eq!(count_stored(&app).await.1, 1, "the shared picture was deleted");
        assert_eq!(avatar(&admin, &other).await.status(), 200);
        app.close().await;
    }

    async fn garbage_collection_keeps_data_of_concurrent_imports(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        for round in 0..12 {
            let card = import_card(&admin).await;
            let all = expect(200, admin.get("/api/characters").await);
            expect(204, admin.delete(&path_of(&card)).await);
            // Makes the data old enough to be deleted while the import is about to use it.
            app.app.clock.advance_ms(2 * HOUR_MS);

            let (_, _, again) = tokio::join!(sweep(&app), sweep(&app), import_card(&admin));

            assert_eq!(avatar(&admin, &again).await.status(), 200, "round {round}");
            let charx = format!("{}/export?format=charx", path_of(&again));
            let file = get(&admin, &charx).await.bytes().await.expect("the body is complete");
            let seen = expect(200, upload(&admin, "/api/characters/preview", "x", &file).await);
            assert_eq!(seen["warnings"], json!([]), "round {round}: data is missing");
            let now = expect(200, admin.get("/api/characters").await);
            assert_eq!(now["data"].as_array().map(Vec::len), all["data"].as_array().map(Vec::len));
            expect(204, admin.delete(&path_of(&again)).await);
        }
        app.close().await;
    }

    async fn the_storage_of_one_user_is_limited(backend) {
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
        assert!(!none["data"].as_array().unwrap().iter().any(|it| is_new(&it)), "a rejected card was stored");
        let card = path_of(&first["character"]);
        let grown = json!({"scenario": noise("s", 600_000)});
        assert_eq!(refusal(&admin.patch(&card, grown).await), (413, "storage_full".to_owned()));
        expect(200, admin.patch(&card, json!({"description": "Short."})).await);
        expect(201, admin.post("/api/characters", body).await);

        let other = app.register("bea").await;
        expect(201, upload(&other, IMPORT, "b.json", &large("Bob")).await);
        app.close().await;
    }

    async fn two_concurrent_uploads_cannot_exceed_the_storage_limit_together(backend) {
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
    let card = import_card(&admin).await;
    assert_eq!(avatar(&admin, &card).await.status(), 200);
    statements.take_statements();

    let shown = avatar(&admin, &card).await;
    let queries = statements.take_statements();

    let tag = shown.headers()["etag"]
        .to_str()
        .expect("the ETag is text")
        .to_owned();
    let of_cards: Vec<_> = queries
        .iter()
        .filter(|it| it.contains("\"characters\""))
        .collect();
    assert_eq!(of_cards.len(), 1, "{queries:#?}");
    assert!(
        queries
            .iter()
            .all(|it| !it.contains("\"characters\".\"card\"")),
        "{queries:#?}"
    );
    assert_eq!(
        queries
            .iter()
            .filter(|it| it.contains("\"assets\""))
            .count(),
        1,
        "{queries:#?}"
    );
    let url = card["avatar_url"]
        .as_str()
        .expect("the character has an avatar");
    let request = http_client().get(format!("{}{url}", admin.base()));
    let request = request
        .header("cookie", admin.cookie())
        .header("if-none-match", tag);
    let known = request.send().await.expect("the server answers");
    assert_eq!(known.status(), 304);
    let queries = statements.take_statements();
    assert!(
        queries.iter().all(|it| !it.contains("\"assets\"")),
        "{queries:#?}"
    );
    app.close().await;
}

async fn sweep(app: &TestApp) -> GcReport {
    let report = garbage_collection::collect_once(&app.app.db, app.app.clock.now()).await;
    report.expect("the database answers")
}

/// Returns the numbers of stored characters and assets.
async fn count_stored(app: &TestApp) -> (i64, i64) {
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

async fn import_card(person: &HttpClient) -> Value {
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

/// Returns a card of 700 KB that cannot be compressed.
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
    std::fs::read(path).expect("the fixture can be read")
}
