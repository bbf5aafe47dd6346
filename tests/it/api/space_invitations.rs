//! Invitations of a user into a space: a user becomes a member only by consent, and the inviter
//! cannot find out which user ids exist.

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
    async fn invites(&self, user: i64, role: &str) -> Value {
        let body = json!({"user_id": user, "role": role});
        let answer = self.owner.post(&self.path("/memberships"), body).await;
        expect(202, answer)["invitation"].clone()
    }
}

async fn answers(person: &HttpClient, invitation: &Value, verb: &str) -> (u16, Value) {
    let path = format!("/api/invitations/{}/{verb}", id(invitation));
    person.post(&path, json!({})).await
}

/// Returns an answer without the fields that differ between two invitations.
fn shape(mut answer: Value) -> Value {
    let invitation = answer["invitation"].as_object_mut().expect("an invitation");
    for key in ["id", "user_id"] {
        assert!(invitation.remove(key).is_some_and(|it| it.is_i64()));
    }
    answer
}

on_sqlite! {
    async fn a_user_without_a_shared_space_is_invited_and_not_added(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let outsider = user_id(&cast.outsider).await;
        let ear = WsClient::open(&cast.outsider).await;

        let invitation = cast.invites(outsider, "moderator").await;

        assert_eq!((&invitation["space_id"], &invitation["role"], &invitation["status"]), (&json!(cast.space), &json!("moderator"), &json!("pending")));
        let told = ear.wait_for("the invitation", |it| type_of(it).as_deref() == Some("invitation_created")).await;
        assert_eq!(told["invitation"], invitation);
        assert_eq!(cast.outsider.get(&cast.path("")).await.0, 404, "not a member yet");
        let own = expect(200, cast.outsider.get("/api/invitations").await);
        let own = own["data"].as_array().unwrap();
        assert_eq!((own.len(), &own[0]["id"], &own[0]["space"]), (1, &invitation["id"], &json!({"id": cast.space, "name": "Room"})));
        assert_eq!((&own[0]["role"], &own[0]["invited_by_name"]), (&json!("moderator"), &json!("owner")));
        let membership = expect(200, answers(&cast.outsider, &invitation, "accept").await)["membership"].clone();
        assert_eq!((&membership["user_id"], &membership["role"]), (&json!(outsider), &json!("moderator")));
        assert_eq!(cast.outsider.get(&cast.path("")).await.0, 200);
        assert_eq!(expect(200, cast.outsider.get("/api/invitations").await)["data"], json!([]));
        cast.app.close().await;
    }

    async fn the_answer_is_the_same_for_an_id_that_does_not_exist(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let path = cast.path("/memberships");
        let outsider = user_id(&cast.outsider).await;

        let known = cast.owner.post(&path, json!({"user_id": outsider})).await;
        let unknown = cast.owner.post(&path, json!({"user_id": 987_654_321})).await;

        assert_eq!(shape(expect(202, known)), shape(expect(202, unknown)));
        let listed = expect(200, cast.moderator.get(&cast.path("/invitations")).await);
        let users: Vec<_> = listed["data"].as_array().unwrap().iter().map(|it| it["user_id"].as_i64().unwrap()).collect();
        assert_eq!(users, [outsider, 987_654_321]);
        assert!(!listed.to_string().contains("outsider"), "no name is told");
        cast.app.close().await;
    }

    async fn a_user_with_a_shared_space_is_added(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let outsider = user_id(&cast.outsider).await;
        let other = cast.owner.create_space("Elsewhere", json!({})).await;
        cast.owner.add_member(id(&other), &cast.outsider, "member").await;
        let add = json!({"user_id": outsider, "role": "guest"});

        let by_moderator = cast.moderator.post(&cast.path("/memberships"), add.clone()).await;
        let by_owner = cast.owner.post(&cast.path("/memberships"), add.clone()).await;

        assert_eq!(by_moderator.0, 202, "the moderator meets them nowhere");
        assert_eq!(expect(201, by_owner)["role"], "guest");
        assert_eq!(refusal(&cast.owner.post(&cast.path("/memberships"), add).await), (409, "already_member".to_owned()));
        cast.app.close().await;
    }

    async fn a_second_invitation_changes_nothing_and_a_thirty_first_waits(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let path = cast.path("/memberships");
        let first = cast.invites(987_654_321, "guest").await;

        let again = cast.invites(987_654_321, "moderator").await;

        assert_eq!(again, first);
        let mut statuses = Vec::new();
        for n in 0..30 {
            statuses.push(cast.moderator.post(&path, json!({"user_id": 500_000_000 + n})).await.0);
        }
        assert_eq!(statuses, [202; 30]);
        let late = cast.moderator.post(&path, json!({"user_id": 600_000_000})).await;
        assert_eq!(refusal(&late), (429, "rate_limited".to_owned()));
        cast.app.app.clock.advance_ms(3_600_000);
        assert_eq!(cast.moderator.post(&path, json!({"user_id": 600_000_000})).await.0, 202);
        cast.app.close().await;
    }

    async fn an_invitation_is_accepted_once_by_the_invited_person_alone(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let invitation = cast.invites(user_id(&cast.outsider).await, "member").await;

        for other in [&cast.guest, &cast.owner, &cast.admin] {
            assert_eq!(refusal(&answers(other, &invitation, "accept").await), not_found());
            assert_eq!(refusal(&answers(other, &invitation, "decline").await), not_found());
        }
        assert_eq!(answers(&cast.outsider, &invitation, "accept").await.0, 200);

        assert_eq!(refusal(&answers(&cast.outsider, &invitation, "accept").await), gone());
        assert_eq!(refusal(&answers(&cast.outsider, &invitation, "decline").await), gone());
        cast.app.close().await;
    }

    async fn a_revoked_declined_or_expired_invitation_opens_nothing(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let outsider = user_id(&cast.outsider).await;
        let path = |it: &Value| format!("/api/invitations/{}", id(it));

        let revoked = cast.invites(outsider, "member").await;
        assert_eq!(refusal(&cast.guest.delete(&path(&revoked)).await).0, 403);
        assert_eq!(refusal(&cast.outsider.delete(&path(&revoked)).await), not_found());
        assert_eq!(cast.moderator.delete(&path(&revoked)).await.0, 204);
        assert_eq!(refusal(&cast.moderator.delete(&path(&revoked)).await), not_found());
        assert_eq!(refusal(&answers(&cast.outsider, &revoked, "accept").await), gone());
        let declined = cast.invites(outsider, "member").await;
        assert_ne!(id(&declined), id(&revoked));
        assert_eq!(answers(&cast.outsider, &declined, "decline").await.0, 204);
        assert_eq!(refusal(&answers(&cast.outsider, &declined, "accept").await), gone());
        let expired = cast.invites(outsider, "member").await;
        cast.app.app.clock.advance_ms(14 * 24 * 3_600_000);

        assert_eq!(refusal(&answers(&cast.outsider, &expired, "accept").await), gone());
        assert_eq!(expect(200, cast.outsider.get("/api/invitations").await)["data"], json!([]));
        assert_eq!(expect(200, cast.owner.get(&cast.path("/invitations")).await)["data"], json!([]));
        let anew = cast.invites(outsider, "member").await;
        assert_ne!(id(&anew), id(&expired));
        assert_eq!(answers(&cast.outsider, &anew, "accept").await.0, 200);
        cast.app.close().await;
    }

    async fn an_invitation_into_an_archived_space_or_of_a_removed_inviter_is_not_accepted(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let outsider = user_id(&cast.outsider).await;
        let body = json!({"user_id": outsider, "role": "member"});
        let invited = cast.moderator.post(&cast.path("/memberships"), body).await;
        let invitation = expect(202, invited)["invitation"].clone();

        expect(200, cast.owner.patch(&cast.path(""), json!({"status": "archived"})).await);
        let archived = answers(&cast.outsider, &invitation, "accept").await;
        expect(200, cast.owner.patch(&cast.path(""), json!({"status": "active"})).await);
        let demoted = json!({"role": "member"});
        expect(200, cast.owner.patch(&format!("/api/memberships/{}", seats.moderator), demoted).await);
        let without_right = answers(&cast.outsider, &invitation, "accept").await;

        assert_eq!(refusal(&archived), (403, "space_archived".to_owned()));
        assert_eq!(refusal(&without_right), gone());
        assert_eq!(cast.outsider.get(&cast.path("")).await.0, 404);
        cast.app.close().await;
    }
}

on_both! {
    async fn of_two_invitations_of_one_person_at_once_one_is_stored(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let path = cast.path("/memberships");
        let ask = |who: &HttpClient| {
            let (who, path) = (who.clone(), path.clone());
            async move { who.post(&path, json!({"user_id": 987_654_321})).await }
        };

        let (one, two) = tokio::join!(ask(&cast.owner), ask(&cast.moderator));

        assert_eq!(expect(202, one), expect(202, two));
        let stored = "SELECT CAST(count(*) AS TEXT) FROM space_invitations WHERE user_id = 987654321";
        assert_eq!(DatabaseFacts::open(&cast.app.database).await.number(stored).await, 1);
        cast.app.close().await;
    }
}

on_sqlite! {
    async fn an_id_below_one_is_refused_and_not_invited(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let path = format!("/api/spaces/{}/memberships", cast.space);

        for id in [0, -1] {
            let answer = cast.owner.post(&path, json!({"user_id": id, "role": "member"})).await;
            assert_eq!((answer.0, &answer.1["error"]["param"]), (422, &json!("user_id")), "{id}");
        }
        cast.app.close().await;
    }
}
