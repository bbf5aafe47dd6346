//! Tests of the request to learn from messages now.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;

const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";

struct LearnFixture {
    app: TestApp,
    owner: HttpClient,
    space: Value,
    conversation: i64,
    facts: DatabaseFacts,
}

impl LearnFixture {
    /// Opens a conversation with one message.
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start(backend).await;
        let owner = app.admin().await;
        let body = json!({"reply_order": "manual"});
        let space = owner.create_space("Harbor", body).await;
        let it = Self {
            conversation: root_of(&space),
            facts: DatabaseFacts::open(&app.database).await,
            owner,
            space,
            app,
        };
        it.post(FACT).await;
        it
    }

    async fn post(&self, content: &str) {
        let posted = self.owner.post_message(self.conversation, content, None);
        expect(201, posted.await);
    }

    async fn learn(&self, body: Value) -> (u16, Value) {
        let path = format!("/api/spaces/{}/memories/learn", id(&self.space));
        self.owner.post(&path, body).await
    }

    /// Requests to learn from the whole conversation, and waits until no task is left.
    async fn learn_all(&mut self) {
        expect(
            202,
            self.learn(json!({"conversation_id": self.conversation}))
                .await,
        );
        let learning = &self.app.app.learning;
        let facts = &mut self.facts;
        poll::until("the queue is empty", async || {
            learning.run_due().await.expect("the database answers");
            let n = facts
                .number("SELECT CAST(count(*) AS TEXT) FROM memory_tasks")
                .await;
            (n == 0).then_some(())
        })
        .await;
    }

    async fn memories(&self) -> Vec<String> {
        let path = format!("/api/spaces/{}/memories", id(&self.space));
        let list = expect(200, self.owner.get(&path).await);
        let all = list["data"].as_array().expect("a list").iter();
        all.map(|it| it["content"].as_str().expect("a text").to_owned())
            .collect()
    }

    /// Makes the queued task of the conversation fail for good.
    async fn fail_task(&mut self) {
        let change = "UPDATE memory_tasks SET status = 'failed', attempt = 5, error = 'It broke.'";
        self.facts.execute(change).await;
    }

    async fn state(&self) -> Value {
        let path = format!("/api/spaces/{}/memories/state", id(&self.space));
        expect(200, self.owner.get(&path).await)
    }

    async fn change_memory(&self, memory: Value) {
        let path = format!("/api/spaces/{}", id(&self.space));
        let body = json!({"settings": {"memory": memory}});
        expect(200, self.owner.patch(&path, body).await);
    }
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

