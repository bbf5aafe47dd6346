//! Changes of memories and summaries reach the people who may see them, and no one else.

use serde_json::{Value, json};

use crate::live::fixture::LiveFixture;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads::bring;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::ws_client::WsClient;

/// A sentence about a person, which becomes a memory as it is.
const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";

/// Ann's and Bob's sockets, subscribed to the space.
struct MemoryEvents {
    at: LiveFixture,
    anns: WsClient,
    bobs: WsClient,
    path: String,
}

impl MemoryEvents {
    async fn open(backend: TestBackend) -> Self {
        let at = LiveFixture::open_on(backend, &[], |_| {}).await;
        let path = format!("/api/spaces/{}/memories", at.space);
        let (anns, bobs) = (WsClient::open(&at.ann).await, WsClient::open(&at.bob).await);
        for client in [&anns, &bobs] {
            let subscribe = json!({"op": "subscribe_space", "space_id": at.space});
            assert_eq!(client.call(subscribe).await["ok"], true);
        }
        Self {
            at,
            anns,
            bobs,
            path,
        }
    }

    async fn remember(&self, person: &HttpClient, content: &str, owner: Option<i64>) -> Value {
        let mut body = json!({"content": content, "kind": "event"});
        if let Some(id) = owner {
            body["membership_id"] = json!(id);
        }
        expect(201, person.post(&self.path, body).await)
    }

    /// Learns from everything that was said.
    async fn learn(&self) {
        let app = &self.at.house.app;
        app.clock.advance_ms(30_000);
        app.learning.run_due().await.expect("the database answers");
    }

    async fn execute(&self, sql: &str) {
        let mut facts = DatabaseFacts::open(&self.at.house.database).await;
        facts.execute(sql).await;
    }

    /// Announces every memory of the space again.
    fn announce_all(&self) {
        let events = &self.at.house.app.engine.context().memory_events;
        events.memories_changed(self.at.space, 0);
    }
}

/// Waits for the event of a memory with this content.
async fn sees(client: &WsClient, content: &str) -> Value {
    let fits = |it: &Value| it["type"] == "memory_updated" && it["memory"]["content"] == content;
    client.wait_for(content, fits).await
}

/// Waits for the next event of this type.
async fn next(client: &WsClient, from: usize, event: &str) -> Value {
    client
        .wait_after(from, event, |it| it["type"] == event)
        .await
        .1
}

/// Returns whether a frame so far contains the text.
fn has_seen(client: &WsClient, text: &str) -> bool {
    client.log().iter().any(|it| it.to_string().contains(text))
}

