//! Tests of attachments before they are posted: uploads, limits, who sees them, and their deletion.

use serde_json::{Value, json};
use troupe::spaces::maintenance::garbage_collection;

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::fetch;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::multipart;
use crate::support::pictures::{self, UPLOAD, clear_png, png, size_of, upload, uploaded};

const HOUR_MS: i64 = 3_600_000;

async fn count_assets(app: &TestApp) -> i64 {
    let mut facts = DatabaseFacts::open(&app.database).await;
    facts
        .number("SELECT CAST(count(*) AS TEXT) FROM assets")
        .await
}

async fn count_attachments(app: &TestApp) -> i64 {
    let mut facts = DatabaseFacts::open(&app.database).await;
    facts
        .number("SELECT CAST(count(*) AS TEXT) FROM attachments")
        .await
}

async fn collect(app: &TestApp) {
    let now = app.app.clock.now();
    let done = garbage_collection::collect_once(&app.app.db, now).await;
    done.expect("garbage collection failed");
}

fn path_of(attachment: &Value) -> String {
    format!("{UPLOAD}/{}", attachment["id"])
}

on_both! {
    async fn a_picture_is_redrawn_in_two_sizes_and_only_its_owner_sees_it(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);

        let shown = expect(201, upload(&ben, "../My cat.PNG", &png(4_000, 1_000, 1), " A cat ").await);

        assert_eq!((&shown["file_name"], &shown["alt"]), (&json!("My cat.PNG"), &json!("A cat")));
        assert_eq!((&shown["width"], &shown["height"]), (&json!(2_048), &json!(512)));
        assert_eq!(shown["media_type"], "image/jpeg");
        let (full, small) = (shown["url"].as_str().unwrap(), shown["thumbnail_url"].as_str().unwrap());
        let bytes = fetch(&ben, full).await;
        assert_eq!((size_of(&bytes), size_of(&fetch(&ben, small).await)), ((2_048, 512), (640, 160)));
        assert_eq!(shown["bytes"].as_u64(), Some(bytes.len() as u64));
        let answer = pictures::request(&ben, full).await;
        assert_eq!(answer.header("content-type"), "image/jpeg");
        assert_eq!(answer.header("cache-control"), "private, max-age=31536000, immutable");
        assert_eq!(answer.header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(answer.header("content-disposition").contains("picture-"), "{answer:?}");
        // Before it is posted, not even an admin sees it.
        for path in [full, small] {
            assert_eq!(ann.get(path).await.0, 404, "{path}");
        }
        assert_eq!(ann.patch(&path_of(&shown), json!({"alt": "x"})).await.0, 404);
        assert_eq!(ann.delete(&path_of(&shown)).await.0, 404);
        assert_eq!(ben.get(&format!("{}?size=huge", path_of(&shown))).await.0, 400);
        app.close().await;
    }

    async fn a_picture_is_stored_once_and_described_or_deleted_by_its_owner(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let first = uploaded(&ann, 1, "").await;
        let same = uploaded(&ann, 1, "Same.").await;

        assert_ne!(first["id"], same["id"]);
        assert_eq!(count_assets(&app).await, 2, "the same bytes were stored twice");
        let changed = expect(200, ann.patch(&path_of(&first), json!({"alt": " A tree\n"})).await);
        assert_eq!(changed["alt"], "A tree");
        let long = json!({"alt": "x".repeat(1_001)});
        assert_eq!(refusal(&ann.patch(&path_of(&first), long).await), (422, "too_long".to_owned()));
        let nul = json!({"alt": "\0"});
        assert_eq!(refusal(&ann.patch(&path_of(&first), nul).await), (422, "invalid_value".to_owned()));
        assert_eq!(ann.delete(&path_of(&first)).await.0, 204);
        assert_eq!(ann.delete(&path_of(&first)).await.0, 404);
        assert_eq!(ann.get(same["url"].as_str().unwrap()).await.0, 200);
        app.close().await;
    }

    async fn an_unposted_picture_is_deleted_after_a_day_and_a_posted_one_is_not(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let root = root_of(&ann.create_space("Room", json!({})).await);
        let posted = uploaded(&ann, 1, "").await;
        expect(201, pictures::post(&ann, root, "", &[&posted]).await);
        let forgotten = uploaded(&ann, 2, "").await;

        app.app.clock.advance_ms(23 * HOUR_MS);
        collect(&app).await;
        assert_eq!(count_attachments(&app).await, 2);
        app.app.clock.advance_ms(2 * HOUR_MS);
        collect(&app).await;

        assert_eq!((count_attachments(&app).await, count_assets(&app).await), (1, 2));
        assert_eq!(ann.get(forgotten["url"].as_str().unwrap()).await.0, 404);
        assert_eq!(ann.get(posted["url"].as_str().unwrap()).await.0, 200);
        app.close().await;
    }

    async fn the_pictures_of_a_deleted_message_are_kept_for_a_week(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let root = root_of(&ann.create_space("Room", json!({})).await);
        let (kept, lost) = (uploaded(&ann, 1, "").await, uploaded(&ann, 2, "").await);
        let restored = expect(201, pictures::post(&ann, root, "", &[&kept]).await)["message"].clone();
        let deleted = expect(201, pictures::post(&ann, root, "", &[&lost]).await)["message"].clone();
        let at = |message: &Value| format!("/api/messages/{}", message["id"]);
        for message in [&restored, &deleted] {
            assert_eq!(ann.delete(&at(message)).await.0, 204);
        }
        assert_eq!(ann.get(kept["url"].as_str().unwrap()).await.0, 404, "the picture of a hidden message was shown");

        app.app.clock.advance_ms(6 * 24 * HOUR_MS);
        collect(&app).await;
        let shown = expect(200, ann.patch(&at(&restored), json!({"visibility": "normal"})).await);
        assert_eq!(shown["attachments"][0]["id"], kept["id"]);
        app.app.clock.advance_ms(2 * 24 * HOUR_MS);
        collect(&app).await;

        assert_eq!((count_attachments(&app).await, count_assets(&app).await), (1, 2));
        assert_eq!(ann.get(kept["url"].as_str().unwrap()).await.0, 200);
        app.close().await;
    }

    async fn pictures_count_toward_the_quota_of_their_owner(backend) {
        let env = [("LIMIT_STORED_MIB_PER_USER", "1"), ("TROUPE_OPEN_REGISTRATION", "true")];
        let app = TestApp::start_with(backend, &env).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let noise = |seed: u32| {
            let mut state = seed;
            let picture = image::RgbImage::from_fn(450, 450, |_, _| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let [red, green, blue, _] = state.to_be_bytes();
                image::Rgb([red, green, blue])
            });
            let mut bytes = std::io::Cursor::new(Vec::new());
            picture.write_to(&mut bytes, image::ImageFormat::Png).expect("a PNG");
            bytes.into_inner()
        };
        expect(201, upload(&ann, "a.png", &noise(1), "").await);
        let before = count_assets(&app).await;

        let refused = upload(&ann, "b.png", &noise(2), "").await;

        assert_eq!(refusal(&refused), (413, "storage_full".to_owned()));
        assert_eq!((count_assets(&app).await, count_attachments(&app).await), (before, 1));
        expect(201, upload(&ann, "a.png", &noise(1), "").await);
        expect(201, upload(&ben, "b.png", &noise(2), "").await);
        app.close().await;
    }
}

