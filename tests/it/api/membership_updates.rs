//! Tests of changes to memberships: who can change which fields.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};

async fn change(person: &HttpClient, seat: i64, body: Value) -> (u16, Value) {
    person
        .patch(&format!("/api/memberships/{seat}"), body)
        .await
}

async fn order(cast: &RoleFixture) -> Vec<(i64, i64)> {
    let roster = expect(200, cast.owner.get(&cast.path("/memberships")).await);
    let seats = roster["data"].as_array().unwrap().iter();
    seats
        .map(|it| (id(it), it["position"].as_i64().unwrap()))
        .collect()
}

on_sqlite! {
    async fn ones_own_words_are_ones_own(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let words = json!({"persona": "A spy", "aliases": ["Agent"]});

        let own = expect(200, change(&cast.guest, seats.guest, words.clone()).await);

        assert_eq!(own["persona"], "A spy");
        assert_eq!(own["aliases"], json!(["Agent"]));
        for (who, person) in [("owner", &cast.owner), ("admin", &cast.admin), ("moderator", &cast.moderator), ("member", &cast.member)] {
            let anothers = change(person, seats.guest, json!({"persona": "A fool"})).await;
            assert_eq!(refusal(&anothers), (403, "forbidden".to_owned()), "{who}");
            let copilot = change(person, seats.guest, json!({"copilot_mode": "full"})).await;
            assert_eq!(refusal(&copilot), (403, "forbidden".to_owned()), "{who}");
        }
        assert_eq!(change(&cast.outsider, seats.guest, json!({"persona": "x"})).await.0, 404);
        cast.app.close().await;
    }

    async fn managers_manage(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let card = cast.owner.create_character("Ada", None).await;
        let ada = cast.owner.add_character(&cast.document, &card).await;
        let changes = [
            json!({"participation": "muted"}),
            json!({"position": 0}),
            json!({"talkativeness": 0.9}),
            json!({"persona": "A pirate"}),
            json!({"aliases": ["Lady A"]}),
            json!({"settings": {"preset": {"temperature": 0.2}}}),
            json!({"llm_provider_id": 1}),
        ];

        for body in changes {
            for ((who, person), status) in cast.all_roles().into_iter().zip([404, 403, 403, 200, 200, 200]) {
                let answer = change(person, id(&ada), body.clone()).await;
                assert_eq!(answer.0, status, "{who}: {body}: {}", answer.1);
            }
        }
        let own = change(&cast.member, seats.member, json!({"participation": "observer"})).await;
        assert_eq!(refusal(&own).0, 403);
        cast.app.close().await;
    }

    async fn only_the_owner_gives_the_space_away(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        for (person, status) in [(&cast.guest, 403), (&cast.member, 403), (&cast.moderator, 403), (&cast.outsider, 404)] {
            assert_eq!(change(person, seats.moderator, json!({"role": "owner"})).await.0, status);
        }
        assert_eq!(refusal(&change(&cast.owner, seats.owner, json!({"role": "member"})).await).0, 403);
        assert_eq!(refusal(&change(&cast.moderator, seats.owner, json!({"role": "member"})).await).0, 403);

        let heir = expect(200, change(&cast.owner, seats.member, json!({"role": "owner"})).await);

        assert_eq!(heir["role"], "owner");
        let space = expect(200, cast.member.get(&cast.path("")).await);
        assert_eq!(space["owner_id"], heir["user_id"]);
        assert_eq!(space["my_role"], "owner");
        assert_eq!(expect(200, cast.owner.get(&cast.path("")).await)["my_role"], "moderator");
        let n_owners = order(&cast).await.len();
        assert_eq!(n_owners, 4);
        cast.app.close().await;
    }

    async fn a_demotion_counts_from_the_next_request(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        expect(200, cast.moderator.patch(&cast.path(""), json!({"name": "Mine"})).await);

        expect(200, change(&cast.owner, seats.moderator, json!({"role": "guest"})).await);

        assert_eq!(refusal(&cast.moderator.patch(&cast.path(""), json!({"name": "Still"})).await).0, 403);
        cast.app.close().await;
    }

    async fn a_move_makes_room(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let (a, b, c, d) = (seats.owner, seats.moderator, seats.member, seats.guest);
        assert_eq!(order(&cast).await, [(a, 0), (b, 1), (c, 2), (d, 3)]);

        expect(200, change(&cast.owner, d, json!({"position": 1})).await);
        assert_eq!(order(&cast).await, [(a, 0), (d, 1), (b, 2), (c, 3)]);

        expect(200, change(&cast.owner, a, json!({"position": 3})).await);
        assert_eq!(order(&cast).await, [(d, 0), (b, 1), (c, 2), (a, 3)]);

        let moved = expect(200, change(&cast.owner, d, json!({"position": 99})).await);
        assert_eq!(moved["position"], 3);
        assert_eq!(order(&cast).await, [(b, 0), (c, 1), (a, 2), (d, 3)]);
        cast.app.close().await;
    }

    async fn a_copilot_is_turned_on_with_its_steps_for_the_first_conversation(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let own = |body| change(&cast.member, seats.member, body);
        let root = expect(200, cast.member.get(&cast.path("")).await)["root_conversation_id"].clone();

        let on = expect(200, own(json!({"copilot_mode": "full", "copilot_remaining_steps": 3})).await);

        assert_eq!((&on["copilot_mode"], &on["copilot_remaining_steps"]), (&json!("full"), &json!(3)));
        assert_eq!(on["copilot_conversation_id"], root);
        let root = root.as_i64().expect("an id");
        let answer = cast.member.post_message(root, "Me.", None).await;
        assert_eq!(refusal(&answer), (409, "copilot_active".to_owned()));
        let more = expect(200, own(json!({"copilot_remaining_steps": 5})).await);
        assert_eq!(more["copilot_remaining_steps"], 5);
        let off = expect(200, own(json!({"copilot_mode": "none"})).await);
        assert_eq!((&off["copilot_mode"], &off["copilot_remaining_steps"]), (&json!("none"), &Value::Null));
        assert_eq!(off["copilot_conversation_id"], Value::Null);
        assert_eq!(cast.member.post_message(root, "Me.", None).await.0, 201);
        cast.app.close().await;
    }

    async fn a_copilot_needs_steps_and_an_order_with_speakers(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let own = |body| change(&cast.owner, seats.owner, body);
        let refused = (422, "invalid_value".to_owned());
        let cases = [
            json!({"copilot_mode": "full"}),
            json!({"copilot_mode": "full", "copilot_remaining_steps": null}),
            json!({"copilot_mode": "full", "copilot_remaining_steps": 11}),
            json!({"copilot_remaining_steps": 3}),
            json!({"copilot_mode": "none", "copilot_remaining_steps": 3}),
        ];
        for body in cases {
            assert_eq!(refusal(&own(body.clone()).await), refused, "{body}");
        }
        expect(200, cast.owner.patch(&cast.path(""), json!({"reply_order": "manual"})).await);
        let on = json!({"copilot_mode": "full", "copilot_remaining_steps": 3});
        assert_eq!(refusal(&own(on).await), refused);
        cast.app.close().await;
    }

    async fn a_copilot_ends_with_its_conversation_and_with_its_seat(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let own = |body| change(&cast.member, seats.member, body);
        let conversation = expect(201, cast.owner.post(&cast.path("/conversations"), json!({"title": "Second"})).await);
        let on = json!({"copilot_mode": "full", "copilot_remaining_steps": 3, "copilot_conversation_id": conversation["id"]});
        expect(200, own(on.clone()).await);

        expect(204, cast.owner.delete(&format!("/api/conversations/{}", conversation["id"])).await);

        let seat = expect(200, own(json!({})).await);
        assert_eq!((&seat["copilot_mode"], &seat["copilot_conversation_id"]), (&json!("none"), &Value::Null));
        expect(200, own(json!({"copilot_mode": "full", "copilot_remaining_steps": 3})).await);
        expect(204, cast.owner.delete(&format!("/api/memberships/{}", seats.member)).await);
        let on = "SELECT CAST(count(*) AS TEXT) FROM space_memberships WHERE copilot_mode = 'full' OR copilot_conversation_id IS NOT NULL";
        assert_eq!(DatabaseFacts::open(&cast.app.database).await.number(on).await, 0);
        cast.app.close().await;
    }

    async fn values_out_of_range_are_named(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let other = cast.owner.create_space("Other", json!({})).await;
        let cases = [
            (json!({"talkativeness": 1.1}), "talkativeness"),
            (json!({"position": -1}), "position"),
            (json!({"participation": "loud"}), "participation"),
            (json!({"copilot_mode": "half"}), "copilot_mode"),
            (json!({"copilot_remaining_steps": 0}), "copilot_remaining_steps"),
            (json!({"copilot_remaining_steps": 11}), "copilot_remaining_steps"),
            (json!({"copilot_conversation_id": other["root_conversation_id"]}), "copilot_conversation_id"),
            (json!({"llm_provider_id": 424_242}), "llm_provider_id"),
            (json!({"preset_id": 1}), "preset_id"),
            (json!({"aliases": ["ok", " "]}), "aliases.1"),
            (json!({"settings": {"preset": {"top_p": 2}}}), "settings.preset.top_p"),
        ];

        for (body, param) in cases {
            let refused = change(&cast.owner, seats.owner, body.clone()).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{body}");
            assert_eq!(refused.1["error"]["param"], param, "{body}");
        }
        for field in ["user_id", "space_id", "status", "kind"] {
            let refused = change(&cast.owner, seats.owner, json!({field: 1})).await;
            assert_eq!(refusal(&refused), (400, "unknown_field".to_owned()), "{field}");
        }
        cast.app.close().await;
    }

    async fn stale_settings_of_a_seat_are_refused(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let write = |text: &str| json!({"settings": {"join_prefix": text}, "settings_version": 0});

        let first = expect(200, change(&cast.owner, seats.owner, write("a")).await);
        let late = change(&cast.owner, seats.owner, write("b")).await;

        assert_eq!(refusal(&late), (409, "stale_settings".to_owned()));
        assert_eq!(late.1["error"]["current"], first);
        cast.app.close().await;
    }
}

