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
    async fn a_link_previews_the_space_and_no_more(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let card = cast.owner.create_character("Ada", None).await;
        cast.owner.add_character(&cast.document, &card).await;
        let invite = cast.moderator.invite(cast.space, json!({"role": "guest"})).await;
        let token = token_of(&invite);

        let seen = expect(200, HttpClient::new(&cast.app.base).get(&join_path(token)).await);

        let mut expected = json!({
            "space": {"name": "Room"},
            "host": "owner",
            "members": 5,
            "role": "guest",
            "expires_at": invite["expires_at"],
            "already_member": false,
        });
        assert_eq!(seen, expected);
        assert_eq!(expect(200, cast.outsider.get(&join_path(token)).await), expected);
        expected["already_member"] = json!(true);
        assert_eq!(expect(200, cast.member.get(&join_path(token)).await), expected);
        assert_eq!(uses(&cast.app, &invite).await, 0, "looking takes no use");
        for unknown in ["x", "", "%20", &"a".repeat(43)] {
            assert_eq!(HttpClient::new(&cast.app.base).get(&join_path(unknown)).await.0, 404, "{unknown:?}");
        }
        cast.app.close().await;
    }

    async fn a_guest_needs_a_name_and_nothing_else(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let invite = cast.owner.invite(cast.space, json!({"role": "guest"})).await;
        let root = cast.document["root_conversation_id"].as_i64().unwrap();

        let (zoe, answer) = HttpClient::join_by_link(&cast.app.base, token_of(&invite), " Zoe ").await;

        let (user, seat) = (&answer["user"], &answer["membership"]);
        assert_eq!((&user["display_name"], &user["role"], &user["is_guest"]), (&json!("Zoe"), &json!("user"), &json!(true)));
        assert!(user["username"].as_str().unwrap().starts_with("guest-"));
        assert_eq!((&seat["role"], &seat["display_name"], &seat["space_id"]), (&json!("guest"), &json!("Zoe"), &json!(cast.space)));
        let session = expect(200, zoe.get("/api/session").await);
        assert_eq!(&session["user"], user);
        expect(201, zoe.post_message(root, "Hello.", None).await);
        assert_eq!(refusal(&zoe.generate(root, None).await).0, 403);
        assert_eq!(uses(&cast.app, &invite).await, 1);
        cast.app.close().await;
    }

    async fn a_guest_without_a_name_consumes_no_use(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let invite = cast.owner.invite(cast.space, json!({"role": "guest"})).await;
        let before = n_users(&cast.app).await;
        let cases = [
            (json!({}), 400, "missing_field", "display_name"),
            (json!({"display_name": "  "}), 422, "invalid_value", "display_name"),
            (json!({"display_name": "x".repeat(101)}), 422, "invalid_value", "display_name"),
            (json!({"display_name": "Zoe", "role": "owner"}), 400, "unknown_field", "role"),
            (json!({"display_name": "Zoe", "space_id": 1}), 400, "unknown_field", "space_id"),
            (json!({"display_name": "Zoe", "username": "zoe"}), 400, "unknown_field", "username"),
        ];

        for (body, status, code, param) in cases {
            let refused = HttpClient::new(&cast.app.base).post(&join_path(token_of(&invite)), body.clone()).await;
            assert_eq!(refusal(&refused), (status, code.to_owned()), "{body}");
            assert_eq!(refused.1["error"]["param"], param, "{body}");
        }
        assert_eq!((uses(&cast.app, &invite).await, n_users(&cast.app).await), (0, before));
        cast.app.close().await;
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

        let n_in = answers.iter().filter(|it| it.0 == 201).count();
        let n_late = answers.iter().filter(|it| it.0 == 410).count();
        assert_eq!((n_in, n_late), (1, 99));
        assert_eq!((uses(&app, &invite).await, n_users(&app).await), (1, before + 1));
        let seats = format!("SELECT CAST(count(*) AS TEXT) FROM space_memberships WHERE space_id = {space}");
        assert_eq!(number(&app, &seats).await, 2);
        app.close().await;
    }

    async fn of_many_with_an_account_as_many_get_in_as_there_are_uses(backend) {
        let env = [crate::support::app::OPEN_REGISTRATION, UNLIMITED].concat();
        let app = TestApp::start_with(backend, &env).await;
        let admin = app.admin().await;
        let space = id(&admin.create_space("Room", json!({})).await);
        let invite = admin.invite(space, json!({"role": "member", "max_uses": 3})).await;
        let mut people = Vec::new();
        for n in 0..8 {
            people.push(app.register(&format!("person{n}")).await);
        }

        let answers = join_all(people.iter().map(|it| it.join(token_of(&invite)))).await;

        let n_in = answers.iter().filter(|it| it.0 == 201).count();
        let n_late = answers.iter().filter(|it| it.0 == 410).count();
        assert_eq!((n_in, n_late), (3, 5));
        assert_eq!(uses(&app, &invite).await, 3);
        app.close().await;
    }
}

