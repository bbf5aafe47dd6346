//! Tests of the memories of a space's speakers in responses: in their prompts, and by the tool
//! `troupe:memory`.

use base::ids::{ConversationId, SpaceId};
use serde_json::{Value, json};
use troupe::memories::memory::{MemoryKind, MemoryOrigin};
use troupe::memories::memory_store;
use troupe::memories::memory_store::{NewMemory, NewSource};

use super::fixture::{V1Fixture, text, types};
use super::persona_models::{ada, character, space};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{HttpClient, expect, id, root_of};

const QUESTION: &str = "Ada, whom does the lighthouse keeper fear?";

/// A space with Ada and Bob, in which everyone, each of them, the admin and a
/// branch know another fear.
struct Harbor {
    fixture: V1Fixture,
    space: Value,
    ada: Value,
}

fn fear(of: &str) -> String {
    format!("The lighthouse keeper fears the {of}.")
}

impl Harbor {
    async fn open(backend: TestBackend) -> Harbor {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("Nobody.");
        let settings = json!({ "memory": { "threshold": 0.2, "top_k": 20 } });
        let rules = json!({ "reply_order": "natural", "settings": settings });
        let test_space = fixture.admin.create_space("Harbor", rules).await;
        let branch = create_branch(&fixture.admin, &test_space).await;
        let ada = ada(&fixture.admin).await;
        let bob = fixture.admin.create_character("Bob", None).await;
        let of_ada = fixture.admin.add_character(&test_space, &ada).await;
        let of_bob = fixture.admin.add_character(&test_space, &bob).await;
        let roster = format!("/api/spaces/{}/memberships", test_space["id"]);
        let roster = expect(200, fixture.admin.get(&roster).await);
        let admin = roster["data"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["kind"] == "human");
        let it = Harbor {
            fixture,
            space: test_space,
            ada,
        };
        for (of, owner) in [
            ("sea", None),
            ("wind", Some(&of_ada)),
            ("rain", Some(&of_bob)),
            ("dark", admin),
        ] {
            let mut body = json!({ "content": fear(of), "kind": "preference" });
            if let Some(owner) = owner {
                body["membership_id"] = owner["id"].clone();
            }
            let path = format!("/api/spaces/{}/memories", it.space["id"]);
            expect(201, it.fixture.admin.post(&path, body).await);
        }
        it.learn_in(branch).await;
        it
    }

    async fn ask(&self, more: Value) -> Value {
        let mut body = json!({ "model": space(&self.space), "input": QUESTION });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.fixture.program.respond(body).await
    }

    /// The fears in a text.
    fn fears(text: &str) -> Vec<&'static str> {
        let all = ["sea", "wind", "rain", "dark", "fog"];
        all.into_iter()
            .filter(|it| text.contains(&fear(it)))
            .collect()
    }

    /// The fears in the newest prompt.
    fn prompted(&self) -> Vec<&'static str> {
        let upstream = &self.fixture.upstream;
        Self::fears(&upstream.body(upstream.n_requests() - 1).to_string())
    }

    async fn learn_in(&self, branch: i64) {
        let app = &self.fixture.app.app;
        let memory = NewMemory {
            owner: None,
            about: None,
            source: Some(NewSource {
                conversation: ConversationId(branch),
                from_seq: 2,
                to_seq: 2,
                messages: Vec::new(),
            }),
            kind: MemoryKind::Event,
            origin: MemoryOrigin::Extracted,
            content: fear("fog"),
            importance: 0.5,
            is_pinned: false,
            created_by: None,
        };
        let space = SpaceId(id(&self.space));
        let stored = memory_store::insert_one(&app.db, space, memory, app.clock.now());
        stored.await.unwrap().expect("the memory is new");
    }
}

/// Creates a branch in a space without characters, where nobody replies.
async fn create_branch(person: &HttpClient, test_space: &Value) -> i64 {
    let root = root_of(test_space);
    let posted = expect(201, person.post_message(root, "Hello.", None).await);
    let fork = json!({ "message_id": posted["message"]["id"] });
    let path = format!("/api/conversations/{root}/branch");
    let made = expect(201, person.post(&path, fork).await);
    id(&made["conversation"])
}

fn memory_tool() -> Value {
    json!([{ "type": "troupe:memory" }])
}

