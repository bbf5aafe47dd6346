//! Tests of spaces and their settings.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::{expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

on_sqlite! {
    async fn a_new_space_has_the_defaults_and_a_root_conversation(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;

        let space = expect(201, admin.post("/api/spaces", json!({"name": " Room "})).await);

        let expected = json!({
            "name": "Room", "description": "", "status": "active", "reply_order": "natural",
            "replies_per_turn": "one", "card_handling_mode": "swap", "allow_self_responses": false,
            "auto_mode_enabled": false, "auto_mode_delay_ms": 5000, "auto_mode_max_turns": 8,
            "during_generation_user_input_policy": "queue", "user_turn_debounce_ms": 0, "slow_mode_s": 0,
            "group_regenerate_mode": "single_message", "settings": {}, "settings_version": 0,
            "translation_provider_id": null, "model_language": null, "director_provider_id": null,
            "token_limit": 0, "tokens_used": 0, "my_role": "owner",
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&space[key], value, "{key}");
        }
        let root = expect(200, admin.get(&format!("/api/conversations/{}", root_of(&space))).await);
        assert_eq!(root["kind"], "root");
        assert_eq!(root["space_id"], space["id"]);
        let read = expect(200, admin.get(&format!("/api/spaces/{}", id(&space))).await);
        assert_eq!(read, space);
        app.close().await;
    }

    async fn every_rule_can_be_set_and_read_back(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let rules = json!({
            "name": "Other", "description": "d", "reply_order": "pooled", "replies_per_turn": "one",
            "card_handling_mode": "append_disabled", "allow_self_responses": true,
            "auto_mode_enabled": false, "auto_mode_delay_ms": 0, "auto_mode_max_turns": 100,
            "during_generation_user_input_policy": "restart", "user_turn_debounce_ms": 60000, "slow_mode_s": 21600,
            "group_regenerate_mode": "single_message", "settings": {"scenario_override": "rain"}, "token_limit": 5,
            "model_language": "pt-BR",
        });
        let space = admin.create_space("Room", json!({})).await;

        let changed = expect(200, admin.patch(&format!("/api/spaces/{}", id(&space)), rules.clone()).await);

        let made = expect(201, admin.post("/api/spaces", rules.clone()).await);
        for (key, value) in rules.as_object().unwrap() {
            assert_eq!(&changed[key], value, "{key}");
            assert_eq!(&made[key], value, "{key}");
        }
        assert_eq!(changed["settings_version"], 1);
        app.close().await;
    }

    async fn stale_space_settings_are_rejected_with_the_current_ones(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let path = format!("/api/spaces/{}", id(&admin.create_space("Room", json!({})).await));
        let write = |n: i64| json!({"settings": {"join_prefix": n.to_string()}, "settings_version": 0});

        let answers = join_all((0..10).map(|n| { let body = write(n); let admin = admin.clone(); let path = path.clone(); async move { admin.patch(&path, body).await } })).await;

        let won: Vec<&Value> = answers.iter().filter(|it| it.0 == 200).map(|it| &it.1).collect();
        assert_eq!(won.len(), 1);
        assert_eq!(won[0]["settings_version"], 1);
        for late in answers.iter().filter(|it| it.0 != 200) {
            assert_eq!(refusal(late), (409, "stale_settings".to_owned()));
            assert_eq!(&late.1["error"]["current"], won[0]);
        }
        app.close().await;
    }

    async fn the_version_rises_only_with_the_settings(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let path = format!("/api/spaces/{}", id(&admin.create_space("Room", json!({})).await));
        let version = async |body: Value| expect(200, admin.patch(&path, body).await)["settings_version"].clone();

        assert_eq!(version(json!({"name": "Other"})).await, 0);
        assert_eq!(version(json!({"settings": {}})).await, 0);
        assert_eq!(version(json!({"settings": {"join_prefix": "x"}})).await, 1);
        assert_eq!(version(json!({"settings": {"join_prefix": "x"}, "settings_version": 1})).await, 1);
        assert_eq!(version(json!({"settings": {}, "settings_version": 1})).await, 2);
        app.close().await;
    }

    async fn members_see_a_space_and_only_managers_change_it(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let rows = [
            ("see", [404, 200, 200, 200, 200, 200]),
            ("settings", [404, 403, 403, 200, 200, 200]),
            ("archive", [404, 403, 403, 403, 200, 200]),
        ];

        for (action, expected) in rows {
            for ((who, person), status) in users.all_roles().into_iter().zip(expected) {
                let answer = match action {
                    "see" => person.get(&users.path("")).await,
                    "settings" => person.patch(&users.path(""), json!({"name": who})).await,
                    _ => person.patch(&users.path(""), json!({"status": "archived"})).await,
                };
                assert_eq!(answer.0, status, "{who}: {action}: {}", answer.1);
                if action == "archive" && status == 200 {
                    expect(200, users.owner.patch(&users.path(""), json!({"status": "active"})).await);
                }
            }
        }
        for (who, person) in &users.all_roles()[..4] {
            let status = if *who == "outsider" { 404 } else { 403 };
            assert_eq!(person.delete(&users.path("")).await.0, status, "{who}");
        }
        assert_eq!(users.owner.delete(&users.path("")).await.0, 204);
        users.app.close().await;
    }

    async fn a_list_contains_a_users_own_spaces_and_all_spaces_only_for_an_admin(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let n_of = async |person: &crate::support::http_client::HttpClient, query: &str| {
            let list = expect(200, person.get(&format!("/api/spaces{query}")).await);
            list["data"].as_array().unwrap().len()
        };

        assert_eq!(n_of(&users.outsider, "").await, 0);
        assert_eq!(n_of(&users.member, "").await, 1);
        assert_eq!(n_of(&users.admin, "").await, 1);
        assert_eq!(n_of(&users.admin, "?all=true").await, 2);
        assert_eq!(refusal(&users.member.get("/api/spaces?all=true").await).0, 403);
        let all = expect(200, users.admin.get("/api/spaces?all=true").await);
        assert_eq!(all["data"][1]["my_role"], "admin");
        assert_eq!(
            users
                .member
                .delete(&format!("/api/memberships/{}", memberships.member))
                .await
                .0,
            204
        );
        assert_eq!(n_of(&users.member, "").await, 0);
        users.app.close().await;
    }

    async fn an_archived_space_is_read_only_until_it_is_restored(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let membership = format!("/api/memberships/{}", memberships.member);
        expect(200, users.owner.patch(&users.path(""), json!({"status": "archived"})).await);

        let writes = [
            users.owner.patch(&users.path(""), json!({"name": "x"})).await,
            users.owner.patch(&users.path(""), json!({"status": "archived"})).await,
            users.owner.post(&users.path("/memberships"), json!({"user_id": 1})).await,
            users.owner.patch(&membership, json!({"participation": "muted"})).await,
            users.member.patch(&membership, json!({"persona": "x"})).await,
            users.member.delete(&membership).await,
        ];

        for refused in &writes {
            assert_eq!(refusal(refused), (403, "space_archived".to_owned()));
        }
        assert_eq!(users.member.get(&users.path("")).await.0, 200);
        assert_eq!(refusal(&users.moderator.patch(&users.path(""), json!({"status": "active"})).await).0, 403);
        expect(200, users.owner.patch(&users.path(""), json!({"status": "active"})).await);
        expect(200, users.member.patch(&membership, json!({"persona": "x"})).await);
        users.app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_paginated() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    for n in 0..4 {
        admin.create_space(&format!("Room {n}"), json!({})).await;
    }
    let ids = async |query: &str| {
        let page = expect(200, admin.get(&format!("/api/spaces?{query}")).await);
        let ids: Vec<i64> = page["data"].as_array().unwrap().iter().map(id).collect();
        (ids, page["has_more"].as_bool().unwrap())
    };

    assert_eq!(ids("").await, (vec![1, 2, 3, 4, 5], false));
    assert_eq!(ids("limit=2").await, (vec![1, 2], true));
    assert_eq!(ids("limit=2&after=2").await, (vec![3, 4], true));
    assert_eq!(ids("limit=2&after=4").await, (vec![5], false));
    assert_eq!(ids("limit=2&before=4").await, (vec![2, 3], true));
    assert_eq!(ids("before=2").await, (vec![1], false));
    assert_eq!(ids("after=9").await, (vec![], false));
    app.close().await;
}
