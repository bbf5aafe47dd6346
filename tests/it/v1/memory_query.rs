//! Tests of `POST /v1/memory/query`: the newest messages of a conversation, and the memories that a
//! prompt of it would recall.

use base::ids::{ConversationId, SpaceId};
use serde_json::{Value, json};
use troupe::memories::memory::{MemoryKind, MemoryOrigin};
use troupe::memories::memory_store;
use troupe::memories::memory_store::{NewMemory, NewSource};

use super::fixture::V1Fixture;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::v1_client::{V1Client, error_of};

const FACT: &str = "The lighthouse keeper fears the sea.";
const QUESTION: &str = "Whom does the lighthouse keeper fear?";

/// A space without characters, in which nobody replies.
struct Harbor {
    fixture: V1Fixture,
    space: i64,
    conversation: i64,
}

impl Harbor {
    async fn open(backend: TestBackend) -> Harbor {
        let fixture = V1Fixture::open(backend).await;
        let space = fixture.admin.create_space("Harbor", json!({})).await;
        Harbor {
            space: id(&space),
            conversation: root_of(&space),
            fixture,
        }
    }

    async fn say(&self, text: &str) -> Value {
        let person = &self.fixture.admin;
        let posted = person.post_message(self.conversation, text, None).await;
        expect(201, posted)["message"].clone()
    }

    /// Asks as the admin.
    async fn ask(&self, query: Value) -> Value {
        ask(&self.fixture.program, self.conversation, query).await
    }

    /// Stores what was learned from the second message of a conversation.
    async fn learn_in(&self, conversation: i64, content: &str) {
        let app = &self.fixture.app.app;
        let memory = NewMemory {
            owner: None,
            about: None,
            source: Some(NewSource {
                conversation: ConversationId(conversation),
                from_seq: 2,
                to_seq: 2,
                messages: Vec::new(),
            }),
            kind: MemoryKind::Event,
            origin: MemoryOrigin::Extracted,
            content: content.to_owned(),
            importance: 0.5,
            is_pinned: false,
            created_by: None,
        };
        let stored =
            memory_store::insert_one(&app.db, SpaceId(self.space), memory, app.clock.now());
        stored.await.unwrap().expect("the memory is new");
    }
}

async fn ask(program: &V1Client, conversation: i64, mut query: Value) -> Value {
    query["conversation_id"] = json!(conversation);
    expect(200, program.post("/memory/query", query).await)
}

/// Writes a memory of everyone or of this person.
async fn remember(person: &HttpClient, space: i64, content: &str, own: Option<&Value>) {
    let mut body = json!({ "content": content, "kind": "preference", "importance": 0.8 });
    if let Some(membership) = own {
        body["membership_id"] = membership["id"].clone();
    }
    let path = format!("/api/spaces/{space}/memories");
    expect(201, person.post(&path, body).await);
}

/// The contents of the memories of an answer.
fn recalled(answer: &Value) -> Vec<&str> {
    let memories = answer["long"].as_array().expect("`long` is a list").iter();
    memories.map(|it| it["content"].as_str().unwrap()).collect()
}

on_both! {
    async fn the_newest_messages_and_the_memories_that_fit_are_returned(backend) {
        let it = Harbor::open(backend).await;
        for text in ["One.", "Two.", "Three."] {
            it.say(text).await;
        }
        let deleted = it.say("Four.").await;
        let (status, _) = it.fixture.admin.delete(&format!("/api/messages/{}", deleted["id"])).await;
        assert!(status < 300, "{status}");
        remember(&it.fixture.admin, it.space, FACT, None).await;
        remember(&it.fixture.admin, it.space, "It rained.", None).await;

        let found = it.ask(json!({ "query": QUESTION, "turns": 1, "threshold": 0.3 })).await;

        assert_eq!(found["object"], "memory.query");
        assert_eq!(found["short"], json!([
            { "role": "user", "name": "admin", "content": "Two.", "seq": 2 },
            { "role": "user", "name": "admin", "content": "Three.", "seq": 3 },
        ]));
        assert_eq!((recalled(&found), &found["degraded"]), (vec![FACT], &json!(false)));
        let memory = &found["long"][0];
        assert_eq!((&memory["kind"], &memory["importance"]), (&json!("preference"), &json!(0.8)));
        assert!(memory["score"].as_f64().unwrap() >= 0.3 && memory["id"].is_i64(), "{memory}");
        it.fixture.close().await;
    }

    async fn a_branch_recalls_what_was_learned_in_it_and_others_do_not(backend) {
        let it = Harbor::open(backend).await;
        let fork = it.say("One.").await;
        let path = format!("/api/conversations/{}/branch", it.conversation);
        let made = expect(201, it.fixture.admin.post(&path, json!({ "message_id": fork["id"] })).await);
        let branch = id(&made["conversation"]);
        it.learn_in(branch, FACT).await;
        it.learn_in(it.conversation, "The lighthouse keeper fears the wind.").await;
        let query = || json!({ "query": QUESTION, "type": "long", "threshold": 0.3 });

        let in_root = it.ask(query()).await;
        let in_branch = ask(&it.fixture.program, branch, query()).await;

        assert_eq!(recalled(&in_root), ["The lighthouse keeper fears the wind."]);
        // What was said in its parent after the fork is unknown there.
        assert_eq!(recalled(&in_branch), [FACT]);
        assert_eq!(in_branch["short"], json!([]));
        it.fixture.close().await;
    }

    async fn without_a_usable_index_the_messages_are_returned_and_the_answer_is_degraded(backend) {
        let it = Harbor::open(backend).await;
        it.say("One.").await;
        remember(&it.fixture.admin, it.space, FACT, None).await;
        DatabaseFacts::open(&it.fixture.app.database).await.execute("DROP TABLE memory_vectors").await;

        let found = it.ask(json!({ "query": QUESTION })).await;

        assert_eq!((&found["long"], &found["degraded"]), (&json!([]), &json!(true)));
        assert_eq!(found["short"][0]["content"], "One.");
        it.fixture.close().await;
    }
}