on_both! {
    async fn messages_are_learned_from_at_once_and_a_second_request_stores_nothing_twice(backend) {
        let mut it = LearnFixture::open(backend).await;

        it.learn_all().await;
        let learned = it.memories().await;
        assert_eq!(learned.len(), 1);
        assert!(learned[0].ends_with(FACT), "{learned:?}");

        it.learn_all().await;
        assert_eq!(it.memories().await, learned);
        it.app.close().await;
    }

    async fn failed_tasks_are_shown_with_their_error_until_they_are_tried_again(backend) {
        let mut it = LearnFixture::open(backend).await;
        assert_eq!(it.state().await["failed_tasks"], json!([]));
        it.fail_task().await;

        let state = it.state().await;

        assert_eq!(state["tasks"], json!({"queued": 0, "failed": 1}));
        let failed = &state["failed_tasks"][0];
        assert_eq!(failed["conversation_id"], it.conversation);
        assert_eq!((&failed["kind"], &failed["error"]), (&json!("extract"), &json!("It broke.")));
        it.learn_all().await;
        let state = it.state().await;
        assert_eq!((&state["tasks"]["failed"], &state["failed_tasks"]), (&json!(0), &json!([])));
        assert_eq!(it.memories().await.len(), 1);
        it.app.close().await;
    }

    async fn the_newest_five_failed_tasks_of_visible_conversations_are_listed(backend) {
        let mut it = LearnFixture::open(backend).await;
        let path = format!("/api/spaces/{}/conversations", id(&it.space));
        let mut conversations = Vec::new();
        for _ in 0..7 {
            let conversation = id(&expect(201, it.owner.post(&path, json!({"title": "Inn"})).await));
            expect(201, it.owner.post_message(conversation, FACT, None).await);
            conversations.push(conversation);
        }
        it.fail_task().await;
        // A job is still deleting it.
        let hidden = conversations.pop().expect("a conversation");
        it.facts.execute(&format!("UPDATE conversations SET is_hidden = TRUE WHERE id = {hidden}")).await;

        let state = it.state().await;

        let listed = state["failed_tasks"].as_array().expect("a list").iter();
        let listed: Vec<i64> = listed.map(|it| it["conversation_id"].as_i64().expect("an id")).collect();
        let newest: Vec<i64> = conversations.into_iter().rev().take(5).collect();
        assert_eq!(listed, newest);
        it.app.close().await;
    }

    async fn the_tokens_of_the_memory_are_stored_with_its_space_and_summed_for_admins(backend) {
        let mut it = LearnFixture::open(backend).await;
        assert_eq!(it.state().await["tokens_used"], 0);
        let upstream = FakeProvider::start().await;
        let answer = json!({ "memories": [] }).to_string();
        upstream.next(ResponseScript::stream().role().text(&answer).finish("stop").usage(300, 7).done());
        let provider = json!({"name": "Chat", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, it.owner.post("/api/providers", provider).await);
        let other = it.owner.create_space("Lighthouse", json!({})).await;
        it.facts.execute(&format!("UPDATE spaces SET memory_tokens_used = 5 WHERE id = {}", id(&other))).await;

        it.learn_all().await;

        assert_eq!(it.state().await["tokens_used"], 307);
        let space = expect(200, it.owner.get(&format!("/api/spaces/{}", id(&it.space))).await);
        assert_eq!(space["tokens_used"], 307, "they count toward the limit of the space");
        let stats = expect(200, it.owner.get("/api/admin/stats").await);
        assert_eq!(stats["memory"]["tokens_used"], 312);
        it.app.close().await;
    }
}

on_sqlite! {
    async fn what_is_switched_off_is_not_overridden(backend) {
        let it = LearnFixture::open(backend).await;
        let body = json!({"conversation_id": it.conversation});
        for memory in [json!({"enabled": false}), json!({"enabled": null, "learn": false})] {
            it.change_memory(memory).await;

            assert_eq!(refusal(&it.learn(body.clone()).await), refused(409, "memory_off"));
        }
        it.app.close().await;
    }

    async fn a_request_that_is_not_valid_is_refused_with_its_reason(backend) {
        let it = LearnFixture::open(backend).await;
        let of_range = |from: Value, to: Value| {
            json!({"conversation_id": it.conversation, "from_seq": from, "to_seq": to})
        };
        for (body, expected) in [
            (json!({}), refused(400, "missing_field")),
            (json!({"conversation_id": "1"}), refused(400, "invalid_type")),
            (json!({"conversation_id": it.conversation, "all": true}), refused(400, "unknown_field")),
            (json!({"conversation_id": 999_999}), refused(422, "invalid_value")),
            (of_range(json!(0), json!(1)), refused(422, "invalid_value")),
            (of_range(json!(2), json!(1)), refused(422, "invalid_value")),
            (of_range(json!(1), json!(257)), refused(422, "invalid_value")),
            (of_range(json!(7), json!(9)), refused(409, "nothing_to_learn")),
        ] {
            assert_eq!(refusal(&it.learn(body.clone()).await), expected, "{body}");
        }
        for body in [of_range(json!(1), json!(1)), of_range(json!(1), Value::Null), of_range(Value::Null, json!(5))] {
            expect(202, it.learn(body).await);
        }
        it.app.close().await;
    }

    async fn a_conversation_of_another_space_is_not_learned_from(backend) {
        let it = LearnFixture::open(backend).await;
        let other = it.owner.create_space("Lighthouse", json!({})).await;

        let answer = it.learn(json!({"conversation_id": root_of(&other)})).await;

        assert_eq!(refusal(&answer), refused(422, "invalid_value"));
        it.app.close().await;
    }

    async fn what_was_forgotten_is_not_learned_on_request(backend) {
        let mut it = LearnFixture::open(backend).await;
        it.learn_all().await;
        let path = format!("/api/spaces/{}/memories/forget", id(&it.space));
        expect(200, it.owner.post(&path, json!({"all": true})).await);

        let all = json!({"conversation_id": it.conversation});
        let first = json!({"conversation_id": it.conversation, "from_seq": 1});
        for body in [all, first] {
            assert_eq!(refusal(&it.learn(body).await), refused(409, "nothing_to_learn"));
        }

        it.post("My cat is called Comet, and she fears the old lighthouse.").await;
        it.learn_all().await;
        let memories = it.memories().await;
        assert!(memories.len() == 1 && memories[0].contains("Comet"), "{memories:?}");
        it.app.close().await;
    }
}