on_both! {
    async fn a_memory_of_a_person_reaches_only_this_person(backend) {
        let it = MemoryEvents::open(backend).await;
        let own = it.remember(&it.at.bob, "Bob hides a map.", Some(it.at.bobs_seat)).await;
        let own_path = format!("{}/{}", it.path, id(&own));
        let event = sees(&it.bobs, "Bob hides a map.").await;
        assert_eq!(event, json!({"type": "memory_updated", "space_id": it.at.space, "memory": own}));

        let change = json!({"content": "Bob burned the map.", "pinned": true, "expected_version": 1});
        expect(200, it.at.bob.patch(&own_path, change).await);
        sees(&it.bobs, "Bob burned the map.").await;
        expect(204, it.at.bob.delete(&own_path).await);
        let deleted = next(&it.bobs, 0, "memory_deleted").await;
        it.remember(&it.at.bob, "The mill burned down.", None).await;

        assert_eq!(deleted, json!({"type": "memory_deleted", "space_id": it.at.space, "memory_id": own["id"]}));
        sees(&it.anns, "The mill burned down.").await;
        sees(&it.bobs, "The mill burned down.").await;
        assert!(!has_seen(&it.anns, "map") && !has_seen(&it.anns, "memory_deleted"));
        it.at.close().await;
    }

    async fn a_memory_with_an_audience_reaches_only_the_audience(backend) {
        let it = MemoryEvents::open(backend).await;
        let made = it.remember(&it.at.ann, "The key is below the stone.", None).await;
        for client in [&it.anns, &it.bobs] {
            sees(client, "The key is below the stone.").await;
        }
        let (from_ann, from_bob) = (it.anns.here(), it.bobs.here());
        it.execute(&format!("UPDATE memories SET audience_hash = 'b' WHERE id = {}", made["id"])).await;
        let row = format!("({}, {})", made["id"], it.at.bobs_seat);
        it.execute(&format!("INSERT INTO memory_audience (memory_id, space_membership_id) VALUES {row}")).await;

        it.announce_all();
        next(&it.bobs, from_bob, "memory_updated").await;
        it.remember(&it.at.ann, "It rained.", None).await;

        sees(&it.anns, "It rained.").await;
        let after = it.anns.log().split_off(from_ann);
        assert!(!after.iter().any(|it| it.to_string().contains("stone")), "{after:#?}");
        it.at.close().await;
    }

    async fn a_removed_member_receives_no_event(backend) {
        let it = MemoryEvents::open(backend).await;
        it.remember(&it.at.bob, "Bob hides a map.", Some(it.at.bobs_seat)).await;
        sees(&it.bobs, "Bob hides a map.").await;
        expect(204, it.at.ann.delete(&format!("/api/memberships/{}", it.at.bobs_seat)).await);
        next(&it.bobs, 0, "unsubscribed").await;
        let from = it.bobs.here();

        it.announce_all();
        it.remember(&it.at.ann, "It rained.", None).await;
        sees(&it.anns, "It rained.").await;
        it.bobs.call(json!({"op": "ping"})).await;

        let after = it.bobs.log().split_off(from);
        let is_of_memory = |it: &Value| it["type"].as_str().is_some_and(|it| it.starts_with("memor"));
        assert!(!after.iter().any(is_of_memory), "{after:#?}");
        it.at.close().await;
    }

    async fn what_is_learned_deleted_and_restored_with_its_message_is_announced(backend) {
        let it = MemoryEvents::open(backend).await;
        it.at.post(&it.at.bob, FACT).await;

        it.learn().await;

        let learned = it.anns.wait_for("the memory", |it| {
            let content = it["memory"]["content"].as_str();
            it["type"] == "memory_updated" && content.is_some_and(|it| it.contains("Pixel"))
        });
        let learned = learned.await["memory"].clone();
        let state = next(&it.anns, 0, "memory_state").await;
        assert_eq!(state, json!({
            "type": "memory_state", "space_id": it.at.space, "degraded": false, "breaker_until": null,
            "pending": 0, "failed": 0, "reload": false,
        }));
        let message = it.at.ann.messages(it.at.conversation.0).await[0].clone();
        let path = format!("/api/messages/{}", message["id"]);
        let from = it.anns.here();
        expect(200, it.at.bob.patch(&path, json!({"visibility": "excluded"})).await);
        let deleted = next(&it.anns, from, "memory_deleted").await;
        assert_eq!(deleted["memory_id"], learned["id"]);
        let from = it.anns.here();
        expect(200, it.at.bob.patch(&path, json!({"visibility": "normal"})).await);
        assert_eq!(next(&it.anns, from, "memory_updated").await["memory"]["id"], learned["id"]);
        it.at.close().await;
    }

    async fn a_memory_that_another_conversation_names_now_is_announced(backend) {
        let it = MemoryEvents::open(backend).await;
        it.at.post(&it.at.bob, "Good evening.").await;
        let root = it.at.conversation.0;
        let fork = it.at.ann.messages(root).await[0]["id"].clone();
        let path = format!("/api/conversations/{root}/branch");
        let branch = id(&expect(201, it.at.ann.post(&path, json!({"message_id": fork})).await)["conversation"]);
        assert_eq!(it.at.bob.post_message(branch, FACT, None).await.0, 201);
        it.learn().await;
        let learned = next(&it.anns, 0, "memory_updated").await["memory"].clone();
        assert_eq!(learned["conversation_id"], branch);
        let from = it.anns.here();

        it.at.post(&it.at.bob, FACT).await;
        it.learn().await;

        let moved = next(&it.anns, from, "memory_updated").await["memory"].clone();
        assert_eq!((&moved["id"], &moved["conversation_id"]), (&learned["id"], &json!(root)));
        it.at.close().await;
    }

    async fn a_change_of_many_memories_is_one_event(backend) {
        let it = MemoryEvents::open(backend).await;
        let lines: String = (0..30).map(|n| format!("{{\"content\": \"Someone counts to {n}.\"}}\n")).collect();
        let from = (it.anns.here(), it.bobs.here());

        let path = format!("{}/import", it.path);
        expect(200, bring(&it.at.ann, &path, "memories.jsonl", lines.as_bytes()).await);

        for (client, from) in [(&it.anns, from.0), (&it.bobs, from.1)] {
            let state = client.wait_after(from, "the state", |it| it["reload"] == true).await.1;
            assert_eq!(state["type"], "memory_state");
        }
        let from = it.bobs.here();
        let prune = json!({"keep": 5, "dry_run": false});
        expect(200, it.at.ann.post(&format!("{}/prune", it.path), prune).await);
        assert_eq!(next(&it.bobs, from, "memories_forgotten").await["count"], 25);
        it.remember(&it.at.ann, "Ann hides a map.", Some(it.at.anns_seat)).await;
        let from = it.bobs.here();
        expect(200, it.at.ann.post(&format!("{}/forget", it.path), json!({"all": true})).await);
        let forgotten = next(&it.bobs, from, "memories_forgotten").await;
        assert_eq!(forgotten, json!({"type": "memories_forgotten", "space_id": it.at.space, "count": 5}));
        assert!(!has_seen(&it.bobs, "memory_updated"));
        it.at.close().await;
    }

    async fn many_memories_of_a_person_are_announced_only_to_this_person(backend) {
        let it = MemoryEvents::open(backend).await;
        for n in 0..21 {
            it.remember(&it.at.bob, &format!("Bob counts to {n}."), Some(it.at.bobs_seat)).await;
        }
        sees(&it.bobs, "Bob counts to 20.").await;
        let from = it.bobs.here();

        it.announce_all();
        it.bobs.wait_after(from, "the state", |it| it["reload"] == true).await;
        let from = it.bobs.here();
        expect(200, it.at.ann.post(&format!("{}/prune", it.path), json!({"keep": 0, "dry_run": false})).await);
        assert_eq!(next(&it.bobs, from, "memories_forgotten").await["count"], 21);
        it.remember(&it.at.ann, "It rained.", None).await;

        sees(&it.anns, "It rained.").await;
        let only_one = it.anns.log().into_iter().filter(|it| it["type"].as_str().is_some_and(|it| it.starts_with("memor")));
        assert_eq!(only_one.count(), 1);
        it.at.close().await;
    }
}

