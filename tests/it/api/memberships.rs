//! Tests of memberships: adding members, leaving and rejoining.

use serde_json::{Value, json};

use crate::support::backends::on_sqlite;
use crate::support::http_client::{expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};

fn of_kind(roster: &Value, kind: &str) -> Vec<String> {
    let memberships = roster["data"].as_array().unwrap().iter();
    memberships
        .filter(|it| it["kind"] == kind && it["status"] == "active")
        .map(|it| it["display_name"].as_str().unwrap().to_owned())
        .collect()
}

on_sqlite! {
    async fn managers_can_add_only_their_own_characters_and_admins_any(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let path = users.path("/memberships");
        let statuses = [("outsider", 404), ("guest", 403), ("member", 403), ("moderator", 201), ("owner", 201), ("admin", 201)];

        for ((who, person), (_, status)) in users.all_roles().into_iter().zip(statuses) {
            let card = person.create_character(who, None).await;
            let answer = person.post(&path, json!({"character_id": id(&card)})).await;
            assert_eq!(answer.0, status, "{who}: {}", answer.1);
        }
        let hidden = users.outsider.create_character("Hidden", None).await;
        let unseen = users.owner.post(&path, json!({"character_id": id(&hidden)})).await;
        assert_eq!(refusal(&unseen), (404, "not_found".to_owned()));
        let by_admin = users.admin.post(&path, json!({"character_id": id(&hidden)})).await;
        assert_eq!(by_admin.0, 201);
        let roster = expect(200, users.guest.get(&path).await);
        assert_eq!(of_kind(&roster, "character"), ["moderator", "owner", "admin", "Hidden"]);
        users.app.close().await;
    }

    async fn a_member_is_added_once_and_rejoins_the_same_membership(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let path = users.path("/memberships");
        let card = users.owner.create_character("Ada", None).await;
        let membership_path = |id: i64| format!("/api/memberships/{id}");
        let ada = expect(201, users.owner.post(&path, json!({"character_id": id(&card)})).await);
        let member = user_id(&users.member).await;
        for again in [json!({"character_id": id(&card)}), json!({"user_id": member})] {
            let twice = users.owner.post(&path, again).await;
            assert_eq!(refusal(&twice), (409, "already_member".to_owned()));
        }

        assert_eq!(users.owner.delete(&membership_path(id(&ada))).await.0, 204);
        assert_eq!(users.owner.delete(&membership_path(memberships.member)).await.0, 204);

        assert_eq!(users.member.get(&users.path("")).await.0, 404);
        assert_eq!(users.owner.delete(&membership_path(memberships.member)).await.0, 404);
        let roster = expect(200, users.owner.get(&path).await);
        let left = roster["data"].as_array().unwrap().iter().filter(|it| it["status"] == "removed").count();
        assert_eq!(left, 2);
        let back = expect(201, users.owner.post(&path, json!({"character_id": id(&card)})).await);
        assert_eq!((id(&back), back["status"].as_str()), (id(&ada), Some("active")));
        let back = users.owner.add_member(users.space, &users.member, "guest").await;
        assert_eq!((id(&back), back["role"].as_str()), (memberships.member, Some("guest")));
        assert_eq!(users.member.get(&users.path("")).await.0, 200);
        users.app.close().await;
    }

    async fn a_roster_is_paginated_in_its_own_order(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let list = async |query: &str| {
            let path = format!("/api/spaces/{}/memberships{query}", users.space);
            let part = expect(200, users.owner.get(&path).await);
            let ids = part["data"].as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap());
            (ids.collect::<Vec<i64>>(), part["has_more"].as_bool().unwrap())
        };
        let first = json!({"position": 0});
        expect(
            200,
            users
                .owner
                .patch(&format!("/api/memberships/{}", memberships.member), first)
                .await,
        );

        let (all, has_more) = list("").await;

        assert_eq!((all[0], all.len(), has_more), (memberships.member, 4, false));
        let (second, third, last) = (all[1], all[2], all[3]);
        assert_eq!(list("?limit=2").await, (all[..2].to_vec(), true));
        assert_eq!(list(&format!("?limit=2&after={second}")).await, (all[2..].to_vec(), false));
        assert_eq!(list(&format!("?limit=1&after={second}")).await, (vec![third], true));
        assert_eq!(list(&format!("?limit=2&before={last}")).await, (vec![second, third], true));
        assert_eq!(list(&format!("?before={second}")).await, (vec![memberships.member], false));
        assert_eq!(list(&format!("?after={}&before={last}", all[0])).await, (vec![second, third], false));
        users.app.close().await;
    }

    async fn every_member_except_the_owner_may_leave(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let membership_path = |id: i64| format!("/api/memberships/{id}");

        let owner = users.owner.delete(&membership_path(memberships.owner)).await;

        assert_eq!(refusal(&owner), (409, "owner_cannot_leave".to_owned()));
        assert_eq!(
            refusal(
                &users
                    .moderator
                    .delete(&membership_path(memberships.owner))
                    .await
            )
            .0,
            403
        );
        assert_eq!(refusal(&users.member.delete(&membership_path(memberships.guest)).await).0, 403);
        assert_eq!(
            refusal(
                &users
                    .outsider
                    .delete(&membership_path(memberships.guest))
                    .await
            )
            .0,
            404
        );
        for (person, membership) in [(&users.guest, memberships.guest), (&users.member, memberships.member), (&users.moderator, memberships.moderator)] {
            assert_eq!(person.delete(&membership_path(membership)).await.0, 204);
            assert_eq!(person.get(&users.path("")).await.0, 404);
        }
        users.app.close().await;
    }

    async fn a_membership_needs_an_existing_character_or_user(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let card = users.owner.create_character("Ada", None).await;
        let outsider = user_id(&users.outsider).await;
        let cases = [
            (json!({}), 400, "missing_field"),
            (json!({"character_id": id(&card), "user_id": outsider}), 422, "invalid_value"),
            (json!({"character_id": id(&card), "role": "guest"}), 422, "invalid_value"),
            (json!({"user_id": outsider, "role": "owner"}), 422, "invalid_value"),
            (json!({"user_id": outsider, "role": "king"}), 422, "invalid_value"),
            (json!({"character_id": 424_242}), 404, "not_found"),
            (json!({"user_id": "x"}), 400, "invalid_type"),
        ];

        for (body, status, code) in cases {
            let refused = users.owner.post(&users.path("/memberships"), body.clone()).await;
            assert_eq!(refusal(&refused), (status, code.to_owned()), "{body}");
        }
        users.app.close().await;
    }

    async fn an_admin_without_a_membership_sees_and_manages_but_cannot_post(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let root = users.document["root_conversation_id"].as_i64().unwrap();

        let document = expect(200, users.admin.get(&users.path("")).await);

        assert_eq!(document["my_role"], "admin");
        assert_eq!(refusal(&users.admin.post_message(root, "Hello", None).await).0, 403);
        let muted = users.admin.patch(&format!("/api/memberships/{}", memberships.guest), json!({"participation": "observer"})).await;
        assert_eq!(muted.0, 200);
        assert_eq!(refusal(&users.guest.post_message(root, "Hello", None).await).0, 403);
        expect(201, users.admin.post(&users.path("/memberships"), json!({"user_id": 1})).await);
        expect(201, users.admin.post_message(root, "Hello", None).await);
        users.app.close().await;
    }
}
