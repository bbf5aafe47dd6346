//! Joining by an invite: the use of the invite, the account and the membership are one transaction.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

const UNLIMITED: &[(&str, &str)] = &[("LIMIT_REGISTRATIONS_PER_HOUR", "0")];

pub fn not_found() -> (u16, String) {
    (404, "not_found".to_owned())
}

fn expired() -> (u16, String) {
    (410, "invite_expired".to_owned())
}

pub fn join_path(token: &str) -> String {
    format!("/api/join/{token}")
}

async fn number(app: &TestApp, sql: &str) -> i64 {
    DatabaseFacts::open(&app.database).await.number(sql).await
}

pub async fn uses(app: &TestApp, invite: &Value) -> i64 {
    let sql = format!(
        "SELECT CAST(uses AS TEXT) FROM invites WHERE id = {}",
        id(invite)
    );
    number(app, &sql).await
}

async fn n_users(app: &TestApp) -> i64 {
    number(app, "SELECT CAST(count(*) AS TEXT) FROM users").await
}

/// Joins as a guest, from a client without a session; returns the response.
pub async fn join_as_guest(app: &TestApp, token: &str, name: &str) -> (u16, Value) {
    let body = json!({"display_name": name});
    HttpClient::new(&app.base)
        .post(&join_path(token), body)
        .await
}

on_sqlite! {
    async fn an_invite_link_shows_only_a_preview_of_the_space(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let card = users.owner.create_character("Ada", None).await;
        users.owner.add_character(&users.document, &card).await;
        let invite = users.moderator.invite(users.space, json!({"role": "guest"})).await;
        let token = token_of(&invite);

        let preview = expect(200, HttpClient::new(&users.app.base).get(&join_path(token)).await);

        let mut expected = json!({
            "space": {"name": "Room"},
            "host": "owner",
            "members": 5,
            "role": "guest",
            "expires_at": invite["expires_at"],
            "already_member": false,
        });
        assert_eq!(preview, expected);
        assert_eq!(expect(200, users.outsider.get(&join_path(token)).await), expected);
        expected["already_member"] = json!(true);
        assert_eq!(expect(200, users.member.get(&join_path(token)).await), expected);
        assert_eq!(uses(&users.app, &invite).await, 0, "a preview consumed a use");
        for unknown in ["x", "", "%20", &"a".repeat(43)] {
            assert_eq!(HttpClient::new(&users.app.base).get(&join_path(unknown)).await.0, 404, "{unknown:?}");
        }
        users.app.close().await;
    }

    async fn a_guest_joins_with_only_a_name(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let root = users.document["root_conversation_id"].as_i64().unwrap();

        let (zoe, answer) = HttpClient::join_by_link(&users.app.base, token_of(&invite), " Zoe ").await;

        let (user, membership) = (&answer["user"], &answer["membership"]);
        assert_eq!((&user["display_name"], &user["role"], &user["is_guest"]), (&json!("Zoe"), &json!("user"), &json!(true)));
        assert!(user["username"].as_str().unwrap().starts_with("guest-"));
        assert_eq!((&membership["role"], &membership["display_name"], &membership["space_id"]), (&json!("guest"), &json!("Zoe"), &json!(users.space)));
        let session = expect(200, zoe.get("/api/session").await);
        assert_eq!(&session["user"], user);
        expect(201, zoe.post_message(root, "Hello.", None).await);
        assert_eq!(refusal(&zoe.generate(root, None).await).0, 403);
        assert_eq!(uses(&users.app, &invite).await, 1);
        users.app.close().await;
    }

    async fn a_guest_without_a_name_consumes_no_use(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let before = n_users(&users.app).await;
        let cases = [
            (json!({}), 400, "missing_field", "display_name"),
            (json!({"display_name": "  "}), 422, "invalid_value", "display_name"),
            (json!({"display_name": "x".repeat(101)}), 422, "invalid_value", "display_name"),
            (json!({"display_name": "Zoe", "role": "owner"}), 400, "unknown_field", "role"),
            (json!({"display_name": "Zoe", "space_id": 1}), 400, "unknown_field", "space_id"),
            (json!({"display_name": "Zoe", "username": "zoe"}), 400, "unknown_field", "username"),
        ];

        for (body, status, code, param) in cases {
            let refused = HttpClient::new(&users.app.base).post(&join_path(token_of(&invite)), body.clone()).await;
            assert_eq!(refusal(&refused), (status, code.to_owned()), "{body}");
            assert_eq!(refused.1["error"]["param"], param, "{body}");
        }
        assert_eq!((uses(&users.app, &invite).await, n_users(&users.app).await), (0, before));
        users.app.close().await;
    }
}