on_sqlite! {
    async fn what_is_no_picture_or_too_large_stores_nothing(backend) {
        let app = TestApp::start_with(backend, &[("LIMIT_PICTURE_MB", "1")]).await;
        let ann = app.admin().await;
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>";
        let enormous = pictures::png_header(8_000, 6_376);
        let cut = &png(300, 300, 0)[..100];
        for (bytes, status, code) in [
            (&svg[..], 422, "not_a_picture"),
            (b"", 422, "not_a_picture"),
            (cut, 422, "not_a_picture"),
            (&enormous, 422, "picture_too_large"),
            (&vec![0; 1024 * 1024 + 1], 413, "too_large"),
        ] {
            let refused = upload(&ann, "x.png", bytes, "").await;
            assert_eq!(refusal(&refused), (status, code.to_owned()), "{} bytes", bytes.len());
        }
        let long = upload(&ann, "x.png", &png(8, 8, 0), &"x".repeat(1_001)).await;
        assert_eq!(refusal(&long), (422, "too_long".to_owned()));
        let endless = upload(&ann, "x.png", &png(8, 8, 0), &"x".repeat(5_000)).await;
        assert_eq!(refusal(&endless), (422, "too_long".to_owned()));
        assert_eq!(refusal(&ann.post(UPLOAD, json!({})).await), (415, "unsupported_media_type".to_owned()));
        let form = multipart::multipart_body("picture", "x.png", &png(8, 8, 0));
        let unknown = multipart::send(&ann, reqwest::Method::POST, UPLOAD, form).await;
        assert_eq!(refusal(&unknown), (400, "unknown_field".to_owned()));
        assert_eq!((count_assets(&app).await, count_attachments(&app).await), (0, 0));
        app.close().await;
    }

    async fn a_transparent_picture_stays_a_png(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let shown = expect(201, upload(&ann, "", &clear_png(900, 10), "").await);

        assert_eq!((&shown["media_type"], &shown["file_name"]), (&json!("image/png"), &Value::Null));
        let small = pictures::request(&ann, shown["thumbnail_url"].as_str().unwrap()).await;
        assert_eq!(small.header("content-type"), "image/png");
        app.close().await;
    }

    async fn uploads_have_a_rate_limit_of_their_own(backend) {
        let app = TestApp::start_with(backend, &[("LIMIT_POSTS_PER_MINUTE", "1")]).await;
        let ann = app.admin().await;
        for seed in 0..4 {
            uploaded(&ann, seed, "").await;
        }
        let refused = upload(&ann, "x.png", &png(8, 8, 0), "").await;
        assert_eq!(refusal(&refused), (429, "rate_limited".to_owned()));
        app.close().await;
    }

    async fn pictures_of_several_people_are_redrawn_at_the_same_time(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let large = png(3_000, 2_000, 1);
        let one = |person: HttpClient, seed: u8| {
            let bytes = [large.clone(), vec![seed]].concat();
            async move { upload(&person, "x.png", &bytes, "").await }
        };

        let all = futures::future::join_all((0..6).map(|it| one(ann.clone(), it))).await;

        for answer in all {
            assert!(id(&expect(201, answer)) > 0);
        }
        // The bytes after the picture are not kept, so all are the same.
        assert_eq!(count_assets(&app).await, 2);
        app.close().await;
    }
}
