//! Tests of memberships: adding members, leaving and rejoining.

use serde_json::{Value, json};

use crate::support::backends::on_sqlite;
use crate::support::http_client::{expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};

fn of_kind(roster: &Value, kind: &str) -> Vec<String> {
    let seats = roster["data"].as_array().unwrap().iter();
    seats
        .filter(|it| it["kind"] == kind && it["status"] == "active")
        .map(|it| it["display_name"].as_str().unwrap().to_owned())
        .collect()
}

on_sqlite! {
    async fn a_character_is_added_by_its_owner_with_the_right_to(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let path = cast.path("/memberships");
        let statuses = [("outsider", 404), ("guest", 403), ("member", 403), ("moderator", 201), ("owner", 201), ("admin", 201)];

        for ((who, person), (_, status)) in cast.all_roles().into_iter().zip(statuses) {
            let card = person.create_character(who, None).await;
            let answer = person.post(&path, json!({"character_id": id(&card)})).await;
            assert_eq!(answer.0, status, "{who}: {}", answer.1);
        }
        let hidden = cast.outsider.create_character("Hidden", None).await;
        let unseen = cast.owner.post(&path, json!({"character_id": id(&hidden)})).await;
        assert_eq!(refusal(&unseen), (404, "not_found".to_owned()));
        let anybodys = cast.admin.post(&path, json!({"character_id": id(&hidden)})).await;
        assert_eq!(anybodys.0, 201);
        let roster = expect(200, cast.guest.get(&path).await);
        assert_eq!(of_kind(&roster, "character"), ["moderator", "owner", "admin", "Hidden"]);
        cast.app.close().await;
    }

    async fn a_member_is_added_once_and_rejoins_the_same_membership(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let path = cast.path("/memberships");
        let card = cast.owner.create_character("Ada", None).await;
        let seat = |id: i64| format!("/api/memberships/{id}");
        let ada = expect(201, cast.owner.post(&path, json!({"character_id": id(&card)})).await);
        let member = user_id(&cast.member).await;
        for again in [json!({"character_id": id(&card)}), json!({"user_id": member})] {
            let twice = cast.owner.post(&path, again).await;
            assert_eq!(refusal(&twice), (409, "already_member".to_owned()));
        }

        assert_eq!(cast.owner.delete(&seat(id(&ada))).await.0, 204);
        assert_eq!(cast.owner.delete(&seat(seats.member)).await.0, 204);

        assert_eq!(cast.member.get(&cast.path("")).await.0, 404);
        assert_eq!(cast.owner.delete(&seat(seats.member)).await.0, 404);
        let roster = expect(200, cast.owner.get(&path).await);
        let left = roster["data"].as_array().unwrap().iter().filter(|it| it["status"] == "removed").count();
        assert_eq!(left, 2);
        let back = expect(201, cast.owner.post(&path, json!({"character_id": id(&card)})).await);
        assert_eq!((id(&back), back["status"].as_str()), (id(&ada), Some("active")));
        let back = cast.owner.add_member(cast.space, &cast.member, "guest").await;
        assert_eq!((id(&back), back["role"].as_str()), (seats.member, Some("guest")));
        assert_eq!(cast.member.get(&cast.path("")).await.0, 200);
        cast.app.close().await;
    }

    async fn a_roster_is_paged_in_its_own_order(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let list = async |query: &str| {
            let path = format!("/api/spaces/{}/memberships{query}", cast.space);
            let part = expect(200, cast.owner.get(&path).await);
            let ids = part["data"].as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap());
            (ids.collect::<Vec<i64>>(), part["has_more"].as_bool().unwrap())
        };
        let first = json!({"position": 0});
        expect(200, cast.owner.patch(&format!("/api/memberships/{}", seats.member), first).await);

        let (all, has_more) = list("").await;

        assert_eq!((all[0], all.len(), has_more), (seats.member, 4, false));
        let (second, third, last) = (all[1], all[2], all[3]);
        assert_eq!(list("?limit=2").await, (all[..2].to_vec(), true));
        assert_eq!(list(&format!("?limit=2&after={second}")).await, (all[2..].to_vec(), false));
        assert_eq!(list(&format!("?limit=1&after={second}")).await, (vec![third], true));
        assert_eq!(list(&format!("?limit=2&before={last}")).await, (vec![second, third], true));
        assert_eq!(list(&format!("?before={second}")).await, (vec![seats.member], false));
        assert_eq!(list(&format!("?after={}&before={last}", all[0])).await, (vec![second, third], false));
        cast.app.close().await;
    }

    async fn every_member_except_the_owner_may_leave(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let seat = |id: i64| format!("/api/memberships/{id}");

        let owner = cast.owner.delete(&seat(seats.owner)).await;

        assert_eq!(refusal(&owner), (409, "owner_cannot_leave".to_owned()));
        assert_eq!(refusal(&cast.moderator.delete(&seat(seats.owner)).await).0, 403);
        assert_eq!(refusal(&cast.member.delete(&seat(seats.guest)).await).0, 403);
        assert_eq!(refusal(&cast.outsider.delete(&seat(seats.guest)).await).0, 404);
        for (person, seat_id) in [(&cast.guest, seats.guest), (&cast.member, seats.member), (&cast.moderator, seats.moderator)] {
            assert_eq!(person.delete(&seat(seat_id)).await.0, 204);
            assert_eq!(person.get(&cast.path("")).await.0, 404);
        }
        cast.app.close().await;
    }

    async fn a_membership_needs_an_existing_character_or_user(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let card = cast.owner.create_character("Ada", None).await;
        let outsider = user_id(&cast.outsider).await;
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
            let refused = cast.owner.post(&cast.path("/memberships"), body.clone()).await;
            assert_eq!(refusal(&refused), (status, code.to_owned()), "{body}");
        }
        cast.app.close().await;
    }

    async fn an_admin_without_a_seat_sees_and_manages_but_does_not_post(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let root = cast.document["root_conversation_id"].as_i64().unwrap();

        let seen = expect(200, cast.admin.get(&cast.path("")).await);

        assert_eq!(seen["my_role"], "admin");
        assert_eq!(refusal(&cast.admin.post_message(root, "Hello", None).await).0, 403);
        let muted = cast.admin.patch(&format!("/api/memberships/{}", seats.guest), json!({"participation": "observer"})).await;
        assert_eq!(muted.0, 200);
        assert_eq!(refusal(&cast.guest.post_message(root, "Hello", None).await).0, 403);
        expect(201, cast.admin.post(&cast.path("/memberships"), json!({"user_id": 1})).await);
        expect(201, cast.admin.post_message(root, "Hello", None).await);
        cast.app.close().await;
    }
}