on_both! {
    async fn one_of_a_hundred_joins_gets_the_last_use(backend) {
        let app = TestApp::start_with(backend, UNLIMITED).await;
        let admin = app.admin().await;
        let space = id(&admin.create_space("Room", json!({})).await);
        let invite = admin.invite(space, json!({"role": "guest", "max_uses": 1})).await;
        let before = n_users(&app).await;

        let answers = join_all((0..100).map(async |n| join_as_guest(&app, token_of(&invite), &format!("Visitor {n}")).await)).await;

        let n_joined = answers.iter().filter(|it| it.0 == 201).count();
        let n_late = answers.iter().filter(|it| it.0 == 410).count();
        assert_eq!((n_joined, n_late), (1, 99));
        assert_eq!((uses(&app, &invite).await, n_users(&app).await), (1, before + 1));
        let memberships = format!("SELECT CAST(count(*) AS TEXT) FROM space_memberships WHERE space_id = {space}");
        assert_eq!(number(&app, &memberships).await, 2);
        app.close().await;
    }

    async fn as_many_users_join_as_the_invite_has_uses(backend) {
        let env = [crate::support::app::OPEN_REGISTRATION, UNLIMITED].concat();
        let app = TestApp::start_with(backend, &env).await;
        let admin = app.admin().await;
        let space = id(&admin.create_space("Room", json!({})).await);
        let invite = admin.invite(space, json!({"role": "member", "max_uses": 3})).await;
        let mut clients = Vec::new();
        for n in 0..8 {
            clients.push(app.register(&format!("person{n}")).await);
        }

        let answers = join_all(clients.iter().map(|it| it.join(token_of(&invite)))).await;

        let n_joined = answers.iter().filter(|it| it.0 == 201).count();
        let n_late = answers.iter().filter(|it| it.0 == 410).count();
        assert_eq!((n_joined, n_late), (3, 5));
        assert_eq!(uses(&app, &invite).await, 3);
        app.close().await;
    }
}

