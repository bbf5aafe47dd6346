//! Tests of invitations of a user to a space: a user becomes a member only by consent, and the
//! inviter cannot find out which user ids exist.

use serde_json::{Value, json};

use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};
use crate::support::ws_client::{WsClient, type_of};

fn gone() -> (u16, String) {
    (410, "invite_expired".to_owned())
}

fn not_found() -> (u16, String) {
    (404, "not_found".to_owned())
}

impl RoleFixture {
    /// Invites a user as the owner; returns the invitation.
    async fn invite_user(&self, user: i64, role: &str) -> Value {
        let body = json!({"user_id": user, "role": role});
        let answer = self.owner.post(&self.path("/memberships"), body).await;
        expect(202, answer)["invitation"].clone()
    }
}

async fn respond(person: &HttpClient, invitation: &Value, verb: &str) -> (u16, Value) {
    let path = format!("/api/invitations/{}/{verb}", id(invitation));
    person.post(&path, json!({})).await
}

/// Returns a response without the fields that differ between two invitations.
fn without_ids(mut answer: Value) -> Value {
    let invitation = answer["invitation"]
        .as_object_mut()
        .expect("the response has an invitation");
    for key in ["id", "user_id"] {
        assert!(invitation.remove(key).is_some_and(|it| it.is_i64()));
    }
    answer
}

