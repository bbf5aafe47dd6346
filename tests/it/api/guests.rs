//! Tests of guests: accounts without a password that exist only as long as their session.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

/// Creates a guest in the shared space; returns the client, the join response and the invite token.
async fn zoe(cast: &RoleFixture) -> (HttpClient, Value, String) {
    let invite = cast
        .owner
        .invite(cast.space, json!({"role": "guest"}))
        .await;
    let token = token_of(&invite).to_owned();
    let (person, answer) = HttpClient::join_by_link(&cast.app.base, &token, "Zoe").await;
    (person, answer, token)
}

async fn sign_in(cast: &RoleFixture, username: &Value, password: &str) -> (u16, Value) {
    let body = json!({"username": username, "password": password});
    HttpClient::new(&cast.app.base)
        .post("/api/session", body)
        .await
}

async fn n_rows(facts: &mut DatabaseFacts, table: &str, id: i64) -> i64 {
    let sql = format!("SELECT CAST(count(*) AS TEXT) FROM {table} WHERE id = {id}");
    facts.number(&sql).await
}

on_sqlite! {
    async fn a_guest_that_leaves_without_a_message_is_deleted(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&cast).await;

        let left = guest.delete("/api/session").await;

        assert_eq!(left.0, 204);
        let mut facts = DatabaseFacts::open(&cast.app.database).await;
        assert_eq!(n_rows(&mut facts, "space_memberships", id(&answer["membership"])).await, 0);
        assert_eq!(n_rows(&mut facts, "users", id(&answer["user"])).await, 0);
        cast.app.close().await;
    }

    async fn a_removed_guest_keeps_the_account_as_long_as_its_session(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (guest, answer, token) = zoe(&cast).await;
        let membership = id(&answer["membership"]);

        let removed = cast.owner.delete(&format!("/api/memberships/{membership}")).await;

        assert_eq!(removed.0, 204);
        let mut facts = DatabaseFacts::open(&cast.app.database).await;
        assert_eq!(n_rows(&mut facts, "space_memberships", membership).await, 0);
        assert_eq!(n_rows(&mut facts, "users", id(&answer["user"])).await, 1);
        assert_eq!(guest.join(&token).await.0, 201, "the link lets them in again");
        cast.app.close().await;
    }

    async fn a_guest_with_messages_stays_in_the_history(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&cast).await;
        let root = cast.document["root_conversation_id"].as_i64().unwrap();
        expect(201, guest.post_message(root, "As a guest.", None).await);

        let left = guest.delete("/api/session").await;

        assert_eq!(left.0, 204);
        let mut facts = DatabaseFacts::open(&cast.app.database).await;
        assert_eq!(n_rows(&mut facts, "space_memberships", id(&answer["membership"])).await, 1);
        assert_eq!(cast.owner.messages(root).await[0]["author_name"], "Zoe");
        cast.app.close().await;
    }

    async fn a_guest_account_cannot_be_signed_in_to(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (_, answer, _) = zoe(&cast).await;

        for password in ["", "correct horse battery", "null"] {
            let refused = sign_in(&cast, &answer["user"]["username"], password).await;
            assert_eq!(refusal(&refused), (401, "invalid_credentials".to_owned()));
        }
        cast.app.close().await;
    }

    async fn a_guest_that_registers_keeps_its_identity(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&cast).await;
        let root = cast.document["root_conversation_id"].as_i64().unwrap();
        expect(201, guest.post_message(root, "As a guest.", None).await);
        let taken = guest.patch("/api/users/me", json!({"username": "owner", "password": "correct horse"})).await;
        assert_eq!(refusal(&taken), (409, "username_taken".to_owned()));
        assert_eq!(expect(200, guest.get("/api/session").await)["user"], answer["user"], "nothing of it is done");

        let (me, cookie) = guest.patch_with_cookie("/api/users/me", &json!({"username": "zoe", "password": "correct horse"})).await;

        assert_eq!((&me["id"], &me["username"], &me["is_guest"]), (&answer["user"]["id"], &json!("zoe"), &json!(false)));
        assert_eq!(guest.get("/api/session").await.0, 401, "the old cookie opens no more");
        let zoe = guest.with_cookie(cookie.expect("a new cookie comes with it"));
        assert_eq!(zoe.get("/api/session").await.0, 200);
        expect(201, zoe.post_message(root, "As myself.", None).await);
        let messages = zoe.messages(root).await;
        assert_eq!(messages[0]["space_membership_id"], messages[1]["space_membership_id"]);
        assert_eq!(sign_in(&cast, &json!("zoe"), "correct horse").await.0, 200);
        expect(201, zoe.post("/api/spaces", json!({"name": "Mine"})).await);
        expect(201, zoe.post("/api/api_keys", json!({"name": "k"})).await);
        cast.app.close().await;
    }

    async fn what_would_be_lost_with_the_session_is_not_for_guests(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&cast).await;
        let seat = format!("/api/memberships/{}", id(&answer["membership"]));

        for (path, body) in [("/api/spaces", json!({"name": "Mine"})), ("/api/api_keys", json!({"name": "k"}))] {
            assert_eq!(refusal(&guest.post(path, body).await), (403, "forbidden".to_owned()), "{path}");
        }
        let heir = cast.owner.patch(&seat, json!({"role": "owner"})).await;
        assert_eq!((refusal(&heir), &heir.1["error"]["param"]), ((422, "invalid_value".to_owned()), &json!("role")));
        assert_eq!(expect(200, cast.owner.get(&cast.path("")).await)["my_role"], "owner");
        cast.app.close().await;
    }

    async fn a_guest_that_signs_out_leaves_and_can_rejoin_by_the_same_name(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let (guest, answer, token) = zoe(&cast).await;
        let root = cast.document["root_conversation_id"].as_i64().unwrap();
        expect(201, guest.post_message(root, "Hello.", None).await);

        assert_eq!(guest.delete("/api/session").await.0, 204);

        assert_eq!(guest.get("/api/session").await.0, 401);
        let roster = expect(200, cast.owner.get(&cast.path("/memberships")).await);
        let seats = roster["data"].as_array().unwrap();
        let old = seats.iter().find(|it| id(it) == id(&answer["membership"])).unwrap();
        assert_eq!((&old["status"], &old["display_name"]), (&json!("removed"), &json!("Zoe")));
        assert_eq!(cast.owner.messages(root).await[0]["author_name"], "Zoe");
        let (_, again) = HttpClient::join_by_link(&cast.app.base, &token, "Zoe").await;
        assert_ne!(again["user"]["id"], answer["user"]["id"], "it is another account");
        assert_ne!(id(&again["membership"]), id(&answer["membership"]));
        cast.app.close().await;
    }

    async fn a_registered_user_stays_a_member_after_signing_out(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;

        assert_eq!(cast.member.delete("/api/session").await.0, 204);

        let roster = expect(200, cast.owner.get(&cast.path("/memberships")).await);
        let seat = roster["data"].as_array().unwrap().iter().find(|it| id(it) == seats.member).unwrap();
        assert_eq!(seat["status"], "active");
        cast.app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_lives_as_long_as_the_session() {
    let (cast, _) = RoleFixture::create(TestBackend::Sqlite).await;
    let (guest, _, _) = zoe(&cast).await;

    cast.app.app.clock.advance_ms(30 * 86_400_000 - 1);
    assert_eq!(guest.get("/api/session").await.0, 200);
    cast.app.app.clock.advance_ms(1);

    assert_eq!(guest.get("/api/session").await.0, 401);
    cast.app.close().await;
}
