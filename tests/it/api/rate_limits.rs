//! Tests of the limits on joining by an invite: rate limits, token guesses and look-alike names.

use futures::future::join_all;
use serde_json::json;

use crate::api::join::{join_as_guest, join_path, not_found, uses};
use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, http_client, id, token_of};
use crate::support::http_response::{Answer, refusal};
use crate::support::role_fixture::{RoleFixture, user_id};

on_sqlite! {
    async fn a_name_similar_to_a_members_name_cannot_join(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let card = users.owner.create_character("Marlo", None).await;
        users.owner.add_character(&users.document, &card).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let token = token_of(&invite);

        // Cyrillic о and е, full-width letters, an invisible character, and the name of a
        // character.
        for name in ["owner", "Owner", "\u{43e}wn\u{435}r", "ｏｗｎｅｒ", "ow\u{200b}ner", "MARL0"] {
            let refused = join_as_guest(&users.app, token, name).await;
            assert_eq!(refusal(&refused), (409, "name_taken_here".to_owned()), "{name}");
            assert_eq!(refused.1["error"]["param"], "display_name");
        }
        assert_eq!(uses(&users.app, &invite).await, 0, "a rejected join consumed a use");
        let (zoe, _) = HttpClient::join_by_link(&users.app.base, token, "Zoe").await;
        let renamed = zoe.patch("/api/users/me", json!({"display_name": "\u{430}dmin"})).await;
        assert_eq!(renamed.0, 200, "the name of a user who is not a member was rejected");
        let renamed = zoe.patch("/api/users/me", json!({"display_name": "0wner", "locale": "de"})).await;
        assert_eq!(refusal(&renamed), (409, "name_taken_here".to_owned()));
        assert_eq!(expect(200, zoe.get("/api/session").await)["user"]["locale"], "en", "a rejected update was stored");

        assert_eq!(
            users
                .owner
                .delete(&format!("/api/memberships/{}", memberships.member))
                .await
                .0,
            204
        );
        assert_eq!(join_as_guest(&users.app, token, "member").await.0, 201, "the name of a former member is still reserved");
        assert_eq!(refusal(&users.member.join(token).await), (409, "name_taken_here".to_owned()));
        let other = json!({"display_name": "The first member"});
        let back = expect(201, users.member.post(&join_path(token), other).await);
        assert_eq!(back["membership"]["display_name"], "The first member");
        users.app.close().await;
    }
}

on_both! {
    async fn of_concurrent_joins_with_the_same_name_one_succeeds(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;

        for name in ["Ann", "Bea", "Cat"] {
            let answers = join_all((0..4).map(async |_| join_as_guest(&users.app, token_of(&invite), name).await.0)).await;
            assert_eq!(answers.iter().filter(|it| **it == 201).count(), 1, "{answers:?}");
        }
        assert_eq!(uses(&users.app, &invite).await, 3);
        users.app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_count_as_registrations_and_rejected_ones_do_not() {
    let limit = [("LIMIT_REGISTRATIONS_PER_HOUR", "2")];
    let app = TestApp::start_with(TestBackend::Sqlite, &limit).await;
    let admin = app.admin().await;
    let invite = admin.invite(1, json!({"role": "guest"})).await;
    let token = token_of(&invite);

    assert_eq!(join_as_guest(&app, token, "Ann").await.0, 201);
    assert_eq!(join_as_guest(&app, token, "Ann").await.0, 409);
    assert_eq!(join_as_guest(&app, token, "Bea").await.0, 201);
    let limited = join_as_guest(&app, token, "Cat").await;
    assert_eq!(refusal(&limited), (429, "rate_limited".to_owned()));
    app.app.clock.advance_ms(3_600_000);
    assert_eq!(join_as_guest(&app, token, "Cat").await.0, 201);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_guesses_are_rate_limited_and_expired_links_are_not() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let invite = admin.invite(1, json!({"role": "guest"})).await;
    let revoked = admin.invite(1, json!({"role": "guest"})).await;
    let path = format!("/api/invites/{}", id(&revoked));
    assert_eq!(admin.delete(&path).await.0, 204);
    for _ in 0..20 {
        assert_eq!(join_as_guest(&app, token_of(&revoked), "Zoe").await.0, 404);
    }
    let register = json!({"username": "ben", "password": "correct horse", "display_name": "Ben", "invite_token": "guess"});
    for n in 0..10 {
        let guess = match n % 3 {
            0 => join_as_guest(&app, "guess", "Zoe").await,
            1 => HttpClient::new(&app.base).get(&join_path("guess")).await,
            _ => {
                HttpClient::new(&app.base)
                    .post("/api/users", register.clone())
                    .await
            }
        };
        assert_eq!(refusal(&guess), not_found(), "guess {n}");
    }

    let request = http_client().get(format!("{}{}", app.base, join_path(token_of(&invite))));
    let right = Answer::to(request).await;

    assert_eq!(right.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(right.header("retry-after"), "180");
    assert_eq!(join_as_guest(&app, token_of(&invite), "Zoe").await.0, 429);
    assert_eq!(
        HttpClient::new(&app.base)
            .post("/api/users", register)
            .await
            .0,
        429
    );
    app.app.clock.advance_ms(180_000);
    assert_eq!(join_as_guest(&app, token_of(&invite), "Zoe").await.0, 201);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_account_cannot_join() {
    let (users, _) = RoleFixture::create(TestBackend::Sqlite).await;
    let invite = users
        .owner
        .invite(users.space, json!({"role": "member"}))
        .await;
    let outsider = user_id(&users.outsider).await;
    let mut facts = DatabaseFacts::open(&users.app.database).await;
    facts
        .execute(&format!(
            "UPDATE users SET status = 'disabled' WHERE id = {outsider}"
        ))
        .await;

    let refused = users.outsider.join(token_of(&invite)).await;

    assert_eq!(refusal(&refused), (401, "not_authenticated".to_owned()));
    assert_eq!(uses(&users.app, &invite).await, 0);
    users.app.close().await;
}
