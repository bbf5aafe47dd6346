//! Tests of the tool `troupe:memory`: what a character finds, remembers and forgets by calls.

use base::ids::{ConversationId, MembershipId, MemoryId};
use serde_json::{Value, json};
use troupe::conversations::message::Visibility;
use troupe::memories::memory::{MemoryKind, MemoryOrigin};
use troupe::memories::memory_store::{NewMemory, NewSource};
use troupe::memories::{memory, memory_store};
use troupe::runs::store::run::RunStatus;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

const FACT: &str = "Eve's dog is called Pixel, and he loves the old lighthouse.";
const QUESTION: &str = "Do you remember how my dog is called?";

async fn open_with(backend: TestBackend, settings: Value) -> EngineTest {
    let builder = EngineTest::builder(backend).cast(&["Ada", "Bob"]);
    builder.rules(|it| it.settings = settings).open().await
}

async fn open(backend: TestBackend) -> EngineTest {
    open_with(backend, json!({"tools": {"memory": "allowed"}})).await
}

/// A model response with these calls of the tool.
fn calls(all: &[Value]) -> ResponseScript {
    let named = all.iter().enumerate();
    let named: Vec<_> = named
        .map(|(n, it)| (format!("c{n}"), it.to_string()))
        .collect();
    let all: Vec<_> = named
        .iter()
        .map(|(id, arguments)| (id.as_str(), "troupe_memory", arguments.as_str()))
        .collect();
    ResponseScript::calls(&all)
}

fn remember(content: &str) -> Value {
    json!({"action": "remember", "content": content, "kind": "relation", "about": "eve", "importance": 0.8})
}

fn search() -> Value {
    json!({"action": "search", "query": QUESTION})
}

fn forget(id: MemoryId) -> Value {
    json!({"action": "forget", "memory_id": id})
}

