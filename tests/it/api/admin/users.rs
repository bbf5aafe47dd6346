//! Tests of the admin's user list: who is listed, what an admin can change, and the immediate
//! effects.

use futures::future::join;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};
use troupe::accounts::user;

use crate::api::admin::admin_role::AdminFixture;
use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::{HttpClient, expect};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};
use crate::support::ws_client::{WsClient, connect_with_key};

const PASSWORD: &str = "correct horse battery";

fn path_of(id: i64) -> String {
    format!("/api/admin/users/{id}")
}

fn names(list: &Value) -> Vec<&str> {
    let all = list["data"].as_array().unwrap().iter();
    all.map(|it| it["username"].as_str().unwrap()).collect()
}

async fn sign_in(base: &str, username: &str, password: &str) -> (u16, Value) {
    let body = json!({"username": username, "password": password});
    HttpClient::new(base).post("/api/session", body).await
}

/// Registers a user and makes them an admin; returns their client and id.
async fn promote(app: &TestApp, admin: &HttpClient, username: &str) -> (HttpClient, i64) {
    let person = app.register(username).await;
    let id = user_id(&person).await;
    let promoted = admin.patch(&path_of(id), json!({"role": "admin"})).await;
    assert_eq!(expect(200, promoted)["role"], "admin");
    (person, id)
}

/// Returns the usernames of the current admins from the database.
async fn admins(app: &TestApp) -> Vec<String> {
    let found = user::Entity::find()
        .filter(user::Column::Role.eq(user::UserRole::Admin))
        .filter(user::Column::Status.eq(user::UserStatus::Active))
        .all(app.app.db.reader())
        .await
        .unwrap();
    found.into_iter().map(|it| it.username).collect()
}

