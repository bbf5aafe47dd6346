//! Tests of characters: creation from cards, visibility and changes.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::{expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

on_sqlite! {
    async fn a_card_is_exported_with_its_unknown_fields(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = json!({
            "spec": "chara_card_v2", "spec_version": "2.0",
            "data": {
                "name": "Ada", "description": "d", "personality": "p", "scenario": "", "first_mes": "Hello, {{user}}.",
                "mes_example": "", "creator_notes": "", "system_prompt": "", "post_history_instructions": "",
                "alternate_greetings": ["Hi."], "tags": [], "creator": "", "character_version": "",
                "extensions": {"unheard/of": {"deep": [1, null, "x"]}}, "made_up_field": 7,
            },
        });

        let made = expect(201, admin.post("/api/characters", json!({"card": card})).await);

        assert_eq!((made["name"].as_str(), made["greetings"].as_i64(), made["lore_entries"].as_i64()), (Some("Ada"), Some(2), Some(0)));
        let exported = expect(200, admin.get(&format!("/api/characters/{}/export?format=json", id(&made))).await);
        assert_eq!(exported["data"]["extensions"], card["data"]["extensions"]);
        assert_eq!(exported["data"]["made_up_field"], 7);
        app.close().await;
    }

    async fn a_character_is_visible_to_its_owner_admins_and_members_of_its_spaces(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let card = users.moderator.create_character("Ada", None).await;
        let path = format!("/api/characters/{}", id(&card));
        let before = [404, 404, 404, 200, 404, 200];
        let after = [404, 200, 200, 200, 200, 200];

        for ((who, person), status) in users.all_roles().into_iter().zip(before) {
            assert_eq!(person.get(&path).await.0, status, "{who} before");
        }
        users.moderator.add_character(&users.document, &card).await;
        for ((who, person), status) in users.all_roles().into_iter().zip(after) {
            assert_eq!(person.get(&path).await.0, status, "{who} after");
            let exports = if matches!(who, "guest" | "member" | "owner") { 403 } else { status };
            assert_eq!(person.get(&format!("{path}/export")).await.0, exports, "{who} exports");
            assert_eq!(person.get(&format!("{path}/avatar")).await.0, 404, "{who} has no picture");
        }
        for ((who, person), status) in users.all_roles().into_iter().zip([404, 403, 403, 200, 403, 200]) {
            let changed = person.patch(&path, json!({"description": who})).await;
            assert_eq!(changed.0, status, "{who} changes: {}", changed.1);
        }
        for ((who, person), status) in users.all_roles().into_iter().zip([404, 403, 403, 204, 404, 404]) {
            assert_eq!(person.delete(&path).await.0, status, "{who} deletes");
        }
        users.app.close().await;
    }

    async fn a_deleted_character_keeps_its_memberships(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let card = admin.create_character("Ada", None).await;
        let space = admin.create_space("Room", json!({})).await;
        let membership = admin.add_character(&space, &card).await;

        assert_eq!(admin.delete(&format!("/api/characters/{}", id(&card))).await.0, 204);

        let roster = expect(200, admin.get(&format!("/api/spaces/{}/memberships", id(&space))).await);
        let still = roster["data"].as_array().unwrap().iter().find(|it| id(it) == id(&membership)).unwrap();
        assert_eq!(still["status"], "active");
        let library = expect(200, admin.get("/api/characters").await);
        assert!(library["data"].as_array().unwrap().iter().all(|it| id(it) != id(&card)));
        let again = admin.post(&format!("/api/spaces/{}/memberships", id(&space)), json!({"character_id": id(&card)})).await;
        assert_eq!(refusal(&again), (404, "not_found".to_owned()));
        app.close().await;
    }

    async fn an_update_keeps_the_fields_that_it_does_not_contain(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let body = json!({"name": "Ada", "description": "old", "extensions": {"x": 1}});
        let card = expect(201, admin.post("/api/characters", body).await);
        let space = admin.create_space("Room", json!({})).await;
        admin.add_character(&space, &card).await;

        let path = format!("/api/characters/{}", id(&card));
        let changed = expect(200, admin.patch(&path, json!({"name": "Ida"})).await);

        assert_eq!(changed["name"], "Ida");
        assert_eq!(changed["card"]["data"]["description"], "old");
        assert_eq!(changed["card"]["data"]["extensions"]["x"], 1);
        let roster = expect(200, admin.get(&format!("/api/spaces/{}/memberships", id(&space))).await);
        assert_eq!(roster["data"][1]["display_name"], "Ida");
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_card_is_rejected_and_nothing_is_stored() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let before = expect(200, admin.get("/api/characters").await);
    let cases = [
        (json!({}), 400, "missing_field"),
        (json!({"description": "d"}), 400, "missing_field"),
        (json!({"name": "Ada", "nmae": 1}), 400, "unknown_field"),
        (json!({"card": {}, "name": "Ada"}), 400, "unknown_field"),
        (json!({"card": {}}), 422, "not_a_card"),
        (json!({"card": "text"}), 422, "not_a_card"),
        (
            json!({"card": {"spec": "chara_card_v2", "data": {}}}),
            422,
            "not_a_card",
        ),
        (json!({"name": " "}), 422, "not_a_card"),
        (json!([]), 400, "invalid_type"),
    ];

    for (body, status, code) in cases {
        let refused = admin.post("/api/characters", body.clone()).await;
        assert_eq!(refusal(&refused), (status, code.to_owned()), "{body}");
    }

    assert_eq!(expect(200, admin.get("/api/characters").await), before);
    let yaml = admin.get("/api/characters/1/export?format=yaml").await;
    assert_eq!(refusal(&yaml), (400, "invalid_value".to_owned()));
    app.close().await;
}
