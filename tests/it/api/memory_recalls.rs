//! Tests of the last recall of a memory: in the list of memories, as long as its prompt can be opened.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;

/// A space with a pinned memory, which every prompt recalls, and a character that replies.
struct RecallFixture {
    app: TestApp,
    /// Kept, because it stops when it is dropped.
    _upstream: FakeProvider,
    owner: HttpClient,
    space: Value,
    speaker: i64,
}

impl RecallFixture {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let owner = app.admin().await;
        let upstream = FakeProvider::start().await;
        upstream.reply_with("Indeed.");
        let provider = json!({"name": "Chat", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, owner.post("/api/providers", provider).await);
        let rules = json!({"reply_order": "manual", "settings": {"memory": {"learn": false}}});
        let space = owner.create_space("Harbor", rules).await;
        let card = owner.create_character("Ada", None).await;
        let it = Self {
            speaker: id(&owner.add_character(&space, &card).await),
            _upstream: upstream,
            app,
            owner,
            space,
        };
        let memory =
            json!({"content": "The ferry leaves at dawn.", "kind": "event", "pinned": true});
        expect(201, it.owner.post(&it.path(), memory).await);
        it
    }

    fn path(&self) -> String {
        format!("/api/spaces/{}/memories", id(&self.space))
    }

    /// Returns the only memory, as a person sees it in the list.
    async fn listed(&self, person: &HttpClient, query: &str) -> Value {
        let path = format!("{}{query}", self.path());
        expect(200, person.get(&path).await)["data"][0].clone()
    }

    async fn open_conversation(&self) -> i64 {
        let path = format!("/api/spaces/{}/conversations", id(&self.space));
        id(&expect(
            201,
            self.owner.post(&path, json!({"title": "Elsewhere"})).await,
        ))
    }

    /// Lets Ada reply, waits for the `n`th recall of the memory, and returns it.
    async fn recall_in(&self, conversation: i64, n: i64) -> Value {
        let owner = &self.owner;
        expect(
            201,
            owner
                .post_message(conversation, "Good morning.", None)
                .await,
        );
        self.generated_recall(conversation, n).await
    }

    /// As [`Self::recall_in`], as a reply to the newest message.
    async fn generated_recall(&self, conversation: i64, n: i64) -> Value {
        let owner = &self.owner;
        expect(202, owner.generate(conversation, Some(self.speaker)).await);
        let recall = poll::until("the recall is counted", async || {
            let memory = self.listed(owner, "").await;
            (memory["recall_count"] == n).then(|| memory["last_recall"].clone())
        })
        .await;
        let runs = owner.runs(conversation).await;
        let expected = json!({
            "run_id": runs[0]["id"], "conversation_id": conversation, "membership_id": self.speaker,
        });
        assert_eq!(recall, expected);
        recall
    }
}

on_both! {
    async fn the_last_recall_of_a_memory_is_shown_to_all_members(backend) {
        let it = RecallFixture::open(backend).await;
        assert_eq!(it.listed(&it.owner, "").await["last_recall"], Value::Null);
        let first = it.recall_in(root_of(&it.space), 1).await;
        let other = it.open_conversation().await;

        let last = it.recall_in(other, 2).await;

        assert_ne!(first["run_id"], last["run_id"]);
        let bob = HttpClient::register(&it.app.base, "bob").await;
        assert_eq!(bob.get(&it.path()).await.0, 404);
        it.owner.add_member(id(&it.space), &bob, "member").await;
        for query in ["", "?q=ferry"] {
            assert_eq!(it.listed(&bob, query).await["last_recall"], last, "{query}");
        }
        let why = format!("/api/runs/{}/memories", last["run_id"].as_str().expect("an id"));
        assert_eq!(expect(200, bob.get(&why).await)["data"][0]["because"], "pinned");
        it.app.close().await;
    }

    async fn a_recall_by_a_whispered_reply_is_shown_to_its_audience_alone(backend) {
        let it = RecallFixture::open(backend).await;
        let bob = HttpClient::register(&it.app.base, "bob").await;
        it.owner.add_member(id(&it.space), &bob, "moderator").await;
        let conversation = root_of(&it.space);
        let whisper = json!({"content": "Good morning.", "audience": [it.speaker]});
        let path = format!("/api/conversations/{conversation}/messages");
        expect(201, it.owner.post(&path, whisper).await);

        let private = it.generated_recall(conversation, 1).await;

        for query in ["", "?q=ferry"] {
            assert_eq!(it.listed(&it.owner, query).await["last_recall"], private, "{query}");
            assert_eq!(it.listed(&bob, query).await["last_recall"], Value::Null, "{query}");
        }
        let public = it.recall_in(conversation, 2).await;
        assert_eq!(it.listed(&bob, "").await["last_recall"], public);
        it.app.close().await;
    }

    async fn a_recall_whose_prompt_is_deleted_is_counted_but_not_linked(backend) {
        let it = RecallFixture::open(backend).await;
        it.recall_in(root_of(&it.space), 1).await;
        let mut facts = DatabaseFacts::open(&it.app.database).await;
        facts.execute("DELETE FROM run_prompts").await;

        let memory = it.listed(&it.owner, "").await;
        assert_eq!((&memory["last_recall"], &memory["recall_count"]), (&Value::Null, &json!(1)));
        assert_ne!(memory["last_recalled_at"], Value::Null);

        let other = it.open_conversation().await;
        it.recall_in(other, 2).await;
        assert_eq!(it.owner.delete(&format!("/api/conversations/{other}")).await.0, 204);
        let memory = it.listed(&it.owner, "").await;
        assert_eq!((&memory["last_recall"], &memory["recall_count"]), (&Value::Null, &json!(2)));
        it.app.close().await;
    }
}
