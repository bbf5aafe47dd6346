//! Tests that names similar to another member's name are rejected wherever a user can join a space
//! or change a name.

use serde_json::{Value, json};

use crate::api::join::{join_as_guest, join_path};
use crate::support::backends::on_sqlite;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};

/// Look-alikes of the member's name: Cyrillic е, a zero-width space, uppercase.
const OF_MEMBER: [&str; 3] = ["m\u{435}mber", "mem\u{200b}ber", "MEMBER"];

fn taken() -> (u16, String) {
    (409, "name_taken_here".to_owned())
}

async fn register(
    users: &RoleFixture,
    username: &str,
    name: &str,
    token: Option<&str>,
) -> (u16, Value) {
    let mut body = json!({"username": username, "password": "12345678", "display_name": name});
    if let Some(token) = token {
        body["invite_token"] = json!(token);
    }
    HttpClient::new(&users.app.base)
        .post("/api/users", body)
        .await
}

/// Changes the display name of the outsider's account.
async fn rename_outsider(users: &RoleFixture, name: &str) {
    let renamed = users
        .outsider
        .patch("/api/users/me", json!({"display_name": name}))
        .await;
    expect(200, renamed);
}

on_sqlite! {
    async fn a_guest_or_new_account_with_a_look_alike_name_is_rejected_and_not_created(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users.owner.invite(users.space, json!({"role": "guest"})).await;
        let token = token_of(&invite);

        for name in OF_MEMBER {
            let refused = join_as_guest(&users.app, token, name).await;
            assert_eq!(refusal(&refused), taken(), "{name:?}");
            assert_eq!(refused.1["error"]["param"], "display_name");
            assert_eq!(refusal(&register(&users, "newcomer", name, Some(token)).await), taken(), "{name:?}");
        }

        let joined = register(&users, "newcomer", "Newcomer", Some(token)).await;
        assert_eq!(joined.0, 201, "a rejected attempt created the account: {joined:?}");
        users.app.close().await;
    }

    async fn an_account_with_a_look_alike_name_joins_by_link_under_a_name_for_this_space(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let invite = users
            .owner
            .invite(users.space, json!({"role": "member", "max_uses": 1}))
            .await;
        let path = join_path(token_of(&invite));
        for name in OF_MEMBER {
            rename_outsider(&users, name).await;
            assert_eq!(refusal(&users.outsider.post(&path, json!({})).await), taken(), "{name:?}");
        }
        let other = json!({"display_name": "m\u{435}mber"});
        assert_eq!(refusal(&users.outsider.post(&path, other).await), taken());

        let joined = users.outsider.post(&path, json!({"display_name": "Visitor"})).await;

        let joined = expect(201, joined);
        assert_eq!(joined["membership"]["display_name"], "Visitor");
        assert_eq!(joined["user"]["display_name"], "MEMBER");
        let root = users.document["root_conversation_id"].as_i64().unwrap();
        let posted = expect(201, users.outsider.post_message(root, "Hello.", None).await);
        assert_eq!(posted["message"]["author_name"], "Visitor");
        // A change of the account's name does not change the name in this space.
        rename_outsider(&users, "Somebody else").await;
        let roster = expect(200, users.owner.get(&users.path("/memberships")).await);
        let names: Vec<_> = roster["data"].as_array().unwrap().iter().map(|it| it["display_name"].as_str().unwrap()).collect();
        assert_eq!(names, ["owner", "moderator", "member", "guest", "Visitor"]);
        users.app.close().await;
    }

    async fn an_account_with_a_look_alike_name_is_not_added_and_accepts_under_another_name(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        rename_outsider(&users, "m\u{435}mber").await;
        let outsider = user_id(&users.outsider).await;
        let other = users.owner.create_space("Elsewhere", json!({})).await;
        users.owner.add_member(id(&other), &users.outsider, "member").await;

        let added = users
            .owner
            .post(&users.path("/memberships"), json!({"user_id": outsider}))
            .await;

        assert_eq!(refusal(&added), taken());
        let invited = users.moderator.post(&users.path("/memberships"), json!({"user_id": outsider})).await;
        let path = format!("/api/invitations/{}/accept", expect(202, invited)["invitation"]["id"]);
        assert_eq!(refusal(&users.outsider.post(&path, json!({})).await), taken());
        let accepted = users.outsider.post(&path, json!({"display_name": "Visitor"})).await;
        assert_eq!(expect(200, accepted)["membership"]["display_name"], "Visitor");
        users.app.close().await;
    }

    async fn a_rename_of_the_account_or_in_the_space_to_a_look_alike_is_refused(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let me = "/api/users/me";
        let own = format!("/api/memberships/{}", memberships.guest);
        let by_admin = format!("/api/admin/users/{}", user_id(&users.guest).await);

        for name in OF_MEMBER {
            let body = json!({"display_name": name});
            assert_eq!(refusal(&users.guest.patch(me, body.clone()).await), taken(), "{name:?}");
            assert_eq!(refusal(&users.guest.patch(&own, body.clone()).await), taken(), "{name:?}");
            assert_eq!(refusal(&users.admin.patch(&by_admin, body).await), taken(), "{name:?}");
        }

        let renamed = expect(200, users.guest.patch(&own, json!({"display_name": " Gil\u{202e} "})).await);
        assert_eq!(renamed["display_name"], "Gil", "direction marks were not stripped");
        // The account may get the look-alike name once the guest has a name for this space.
        expect(200, users.guest.patch(me, json!({"display_name": "member"})).await);
        assert_eq!(refusal(&users.guest.patch(&own, json!({"display_name": null})).await), taken());
        expect(200, users.guest.patch(me, json!({"display_name": "Guest"})).await);
        let reset = expect(200, users.guest.patch(&own, json!({"display_name": null})).await);
        assert_eq!(reset["display_name"], "Guest");
        users.app.close().await;
    }

    async fn a_person_renames_only_their_own_membership(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let card = users.owner.create_character("Ada", None).await;
        let ada = users.owner.add_character(&users.document, &card).await;
        let rename = json!({"display_name": "Other"});

        let of_guest = format!("/api/memberships/{}", memberships.guest);
        assert_eq!(refusal(&users.owner.patch(&of_guest, rename.clone()).await), (403, "forbidden".to_owned()));
        let of_card = format!("/api/memberships/{}", id(&ada));
        assert_eq!(refusal(&users.owner.patch(&of_card, rename.clone()).await), (422, "invalid_value".to_owned()));
        assert_eq!(
            expect(200, users.guest.patch(&of_guest, rename).await)["display_name"],
            "Other"
        );
        users.app.close().await;
    }

    async fn a_rejoining_member_keeps_the_name_chosen_for_the_space(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let own = format!("/api/memberships/{}", memberships.member);
        expect(200, users.member.patch(&own, json!({"display_name": "Gil"})).await);
        assert_eq!(users.member.delete(&own).await.0, 204);

        let reset = users.owner.add_member(users.space, &users.member, "member").await;

        assert_eq!((id(&reset), reset["display_name"].as_str()), (memberships.member, Some("Gil")));
        users.app.close().await;
    }

    async fn a_username_that_looks_like_an_existing_one_is_taken(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let taken = (409, "username_taken".to_owned());

        for username in ["\u{430}dmin", "adm\u{131}n", "ADMIN", "\u{ff41}dmin", "0wner", "rnember"] {
            let refused = register(&users, username, "New", None).await;
            assert_eq!(refusal(&refused), taken, "{username:?}");
            let renamed = users.guest.patch("/api/users/me", json!({"username": username})).await;
            assert_eq!(refusal(&renamed), taken, "{username:?}");
        }

        let invisible = register(&users, "new\u{200b}comer", "New", None).await;
        assert_eq!(refusal(&invisible), (422, "invalid_value".to_owned()));
        // A change of case in one's own username is allowed.
        expect(200, users.guest.patch("/api/users/me", json!({"username": "Guest"})).await);
        expect(200, users.guest.patch("/api/users/me", json!({"username": "visitor"})).await);
        assert_eq!(register(&users, "guest", "New", None).await.0, 201);
        users.app.close().await;
    }
}