on_both! {
    async fn concurrent_transfers_leave_a_space_with_one_owner(backend) {
        let (cast, seats) = RoleFixture::create(backend).await;
        let owner = || json!({"role": "owner"});

        let answers = join_all([
            change(&cast.owner, seats.member, owner()),
            change(&cast.owner, seats.moderator, owner()),
            change(&cast.admin, seats.guest, owner()),
        ])
        .await;

        assert!(answers.iter().any(|it| it.0 == 200), "{answers:?}");
        let roster = expect(200, cast.admin.get(&cast.path("/memberships")).await);
        let seats = roster["data"].as_array().unwrap();
        let owners: Vec<&Value> = seats.iter().filter(|it| it["role"] == "owner").collect();
        assert_eq!(owners.len(), 1, "{owners:?}");
        assert_eq!(expect(200, cast.admin.get(&cast.path("")).await)["owner_id"], owners[0]["user_id"]);
        assert_eq!(seats.iter().find(|it| it["display_name"] == "owner").unwrap()["role"], "moderator");
        cast.app.close().await;
    }
}

on_sqlite! {
    async fn a_space_is_never_transferred_to_a_leaving_member(backend) {
        let (cast, _) = RoleFixture::create(backend).await;
        let member = user_id(&cast.member).await;
        for n in 0..15 {
            let space = cast.owner.create_space(&format!("Room {n}"), json!({})).await;
            let path = format!("/api/spaces/{}/memberships", id(&space));
            let seat = expect(201, cast.owner.post(&path, json!({"user_id": member})).await);
            let own = format!("/api/memberships/{}", id(&seat));

            let (handed, left) = tokio::join!(
                change(&cast.owner, id(&seat), json!({"role": "owner"})),
                cast.member.delete(&own)
            );

            let roster = expect(200, cast.owner.get(&path).await);
            let seats = roster["data"].as_array().unwrap();
            let owner = seats.iter().find(|it| it["role"] == "owner").unwrap();
            assert_eq!(owner["status"], "active", "{handed:?} {left:?}");
            let outcome = ((handed.0, left.0), owner["user_id"] == member);
            assert!([((200, 409), true), ((404, 204), false)].contains(&outcome), "{outcome:?}");
        }
        cast.app.close().await;
    }
}