on_sqlite! {
    async fn only_an_admin_can_read_or_change_the_user_list(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let non_admins = &users.all_roles()[..5];
        let anonymous = HttpClient::new(&users.app.base);

        for path in ["/api/admin/users", "/api/admin/users/1", "/api/admin/users/424242", "/api/admin/runs", "/api/admin/stats"] {
            assert_eq!(refusal(&anonymous.get(path).await), (401, "not_authenticated".to_owned()), "{path}");
            for (who, person) in non_admins {
                assert_eq!(refusal(&person.get(path).await), (403, "forbidden".to_owned()), "{who} {path}");
            }
        }
        for (who, person) in non_admins {
            let own = path_of(user_id(person).await);
            let refused = person.patch(&own, json!({"role": "admin"})).await;
            assert_eq!(refusal(&refused), (403, "forbidden".to_owned()), "{who}");
            assert_eq!(refusal(&person.post("/api/admin/reap", json!({})).await).0, 403, "{who}");
        }
        let refused = anonymous.patch("/api/admin/users/1", json!({"role": "user"})).await;
        assert_eq!(refusal(&refused).0, 401);
        users.app.close().await;
    }

    async fn the_user_list_can_be_searched_and_paginated(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        for username in ["ann", "Bob_B", "bobxb"] {
            app.register(username).await;
        }
        let bob = 3;
        expect(200, admin.patch(&path_of(bob), json!({"display_name": "Robert 100% Ü"})).await);
        expect(200, admin.patch(&path_of(2), json!({"status": "disabled"})).await);
        let list = async |query: &str| {
            expect(200, admin.get(&format!("/api/admin/users{query}")).await)
        };

        for (query, found) in [
            ("", vec!["admin", "ann", "Bob_B", "bobxb"]),
            ("?q=BOB", vec!["Bob_B", "bobxb"]),
            ("?q=b_b", vec!["Bob_B"]),
            ("?q=100%25", vec!["Bob_B"]),
            ("?q=robert", vec!["Bob_B"]),
            ("?q=%C3%9C", vec!["Bob_B"]),
            ("?q=%25", vec!["Bob_B"]),
            ("?q=%5C", vec![]),
            ("?q=%20", vec!["admin", "ann", "Bob_B", "bobxb"]),
            ("?status=disabled", vec!["ann"]),
            ("?status=active&q=b", vec!["Bob_B", "bobxb"]),
            ("?limit=2", vec!["admin", "ann"]),
            ("?limit=2&after=2", vec!["Bob_B", "bobxb"]),
            ("?limit=1&before=3", vec!["ann"]),
        ] {
            assert_eq!(names(&list(query).await), found, "{query}");
        }
        assert_eq!(list("?limit=2").await["has_more"], true);
        for query in ["?q=a%00", "?status=gone", "?limit=0", "?after=x"] {
            let refused = admin.get(&format!("/api/admin/users{query}")).await;
            assert_eq!(refusal(&refused), (400, "invalid_value".to_owned()), "{query}");
        }
        app.close().await;
    }

    async fn an_account_shows_its_sessions_spaces_and_last_activity(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let ann = app.register("ann").await;
        ann.create_space("Harbor", json!({})).await;
        let began = app.app.clock.now();
        app.app.clock.advance_ms(90_000);
        let phone = HttpClient::sign_in(&app.base, "ann").await;

        let shown = expect(200, admin.get(&path_of(2)).await);

        assert_eq!(shown, json!({
            "id": 2, "username": "ann", "display_name": "ann", "role": "user", "status": "active",
            "locale": "en", "is_guest": false, "settings": null, "n_sessions": 2, "n_spaces": 1,
            "last_seen_at": app.app.clock.now(), "created_at": began,
        }));
        assert_eq!(phone.delete("/api/session").await.0, 204);
        assert_eq!(ann.delete("/api/session").await.0, 204);
        let left = expect(200, admin.get(&path_of(2)).await);
        assert_eq!((&left["n_sessions"], &left["last_seen_at"]), (&json!(0), &Value::Null));
        assert_eq!(refusal(&admin.get(&path_of(424_242)).await).0, 404);
        assert_eq!(refusal(&admin.get("/api/admin/users/x").await).0, 404);
        app.close().await;
    }

    async fn a_disabled_user_is_signed_out_at_once_and_runs_continue(backend) {
        let fixture = AdminFixture::open(backend).await;
        let (app, admin) = (&fixture.app, &fixture.admin);
        let ann = app.register("ann").await;
        let anns_id = user_id(&ann).await;
        let key = expect(201, ann.post("/api/api_keys", json!({"name": "k"})).await);
        let key = key["key"].as_str().unwrap();
        let space = fixture.create_space(&ann, "Harbor").await;
        let (gate, browser) = (HoldPoint::closed(), WsClient::open(&ann).await);
        let address = format!("{}/ws", app.base.replacen("http", "ws", 1));
        let program = WsClient::at(connect_with_key(&address, key).await.unwrap());
        for client in [&browser, &program] {
            assert_eq!(client.call(json!({"op": "ping"})).await["ok"], true);
        }
        fixture.upstream.next(ResponseScript::say("One two.").held_at(&gate));
        expect(201, ann.post_message(space.conversation, "Count.", None).await);
        fixture.upstream.wait_for_requests(1).await;

        let disabled = expect(200, admin.patch(&path_of(anns_id), json!({"status": "disabled"})).await);

        assert_eq!((&disabled["status"], &disabled["n_sessions"]), (&json!("disabled"), &json!(0)));
        browser.wait_closed().await;
        program.wait_closed().await;
        assert_eq!(refusal(&ann.get("/api/session").await), (401, "not_authenticated".to_owned()));
        assert!(connect_with_key(&address, key).await.is_err());
        let refused = sign_in(&app.base, "ann", PASSWORD).await;
        assert_eq!(refusal(&refused), (401, "invalid_credentials".to_owned()));
        gate.open();
        fixture.settle(admin, space.conversation).await;
        let messages: Vec<Value> = admin.messages(space.conversation).await;
        assert_eq!(messages.last().unwrap()["content"], "One two.");

        expect(200, admin.patch(&path_of(anns_id), json!({"status": "active"})).await);

        assert!(connect_with_key(&address, key).await.is_ok());
        assert_eq!(sign_in(&app.base, "ann", PASSWORD).await.0, 200);
        assert_eq!(ann.get("/api/session").await.0, 401, "a revoked session works again");
        fixture.close().await;
    }

    async fn a_password_set_by_an_admin_is_valid_and_ends_every_session(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let ann = app.register("ann").await;
        let client = WsClient::open(&ann).await;
        assert_eq!(client.call(json!({"op": "ping"})).await["ok"], true);

        let change = json!({"password": "a password for Ann"});
        expect(200, admin.patch(&path_of(2), change).await);

        client.wait_closed().await;
        assert_eq!(ann.get("/api/session").await.0, 401);
        assert_eq!(sign_in(&app.base, "ann", PASSWORD).await.0, 401);
        assert_eq!(sign_in(&app.base, "ann", "a password for Ann").await.0, 200);
        app.close().await;
    }

    async fn a_name_set_by_an_admin_is_visible_in_every_space(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let ann = app.register("ann").await;
        let space = ann.create_space("Harbor", json!({})).await;

        expect(200, admin.patch(&path_of(2), json!({"display_name": " Ada "})).await);

        let memberships = format!("/api/spaces/{}/memberships", space["id"]);
        let memberships = expect(200, ann.get(&memberships).await);
        assert_eq!(memberships["data"][0]["display_name"], "Ada");
        app.close().await;
    }

    async fn the_last_active_admin_cannot_be_demoted_or_disabled(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let last = (409, "last_admin".to_owned());
        for change in [json!({"role": "user"}), json!({"status": "disabled"})] {
            assert_eq!(refusal(&admin.patch(&path_of(1), change).await), last);
        }
        let (ann, anns_id) = promote(&app, &admin, "ann").await;
        expect(200, admin.patch(&path_of(anns_id), json!({"status": "disabled"})).await);
        let refused = admin.patch(&path_of(1), json!({"role": "user"})).await;
        assert_eq!(refusal(&refused), last, "a disabled admin was counted as active");
        expect(200, admin.patch(&path_of(anns_id), json!({"status": "active"})).await);

        let stepped_down = expect(200, admin.patch(&path_of(1), json!({"role": "user"})).await);

        assert_eq!(stepped_down["role"], "user");
        assert_eq!(admins(&app).await, ["ann"]);
        assert_eq!(refusal(&admin.get("/api/admin/users").await).0, 403);
        let ann_again = HttpClient::sign_in(&app.base, "ann").await;
        assert_eq!(ann_again.get("/api/admin/users").await.0, 200);
        assert_eq!(ann.get("/api/session").await.0, 401);
        app.close().await;
    }
}