on_sqlite! {
    async fn an_invite_expires_by_time_and_by_its_uses(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let short = users.owner.invite(users.space, json!({"role": "guest", "expires_in_hours": 0.5})).await;
        let single = users.owner.invite(users.space, json!({"role": "guest", "max_uses": 1})).await;

        users.app.app.clock.advance_ms(30 * 60_000 - 1);
        assert_eq!(join_as_guest(&users.app, token_of(&short), "Early").await.0, 201);
        users.app.app.clock.advance_ms(1);
        assert_eq!(join_as_guest(&users.app, token_of(&single), "First").await.0, 201);

        for invite in [&short, &single] {
            let token = token_of(invite);
            assert_eq!(refusal(&join_as_guest(&users.app, token, "Late").await), expired());
            assert_eq!(refusal(&users.outsider.join(token).await), expired());
            assert_eq!(refusal(&HttpClient::new(&users.app.base).get(&join_path(token)).await), expired());
            assert_eq!(uses(&users.app, invite).await, 1);
        }
        let listed = expect(200, users.owner.get(&users.path("/invites")).await);
        assert_eq!(listed["data"].as_array().unwrap().len(), 2, "expired invites are not listed");
        users.app.close().await;
    }

    async fn a_member_who_joins_again_consumes_no_use(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "moderator", "max_uses": 1})).await;

        let rejoined = expect(200, users.member.join(token_of(&invite)).await);

        assert_eq!(id(&rejoined["membership"]), memberships.member);
        assert_eq!(rejoined["membership"]["role"], "member", "joining changed the role");
        assert_eq!(uses(&users.app, &invite).await, 0);
        let joined = expect(201, users.outsider.join(token_of(&invite)).await);
        assert_eq!(joined["membership"]["role"], "moderator");
        let again = expect(200, users.outsider.join(token_of(&invite)).await);
        assert_eq!(again, joined);
        assert_eq!(expect(200, users.outsider.get(&join_path(token_of(&invite))).await)["already_member"], true);
        users.app.close().await;
    }

    async fn without_an_account_a_visitor_can_join_only_as_a_guest(backend) {
        let (users, _) = RoleFixture::create(backend).await;

        for role in ["member", "moderator"] {
            let invite = users.owner.invite(users.space, json!({"role": role})).await;
            let refused = join_as_guest(&users.app, token_of(&invite), "Zoe").await;
            assert_eq!(refusal(&refused), (401, "not_authenticated".to_owned()), "{role}");
            assert_eq!(uses(&users.app, &invite).await, 0);
        }
        users.app.close().await;
    }

    async fn an_invite_is_valid_only_while_its_creator_may_invite(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let membership = format!("/api/memberships/{}", memberships.moderator);
        let invite = users.moderator.invite(users.space, json!({"role": "guest"})).await;
        let of_admin = users.admin.invite(users.space, json!({"role": "moderator"})).await;
        let token = token_of(&invite);
        let preview = async |token: &str| refusal_or_ok(HttpClient::new(&users.app.base).get(&join_path(token)).await);

        expect(200, users.owner.patch(&membership, json!({"role": "member"})).await);
        assert_eq!(preview(token).await, not_found(), "demoted");
        assert_eq!(refusal(&join_as_guest(&users.app, token, "Zoe").await), not_found());
        assert_eq!(refusal(&users.outsider.join(token).await), not_found());
        expect(200, users.owner.patch(&membership, json!({"role": "moderator"})).await);
        assert_eq!(preview(token).await.0, 200, "promoted again");
        assert_eq!(users.moderator.delete(&membership).await.0, 204);
        assert_eq!(preview(token).await, not_found(), "left");

        let mut facts = DatabaseFacts::open(&users.app.database).await;
        assert_eq!(
            preview(token_of(&of_admin)).await.0,
            200,
            "an admin without a membership could not invite"
        );
        facts.execute("UPDATE users SET role = 'user' WHERE username = 'admin'").await;
        assert_eq!(preview(token_of(&of_admin)).await, not_found(), "former admin");
        facts.execute("UPDATE users SET role = 'admin', status = 'disabled' WHERE username = 'admin'").await;
        assert_eq!(preview(token_of(&of_admin)).await, not_found(), "disabled");
        users.app.close().await;
    }

    async fn a_removed_member_rejoins_the_same_membership_by_a_link(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let root = users.document["root_conversation_id"].as_i64().unwrap();
        let membership = format!("/api/memberships/{}", memberships.member);
        expect(201, users.member.post_message(root, "Before.", None).await);
        expect(200, users.member.patch(&membership, json!({"persona": "A spy"})).await);
        expect(200, users.owner.patch(&membership, json!({"participation": "observer"})).await);
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;
        assert_eq!(users.owner.delete(&membership).await.0, 204);
        expect(200, users.member.patch("/api/users/me", json!({"display_name": "Milla"})).await);
        assert_eq!(users.owner.messages(root).await[0]["author_name"], "member", "the name in the history changed");

        let back = expect(201, users.member.join(token_of(&invite)).await);

        let back = &back["membership"];
        assert_eq!((id(back), &back["role"], &back["status"]), (memberships.member, &json!("guest"), &json!("active")));
        assert_eq!((&back["display_name"], &back["persona"]), (&json!("Milla"), &json!("A spy")));
        assert_eq!(back["participation"], "observer", "rejoining reset the participation");
        assert_eq!(users.owner.messages(root).await[0]["space_membership_id"], memberships.member);
        assert_eq!(uses(&users.app, &invite).await, 1);
        users.app.close().await;
    }

    async fn registration_with_an_invite_creates_the_account_and_the_membership(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let space = id(&admin.create_space("Room", json!({})).await);
        let invite = admin.invite(space, json!({"role": "member", "max_uses": 1})).await;
        let before = n_users(&app).await;
        let register = async |username: &str, token: &str| {
            let body = json!({"username": username, "password": "correct horse", "display_name": username, "invite_token": token});
            HttpClient::new(&app.base).post("/api/users", body).await
        };

        assert_eq!(refusal(&register("ben", "nobody-made-this").await), not_found());
        assert_eq!(refusal(&register("x", token_of(&invite)).await).0, 422);
        let like_host = json!({"username": "visitor", "password": "correct horse", "display_name": "ADMIN", "invite_token": token_of(&invite)});
        let like_host = HttpClient::new(&app.base).post("/api/users", like_host).await;
        assert_eq!(refusal(&like_host), (409, "name_taken_here".to_owned()));
        let taken = json!({"username": "ADMIN", "password": "correct horse", "display_name": "Ben", "invite_token": token_of(&invite)});
        let taken = HttpClient::new(&app.base).post("/api/users", taken).await;
        assert_eq!(refusal(&taken), (409, "username_taken".to_owned()));
        assert_eq!((uses(&app, &invite).await, n_users(&app).await), (0, before));

        let made = expect(201, register("ben", token_of(&invite)).await);

        assert_eq!((&made["user"]["username"], &made["user"]["is_guest"]), (&json!("ben"), &json!(false)));
        assert_eq!((&made["membership"]["role"], &made["membership"]["space_id"]), (&json!("member"), &json!(space)));
        assert_eq!(refusal(&register("cat", token_of(&invite)).await), expired());
        assert_eq!((uses(&app, &invite).await, n_users(&app).await), (1, before + 1));
        let ben = json!({"username": "ben", "password": "correct horse"});
        assert_eq!(HttpClient::new(&app.base).post("/api/session", ben).await.0, 200);
        app.close().await;
    }
}

fn refusal_or_ok(answer: (u16, Value)) -> (u16, String) {
    match answer.0 {
        200 => (200, String::new()),
        _ => refusal(&answer),
    }
}