on_sqlite! {
    async fn a_link_ends_with_its_time_and_with_its_uses(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let short = cast.owner.invite(cast.space, json!({"role": "guest", "expires_in_hours": 0.5})).await;
        let single = cast.owner.invite(cast.space, json!({"role": "guest", "max_uses": 1})).await;

        cast.app.app.clock.advance_ms(30 * 60_000 - 1);
        assert_eq!(join_as_guest(&cast.app, token_of(&short), "Early").await.0, 201);
        cast.app.app.clock.advance_ms(1);
        assert_eq!(join_as_guest(&cast.app, token_of(&single), "First").await.0, 201);

        for invite in [&short, &single] {
            let token = token_of(invite);
            assert_eq!(refusal(&join_as_guest(&cast.app, token, "Late").await), expired());
            assert_eq!(refusal(&cast.outsider.join(token).await), expired());
            assert_eq!(refusal(&HttpClient::new(&cast.app.base).get(&join_path(token)).await), expired());
            assert_eq!(uses(&cast.app, invite).await, 1);
        }
        let listed = expect(200, cast.owner.get(&cast.path("/invites")).await);
        assert_eq!(listed["data"].as_array().unwrap().len(), 2, "hosts still see them");
        cast.app.close().await;
    }

    async fn a_member_consumes_no_use(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let invite = cast.owner.invite(cast.space, json!({"role": "moderator", "max_uses": 1})).await;

        let inside = expect(200, cast.member.join(token_of(&invite)).await);

        assert_eq!(id(&inside["membership"]), seats.member);
        assert_eq!(inside["membership"]["role"], "member", "a link is no promotion");
        assert_eq!(uses(&cast.app, &invite).await, 0);
        let joined = expect(201, cast.outsider.join(token_of(&invite)).await);
        assert_eq!(joined["membership"]["role"], "moderator");
        let again = expect(200, cast.outsider.join(token_of(&invite)).await);
        assert_eq!(again, joined);
        assert_eq!(expect(200, cast.outsider.get(&join_path(token_of(&invite))).await)["already_member"], true);
        cast.app.close().await;
    }

    async fn without_an_account_one_comes_in_as_a_guest_or_not_at_all(backend) {
        let (cast, _) = RoleFixture::create(backend).await;

        for role in ["member", "moderator"] {
            let invite = cast.owner.invite(cast.space, json!({"role": role})).await;
            let refused = join_as_guest(&cast.app, token_of(&invite), "Zoe").await;
            assert_eq!(refusal(&refused), (401, "not_authenticated".to_owned()), "{role}");
            assert_eq!(uses(&cast.app, &invite).await, 0);
        }
        cast.app.close().await;
    }

    async fn an_invite_is_valid_only_while_its_creator_may_invite(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let seat = format!("/api/memberships/{}", seats.moderator);
        let invite = cast.moderator.invite(cast.space, json!({"role": "guest"})).await;
        let of_admin = cast.admin.invite(cast.space, json!({"role": "moderator"})).await;
        let token = token_of(&invite);
        let look = async |token: &str| refusal_or_ok(HttpClient::new(&cast.app.base).get(&join_path(token)).await);

        expect(200, cast.owner.patch(&seat, json!({"role": "member"})).await);
        assert_eq!(look(token).await, not_found(), "demoted");
        assert_eq!(refusal(&join_as_guest(&cast.app, token, "Zoe").await), not_found());
        assert_eq!(refusal(&cast.outsider.join(token).await), not_found());
        expect(200, cast.owner.patch(&seat, json!({"role": "moderator"})).await);
        assert_eq!(look(token).await.0, 200, "promoted again");
        assert_eq!(cast.moderator.delete(&seat).await.0, 204);
        assert_eq!(look(token).await, not_found(), "left");

        let mut facts = DatabaseFacts::open(&cast.app.database).await;
        assert_eq!(look(token_of(&of_admin)).await.0, 200, "an admin needs no seat");
        facts.execute("UPDATE users SET role = 'user' WHERE username = 'admin'").await;
        assert_eq!(look(token_of(&of_admin)).await, not_found(), "no admin any more");
        facts.execute("UPDATE users SET role = 'admin', status = 'disabled' WHERE username = 'admin'").await;
        assert_eq!(look(token_of(&of_admin)).await, not_found(), "disabled");
        cast.app.close().await;
    }

    async fn a_removed_member_rejoins_the_same_membership_by_a_link(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let root = cast.document["root_conversation_id"].as_i64().unwrap();
        let seat = format!("/api/memberships/{}", seats.member);
        expect(201, cast.member.post_message(root, "Before.", None).await);
        expect(200, cast.member.patch(&seat, json!({"persona": "A spy"})).await);
        expect(200, cast.owner.patch(&seat, json!({"participation": "observer"})).await);
        let invite = cast.owner.invite(cast.space, json!({"role": "guest"})).await;
        assert_eq!(cast.owner.delete(&seat).await.0, 204);
        expect(200, cast.member.patch("/api/users/me", json!({"display_name": "Milla"})).await);
        assert_eq!(cast.owner.messages(root).await[0]["author_name"], "member", "history keeps the name");

        let back = expect(201, cast.member.join(token_of(&invite)).await);

        let back = &back["membership"];
        assert_eq!((id(back), &back["role"], &back["status"]), (seats.member, &json!("guest"), &json!("active")));
        assert_eq!((&back["display_name"], &back["persona"]), (&json!("Milla"), &json!("A spy")));
        assert_eq!(back["participation"], "observer", "to leave and come back is no way around that");
        assert_eq!(cast.owner.messages(root).await[0]["space_membership_id"], seats.member);
        assert_eq!(uses(&cast.app, &invite).await, 1);
        cast.app.close().await;
    }

    async fn an_account_with_an_invite_is_one_thing(backend) {
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
