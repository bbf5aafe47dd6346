//! Tests of invites: creation, lists and revocation.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

const DAY_MS: i64 = 86_400_000;

fn path_of(invite: &Value) -> String {
    format!("/api/invites/{}", id(invite))
}

/// Returns the lifetime of an invite in milliseconds.
fn lifetime(invite: &Value) -> i64 {
    let at = |field: &str| {
        let text = invite[field].as_str().expect("the field is a string");
        chrono::DateTime::parse_from_rfc3339(text)
            .expect("the instant is RFC 3339")
            .timestamp_millis()
    };
    at("expires_at") - at("created_at")
}

on_sqlite! {
    async fn only_moderators_owners_and_admins_can_invite(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = users.path("/invites");
        let made = users.owner.invite(users.space, json!({"role": "member"})).await;

        for ((who, person), status) in users.all_roles().into_iter().zip([404, 403, 403, 201, 201, 201]) {
            let answer = person.post(&path, json!({"role": "moderator"})).await;
            assert_eq!(answer.0, status, "{who}: {}", answer.1);
            let listed = person.get(&path).await;
            assert_eq!(listed.0, if status == 201 { 200 } else { status }, "{who}");
        }
        for (person, status) in [(&users.outsider, 404), (&users.guest, 403), (&users.member, 403), (&users.moderator, 204), (&users.owner, 404)] {
            assert_eq!(person.delete(&path_of(&made)).await.0, status);
        }
        assert_eq!(users.owner.delete("/api/invites/424242").await.0, 404);
        assert_eq!(users.owner.delete("/api/invites/x").await.0, 404);
        users.app.close().await;
    }

    async fn the_token_is_shown_once_and_stored_as_a_hash(backend) {
        let (users, _) = RoleFixture::create(backend).await;

        let made = users.owner.invite(users.space, json!({"role": "guest", "max_uses": 5})).await;

        let token = token_of(&made);
        assert_eq!(token.len(), 43, "the token does not have 32 bytes");
        assert_eq!(made["url"], format!("{}/join#{token}", users.app.base));
        assert!(made["qr_svg"].as_str().unwrap().contains("<svg"));
        assert_eq!((&made["role"], &made["max_uses"], &made["uses"]), (&json!("guest"), &json!(5), &json!(0)));
        assert_eq!(lifetime(&made), 7 * DAY_MS);
        let listed = expect(200, users.owner.get(&users.path("/invites")).await);
        let mut without_secrets = made.clone();
        for secret in ["url", "token", "qr_svg"] {
            without_secrets.as_object_mut().unwrap().remove(secret);
        }
        assert_eq!(listed["data"], json!([without_secrets]));
        let mut facts = DatabaseFacts::open(&users.app.database).await;
        let stored = facts.rows("SELECT token_hash FROM invites").await;
        assert_eq!(stored.len(), 1);
        assert!(!format!("{stored:?}").contains(token));
        let hash = stored[0][0].as_deref().unwrap();
        assert_eq!(HttpClient::new(&users.app.base).get(&format!("/api/join/{hash}")).await.0, 404);
        users.app.close().await;
    }

    async fn an_invalid_invite_is_rejected_with_the_allowed_values(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = users.path("/invites");
        let cases = [
            (json!({}), 400, "missing_field", "role"),
            (json!({"role": "owner"}), 422, "invalid_value", "role"),
            (json!({"role": "king"}), 422, "invalid_value", "role"),
            (json!({"role": "guest", "max_uses": 0}), 422, "invalid_value", "max_uses"),
            (json!({"role": "guest", "max_uses": 1001}), 422, "invalid_value", "max_uses"),
            (json!({"role": "guest", "max_uses": 1.5}), 400, "invalid_type", "max_uses"),
            (json!({"role": "guest", "expires_in_hours": 0}), 422, "invalid_value", "expires_in_hours"),
            (json!({"role": "guest", "expires_in_hours": 720.1}), 422, "invalid_value", "expires_in_hours"),
            (json!({"role": "guest", "expires_in_hours": "1"}), 400, "invalid_type", "expires_in_hours"),
            (json!({"role": "guest", "space_id": 1}), 400, "unknown_field", "space_id"),
            (json!({"role": "guest", "token": "mine"}), 400, "unknown_field", "token"),
            (json!({"role": "guest", "uses": -5}), 400, "unknown_field", "uses"),
            (json!({"role": "guest", "created_by": 1}), 400, "unknown_field", "created_by"),
        ];

        for (body, status, code, param) in cases {
            let refused = users.owner.post(&path, body.clone()).await;
            assert_eq!(refusal(&refused), (status, code.to_owned()), "{body}");
            assert_eq!(refused.1["error"]["param"], param, "{body}");
        }
        let longest = users.owner.invite(users.space, json!({"role": "guest", "max_uses": null, "expires_in_hours": 720})).await;
        assert_eq!((lifetime(&longest), &longest["max_uses"]), (30 * DAY_MS, &Value::Null));
        let short = users.owner.invite(users.space, json!({"role": "guest", "expires_in_hours": 0.25})).await;
        assert_eq!(lifetime(&short), 15 * 60_000);
        users.app.close().await;
    }

    async fn a_revoked_invite_cannot_be_used_and_is_not_listed(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let made = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let other = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let path = format!("/api/join/{}", token_of(&made));
        assert_eq!(HttpClient::new(&users.app.base).get(&path).await.0, 200);

        assert_eq!(users.moderator.delete(&path_of(&made)).await.0, 204);

        assert_eq!(refusal(&HttpClient::new(&users.app.base).get(&path).await), (404, "not_found".to_owned()));
        let late = HttpClient::new(&users.app.base).post(&path, json!({"display_name": "Late"})).await;
        assert_eq!(refusal(&late), (404, "not_found".to_owned()));
        assert_eq!(
            users.owner.delete(&path_of(&made)).await.0,
            404,
            "a revoked invite was revoked again"
        );
        let listed = expect(200, users.owner.get(&users.path("/invites")).await);
        let ids: Vec<i64> = listed["data"].as_array().unwrap().iter().map(id).collect();
        assert_eq!(ids, [id(&other)]);
        users.app.close().await;
    }

    async fn an_invite_belongs_to_its_space(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let theirs = users.outsider.create_space("Theirs", json!({})).await;
        let invite = users.outsider.invite(id(&theirs), json!({"role": "guest"})).await;

        assert_eq!(users.owner.delete(&path_of(&invite)).await.0, 404);
        assert_eq!(users.owner.get(&format!("/api/spaces/{}/invites", id(&theirs))).await.0, 404);
        let listed = expect(200, users.owner.get(&users.path("/invites")).await);

        assert_eq!(listed["data"], json!([]));
        assert_eq!(users.outsider.delete(&path_of(&invite)).await.0, 204);
        users.app.close().await;
    }

    async fn a_deleted_space_deletes_its_invites(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;

        assert_eq!(users.owner.delete(&users.path("")).await.0, 204);

        let path = format!("/api/join/{}", token_of(&invite));
        assert_eq!(HttpClient::new(&users.app.base).get(&path).await.0, 404);
        let mut facts = DatabaseFacts::open(&users.app.database).await;
        assert_eq!(facts.number("SELECT CAST(count(*) AS TEXT) FROM invites").await, 0);
        users.app.close().await;
    }

    async fn an_archived_space_cannot_be_joined(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let path = format!("/api/join/{}", token_of(&invite));
        let archived = (403, "space_archived".to_owned());

        expect(200, users.owner.patch(&users.path(""), json!({"status": "archived"})).await);

        let visitor = HttpClient::new(&users.app.base);
        assert_eq!(refusal(&visitor.get(&path).await), archived);
        assert_eq!(refusal(&visitor.post(&path, json!({"display_name": "Zoe"})).await), archived);
        assert_eq!(refusal(&users.outsider.join(token_of(&invite)).await), archived);
        assert_eq!(refusal(&users.owner.post(&users.path("/invites"), json!({"role": "guest"})).await), archived);
        expect(200, users.owner.patch(&users.path(""), json!({"status": "active"})).await);
        expect(201, users.outsider.join(token_of(&invite)).await);
        users.app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_link_uses_the_public_url() {
    let public = [("TROUPE_PUBLIC_URL", "https://troupe.example/app/")];
    let app = TestApp::start_with(TestBackend::Sqlite, &public).await;
    let admin = app.admin().await;

    let made = admin.invite(1, json!({"role": "guest"})).await;

    let url = made["url"].as_str().unwrap();
    assert_eq!(
        url,
        format!("https://troupe.example/app/join#{}", token_of(&made))
    );
    app.close().await;
}