on_both! {
    async fn two_admins_that_demote_each_other_at_once_leave_one(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let (ann, anns_id) = promote(&app, &admin, "ann").await;
        for change in [json!({"role": "user"}), json!({"status": "disabled"})] {
            let (to_ann, to_admin) = (path_of(anns_id), path_of(1));

            let (one, two) = join(
                admin.patch(&to_ann, change.clone()),
                ann.patch(&to_admin, change.clone()),
            )
            .await;

            let left = admins(&app).await;
            assert_eq!(left.len(), 1, "{one:?} {two:?}");
            assert!((one.0 == 200) != (two.0 == 200), "{one:?} {two:?}");
            // The winner makes the other user an admin again.
            let (winner, loser) = match one.0 {
                200 => (&admin, to_ann),
                _ => (&ann, to_admin),
            };
            let back = json!({"role": "admin", "status": "active"});
            expect(200, winner.patch(&loser, back).await);
            if change["role"].is_null() {
                break;
            }
        }
        app.close().await;
    }

    async fn two_admins_that_step_down_at_once_leave_one(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let (ann, anns_id) = promote(&app, &admin, "ann").await;
        let (own, anns) = (path_of(1), path_of(anns_id));
        let down = json!({"role": "user"});

        let (one, two) = join(admin.patch(&own, down.clone()), ann.patch(&anns, down)).await;

        let mut statuses = [one.0, two.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{one:?} {two:?}");
        assert_eq!(admins(&app).await.len(), 1);
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_admin_receives_only_events_of_own_spaces() {
    let app = TestApp::start_with(TestBackend::Sqlite, OPEN_REGISTRATION).await;
    let admin = app.admin().await;
    let (ann, anns_id) = promote(&app, &admin, "ann").await;
    let bob = app.register("bob").await;
    let theirs = bob.create_space("Bob's", json!({})).await;
    let own = ann.create_space("Ann's", json!({})).await;
    let client = WsClient::open(&ann).await;
    for space in [&theirs, &own] {
        let response = client.call(json!({"op": "subscribe_space", "space_id": space["id"]}));
        assert_eq!(response.await["ok"], true);
        let root = space["root_conversation_id"].as_i64().unwrap();
        assert_eq!(client.subscribe(root, None).await["ok"], true);
    }

    let down = json!({"role": "user"});
    expect(200, admin.patch(&path_of(anns_id), down).await);

    client
        .wait_for("the conversation is unsubscribed", |it| {
            it["type"] == "unsubscribed" && it["conversation_id"] == theirs["root_conversation_id"]
        })
        .await;
    client
        .wait_for("the space is unsubscribed", |it| {
            it["type"] == "unsubscribed" && it["space_id"] == theirs["id"]
        })
        .await;
    client.call(json!({"op": "ping"})).await;
    let lost = client
        .log()
        .into_iter()
        .filter(|it| it["type"] == "unsubscribed");
    assert_eq!(lost.count(), 2, "the own space was unsubscribed");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_needs_a_password_to_become_admin() {
    let app = TestApp::start_with(TestBackend::Sqlite, OPEN_REGISTRATION).await;
    let admin = app.admin().await;
    app.register("ann").await;
    let no_hash: Option<String> = None;
    user::Entity::update_many()
        .col_expr(user::Column::PasswordHash, Expr::value(no_hash))
        .filter(user::Column::Username.eq("ann"))
        .exec(app.app.db.heartbeat_connection())
        .await
        .unwrap();
    assert_eq!(expect(200, admin.get(&path_of(2)).await)["is_guest"], true);

    let refused = admin.patch(&path_of(2), json!({"role": "admin"})).await;

    assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
    assert_eq!(refused.1["error"]["param"], "role");
    let both = json!({"role": "admin", "password": PASSWORD});
    let promoted = expect(200, admin.patch(&path_of(2), both).await);
    assert_eq!(
        (&promoted["role"], &promoted["is_guest"]),
        (&json!("admin"), &json!(false))
    );
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_update_rejects_invalid_values() {
    let app = TestApp::start_with(TestBackend::Sqlite, OPEN_REGISTRATION).await;
    let admin = app.admin().await;
    app.register("ann").await;

    for (change, status, code) in [
        (json!({"username": "eve"}), 400, "unknown_field"),
        (json!({"role": "owner"}), 422, "invalid_value"),
        (json!({"role": null}), 400, "invalid_type"),
        (json!({"status": 1}), 400, "invalid_type"),
        (json!({"password": "short"}), 422, "invalid_value"),
        (json!({"display_name": " "}), 422, "invalid_value"),
    ] {
        let refused = admin.patch(&path_of(2), change.clone()).await;
        assert_eq!(refusal(&refused), (status, code.to_owned()), "{change}");
    }
    let unknown = admin.patch(&path_of(424_242), json!({})).await;
    assert_eq!(refusal(&unknown), (404, "not_found".to_owned()));
    let same = expect(200, admin.patch(&path_of(2), json!({})).await);
    assert_eq!(
        (&same["role"], &same["n_sessions"]),
        (&json!("user"), &json!(1))
    );
    app.close().await;
}