on_sqlite! {
    async fn a_user_without_a_shared_space_is_invited_and_not_added(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let outsider = user_id(&users.outsider).await;
        let client = WsClient::open(&users.outsider).await;

        let invitation = users.invite_user(outsider, "moderator").await;

        assert_eq!((&invitation["space_id"], &invitation["role"], &invitation["status"]), (&json!(users.space), &json!("moderator"), &json!("pending")));
        let event = client.wait_for("the invitation", |it| type_of(it).as_deref() == Some("invitation_created")).await;
        assert_eq!(event["invitation"], invitation);
        assert_eq!(
            users.outsider.get(&users.path("")).await.0,
            404,
            "the invited user is already a member"
        );
        let own = expect(200, users.outsider.get("/api/invitations").await);
        let own = own["data"].as_array().unwrap();
        assert_eq!((own.len(), &own[0]["id"], &own[0]["space"]), (1, &invitation["id"], &json!({"id": users.space, "name": "Room"})));
        assert_eq!((&own[0]["role"], &own[0]["invited_by_name"]), (&json!("moderator"), &json!("owner")));
        let membership = expect(200, respond(&users.outsider, &invitation, "accept").await)["membership"].clone();
        assert_eq!((&membership["user_id"], &membership["role"]), (&json!(outsider), &json!("moderator")));
        assert_eq!(users.outsider.get(&users.path("")).await.0, 200);
        assert_eq!(expect(200, users.outsider.get("/api/invitations").await)["data"], json!([]));
        users.app.close().await;
    }

    async fn the_response_is_the_same_for_an_id_that_does_not_exist(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = users.path("/memberships");
        let outsider = user_id(&users.outsider).await;

        let known = users.owner.post(&path, json!({"user_id": outsider})).await;
        let unknown = users.owner.post(&path, json!({"user_id": 987_654_321})).await;

        assert_eq!(without_ids(expect(202, known)), without_ids(expect(202, unknown)));
        let listed = expect(200, users.moderator.get(&users.path("/invitations")).await);
        let user_ids: Vec<_> = listed["data"].as_array().unwrap().iter().map(|it| it["user_id"].as_i64().unwrap()).collect();
        assert_eq!(user_ids, [outsider, 987_654_321]);
        assert!(!listed.to_string().contains("outsider"), "the list contains a name");
        users.app.close().await;
    }

    async fn a_user_with_a_shared_space_is_added(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let outsider = user_id(&users.outsider).await;
        let other = users.owner.create_space("Elsewhere", json!({})).await;
        users.owner.add_member(id(&other), &users.outsider, "member").await;
        let add = json!({"user_id": outsider, "role": "guest"});

        let by_moderator = users.moderator.post(&users.path("/memberships"), add.clone()).await;
        let by_owner = users.owner.post(&users.path("/memberships"), add.clone()).await;

        assert_eq!(by_moderator.0, 202, "a user without a shared space was added");
        assert_eq!(expect(201, by_owner)["role"], "guest");
        assert_eq!(refusal(&users.owner.post(&users.path("/memberships"), add).await), (409, "already_member".to_owned()));
        users.app.close().await;
    }

    async fn a_repeated_invitation_changes_nothing_and_the_thirty_first_is_rate_limited(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = users.path("/memberships");
        let first = users.invite_user(987_654_321, "guest").await;

        let again = users.invite_user(987_654_321, "moderator").await;

        assert_eq!(again, first);
        let mut statuses = Vec::new();
        for n in 0..30 {
            statuses.push(users.moderator.post(&path, json!({"user_id": 500_000_000 + n})).await.0);
        }
        assert_eq!(statuses, [202; 30]);
        let late = users.moderator.post(&path, json!({"user_id": 600_000_000})).await;
        assert_eq!(refusal(&late), (429, "rate_limited".to_owned()));
        users.app.app.clock.advance_ms(3_600_000);
        assert_eq!(users.moderator.post(&path, json!({"user_id": 600_000_000})).await.0, 202);
        users.app.close().await;
    }

    async fn an_invitation_is_accepted_once_and_only_by_the_invited_user(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invitation = users.invite_user(user_id(&users.outsider).await, "member").await;

        for other in [&users.guest, &users.owner, &users.admin] {
            assert_eq!(refusal(&respond(other, &invitation, "accept").await), not_found());
            assert_eq!(refusal(&respond(other, &invitation, "decline").await), not_found());
        }
        assert_eq!(respond(&users.outsider, &invitation, "accept").await.0, 200);

        assert_eq!(refusal(&respond(&users.outsider, &invitation, "accept").await), gone());
        assert_eq!(refusal(&respond(&users.outsider, &invitation, "decline").await), gone());
        users.app.close().await;
    }

    async fn a_revoked_declined_or_expired_invitation_cannot_be_accepted(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let outsider = user_id(&users.outsider).await;
        let path = |it: &Value| format!("/api/invitations/{}", id(it));

        let revoked = users.invite_user(outsider, "member").await;
        assert_eq!(refusal(&users.guest.delete(&path(&revoked)).await).0, 403);
        assert_eq!(refusal(&users.outsider.delete(&path(&revoked)).await), not_found());
        assert_eq!(users.moderator.delete(&path(&revoked)).await.0, 204);
        assert_eq!(refusal(&users.moderator.delete(&path(&revoked)).await), not_found());
        assert_eq!(refusal(&respond(&users.outsider, &revoked, "accept").await), gone());
        let declined = users.invite_user(outsider, "member").await;
        assert_ne!(id(&declined), id(&revoked));
        assert_eq!(respond(&users.outsider, &declined, "decline").await.0, 204);
        assert_eq!(refusal(&respond(&users.outsider, &declined, "accept").await), gone());
        let expired = users.invite_user(outsider, "member").await;
        users.app.app.clock.advance_ms(14 * 24 * 3_600_000);

        assert_eq!(refusal(&respond(&users.outsider, &expired, "accept").await), gone());
        assert_eq!(expect(200, users.outsider.get("/api/invitations").await)["data"], json!([]));
        assert_eq!(expect(200, users.owner.get(&users.path("/invitations")).await)["data"], json!([]));
        let renewed = users.invite_user(outsider, "member").await;
        assert_ne!(id(&renewed), id(&expired));
        assert_eq!(respond(&users.outsider, &renewed, "accept").await.0, 200);
        users.app.close().await;
    }

    async fn an_invitation_into_an_archived_space_or_of_a_removed_inviter_is_not_accepted(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let outsider = user_id(&users.outsider).await;
        let body = json!({"user_id": outsider, "role": "member"});
        let invited = users.moderator.post(&users.path("/memberships"), body).await;
        let invitation = expect(202, invited)["invitation"].clone();

        expect(200, users.owner.patch(&users.path(""), json!({"status": "archived"})).await);
        let archived = respond(&users.outsider, &invitation, "accept").await;
        expect(200, users.owner.patch(&users.path(""), json!({"status": "active"})).await);
        let demoted = json!({"role": "member"});
        expect(200, users.owner.patch(&format!("/api/memberships/{}", memberships.moderator), demoted).await);
        let without_right = respond(&users.outsider, &invitation, "accept").await;

        assert_eq!(refusal(&archived), (403, "space_archived".to_owned()));
        assert_eq!(refusal(&without_right), gone());
        assert_eq!(users.outsider.get(&users.path("")).await.0, 404);
        users.app.close().await;
    }
}

on_both! {
    async fn two_concurrent_invitations_of_one_user_are_stored_once(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = users.path("/memberships");
        let invite = |user: &HttpClient| {
            let (user, path) = (user.clone(), path.clone());
            async move { user.post(&path, json!({"user_id": 987_654_321})).await }
        };

        let (one, two) = tokio::join!(invite(&users.owner), invite(&users.moderator));

        assert_eq!(expect(202, one), expect(202, two));
        let stored = "SELECT CAST(count(*) AS TEXT) FROM space_invitations WHERE user_id = 987654321";
        assert_eq!(DatabaseFacts::open(&users.app.database).await.number(stored).await, 1);
        users.app.close().await;
    }
}

on_sqlite! {
    async fn an_id_below_one_is_refused_and_not_invited(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = format!("/api/spaces/{}/memberships", users.space);

        for id in [0, -1] {
            let answer = users.owner.post(&path, json!({"user_id": id, "role": "member"})).await;
            assert_eq!((answer.0, &answer.1["error"]["param"]), (422, &json!("user_id")), "{id}");
        }
        users.app.close().await;
    }
}
