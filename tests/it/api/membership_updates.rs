//! Tests of changes to memberships: who can change which fields.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::backends::{on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::{RoleFixture, user_id};

async fn change(person: &HttpClient, membership: i64, body: Value) -> (u16, Value) {
    person
        .patch(&format!("/api/memberships/{membership}"), body)
        .await
}

async fn order(users: &RoleFixture) -> Vec<(i64, i64)> {
    let roster = expect(200, users.owner.get(&users.path("/memberships")).await);
    let memberships = roster["data"].as_array().unwrap().iter();
    memberships
        .map(|it| (id(it), it["position"].as_i64().unwrap()))
        .collect()
}

on_sqlite! {
    async fn only_members_themselves_can_change_their_persona_and_copilot(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let words = json!({"persona": "A spy", "aliases": ["Agent"]});

        let own = expect(200, change(&users.guest, memberships.guest, words.clone()).await);

        assert_eq!(own["persona"], "A spy");
        assert_eq!(own["aliases"], json!(["Agent"]));
        for (who, person) in [("owner", &users.owner), ("admin", &users.admin), ("moderator", &users.moderator), ("member", &users.member)] {
            let anothers = change(person, memberships.guest, json!({"persona": "A fool"})).await;
            assert_eq!(refusal(&anothers), (403, "forbidden".to_owned()), "{who}");
            let copilot = change(person, memberships.guest, json!({"copilot_mode": "full"})).await;
            assert_eq!(refusal(&copilot), (403, "forbidden".to_owned()), "{who}");
        }
        assert_eq!(
            change(&users.outsider, memberships.guest, json!({"persona": "x"}))
                .await
                .0,
            404
        );
        users.app.close().await;
    }

    async fn everyone_can_change_their_own_memory_and_no_other_setting(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let stored = json!({"model": "m", "memory": {"recall": false}});
        expect(200, change(&users.owner, memberships.guest, json!({"settings": stored})).await);
        let own = async |settings: Value| change(&users.guest, memberships.guest, json!({"settings": settings})).await;

        let changed = expect(200, own(json!({"model": "m", "memory": {"learn": false}})).await);
        assert_eq!(changed["settings"], json!({"model": "m", "memory": {"learn": false}}));
        let wrong = own(json!({"model": "m", "memory": {"learn": 1}})).await;
        assert_eq!((wrong.0, &wrong.1["error"]["param"]), (400, &json!("settings.memory.learn")));
        for settings in [
            json!({"memory": {"learn": true}}),
            json!({"model": "n", "memory": {"learn": true}}),
            json!({"model": "m", "memory": {"top_k": 3}}),
            json!({"model": "m", "memory": {}, "preset": {}}),
        ] {
            assert_eq!(refusal(&own(settings.clone()).await), (403, "forbidden".to_owned()), "{settings}");
        }
        let on = expect(200, own(json!({"model": "m"})).await);
        assert_eq!(on["settings"], json!({"model": "m"}));
        let stale = json!({"settings": {"model": "m", "memory": {"learn": true}}, "settings_version": 0});
        assert_eq!(refusal(&change(&users.guest, memberships.guest, stale).await), (409, "stale_settings".to_owned()));
        users.app.close().await;
    }

    async fn managers_can_change_character_memberships(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let card = users.owner.create_character("Ada", None).await;
        let ada = users.owner.add_character(&users.document, &card).await;
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
            for ((who, person), status) in users.all_roles().into_iter().zip([404, 403, 403, 200, 200, 200]) {
                let answer = change(person, id(&ada), body.clone()).await;
                assert_eq!(answer.0, status, "{who}: {body}: {}", answer.1);
            }
        }
        let own = change(
            &users.member,
            memberships.member,
            json!({"participation": "observer"}),
        )
        .await;
        assert_eq!(refusal(&own).0, 403);
        users.app.close().await;
    }

    async fn only_the_owner_can_transfer_the_space(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        for (person, status) in [(&users.guest, 403), (&users.member, 403), (&users.moderator, 403), (&users.outsider, 404)] {
            assert_eq!(
                change(person, memberships.moderator, json!({"role": "owner"}))
                    .await
                    .0,
                status
            );
        }
        assert_eq!(refusal(&change(&users.owner, memberships.owner, json!({"role": "member"})).await).0, 403);
        assert_eq!(refusal(&change(&users.moderator, memberships.owner, json!({"role": "member"})).await).0, 403);

        let new_owner = expect(
            200,
            change(&users.owner, memberships.member, json!({"role": "owner"})).await,
        );

        assert_eq!(new_owner["role"], "owner");
        let space = expect(200, users.member.get(&users.path("")).await);
        assert_eq!(space["owner_id"], new_owner["user_id"]);
        assert_eq!(space["my_role"], "owner");
        assert_eq!(expect(200, users.owner.get(&users.path("")).await)["my_role"], "moderator");
        let n_owners = order(&users).await.len();
        assert_eq!(n_owners, 4);
        users.app.close().await;
    }

    async fn a_demotion_takes_effect_with_the_next_request(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        expect(200, users.moderator.patch(&users.path(""), json!({"name": "Mine"})).await);

        expect(200, change(&users.owner, memberships.moderator, json!({"role": "guest"})).await);

        assert_eq!(refusal(&users.moderator.patch(&users.path(""), json!({"name": "Still"})).await).0, 403);
        users.app.close().await;
    }

    async fn moving_a_member_shifts_the_others(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let (a, b, c, d) = (
            memberships.owner,
            memberships.moderator,
            memberships.member,
            memberships.guest,
        );
        assert_eq!(order(&users).await, [(a, 0), (b, 1), (c, 2), (d, 3)]);

        expect(200, change(&users.owner, d, json!({"position": 1})).await);
        assert_eq!(order(&users).await, [(a, 0), (d, 1), (b, 2), (c, 3)]);

        expect(200, change(&users.owner, a, json!({"position": 3})).await);
        assert_eq!(order(&users).await, [(d, 0), (b, 1), (c, 2), (a, 3)]);

        let moved = expect(200, change(&users.owner, d, json!({"position": 99})).await);
        assert_eq!(moved["position"], 3);
        assert_eq!(order(&users).await, [(b, 0), (c, 1), (a, 2), (d, 3)]);
        users.app.close().await;
    }

    async fn a_copilot_is_turned_on_with_its_steps_for_the_first_conversation(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let own = |body| change(&users.member, memberships.member, body);
        let root = expect(200, users.member.get(&users.path("")).await)["root_conversation_id"].clone();

        let on = expect(200, own(json!({"copilot_mode": "full", "copilot_remaining_steps": 3})).await);

        assert_eq!((&on["copilot_mode"], &on["copilot_remaining_steps"]), (&json!("full"), &json!(3)));
        assert_eq!(on["copilot_conversation_id"], root);
        let root = root.as_i64().expect("the space has a root conversation");
        let answer = users.member.post_message(root, "Me.", None).await;
        assert_eq!(refusal(&answer), (409, "copilot_active".to_owned()));
        let more = expect(200, own(json!({"copilot_remaining_steps": 5})).await);
        assert_eq!(more["copilot_remaining_steps"], 5);
        let off = expect(200, own(json!({"copilot_mode": "none"})).await);
        assert_eq!((&off["copilot_mode"], &off["copilot_remaining_steps"]), (&json!("none"), &Value::Null));
        assert_eq!(off["copilot_conversation_id"], Value::Null);
        assert_eq!(users.member.post_message(root, "Me.", None).await.0, 201);
        users.app.close().await;
    }

    async fn a_copilot_requires_steps_and_a_reply_order_that_is_not_manual(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let own = |body| change(&users.owner, memberships.owner, body);
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
        expect(200, users.owner.patch(&users.path(""), json!({"reply_order": "manual"})).await);
        let on = json!({"copilot_mode": "full", "copilot_remaining_steps": 3});
        assert_eq!(refusal(&own(on).await), refused);
        users.app.close().await;
    }

    async fn a_copilot_ends_with_its_conversation_and_with_its_membership(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let own = |body| change(&users.member, memberships.member, body);
        let conversation = expect(201, users.owner.post(&users.path("/conversations"), json!({"title": "Second"})).await);
        let on = json!({"copilot_mode": "full", "copilot_remaining_steps": 3, "copilot_conversation_id": conversation["id"]});
        expect(200, own(on.clone()).await);

        expect(
            204,
            users
                .owner
                .delete(&format!("/api/conversations/{}", conversation["id"]))
                .await,
        );

        let membership = expect(200, own(json!({})).await);
        assert_eq!((&membership["copilot_mode"], &membership["copilot_conversation_id"]), (&json!("none"), &Value::Null));
        expect(200, own(json!({"copilot_mode": "full", "copilot_remaining_steps": 3})).await);
        expect(204, users.owner.delete(&format!("/api/memberships/{}", memberships.member)).await);
        let on = "SELECT CAST(count(*) AS TEXT) FROM space_memberships WHERE copilot_mode = 'full' OR copilot_conversation_id IS NOT NULL";
        assert_eq!(DatabaseFacts::open(&users.app.database).await.number(on).await, 0);
        users.app.close().await;
    }

    async fn invalid_membership_values_are_rejected_with_the_field_named(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let other = users.owner.create_space("Other", json!({})).await;
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
            let refused = change(&users.owner, memberships.owner, body.clone()).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{body}");
            assert_eq!(refused.1["error"]["param"], param, "{body}");
        }
        for field in ["user_id", "space_id", "status", "kind"] {
            let refused = change(&users.owner, memberships.owner, json!({field: 1})).await;
            assert_eq!(refusal(&refused), (400, "unknown_field".to_owned()), "{field}");
        }
        users.app.close().await;
    }

    async fn stale_settings_of_a_membership_are_rejected(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let write = |text: &str| json!({"settings": {"join_prefix": text}, "settings_version": 0});

        let first = expect(200, change(&users.owner, memberships.owner, write("a")).await);
        let late = change(&users.owner, memberships.owner, write("b")).await;

        assert_eq!(refusal(&late), (409, "stale_settings".to_owned()));
        assert_eq!(late.1["error"]["current"], first);
        users.app.close().await;
    }
}

