//! Tests of guests: accounts without a password that exist only as long as their session.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

/// Creates a guest in the shared space; returns the client, the join response and the invite token.
async fn zoe(users: &RoleFixture) -> (HttpClient, Value, String) {
    let invite = users
        .owner
        .invite(users.space, json!({"role": "guest"}))
        .await;
    let token = token_of(&invite).to_owned();
    let (person, answer) = HttpClient::join_by_link(&users.app.base, &token, "Zoe").await;
    (person, answer, token)
}

async fn sign_in(users: &RoleFixture, username: &Value, password: &str) -> (u16, Value) {
    let body = json!({"username": username, "password": password});
    HttpClient::new(&users.app.base)
        .post("/api/session", body)
        .await
}

async fn n_rows(facts: &mut DatabaseFacts, table: &str, id: i64) -> i64 {
    let sql = format!("SELECT CAST(count(*) AS TEXT) FROM {table} WHERE id = {id}");
    facts.number(&sql).await
}

on_sqlite! {
    async fn a_guest_that_leaves_without_a_message_is_deleted(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&users).await;

        let left = guest.delete("/api/session").await;

        assert_eq!(left.0, 204);
        let mut facts = DatabaseFacts::open(&users.app.database).await;
        assert_eq!(n_rows(&mut facts, "space_memberships", id(&answer["membership"])).await, 0);
        assert_eq!(n_rows(&mut facts, "users", id(&answer["user"])).await, 0);
        users.app.close().await;
    }

    async fn a_removed_guest_keeps_the_account_as_long_as_its_session(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (guest, answer, token) = zoe(&users).await;
        let membership = id(&answer["membership"]);

        let removed = users.owner.delete(&format!("/api/memberships/{membership}")).await;

        assert_eq!(removed.0, 204);
        let mut facts = DatabaseFacts::open(&users.app.database).await;
        assert_eq!(n_rows(&mut facts, "space_memberships", membership).await, 0);
        assert_eq!(n_rows(&mut facts, "users", id(&answer["user"])).await, 1);
        assert_eq!(guest.join(&token).await.0, 201, "the guest could not join again");
        users.app.close().await;
    }

    async fn a_guest_with_messages_stays_in_the_history(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&users).await;
        let root = users.document["root_conversation_id"].as_i64().unwrap();
        expect(201, guest.post_message(root, "As a guest.", None).await);

        let left = guest.delete("/api/session").await;

        assert_eq!(left.0, 204);
        let mut facts = DatabaseFacts::open(&users.app.database).await;
        assert_eq!(n_rows(&mut facts, "space_memberships", id(&answer["membership"])).await, 1);
        assert_eq!(users.owner.messages(root).await[0]["author_name"], "Zoe");
        users.app.close().await;
    }

    async fn a_guest_account_cannot_be_signed_in_to(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (_, answer, _) = zoe(&users).await;

        for password in ["", "correct horse battery", "null"] {
            let refused = sign_in(&users, &answer["user"]["username"], password).await;
            assert_eq!(refusal(&refused), (401, "invalid_credentials".to_owned()));
        }
        users.app.close().await;
    }

    async fn a_guest_that_registers_keeps_its_identity(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&users).await;
        let root = users.document["root_conversation_id"].as_i64().unwrap();
        expect(201, guest.post_message(root, "As a guest.", None).await);
        let taken = guest.patch("/api/users/me", json!({"username": "owner", "password": "correct horse"})).await;
        assert_eq!(refusal(&taken), (409, "username_taken".to_owned()));
        assert_eq!(expect(200, guest.get("/api/session").await)["user"], answer["user"], "a rejected update was stored");

        let (me, cookie) = guest.patch_with_cookie("/api/users/me", &json!({"username": "zoe", "password": "correct horse"})).await;

        assert_eq!((&me["id"], &me["username"], &me["is_guest"]), (&answer["user"]["id"], &json!("zoe"), &json!(false)));
        assert_eq!(guest.get("/api/session").await.0, 401, "the old cookie is still valid");
        let zoe = guest.with_cookie(cookie.expect("the response sets a new cookie"));
        assert_eq!(zoe.get("/api/session").await.0, 200);
        expect(201, zoe.post_message(root, "As myself.", None).await);
        let messages = zoe.messages(root).await;
        assert_eq!(messages[0]["space_membership_id"], messages[1]["space_membership_id"]);
        assert_eq!(sign_in(&users, &json!("zoe"), "correct horse").await.0, 200);
        expect(201, zoe.post("/api/spaces", json!({"name": "Mine"})).await);
        expect(201, zoe.post("/api/api_keys", json!({"name": "k"})).await);
        users.app.close().await;
    }

    async fn guests_cannot_own_spaces_or_api_keys(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (guest, answer, _) = zoe(&users).await;
        let membership = format!("/api/memberships/{}", id(&answer["membership"]));

        for (path, body) in [("/api/spaces", json!({"name": "Mine"})), ("/api/api_keys", json!({"name": "k"}))] {
            assert_eq!(refusal(&guest.post(path, body).await), (403, "forbidden".to_owned()), "{path}");
        }
        let transfer = users.owner.patch(&membership, json!({"role": "owner"})).await;
        assert_eq!((refusal(&transfer), &transfer.1["error"]["param"]), ((422, "invalid_value".to_owned()), &json!("role")));
        assert_eq!(expect(200, users.owner.get(&users.path("")).await)["my_role"], "owner");
        users.app.close().await;
    }

    async fn a_guest_that_signs_out_leaves_and_can_rejoin_by_the_same_name(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (guest, answer, token) = zoe(&users).await;
        let root = users.document["root_conversation_id"].as_i64().unwrap();
        expect(201, guest.post_message(root, "Hello.", None).await);

        assert_eq!(guest.delete("/api/session").await.0, 204);

        assert_eq!(guest.get("/api/session").await.0, 401);
        let roster = expect(200, users.owner.get(&users.path("/memberships")).await);
        let memberships = roster["data"].as_array().unwrap();
        let old = memberships.iter().find(|it| id(it) == id(&answer["membership"])).unwrap();
        assert_eq!((&old["status"], &old["display_name"]), (&json!("removed"), &json!("Zoe")));
        assert_eq!(users.owner.messages(root).await[0]["author_name"], "Zoe");
        let (_, again) = HttpClient::join_by_link(&users.app.base, &token, "Zoe").await;
        assert_ne!(again["user"]["id"], answer["user"]["id"], "the account was reused");
        assert_ne!(id(&again["membership"]), id(&answer["membership"]));
        users.app.close().await;
    }

    async fn a_registered_user_stays_a_member_after_signing_out(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;

        assert_eq!(users.member.delete("/api/session").await.0, 204);

        let roster = expect(200, users.owner.get(&users.path("/memberships")).await);
        let membership = roster["data"].as_array().unwrap().iter().find(|it| id(it) == memberships.member).unwrap();
        assert_eq!(membership["status"], "active");
        users.app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_session_expires_after_thirty_days() {
    let (users, _) = RoleFixture::create(TestBackend::Sqlite).await;
    let (guest, _, _) = zoe(&users).await;

    users.app.app.clock.advance_ms(30 * 86_400_000 - 1);
    assert_eq!(guest.get("/api/session").await.0, 200);
    users.app.app.clock.advance_ms(1);

    assert_eq!(guest.get("/api/session").await.0, 401);
    users.app.close().await;
}