impl EngineTest {
    /// Posts a message, to which the next character replies with these calls and a text. Returns the
    /// results that the model received.
    async fn call_in(&self, conversation: ConversationId, all: &[Value]) -> Vec<String> {
        self.upstream.next(calls(all));
        self.upstream.next(ResponseScript::say("Noted."));
        let n_before = self.upstream.n_requests();
        let user = self.user_in_conversation(&self.engine, conversation);
        user.post("Go on.").await;
        self.upstream.wait_for_requests(n_before + 2).await;
        self.wait_until_idle().await;
        let body = self.upstream.body(n_before + 1);
        let messages = body["messages"].as_array().unwrap().iter();
        let results = messages.filter(|it| it["role"] == "tool");
        results
            .map(|it| it["content"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn call(&self, all: &[Value]) -> Vec<String> {
        self.call_in(self.conversation, all).await
    }

    async fn stored_memories(&self) -> Vec<memory::Model> {
        let found = memory::select_for_space(self.space).all(self.db.reader());
        found.await.expect("the database answers")
    }

    /// Stores a memory of this owner, learned in this conversation.
    async fn store_memory(
        &self,
        owner: Option<MembershipId>,
        conversation: Option<ConversationId>,
        content: &str,
        is_pinned: bool,
    ) -> MemoryId {
        let memory = NewMemory {
            owner,
            about: None,
            source: conversation.map(|conversation| NewSource {
                conversation,
                from_seq: 1,
                to_seq: 1,
                messages: Vec::new(),
            }),
            kind: MemoryKind::Event,
            origin: MemoryOrigin::Extracted,
            content: content.to_owned(),
            importance: 0.5,
            is_pinned,
            created_by: None,
        };
        let stored = memory_store::insert_one(&self.db, self.space, memory, self.clock.now());
        stored.await.unwrap().expect("the memory is new").id
    }
}

/// The contents of a search result.
fn found(result: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(result).expect(result);
    let memories = result["memories"].as_array().unwrap().iter();
    memories
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect()
}

on_both! {
    async fn a_remembered_fact_is_stored_with_the_reply_and_found_by_its_owner_only(backend) {
        let app = open(backend).await;

        let results = app.call(&[remember(FACT)]).await;

        assert!(results[0].contains("accepted"), "{results:?}");
        let [stored] = app.stored_memories().await.try_into().unwrap();
        let (ada, reply) = (app.membership("Ada").await.id, app.messages().await.pop().unwrap());
        assert_eq!((stored.space_membership_id, stored.origin), (Some(ada), MemoryOrigin::Tool));
        assert_eq!((stored.about_membership_id, stored.kind), (Some(app.user.membership), MemoryKind::Relation));
        assert_eq!((stored.conversation_id, stored.source_to_seq), (Some(app.conversation), Some(reply.seq)));

        let elsewhere = app.another_conversation().await;
        let by_ada = app.call_in(elsewhere, &[search()]).await;
        let by_bob = app.call_in(elsewhere, &[search()]).await;
        assert_eq!(found(&by_ada[0]), [FACT]);
        let hit: Value = serde_json::from_str(&by_ada[0]).unwrap();
        let hit = &hit["memories"][0];
        assert_eq!((&hit["id"], &hit["own"]), (&json!(stored.id), &json!(true)));
        assert!(hit["score"].as_f64().unwrap() > 0.2, "{hit}");
        assert_eq!(found(&by_bob[0]), Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn a_canceled_or_failed_run_changes_nothing(backend) {
        let app = open(backend).await;
        let own = app.membership("Ada").await.id;
        let kept = app.store_memory(Some(own), None, "It rained.", false).await;
        let gate = HoldPoint::closed();
        app.upstream.next(calls(&[remember(FACT), forget(kept)]));
        app.upstream.next(ResponseScript::say("One two three.").held_at(&gate));
        app.user.post("Go on.").await;
        gate.step();
        app.events.wait_for_text("One").await;

        app.engine.stop(app.conversation, true).await.unwrap();
        gate.open();
        app.settle().await;
        assert_eq!(app.answers().await, ["One"]);
        app.upstream.next(calls(&[remember(FACT)]));
        app.upstream.next(ResponseScript::status(400));
        app.user.post("Go on.").await;
        app.settle().await;

        assert_eq!(app.runs().await.pop().unwrap().status, RunStatus::Failed);
        let stored = app.stored_memories().await;
        assert_eq!(stored.iter().map(|it| it.id).collect::<Vec<_>>(), [kept]);
        app.close_without_events().await;
    }

    async fn only_an_own_memory_that_is_not_pinned_can_be_forgotten(backend) {
        let app = open(backend).await;
        let (ada, bob) = (app.membership("Ada").await.id, app.membership("Bob").await.id);
        let own = app.store_memory(Some(ada), None, "It rained.", false).await;
        let kept = [
            app.store_memory(Some(ada), None, "It snowed.", true).await,
            app.store_memory(Some(bob), None, "It thundered.", false).await,
            app.store_memory(None, None, "It was foggy.", false).await,
        ];

        let results = app.call(&[forget(own), forget(kept[0]), forget(kept[1]), forget(kept[2])]).await;

        let refused: Vec<bool> = results.iter().map(|it| it.starts_with("Error: ")).collect();
        assert_eq!(refused, [false, true, true, true], "{results:?}");
        assert_eq!(results[2], results[3]);
        let mut stored: Vec<_> = app.stored_memories().await.iter().map(|it| it.id).collect();
        stored.sort();
        assert_eq!(stored, kept);
        app.close_without_events().await;
    }

    async fn what_a_reply_remembered_is_deleted_and_restored_with_it(backend) {
        let app = open(backend).await;
        app.call(&[remember(FACT)]).await;
        let reply = app.messages().await.pop().unwrap();

        app.engine.set_visibility(app.scope(), reply.id, Visibility::Hidden).await.unwrap();
        assert_eq!(app.stored_memories().await, []);

        app.engine.set_visibility(app.scope(), reply.id, Visibility::Normal).await.unwrap();
        assert_eq!(app.stored_memories().await.len(), 1);
        app.close_without_events().await;
    }
}

on_sqlite! {
    async fn the_ninth_change_of_a_run_is_refused(backend) {
        let app = open(backend).await;
        let facts: Vec<Value> = (1..=9).map(|n| remember(&format!("Eve has {n} boats."))).collect();

        let results = app.call(&facts).await;

        let refused = results.iter().filter(|it| it.starts_with("Error: At most 8")).count();
        assert_eq!((refused, results.len()), (1, 9), "{results:?}");
        assert_eq!(app.stored_memories().await.len(), 8);
        app.close_without_events().await;
    }

    async fn what_was_remembered_is_in_the_next_prompt_although_the_history_has_the_reply(backend) {
        let app = open(backend).await;
        app.call(&[remember(FACT)]).await;

        app.user.post("Go on.").await; // Bob replies, who does not know it.
        app.settle().await;
        assert!(!app.upstream.body(app.upstream.n_requests() - 1).to_string().contains("Pixel"));
        app.user.post(QUESTION).await;
        app.settle().await;

        assert!(app.upstream.body(app.upstream.n_requests() - 1).to_string().contains("Pixel"));
        app.close_without_events().await;
    }

    async fn the_record_of_a_search_names_the_memories_without_their_texts(backend) {
        let app = open(backend).await;
        let id = app.store_memory(None, None, FACT, false).await;

        let results = app.call(&[search()]).await;

        assert_eq!(found(&results[0]), [FACT]);
        let said = app.messages().await.pop().unwrap().metadata;
        assert!(!said.to_string().contains("Pixel"), "{said}");
        let output: Value = serde_json::from_str(said["tool_calls"][0]["output"].as_str().unwrap()).unwrap();
        assert_eq!(output["memories"][0]["id"], json!(id));
        app.close_without_events().await;
    }

    async fn the_record_of_a_call_does_not_contain_the_text_of_the_new_memory(backend) {
        let app = open(backend).await;

        app.call(&[remember(FACT)]).await;

        let said = app.messages().await.pop().unwrap().metadata;
        assert!(!said.to_string().contains("Pixel"), "{said}");
        let arguments: Value = serde_json::from_str(said["tool_calls"][0]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!((&arguments["action"], &arguments["about"]), (&json!("remember"), &json!("eve")));
        app.close_without_events().await;
    }

    async fn a_search_in_a_root_conversation_finds_nothing_of_a_branch(backend) {
        let app = open(backend).await;
        app.user.post("Hello.").await;
        app.settle().await;
        let fork = app.messages().await.pop().unwrap();
        let branch = app.engine.branch(app.conversation, fork.id, String::new()).await.unwrap().id;
        app.store_memory(None, Some(branch), FACT, false).await;

        let in_root = app.call(&[search()]).await;
        let in_branch = app.call_in(branch, &[search()]).await;

        assert_eq!(found(&in_root[0]), Vec::<String>::new());
        assert_eq!(found(&in_branch[0]), [FACT]);
        app.close_without_events().await;
    }

    async fn a_search_by_kind_and_an_invalid_call_are_answered(backend) {
        let app = open(backend).await;
        app.store_memory(None, None, FACT, false).await;
        let of_kind = |kind: &str| json!({"action": "search", "query": QUESTION, "kind": kind});
        let secret = json!({"action": "remember", "content": "Eve's password is rosebud.", "kind": "event"});
        let stranger = json!({"action": "remember", "content": "Zoe has a cat.", "kind": "event", "about": "Zoe"});

        let results = app.call(&[of_kind("event"), of_kind("relation"), secret, stranger]).await;

        assert_eq!((found(&results[0]).len(), found(&results[1]).len()), (1, 0));
        assert_eq!(results[2], "Error: Passwords and keys are not remembered.");
        assert!(results[3].starts_with("Error: `about`"), "{results:?}");
        assert_eq!(app.stored_memories().await.len(), 1);
        app.close_without_events().await;
    }

    async fn a_space_whose_memory_is_off_does_not_offer_the_tool(backend) {
        let off = json!({"tools": {"memory": "allowed"}, "memory": {"enabled": false}});
        let app = open_with(backend, off).await;

        app.user.post("Hello.").await;
        app.settle().await;
        assert!(app.upstream.body(0).get("tools").is_none());

        let half = json!({"tools": {"memory": "allowed"}, "memory": {"learn": false}});
        app.change_rules(|it| it.settings = half).await;
        let results = app.call(&[remember(FACT), search()]).await;
        assert_eq!(results[0], "Error: Nothing new is remembered in this space.");
        assert_eq!(found(&results[1]), Vec::<String>::new());
        let half = json!({"tools": {"memory": "allowed"}, "memory": {"recall": false}});
        app.change_rules(|it| it.settings = half).await;
        let results = app.call(&[search()]).await;
        assert_eq!(results[0], "Error: The memory of this space is switched off.");
        app.close_without_events().await;
    }

    async fn a_character_whose_memory_is_off_neither_remembers_nor_searches(backend) {
        let app = open(backend).await;
        app.store_memory(None, None, FACT, false).await;
        let settings = json!({"memory": {"learn": false, "recall": false}});
        app.change_membership("Ada", |it| it.settings = settings).await;

        let results = app.call(&[remember("It rained."), search()]).await;

        assert_eq!(results, ["Error: You cannot add memories: learning is switched off for you.", "Error: You cannot search memories: recall is switched off for you."]);
        assert_eq!(app.stored_memories().await.len(), 1);
        app.close_without_events().await;
    }

    async fn a_text_that_is_added_to_a_message_whose_memory_is_off_adds_no_memory(backend) {
        let app = open(backend).await;
        app.user.post("Go on.").await;
        app.settle().await;
        let reply = app.messages().await.pop().unwrap().id;
        app.engine.set_remembered(app.scope(), reply, false).await.unwrap();

        app.upstream.next(calls(&[remember(FACT)]));
        app.upstream.next(ResponseScript::say("Noted."));
        app.engine.regenerate(app.conversation, None, "Eve".to_owned()).await.unwrap();
        app.settle().await;

        assert_eq!(app.messages().await.pop().unwrap().content, "Noted.");
        assert_eq!(app.stored_memories().await.len(), 0);
        app.close_without_events().await;
    }
}
