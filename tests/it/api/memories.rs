//! Tests of memories: written, searched, changed and forgotten by people.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;

struct MemoryFixture {
    app: TestApp,
    owner: HttpClient,
    path: String,
    space: Value,
}

impl MemoryFixture {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let owner = app.admin().await;
        let space = owner.create_space("Harbor", json!({})).await;
        Self {
            path: format!("/api/spaces/{}/memories", id(&space)),
            app,
            owner,
            space,
        }
    }

    async fn remember(&self, content: &str) -> Value {
        let body = json!({"content": content, "kind": "event"});
        expect(201, self.owner.post(&self.path, body).await)
    }

    /// Returns the contents of a list, in its order.
    async fn contents(&self, query: &str) -> Vec<String> {
        let list = expect(200, self.owner.get(&format!("{}{query}", self.path)).await);
        let all = list["data"].as_array().expect("a list").iter();
        all.map(|it| it["content"].as_str().expect("a text").to_owned())
            .collect()
    }
}

on_both! {
    async fn a_memory_is_stored_once_and_as_one_line(backend) {
        let it = MemoryFixture::open(backend).await;
        let made = it.remember("The mill\n burned down.").await;

        let again = json!({"content": " the MILL burned down. ", "kind": "relation", "importance": 0.9});
        let known = expect(200, it.owner.post(&it.path, again).await);

        assert_eq!(known, made);
        assert_eq!((&made["content"], &made["origin"]), (&json!("The mill burned down."), &json!("person")));
        assert_eq!(it.contents("").await, ["The mill burned down."]);
        it.app.close().await;
    }

    async fn a_search_returns_the_best_match_first_and_says_why(backend) {
        let it = MemoryFixture::open(backend).await;
        for content in ["Ann fears the sea.", "The lighthouse keeper fears the sea.", "It rained."] {
            it.remember(content).await;
        }

        let found = expect(200, it.owner.get(&format!("{}?q=who%20keeps%20the%20lighthouse", it.path)).await);

        let first = &found["data"][0];
        assert_eq!(first["content"], "The lighthouse keeper fears the sea.");
        assert!(first["because"].as_str().unwrap().contains("lighthouse"), "{first}");
        assert!(first["score"].as_f64().unwrap() > 0.2, "{first}");
        assert_eq!(it.contents("?q=zebra").await, Vec::<String>::new());
        it.app.close().await;
    }

    async fn a_change_needs_the_version_that_the_person_saw(backend) {
        let it = MemoryFixture::open(backend).await;
        let made = it.remember("The mill burned down.").await;
        it.remember("It rained.").await;
        let path = format!("{}/{}", it.path, id(&made));

        let changed = json!({"content": "The mill was rebuilt.", "pinned": true, "expected_version": 1});
        let changed = expect(200, it.owner.patch(&path, changed).await);
        let stale = it.owner.patch(&path, json!({"importance": 1.0, "expected_version": 1})).await;
        let same = json!({"content": "it rained.", "expected_version": 2});
        let same = it.owner.patch(&path, same).await;

        assert_eq!((&changed["version"], &changed["edited"], &changed["pinned"]), (&json!(2), &json!(true), &json!(true)));
        assert_eq!((stale.0, &stale.1["error"]["code"]), (409, &json!("edit_conflict")));
        assert_eq!(stale.1["error"]["current"], changed);
        assert_eq!(refusal(&same), (409, "already_exists".to_owned()));
        assert_eq!(it.contents("?q=rebuilt").await, ["The mill was rebuilt."]);
        assert!(!it.contents("?q=burned").await.iter().any(|it| it.contains("mill")), "the old text was found");
        it.app.close().await;
    }

    async fn what_is_about_a_member_can_be_counted_and_forgotten(backend) {
        let it = MemoryFixture::open(backend).await;
        let roster = expect(200, it.owner.get(&format!("/api/spaces/{}/memberships", id(&it.space))).await);
        let me = &roster["data"][0]["id"];
        it.remember("It rained.").await;
        let about_me = json!({"content": "Ann likes rain.", "kind": "preference", "about_membership_id": me});
        expect(201, it.owner.post(&it.path, about_me).await);
        let forget = format!("{}/forget", it.path);

        let counted = json!({"about_membership_id": me, "dry_run": true});
        let counted = expect(200, it.owner.post(&forget, counted).await);
        assert_eq!((counted, it.contents("").await.len()), (json!({"deleted": 1}), 2));
        expect(200, it.owner.post(&forget, json!({"about_membership_id": me})).await);

        assert_eq!(it.contents("").await, ["It rained."]);
        let roster = expect(200, it.owner.get(&format!("/api/spaces/{}/memberships", id(&it.space))).await);
        assert_eq!(roster["data"][0]["settings"], json!({"memory": {"learn": false}}));
        assert_eq!(refusal(&it.owner.post(&forget, json!({})).await), (400, "missing_field".to_owned()));
        let both = json!({"about_membership_id": me, "all": true});
        assert_eq!(refusal(&it.owner.post(&forget, both).await), (422, "invalid_value".to_owned()));
        it.app.close().await;
    }

    async fn a_memory_of_another_space_does_not_exist(backend) {
        let it = MemoryFixture::open(backend).await;
        let made = it.remember("The mill burned down.").await;
        let other = it.owner.create_space("Elsewhere", json!({})).await;
        let path = format!("/api/spaces/{}/memories", id(&other));

        let found = expect(200, it.owner.get(&format!("{path}?q=mill")).await);

        assert_eq!(found["data"], json!([]));
        assert_eq!(it.owner.get(&format!("{path}/{}", id(&made))).await.0, 404);
        assert_eq!(it.owner.delete(&format!("{path}/{}", id(&made))).await.0, 404);
        assert_eq!(it.contents("").await.len(), 1);
        it.app.close().await;
    }

    async fn a_filter_is_applied_before_the_best_matches_are_chosen(backend) {
        let it = MemoryFixture::open(backend).await;
        // More than a search ranks.
        for n in 0..90 {
            it.remember(&format!("Lighthouse {n}.")).await;
        }
        let weak = "Among many other things, somebody once spoke of a lighthouse that nobody had seen.";
        let body = json!({"content": weak, "kind": "relation"});
        let made = expect(201, it.owner.post(&it.path, body).await);
        let said = expect(201, it.owner.post_message(root_of(&it.space), "A lighthouse!", None).await);
        let message = id(&said["message"]);
        let source = format!("INSERT INTO memory_sources (memory_id, message_id) VALUES ({}, {message})", id(&made));
        DatabaseFacts::open(&it.app.database).await.execute(&source).await;

        for filter in ["kind=relation".to_owned(), format!("source_message_id={message}")] {
            assert_eq!(it.contents(&format!("?q=lighthouse&{filter}")).await, [weak], "{filter}");
        }
        it.app.close().await;
    }

    async fn the_number_of_memories_of_other_people_is_not_shown(backend) {
        let it = MemoryFixture::open(backend).await;
        let bob = it.app.register("bob").await;
        let membership = it.owner.add_member(id(&it.space), &bob, "member").await;
        it.remember("It rained.").await;
        let own = json!({"content": "I fear the sea.", "kind": "event", "membership_id": membership["id"]});
        expect(201, bob.post(&it.path, own).await);
        let post = async |path: &str, body: Value| {
            expect(200, it.owner.post(&format!("{}/{path}", it.path), body).await)["deleted"].clone()
        };
        let total = async |person: &HttpClient| {
            let state = expect(200, person.get(&format!("{}/state", it.path)).await);
            state["embedding"]["total"].clone()
        };

        assert_eq!((total(&it.owner).await, total(&bob).await), (json!(1), json!(2)));
        assert_eq!(post("prune", json!({"keep": 0})).await, json!(1));
        assert_eq!(post("forget", json!({"all": true, "dry_run": true})).await, json!(1));
        assert_eq!(post("forget", json!({"all": true})).await, json!(1));

        assert_eq!(total(&bob).await, json!(0));
        it.app.close().await;
    }
}
