//! Tests of personas: the user's own list, the persona of a post, what others see of it, prompts, and
//! files.

use reqwest::Method;
use serde_json::{Value, json};
use tavern::cards::avatar_image;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::file_uploads::{bring, ended, fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::multipart;
use crate::support::role_fixture::RoleFixture;
use crate::support::test_space::TestSpace;

async fn create(person: &HttpClient, name: &str) -> Value {
    create_with(
        person,
        json!({"name": name, "description": format!("{name} is tall.")}),
    )
    .await
}

async fn create_with(person: &HttpClient, body: Value) -> Value {
    expect(201, person.post("/api/personas", body).await)
}

fn path_of(persona: &Value) -> String {
    format!("/api/personas/{}", id(persona))
}

async fn names(person: &HttpClient) -> Vec<(String, bool)> {
    let list = expect(200, person.get("/api/personas").await);
    let list = list["data"].as_array().unwrap().iter();
    let entry = |it: &Value| {
        (
            it["name"].as_str().unwrap().to_owned(),
            it["is_default"] == true,
        )
    };
    list.map(entry).collect()
}

async fn post(person: &HttpClient, conversation: i64, body: Value) -> (u16, Value) {
    let path = format!("/api/conversations/{conversation}/messages");
    person.post(&path, body).await
}

/// Posts a message and returns its text and the name of its persona.
async fn posted(person: &HttpClient, conversation: i64, body: Value) -> (String, Value) {
    let message = expect(201, post(person, conversation, body).await)["message"].clone();
    let text = message["content"].as_str().unwrap().to_owned();
    (text, message["persona"]["name"].clone())
}

async fn own_membership(person: &HttpClient, space: i64, user: &str) -> Value {
    let roster = expect(
        200,
        person
            .get(&format!("/api/spaces/{space}/memberships"))
            .await,
    );
    let roster = roster["data"].as_array().unwrap().clone();
    let own = roster.into_iter().find(|it| it["display_name"] == user);
    own.expect("a membership")
}

async fn choose(person: &HttpClient, membership: &Value, persona: Value) -> (u16, Value) {
    let path = format!("/api/memberships/{}", id(membership));
    person
        .patch(&path, json!({"active_persona_id": persona}))
        .await
}

async fn set_picture(person: &HttpClient, persona: &Value, seed: &str) -> Value {
    let png = avatar_image::plain_png(seed).unwrap();
    let path = format!("{}/avatar", path_of(persona));
    let form = multipart::multipart_body("file", "face.png", &png);
    expect(200, multipart::send(person, Method::PUT, &path, form).await)
}

async fn open_space(backend: TestBackend) -> (TestApp, HttpClient, Value) {
    let app = TestApp::start(backend).await;
    let ann = app.admin().await;
    let space = ann.create_space("Room", json!({})).await;
    (app, ann, space)
}

on_both! {
    async fn a_name_is_used_once_per_person_in_any_case_and_one_persona_is_the_default(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (ann, bob) = (&users.owner, &users.member);

        let zoe = create_with(ann, json!({"name": "Zoë", "is_default": true})).await;
        let again = ann.post("/api/personas", json!({"name": "ZOË"})).await;
        create(bob, "zoë").await;
        let second = create_with(ann, json!({"name": "Cara", "is_default": true})).await;

        assert_eq!(refusal(&again), (409, "persona_name_taken".to_owned()));
        assert_eq!(names(ann).await, [("Zoë".to_owned(), false), ("Cara".to_owned(), true)]);
        let renamed = ann.patch(&path_of(&second), json!({"name": "zoë"})).await;
        assert_eq!(refusal(&renamed), (409, "persona_name_taken".to_owned()));
        expect(200, ann.patch(&path_of(&zoe), json!({"is_default": true})).await);
        assert_eq!(names(ann).await, [("Zoë".to_owned(), true), ("Cara".to_owned(), false)]);
        assert_eq!(ann.delete(&path_of(&zoe)).await.0, 204);
        create_with(ann, json!({"name": "Zoë", "is_default": true})).await;
        assert_eq!(names(ann).await, [("Cara".to_owned(), false), ("Zoë".to_owned(), true)]);
        users.app.close().await;
    }

    async fn the_name_and_the_picture_of_a_message_stay_when_its_persona_changes(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (ann, root) = (&users.owner, root_of(&users.document));
        let cara = create(ann, "Cara").await;
        set_picture(ann, &cara, "first").await;
        let message = expect(201, post(ann, root, json!({"content": "Hi.", "persona_id": cara["id"]})).await);
        let shown = message["message"]["persona"].clone();
        let picture = shown["avatar_url"].as_str().unwrap().to_owned();

        set_picture(ann, &cara, "second").await;
        expect(200, ann.patch(&path_of(&cara), json!({"name": "Dora"})).await);
        let first = fetch(ann, &picture).await;
        assert_eq!(ann.delete(&path_of(&cara)).await.0, 204);

        assert_eq!(shown["name"], "Cara");
        assert_eq!(users.member.messages(root).await[0]["persona"], shown);
        assert_eq!(users.member.messages(root).await[0]["author_name"], "owner");
        assert_eq!(fetch(&users.member, &picture).await, first, "others see the picture");
        assert_eq!(users.outsider.get(&picture).await.0, 404);
        assert_eq!(ann.get(&path_of(&cara)).await.0, 404);
        users.app.close().await;
    }
}

on_sqlite! {
    async fn a_person_has_at_most_two_hundred_personas(backend) {
        let (app, ann, _) = open_space(backend).await;
        for n in 1..=200 {
            create(&ann, &format!("P{n}")).await;
        }

        let refused = ann.post("/api/personas", json!({"name": "One more"})).await;

        assert_eq!(refusal(&refused), (422, "too_many".to_owned()));
        app.close().await;
    }

    async fn names_and_descriptions_have_limits(backend) {
        let (app, ann, _) = open_space(backend).await;
        let cara = create(&ann, "Cara").await;
        let long = "x".repeat(16 * 1024 + 1);

        let refused = ann.patch(&path_of(&cara), json!({"description": long})).await;
        assert_eq!(refusal(&refused), (422, "too_long".to_owned()));
        for name in ["", "\u{200b}", "a\nb", &"x".repeat(101)] {
            let refused = ann.post("/api/personas", json!({"name": name})).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{name:?}");
        }
        let stripped = create(&ann, "\u{202e}Dora").await;
        assert_eq!(stripped["name"], "Dora");
        app.close().await;
    }

    async fn a_persona_is_seen_by_its_user_alone(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let cara = create(&users.owner, "Cara").await;
        set_picture(&users.owner, &cara, "face").await;
        let picture = format!("{}/avatar", path_of(&cara));

        for (who, person) in users.all_roles() {
            let expected = if who == "owner" { 200 } else { 404 };
            assert_eq!(person.get(&path_of(&cara)).await.0, expected, "{who}");
            if who != "owner" {
                assert_eq!(person.get(&picture).await.0, 404, "{who} sees the picture");
            }
        }
        users.app.close().await;
    }

    async fn the_persona_of_a_post_is_named_prefixed_active_or_the_default(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (ann, root) = (&users.owner, root_of(&users.document));
        let named = |it: &str| json!(it);
        assert_eq!(posted(ann, root, json!({"content": "1"})).await, ("1".to_owned(), Value::Null));

        let cara = create_with(ann, json!({"name": "Cara", "is_default": true})).await;
        create(ann, "Cara Lee").await;
        let dora = create(ann, "Dora").await;
        assert_eq!(posted(ann, root, json!({"content": "2"})).await.1, named("Cara"));
        let own = own_membership(ann, users.space, "owner").await;
        let chosen = expect(200, choose(ann, &own, dora["id"].clone()).await);
        assert_eq!(chosen["active_persona_id"], dora["id"]);
        assert_eq!(posted(ann, root, json!({"content": "3"})).await.1, named("Dora"));
        let prefixed = posted(ann, root, json!({"content": "=CARA LEE  Hi there."})).await;
        assert_eq!(prefixed, ("Hi there.".to_owned(), named("Cara Lee")));
        let unknown = posted(ann, root, json!({"content": "=Bob Hi."})).await;
        assert_eq!(unknown, ("=Bob Hi.".to_owned(), named("Dora")));
        let by_id = posted(ann, root, json!({"content": "=Dora Hi.", "persona_id": cara["id"]})).await;
        assert_eq!(by_id, ("=Dora Hi.".to_owned(), named("Cara")));
        let none = posted(ann, root, json!({"content": "4", "persona_id": null})).await;
        assert_eq!(none.1, Value::Null);
        for content in ["=Dora", "=dora  \u{200b}"] {
            let refused = post(ann, root, json!({"content": content})).await;
            assert_eq!(refusal(&refused), (422, "blank_message".to_owned()));
        }
        let seen = own_membership(&users.member, users.space, "owner").await;
        assert_eq!(seen["active_persona_id"], Value::Null, "others see it");
        assert_eq!(ann.delete(&path_of(&dora)).await.0, 204);
        assert_eq!(posted(ann, root, json!({"content": "5"})).await.1, named("Cara"));
        users.app.close().await;
    }

    async fn the_persona_of_another_person_or_a_deleted_one_is_refused(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let root = root_of(&users.document);
        let theirs = create(&users.member, "Cara").await;
        let gone = create(&users.owner, "Dora").await;
        assert_eq!(users.owner.delete(&path_of(&gone)).await.0, 204);
        let own = own_membership(&users.owner, users.space, "owner").await;

        for persona in [&theirs["id"], &gone["id"], &json!(424_242)] {
            let refused = post(&users.owner, root, json!({"content": "Hi.", "persona_id": persona})).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], "persona_id");
            let refused = choose(&users.owner, &own, persona.clone()).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], "active_persona_id");
        }
        let for_another = choose(&users.owner, &own_membership(&users.owner, users.space, "member").await, Value::Null).await;
        assert_eq!(for_another.0, 403);
        users.app.close().await;
    }

    async fn a_persona_whose_name_looks_like_another_member_is_not_used(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let root = root_of(&users.document);
        let taken = (409, "name_taken_here".to_owned());
        let own = own_membership(&users.owner, users.space, "owner").await;
        let alike = create(&users.owner, "m\u{435}mber").await;

        let refused = post(&users.owner, root, json!({"content": "Hi.", "persona_id": alike["id"]})).await;
        assert_eq!(refusal(&refused), taken);
        assert_eq!(refusal(&choose(&users.owner, &own, alike["id"].clone()).await), taken);
        let as_self = create(&users.owner, "Owner").await;
        let said = posted(&users.owner, root, json!({"content": "Hi.", "persona_id": as_self["id"]})).await;
        assert_eq!(said.1, "Owner");
        users.app.close().await;
    }

    async fn a_repeated_post_is_recognized_before_its_persona_is_chosen(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let (ann, root) = (&users.owner, root_of(&users.document));
        let cara = create_with(ann, json!({"name": "Cara", "is_default": true})).await;
        let dora = create(ann, "Dora").await;
        let automatic = json!({"content": "Hi.", "client_id": "a"});
        let prefixed = json!({"content": "=Cara Hi.", "client_id": "b"});
        let named = json!({"content": "Hi.", "client_id": "c", "persona_id": cara["id"]});
        for body in [&automatic, &prefixed, &named] {
            expect(201, post(ann, root, body.clone()).await);
        }

        expect(200, ann.patch(&path_of(&dora), json!({"is_default": true})).await);
        expect(200, ann.patch(&path_of(&cara), json!({"name": "Clara"})).await);
        assert_eq!(ann.delete(&path_of(&cara)).await.0, 204);

        for body in [&automatic, &prefixed, &named] {
            let again = expect(200, post(ann, root, body.clone()).await);
            assert_eq!(again["message"]["persona"]["name"], "Cara", "{body}");
        }
        for other in [json!({"persona_id": dora["id"]}), json!({"persona_id": null}), json!({"content": "Ho."})] {
            let mut body = automatic.clone();
            body.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
            let refused = post(ann, root, body).await;
            assert_eq!(refusal(&refused), (422, "client_id_reused".to_owned()), "{other}");
        }
        users.app.close().await;
    }

    async fn a_prompt_contains_the_personas_of_those_who_speak(backend) {
        let at = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let (ann, root) = (&at.person, at.conversation);
        for name in ["Cara", "Dora", "Unused"] {
            create(ann, name).await;
        }

        expect(201, post(ann, root, json!({"content": "=Dora Hello."})).await);
        at.settle().await;
        expect(201, post(ann, root, json!({"content": "=Cara I am {{user}}."})).await);
        at.settle().await;

        let sent = |n: usize| at.upstream.body(n)["messages"].to_string();
        assert!(sent(0).contains("About Dora: Dora is tall."), "{}", sent(0));
        let block = "[Persona of Cara]\\nCara is tall.\\n[End of Cara]\\n[Persona of Dora]\\nDora is tall.\\n[End of Dora]";
        assert!(sent(1).contains(block), "{}", sent(1));
        assert!(!sent(1).contains("Unused"), "{}", sent(1));
        for name in ["Dora", "Cara"] {
            assert!(sent(1).contains(&format!("\"content\":\"{name}: ")), "{}", sent(1));
        }
    }

    async fn the_copilot_speaks_under_the_persona_of_its_person(backend) {
        let at = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let ann = &at.person;
        create_with(ann, json!({"name": "Cara", "description": "Tall.", "is_default": true})).await;
        let own = own_membership(ann, id(&at.space), "ann").await;
        let change = json!({
            "copilot_mode": "full", "copilot_remaining_steps": 1, "copilot_conversation_id": at.conversation,
        });

        expect(200, ann.patch(&format!("/api/memberships/{}", id(&own)), change).await);
        at.settle().await;

        let messages = ann.messages(at.conversation).await;
        let own = messages.iter().find(|it| it["role"] == "user").expect("the copilot has written");
        assert_eq!((&own["author_name"], &own["persona"]["name"]), (&json!("ann"), &json!("Cara")));
        let sent = at.upstream.body(0)["messages"].to_string();
        assert!(sent.contains("About Cara: Tall."), "{sent}");
    }

    async fn pictures_and_descriptions_count_for_the_quota(backend) {
        let app = TestApp::start_with(backend, &[("LIMIT_STORED_MIB_PER_USER", "1")]).await;
        let ann = app.admin().await;
        let long = "x".repeat(16 * 1024);
        let mut refused = None;
        for n in 0..80 {
            let body = json!({"name": format!("P{n}"), "description": long});
            let answer = ann.post("/api/personas", body).await;
            if answer.0 != 201 {
                refused = Some(refusal(&answer));
                break;
            }
        }

        assert_eq!(refused, Some((413, "storage_full".to_owned())));
        app.close().await;
    }

    async fn personas_are_exported_and_imported_as_a_backup(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        create_with(&users.owner, json!({"name": "Cara", "description": "Tall.", "is_default": true})).await;
        create(&users.owner, "Dora").await;
        create(&users.member, "DORA").await;

        let file = fetch(&users.owner, "/api/personas/export").await;
        let imported = expect(201, bring(&users.member, "/api/personas/import", "p.json", &file).await);

        assert_eq!((&imported["n_imported"], &imported["n_skipped"]), (&json!(1), &json!(1)));
        assert_eq!(imported["warnings_coded"][0]["code"], "persona_known");
        assert_eq!(names(&users.member).await, [("DORA".to_owned(), false), ("Cara".to_owned(), true)]);
        let again = expect(201, bring(&users.member, "/api/personas/import", "p.json", &file).await);
        assert_eq!((&again["n_imported"], &again["n_skipped"]), (&json!(0), &json!(2)));
        let refused = bring(&users.member, "/api/personas/import", "p.json", b"{\"name\":\"x\"}").await;
        assert_eq!(refusal(&refused), (422, "unknown_file".to_owned()));
        users.app.close().await;
    }

    async fn branches_and_space_files_keep_the_persona_of_a_message(backend) {
        let (app, ann, space) = open_space(backend).await;
        let root = root_of(&space);
        let cara = create(&ann, "Cara").await;
        let message = expect(201, post(&ann, root, json!({"content": "Hi.", "persona_id": cara["id"]})).await);
        let message = message["message"].clone();

        let body = json!({"message_id": message["id"]});
        let branch = expect(201, ann.post(&format!("/api/conversations/{root}/branch"), body).await)["conversation"].clone();
        let copies = ann.messages(id(&branch)).await;
        let file = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        let imported = expect(202, bring(&ann, "/api/spaces/import", "s.zip", &file).await);
        let imported = ended(&ann, id(&imported)).await;
        let there = expect(200, ann.get(&format!("/api/spaces/{}", imported["space_id"])).await);

        assert_eq!(copies[0]["persona"], message["persona"]);
        let persona = ann.messages(root_of(&there)).await[0]["persona"].clone();
        assert_eq!(persona, json!({"id": null, "name": "Cara", "avatar_url": null}));
        app.close().await;
    }

    async fn a_chat_file_names_the_persona(backend) {
        let (app, ann, space) = open_space(backend).await;
        let root = root_of(&space);
        let cara = create(&ann, "Cara").await;
        expect(201, post(&ann, root, json!({"content": "Hi.", "persona_id": cara["id"]})).await);

        let file = fetch(&ann, &format!("/api/conversations/{root}/export?format=jsonl")).await;
        let path = format!("/api/spaces/{}/import", id(&space));
        let imported = import(&ann, &path, "c.jsonl", &file).await;

        assert!(String::from_utf8(file).unwrap().contains("\"name\":\"Cara\""));
        let messages = ann.messages(imported["conversation_id"].as_i64().unwrap()).await;
        assert_eq!(messages[0]["author_name"], "admin");
        assert_eq!(messages[0]["persona"]["name"], "Cara");
        app.close().await;
    }
}
