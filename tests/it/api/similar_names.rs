//! Names that look like another member's name are rejected wherever a user can enter a space or
//! change a name.

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

async fn registers(
    cast: &RoleFixture,
    username: &str,
    name: &str,
    token: Option<&str>,
) -> (u16, Value) {
    let mut body = json!({"username": username, "password": "12345678", "display_name": name});
    if let Some(token) = token {
        body["invite_token"] = json!(token);
    }
    HttpClient::new(&cast.app.base)
        .post("/api/users", body)
        .await
}

/// Changes the display name of the outsider's account.
async fn called(cast: &RoleFixture, name: &str) {
    let renamed = cast
        .outsider
        .patch("/api/users/me", json!({"display_name": name}))
        .await;
    expect(200, renamed);
}

on_sqlite! {
    async fn a_guest_or_a_new_account_with_a_look_alike_name_is_refused_and_not_made(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let invite = cast.owner.invite(cast.space, json!({"role": "guest"})).await;
        let token = token_of(&invite);

        for name in OF_MEMBER {
            let refused = join_as_guest(&cast.app, token, name).await;
            assert_eq!(refusal(&refused), taken(), "{name:?}");
            assert_eq!(refused.1["error"]["param"], "display_name");
            assert_eq!(refusal(&registers(&cast, "newcomer", name, Some(token)).await), taken(), "{name:?}");
        }

        let joined = registers(&cast, "newcomer", "Newcomer", Some(token)).await;
        assert_eq!(joined.0, 201, "no refused attempt made the account: {joined:?}");
        cast.app.close().await;
    }

    async fn an_account_with_a_look_alike_name_joins_by_link_under_a_name_for_this_space(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let invite = cast.owner.invite(cast.space, json!({"role": "member", "max_uses": 1})).await;
        let path = join_path(token_of(&invite));
        for name in OF_MEMBER {
            called(&cast, name).await;
            assert_eq!(refusal(&cast.outsider.post(&path, json!({})).await), taken(), "{name:?}");
        }
        let other = json!({"display_name": "m\u{435}mber"});
        assert_eq!(refusal(&cast.outsider.post(&path, other).await), taken());

        let joined = cast.outsider.post(&path, json!({"display_name": "Visitor"})).await;

        let joined = expect(201, joined);
        assert_eq!(joined["membership"]["display_name"], "Visitor");
        assert_eq!(joined["user"]["display_name"], "MEMBER");
        let root = cast.document["root_conversation_id"].as_i64().unwrap();
        let posted = expect(201, cast.outsider.post_message(root, "Hello.", None).await);
        assert_eq!(posted["message"]["author_name"], "Visitor");
        // A change of the account's name does not change the name in this space.
        called(&cast, "Somebody else").await;
        let roster = expect(200, cast.owner.get(&cast.path("/memberships")).await);
        let names: Vec<_> = roster["data"].as_array().unwrap().iter().map(|it| it["display_name"].as_str().unwrap()).collect();
        assert_eq!(names, ["owner", "moderator", "member", "guest", "Visitor"]);
        cast.app.close().await;
    }

    async fn an_account_with_a_look_alike_name_is_not_added_and_accepts_under_another_name(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        called(&cast, "m\u{435}mber").await;
        let outsider = user_id(&cast.outsider).await;
        let other = cast.owner.create_space("Elsewhere", json!({})).await;
        cast.owner.add_member(id(&other), &cast.outsider, "member").await;

        let added = cast.owner.post(&cast.path("/memberships"), json!({"user_id": outsider})).await;

        assert_eq!(refusal(&added), taken());
        let invited = cast.moderator.post(&cast.path("/memberships"), json!({"user_id": outsider})).await;
        let path = format!("/api/invitations/{}/accept", expect(202, invited)["invitation"]["id"]);
        assert_eq!(refusal(&cast.outsider.post(&path, json!({})).await), taken());
        let accepted = cast.outsider.post(&path, json!({"display_name": "Visitor"})).await;
        assert_eq!(expect(200, accepted)["membership"]["display_name"], "Visitor");
        cast.app.close().await;
    }

    async fn a_rename_of_the_account_or_in_the_space_to_a_look_alike_is_refused(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let me = "/api/users/me";
        let own = format!("/api/memberships/{}", seats.guest);
        let by_admin = format!("/api/admin/users/{}", user_id(&cast.guest).await);

        for name in OF_MEMBER {
            let body = json!({"display_name": name});
            assert_eq!(refusal(&cast.guest.patch(me, body.clone()).await), taken(), "{name:?}");
            assert_eq!(refusal(&cast.guest.patch(&own, body.clone()).await), taken(), "{name:?}");
            assert_eq!(refusal(&cast.admin.patch(&by_admin, body).await), taken(), "{name:?}");
        }

        let renamed = expect(200, cast.guest.patch(&own, json!({"display_name": " Gil\u{202e} "})).await);
        assert_eq!(renamed["display_name"], "Gil", "marks of direction are stripped");
        // Once the guest has a name for this space, the account itself may get the name.
        expect(200, cast.guest.patch(me, json!({"display_name": "member"})).await);
        assert_eq!(refusal(&cast.guest.patch(&own, json!({"display_name": null})).await), taken());
        expect(200, cast.guest.patch(me, json!({"display_name": "Guest"})).await);
        let back = expect(200, cast.guest.patch(&own, json!({"display_name": null})).await);
        assert_eq!(back["display_name"], "Guest");
        cast.app.close().await;
    }

    async fn a_person_renames_only_their_own_membership(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let card = cast.owner.create_character("Ada", None).await;
        let ada = cast.owner.add_character(&cast.document, &card).await;
        let rename = json!({"display_name": "Other"});

        let of_guest = format!("/api/memberships/{}", seats.guest);
        assert_eq!(refusal(&cast.owner.patch(&of_guest, rename.clone()).await), (403, "forbidden".to_owned()));
        let of_card = format!("/api/memberships/{}", id(&ada));
        assert_eq!(refusal(&cast.owner.patch(&of_card, rename.clone()).await), (422, "invalid_value".to_owned()));
        assert_eq!(expect(200, cast.guest.patch(&of_guest, rename).await)["display_name"], "Other");
        cast.app.close().await;
    }

    async fn a_rejoining_member_keeps_the_name_chosen_for_the_space(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let own = format!("/api/memberships/{}", seats.member);
        expect(200, cast.member.patch(&own, json!({"display_name": "Gil"})).await);
        assert_eq!(cast.member.delete(&own).await.0, 204);

        let back = cast.owner.add_member(cast.space, &cast.member, "member").await;

        assert_eq!((id(&back), back["display_name"].as_str()), (seats.member, Some("Gil")));
        cast.app.close().await;
    }

    async fn a_username_that_looks_like_an_existing_one_is_taken(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let taken = (409, "username_taken".to_owned());

        for username in ["\u{430}dmin", "adm\u{131}n", "ADMIN", "\u{ff41}dmin", "0wner", "rnember"] {
            let refused = registers(&cast, username, "New", None).await;
            assert_eq!(refusal(&refused), taken, "{username:?}");
            let renamed = cast.guest.patch("/api/users/me", json!({"username": username})).await;
            assert_eq!(refusal(&renamed), taken, "{username:?}");
        }

        let invisible = registers(&cast, "new\u{200b}comer", "New", None).await;
        assert_eq!(refusal(&invisible), (422, "invalid_value".to_owned()));
        // A change of case in one's own user name is allowed.
        expect(200, cast.guest.patch("/api/users/me", json!({"username": "Guest"})).await);
        expect(200, cast.guest.patch("/api/users/me", json!({"username": "visitor"})).await);
        assert_eq!(registers(&cast, "guest", "New", None).await.0, 201);
        cast.app.close().await;
    }
}