on_both! {
    async fn concurrent_transfers_leave_a_space_with_one_owner(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let owner = || json!({"role": "owner"});

        let answers = join_all([
            change(&users.owner, memberships.member, owner()),
            change(&users.owner, memberships.moderator, owner()),
            change(&users.admin, memberships.guest, owner()),
        ])
        .await;

        assert!(answers.iter().any(|it| it.0 == 200), "{answers:?}");
        let roster = expect(200, users.admin.get(&users.path("/memberships")).await);
        let memberships = roster["data"].as_array().unwrap();
        let owners: Vec<&Value> = memberships.iter().filter(|it| it["role"] == "owner").collect();
        assert_eq!(owners.len(), 1, "{owners:?}");
        assert_eq!(expect(200, users.admin.get(&users.path("")).await)["owner_id"], owners[0]["user_id"]);
        assert_eq!(memberships.iter().find(|it| it["display_name"] == "owner").unwrap()["role"], "moderator");
        users.app.close().await;
    }
}

on_sqlite! {
    async fn a_space_is_never_transferred_to_a_leaving_member(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let member = user_id(&users.member).await;
        for n in 0..15 {
            let space = users.owner.create_space(&format!("Room {n}"), json!({})).await;
            let path = format!("/api/spaces/{}/memberships", id(&space));
            let membership = expect(201, users.owner.post(&path, json!({"user_id": member})).await);
            let own = format!("/api/memberships/{}", id(&membership));

            let (transferred, left) = tokio::join!(
                change(&users.owner, id(&membership), json!({"role": "owner"})),
                users.member.delete(&own)
            );

            let roster = expect(200, users.owner.get(&path).await);
            let memberships = roster["data"].as_array().unwrap();
            let owner = memberships.iter().find(|it| it["role"] == "owner").unwrap();
            assert_eq!(owner["status"], "active", "{transferred:?} {left:?}");
            let outcome = ((transferred.0, left.0), owner["user_id"] == member);
            assert!([((200, 409), true), ((404, 204), false)].contains(&outcome), "{outcome:?}");
        }
        users.app.close().await;
    }
    async fn only_a_character_can_be_limited_to_what_it_heard(backend) {
        let (users, memberships) = RoleFixture::create(backend).await;
        let space = expect(200, users.owner.get(&users.path("")).await);
        let card = users.owner.create_character("Ada", None).await;
        let ada = id(&users.owner.add_character(&space, &card).await);
        let limited = |value: Value| json!({"settings": {"remembers_only_what_it_heard": value}});

        let of_person = change(&users.owner, memberships.member, limited(json!(true))).await;
        let not_a_switch = change(&users.owner, ada, limited(json!("yes"))).await;
        let of_character = expect(200, change(&users.owner, ada, limited(json!(true))).await);

        let param = "settings.remembers_only_what_it_heard";
        assert_eq!((of_person.0, &of_person.1["error"]["param"]), (422, &json!(param)));
        assert_eq!((not_a_switch.0, &not_a_switch.1["error"]["param"]), (400, &json!(param)));
        assert_eq!(of_character["settings"]["remembers_only_what_it_heard"], true);
        users.app.close().await;
    }
}