on_sqlite! {
    async fn the_memories_of_another_person_and_of_another_space_are_left_out(backend) {
        let it = Harbor::open(backend).await;
        let ben = it.fixture.app.register("ben").await;
        let membership = it.fixture.admin.add_member(it.space, &ben, "member").await;
        remember(&ben, it.space, FACT, Some(&membership)).await;
        let elsewhere = it.fixture.admin.create_space("Elsewhere", json!({})).await;
        remember(&it.fixture.admin, id(&elsewhere), FACT, None).await;
        let query = || json!({ "query": QUESTION, "threshold": 0.3 });

        let of_admin = it.ask(query()).await;
        let of_ben = ask(&V1Client::new(&ben).await, it.conversation, query()).await;

        assert_eq!(recalled(&of_admin), Vec::<&str>::new());
        assert_eq!(recalled(&of_ben), [FACT]);
        it.fixture.close().await;
    }

    async fn a_conversation_that_the_caller_may_not_see_does_not_exist(backend) {
        let it = Harbor::open(backend).await;
        let ben = V1Client::new(&it.fixture.app.register("ben").await).await;
        let threads = format!("/api/spaces/{}/conversations", it.space);
        let thread = json!({ "kind": "thread", "parent_conversation_id": it.conversation });
        let deleted = id(&expect(201, it.fixture.admin.post(&threads, thread).await));
        let (status, _) = it.fixture.admin.delete(&format!("/api/conversations/{deleted}")).await;
        assert!(status < 300, "{status}");
        let of_api = expect(200, it.fixture.program.post("/conversations", json!({})).await);

        for (program, conversation) in [
            (&ben, json!(it.conversation)),
            (&it.fixture.program, json!(deleted)),
            (&it.fixture.program, json!(-1)),
            (&it.fixture.program, of_api["id"].clone()),
        ] {
            let body = json!({ "conversation_id": conversation, "query": QUESTION });
            let refused = error_of(&program.post("/memory/query", body).await);
            assert_eq!(refused, (404, "not_found".into(), json!("conversation_id")), "{conversation}");
        }
        it.fixture.close().await;
    }

    async fn an_invalid_search_is_rejected_with_its_field(backend) {
        let it = Harbor::open(backend).await;
        let refused = async |body: Value| error_of(&it.fixture.program.post("/memory/query", body).await);

        let missing = refused(json!({ "query": QUESTION })).await;
        let long = refused(json!({ "conversation_id": it.conversation, "type": "long" })).await;
        let turns = refused(json!({ "conversation_id": it.conversation, "turns": 21 })).await;

        assert_eq!(missing, (400, "missing_required_parameter".into(), json!("conversation_id")));
        assert_eq!(long, (400, "missing_required_parameter".into(), json!("query")));
        assert_eq!(turns, (400, "invalid_value".into(), json!("turns")));
        it.fixture.close().await;
    }

    async fn a_space_whose_recall_is_off_returns_messages_only(backend) {
        let it = Harbor::open(backend).await;
        it.say("One.").await;
        remember(&it.fixture.admin, it.space, FACT, None).await;
        let path = format!("/api/spaces/{}", it.space);

        for memory in [json!({ "recall": false }), json!({ "enabled": false })] {
            let settings = json!({ "settings": { "memory": memory } });
            expect(200, it.fixture.admin.patch(&path, settings).await);
            let found = it.ask(json!({ "query": QUESTION, "threshold": 0.0 })).await;
            assert_eq!((&found["long"], &found["degraded"]), (&json!([]), &json!(false)));
            assert_eq!(found["short"].as_array().unwrap().len(), 1);
        }
        it.fixture.close().await;
    }

    async fn a_person_whose_recall_is_off_gets_messages_only(backend) {
        let it = Harbor::open(backend).await;
        it.say("One.").await;
        remember(&it.fixture.admin, it.space, FACT, None).await;
        let path = format!("/api/spaces/{}/memberships", it.space);
        let roster = expect(200, it.fixture.admin.get(&path).await);
        let own = roster["data"].as_array().unwrap().iter().find(|it| it["kind"] == "human").unwrap();
        let path = format!("/api/memberships/{}", own["id"]);

        for (recall, n_memories) in [(false, 0), (true, 1)] {
            let settings = json!({ "settings": { "memory": { "recall": recall } } });
            expect(200, it.fixture.admin.patch(&path, settings).await);
            let found = it.ask(json!({ "query": QUESTION, "threshold": 0.0 })).await;
            assert_eq!(found["long"].as_array().unwrap().len(), n_memories);
            assert_eq!(found["short"].as_array().unwrap().len(), 1);
        }
        it.fixture.close().await;
    }
}