on_sqlite! {
    async fn nothing_is_recalled_for_a_speaker_whose_recall_is_off(backend) {
        let it = Harbor::open(backend).await;
        let roster = format!("/api/spaces/{}/memberships", it.space["id"]);
        let roster = expect(200, it.fixture.admin.get(&roster).await);
        let mut members = roster["data"].as_array().unwrap().iter();
        let of_ada = members.find(|it| it["display_name"] == "Ada").unwrap();
        let path = format!("/api/memberships/{}", of_ada["id"]);
        let off = json!({ "settings": { "memory": { "recall": false } } });
        expect(200, it.fixture.admin.patch(&path, off).await);

        it.ask(json!({})).await;

        assert_eq!(it.prompted(), Vec::<&str>::new());
        it.fixture.close().await;
    }

    async fn a_prompt_recalls_what_belongs_to_everyone_or_to_its_speaker(backend) {
        let it = Harbor::open(backend).await;
        let versions = "spaces WHERE memory_version = 5";

        it.ask(json!({})).await;

        assert_eq!(it.prompted(), ["sea", "wind"]);
        assert_eq!(it.fixture.n_rows("memories WHERE recall_count > 0").await, 0);
        assert_eq!(it.fixture.n_rows(versions).await, 1, "a memory of the space was changed");
        it.fixture.close().await;
    }

    async fn a_space_whose_recall_is_off_recalls_nothing_in_responses(backend) {
        let it = Harbor::open(backend).await;
        let off = json!({ "settings": { "memory": { "recall": false } } });
        expect(200, it.fixture.admin.patch(&format!("/api/spaces/{}", it.space["id"]), off).await);
        let search = json!({ "action": "search", "query": QUESTION }).to_string();
        it.fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_memory", &search)]));

        let response = it.ask(json!({ "tools": memory_tool() })).await;

        assert_eq!(it.prompted(), Vec::<&str>::new());
        assert_eq!(response["output"][0]["error"], "The memory of this space is switched off.");
        it.fixture.close().await;
    }

    async fn a_failed_recall_costs_the_memories_and_not_the_response(backend) {
        let it = Harbor::open(backend).await;
        DatabaseFacts::open(&it.fixture.app.database).await.execute("DROP TABLE memory_vectors").await;

        let response = it.ask(json!({})).await;

        assert_eq!((&response["status"], text(&response)), (&json!("completed"), "Nobody.".to_owned()));
        assert_eq!(it.prompted(), Vec::<&str>::new());
        it.fixture.close().await;
    }

    async fn the_memory_of_the_speaker_can_be_searched_and_not_changed(backend) {
        let it = Harbor::open(backend).await;
        let search = json!({ "action": "search", "query": QUESTION, "top_k": 20 }).to_string();
        let remember = json!({ "action": "remember", "content": "It rained.", "kind": "event" }).to_string();
        let forget = json!({ "action": "forget", "memory_id": 2 }).to_string();
        it.fixture.upstream.next(ResponseScript::calls(&[
            ("a", "troupe_memory", &search), ("b", "troupe_memory", &remember), ("c", "troupe_memory", &forget),
        ]));

        let response = it.ask(json!({ "tools": memory_tool() })).await;

        assert_eq!(types(&response), ["troupe:memory", "troupe:memory", "troupe:memory", "message"]);
        let output = response["output"][0]["output"].as_str().expect("an output");
        assert_eq!(Harbor::fears(output), ["sea", "wind"]);
        for refused in [&response["output"][1], &response["output"][2]] {
            assert_eq!(refused["error"], "Memories can only be searched here; this changes nothing.");
        }
        let declared = &it.fixture.upstream.body(0)["tools"][0]["function"]["parameters"]["properties"];
        assert_eq!(declared["action"]["enum"], json!(["search"]));
        assert_eq!(it.fixture.n_rows("memories WHERE deleted_at IS NULL").await, 5);
        it.fixture.close().await;
    }

    async fn only_a_space_model_has_a_memory(backend) {
        let it = Harbor::open(backend).await;
        for model in ["scripted".to_owned(), character(&it.ada)] {
            let body = json!({ "model": model, "input": QUESTION, "tools": memory_tool() });
            let refused = it.fixture.program.respond_with_error(body).await;
            assert_eq!(refused, (400, "unsupported_tool".into(), json!("tools[0].type")), "{model}");
        }

        it.ask(json!({})).await;

        assert!(it.fixture.upstream.body(0).get("tools").is_none(), "a tool was offered that was not requested");
        it.fixture.close().await;
    }
}
