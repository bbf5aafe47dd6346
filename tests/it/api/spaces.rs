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
            "during_generation_user_input_policy": "queue", "user_turn_debounce_ms": 0,
            "group_regenerate_mode": "single_message", "settings": {}, "settings_version": 0,
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
            "during_generation_user_input_policy": "restart", "user_turn_debounce_ms": 60000,
            "group_regenerate_mode": "single_message", "settings": {"scenario_override": "rain"}, "token_limit": 5,
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

    async fn stale_settings_are_refused_with_the_present_ones(backend) {
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

    async fn the_version_rises_with_the_settings_alone(backend) {
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
        let (cast, _) = RoleFixture::create(backend).await;
        let rows = [
            ("see", [404, 200, 200, 200, 200, 200]),
            ("settings", [404, 403, 403, 200, 200, 200]),
            ("archive", [404, 403, 403, 403, 200, 200]),
        ];

        for (act, expected) in rows {
            for ((who, person), status) in cast.all_roles().into_iter().zip(expected) {
                let answer = match act {
                    "see" => person.get(&cast.path("")).await,
                    "settings" => person.patch(&cast.path(""), json!({"name": who})).await,
                    _ => person.patch(&cast.path(""), json!({"status": "archived"})).await,
                };
                assert_eq!(answer.0, status, "{who}: {act}: {}", answer.1);
                if act == "archive" && status == 200 {
                    expect(200, cast.owner.patch(&cast.path(""), json!({"status": "active"})).await);
                }
            }
        }
        for (who, person) in &cast.all_roles()[..4] {
            let status = if *who == "outsider" { 404 } else { 403 };
            assert_eq!(person.delete(&cast.path("")).await.0, status, "{who}");
        }
        assert_eq!(cast.owner.delete(&cast.path("")).await.0, 204);
        cast.app.close().await;
    }

    async fn a_list_holds_ones_own_spaces_and_all_only_for_an_admin(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let n_of = async |person: &crate::support::http_client::HttpClient, query: &str| {
            let list = expect(200, person.get(&format!("/api/spaces{query}")).await);
            list["data"].as_array().unwrap().len()
        };

        assert_eq!(n_of(&cast.outsider, "").await, 0);
        assert_eq!(n_of(&cast.member, "").await, 1);
        assert_eq!(n_of(&cast.admin, "").await, 1);
        assert_eq!(n_of(&cast.admin, "?all=true").await, 2);
        assert_eq!(refusal(&cast.member.get("/api/spaces?all=true").await).0, 403);
        let all = expect(200, cast.admin.get("/api/spaces?all=true").await);
        assert_eq!(all["data"][1]["my_role"], "admin");
        assert_eq!(cast.member.delete(&format!("/api/memberships/{}", seats.member)).await.0, 204);
        assert_eq!(n_of(&cast.member, "").await, 0);
        cast.app.close().await;
    }

    async fn an_archived_space_only_comes_back_or_goes(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let seat = format!("/api/memberships/{}", seats.member);
        expect(200, cast.owner.patch(&cast.path(""), json!({"status": "archived"})).await);

        let writes = [
            cast.owner.patch(&cast.path(""), json!({"name": "x"})).await,
            cast.owner.patch(&cast.path(""), json!({"status": "archived"})).await,
            cast.owner.post(&cast.path("/memberships"), json!({"user_id": 1})).await,
            cast.owner.patch(&seat, json!({"participation": "muted"})).await,
            cast.member.patch(&seat, json!({"persona": "x"})).await,
            cast.member.delete(&seat).await,
        ];

        for refused in &writes {
            assert_eq!(refusal(refused), (403, "space_archived".to_owned()));
        }
        assert_eq!(cast.member.get(&cast.path("")).await.0, 200);
        assert_eq!(refusal(&cast.moderator.patch(&cast.path(""), json!({"status": "active"})).await).0, 403);
        expect(200, cast.owner.patch(&cast.path(""), json!({"status": "active"})).await);
        expect(200, cast.member.patch(&seat, json!({"persona": "x"})).await);
        cast.app.close().await;
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
