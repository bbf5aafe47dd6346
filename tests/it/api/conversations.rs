//! Tests of conversations: the list, the documents and the read marks.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{expect, id, root_of};
use crate::support::http_response::refusal;

/// No workers: queued runs stay queued.
const IDLE: &[(&str, &str)] = &[("TROUPE_WORKERS", "0")];

on_sqlite! {
    async fn a_list_shows_each_conversation_as_its_own_endpoint_does(backend) {
        let app = TestApp::start_with(backend, IDLE).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let path = format!("/api/spaces/{}/conversations", id(&space));
        ann.add_character(&space, &ann.create_character("Ada", None).await).await;
        let other = id(&expect(201, ann.post(&path, json!({"title": "Other"})).await));
        ann.post(&path, json!({"title": "Empty"})).await;
        for conversation in [root_of(&space), other] {
            expect(201, ann.post_message(conversation, "Hi.", None).await);
        }
        expect(202, ann.stop(other).await);
        expect(202, ann.generate(other, None).await);

        let listed = expect(200, ann.get(&path).await);

        let listed = listed["data"].as_array().unwrap();
        assert_eq!(listed.len(), 3);
        for document in listed {
            let mut own = ann.conversation(id(document)).await;
            own["last_read_seq"] = json!(0);
            assert_eq!(*document, own);
        }
        let states: Vec<_> = listed.iter().map(|it| it["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["queued", "queued", "idle"]);
        app.close().await;
    }

    async fn invalid_conversation_settings_are_rejected(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let path = format!("/api/conversations/{}", root_of(&space));
        let note = json!({"author_note": {"text": "rain", "depth": 4}});
        expect(200, ann.patch(&path, json!({"settings": note})).await);

        for (settings, status, code) in [
            (json!(null), 400, "invalid_type"),
            (json!([]), 400, "invalid_type"),
            (json!({"author_note": 5}), 400, "invalid_type"),
            (json!({"author_note": {"depth": -1}}), 422, "invalid_value"),
            (json!({"scenario_override": "x".repeat(70_000)}), 422, "invalid_value"),
        ] {
            let answer = ann.patch(&path, json!({"settings": settings})).await;
            assert_eq!(refusal(&answer), (status, code.to_owned()), "{settings:.50}");
        }

        assert_eq!(ann.conversation(root_of(&space)).await["settings"], note);
        app.close().await;
    }

    async fn a_read_mark_never_moves_back(backend) {
        let app = TestApp::start_with(backend, IDLE).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let conversation = root_of(&space);
        for n in 0..3 {
            expect(201, ann.post_message(conversation, &format!("{n}"), None).await);
        }

        for seq in [2, 1, 2] {
            let path = format!("/api/conversations/{conversation}/read");
            expect(204, ann.post(&path, json!({"seq": seq})).await);
        }

        let path = format!("/api/spaces/{}/conversations", id(&space));
        let listed = expect(200, ann.get(&path).await);
        assert_eq!(listed["data"][0]["last_read_seq"], 2);
        app.close().await;
    }
}