on_sqlite! {
    async fn a_changed_summary_is_announced_to_subscribers_of_its_conversation(backend) {
        let it = MemoryEvents::open(backend).await;
        for n in 0..3 {
            it.at.post(&it.at.ann, &format!("Line {n} is about the tide.")).await;
        }
        let bobs = WsClient::subscribed(&it.at.bob, it.at.conversation.0).await;
        it.execute(&format!(
            "INSERT INTO conversation_summaries (conversation_id, level, version, status, from_seq, to_seq, content, \
             token_count, created_at) VALUES ({}, 1, 1, 'current', 1, 3, 'Ann waits.', 3, 0)",
            it.at.conversation
        )).await;
        it.execute(&format!("UPDATE conversations SET summary_goal_seq = 3 WHERE id = {}", it.at.conversation)).await;
        let list = format!("/api/conversations/{}/summaries", it.at.conversation);
        let summary = expect(200, it.at.ann.get(&list).await)["data"][0].clone();

        let edit = json!({"content": "Ann sails.", "expected_version": 1});
        let edited = expect(200, it.at.ann.patch(&format!("/api/summaries/{}", summary["id"]), edit).await);
        let event = next(&bobs, 0, "summary_updated").await;
        assert_eq!(event, json!({"type": "summary_updated", "conversation_id": it.at.conversation, "summary": edited}));
        let from = bobs.here();
        let message = it.at.ann.messages(it.at.conversation.0).await[2]["id"].clone();
        let content = json!({"content": "Line 2 is about the moon.", "expected_version": 1});
        expect(200, it.at.ann.patch(&format!("/api/messages/{message}"), content).await);

        let stale = next(&bobs, from, "summary_updated").await;
        assert_eq!((&stale["summary"]["id"], &stale["summary"]["status"]), (&edited["id"], &json!("stale")));
        it.at.close().await;
    }
}
