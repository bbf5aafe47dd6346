//! Tests of the lorebook tester: the order of the entries, and the use of all lorebooks of a conversation.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

/// Returns an entry that a text about a gull activates.
fn entry(name: &str, extensions: Value) -> Value {
    json!({"keys": ["gull"], "name": name, "content": format!("{name}."), "enabled": true, "insertion_order": 10, "extensions": extensions})
}

async fn create_book(person: &HttpClient, name: &str, entries: Value) -> i64 {
    let book = json!({"name": name, "entries": entries});
    id(&expect(201, person.post("/api/lorebooks", book).await))
}

async fn test(person: &HttpClient, book: i64, body: Value) -> Value {
    let path = format!("/api/lorebooks/{book}/test");
    expect(200, person.post(&path, body).await)
}

/// Returns one field of each activated entry.
fn fired(result: &Value, field: &str) -> Vec<Value> {
    let entries = result["fired"].as_array().unwrap().iter();
    entries.map(|it| it[field].clone()).collect()
}

on_sqlite! {
    async fn tested_entries_are_listed_in_the_order_of_the_prompt(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let book = create_book(&admin, "Harbor", json!([
            entry("outlet", json!({"position": 7, "outlet_name": "map"})),
            entry("near", json!({"position": 4, "depth": 1, "role": 1})),
            entry("far", json!({"position": 4, "depth": 9})),
            entry("note", json!({"position": 2})),
            entry("after", json!({"position": 1})),
            entry("before", json!({"position": 0})),
        ])).await;

        let result = test(&admin, book, json!({"text": "A gull."})).await;

        assert_eq!(fired(&result, "name"), ["before", "after", "far", "note", "near", "outlet"]);
        assert_eq!(fired(&result, "position"), [
            json!({"type": "before_char"}),
            json!({"type": "after_char"}),
            json!({"type": "at_depth", "depth": 9, "role": "system"}),
            json!({"type": "note_top"}),
            json!({"type": "at_depth", "depth": 1, "role": "user"}),
            json!({"type": "outlet", "name": "map"}),
        ]);
        let first = &result["fired"][0];
        assert_eq!((&first["book"], &first["lorebook_id"], &first["order"]), (&json!("Harbor"), &json!(book), &json!(10)));
        app.close().await;
    }

    async fn names_of_a_card_that_the_caller_may_not_read_are_withheld_in_a_test(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        app.admin().await;
        let (owner, member) = (app.register("owner").await, app.register("member").await);
        let space = owner.create_space("The inn", json!({"reply_order": "manual"})).await;
        owner.add_member(id(&space), &member, "member").await;
        let card = json!({"name": "Ada", "character_book": {"name": "secret book", "entries": [entry("secret", json!({}))]}});
        let ada = expect(201, owner.post("/api/characters", card).await);
        let speaker = id(&owner.add_character(&space, &ada).await);
        let book = create_book(&member, "Mine", json!([entry("mine", json!({}))])).await;
        let request = json!({"text": "A gull.", "conversation_id": root_of(&space), "speaker_id": speaker});

        let result = test(&member, book, request).await;

        assert!(!result.to_string().contains("secret"), "{result}");
        let mut names = fired(&result, "name");
        names.sort_by_key(Value::to_string);
        assert_eq!(names, ["", "mine"]);
        app.close().await;
    }

    async fn a_test_in_a_conversation_requires_the_right_to_see_its_prompts(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let request = json!({"text": "A gull.", "conversation_id": root_of(&users.document)});
        let without = json!({"text": "A gull.", "speaker_id": 1});
        for (person, status) in [(&users.guest, 403), (&users.outsider, 404), (&users.member, 422)] {
            let book = create_book(person, "Mine", json!([])).await;
            let path = format!("/api/lorebooks/{book}/test");

            // The space has no character.
            assert_eq!(person.post(&path, request.clone()).await.0, status);
            assert_eq!(refusal(&person.post(&path, without.clone()).await), (422, "invalid_value".to_owned()));
        }
        users.app.close().await;
    }
}

on_both! {
    async fn a_test_in_a_conversation_scans_all_its_lorebooks_with_its_settings(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let rules = json!({"reply_order": "manual", "card_handling_mode": "append"});
        let space = admin.create_space("Harbor", rules).await;
        let mut speakers = Vec::new();
        for name in ["Ada", "Cid"] {
            let book = format!("{name}'s");
            let card = json!({"name": name, "character_book": {"name": book, "entries": [entry(&book, json!({}))]}});
            let card = expect(201, admin.post("/api/characters", card).await);
            speakers.push(id(&admin.add_character(&space, &card).await));
        }
        let of_space = create_book(&admin, "Coast", json!([
            entry("Coast", json!({"position": 0})),
            {"keys": ["whale"], "name": "Whales", "content": "They sing."},
        ])).await;
        let at = format!("/api/spaces/{}", id(&space));
        let links = json!({"lorebook_ids": [of_space]});
        expect(200, admin.put(&format!("{at}/lorebooks"), links).await);
        let settings = json!({"settings": {"world_info": {"case_sensitive": true}}});
        expect(200, admin.patch(&at, settings).await);
        let tested = create_book(&admin, "New", json!([
            entry("New", json!({"position": 4, "depth": 0})),
            {"keys": ["GULL"], "name": "Capitals", "content": "Loud."},
        ])).await;
        let request = json!({"text": "A gull.", "conversation_id": root_of(&space), "speaker_id": speakers[1]});

        let result = test(&admin, tested, request.clone()).await;

        assert_eq!(fired(&result, "book"), ["Coast", "Ada's", "Cid's", "New"]);
        let not_fired = result["not_fired"].as_array().unwrap();
        let names: Vec<&Value> = not_fired.iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["Capitals"], "entries of other lorebooks are listed, or the settings have no effect");
        // A linked lorebook takes part once.
        let linked = test(&admin, of_space, request).await;
        assert_eq!(fired(&linked, "book"), ["Coast", "Ada's", "Cid's"]);
        let messages = admin.messages(root_of(&space)).await;
        assert!(messages.is_empty(), "the text was stored: {messages:?}");
        app.close().await;
    }
}
