//! Tests of memories that a model makes from messages: what is stored, and what is not.

use base::ids::MemoryId;
use sea_orm::{EntityTrait, QueryOrder};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use troupe::conversations::message::Visibility;
use troupe::memories::error::MemoryError;
use troupe::memories::memory::{MemoryKind, MemoryOrigin};
use troupe::memories::memory_store::{MemoryEdit, NewMemory};
use troupe::memories::tasks::task_queue::TaskQueue;
use troupe::memories::tasks::{memory_task, task_queue};
use troupe::memories::{memory, memory_source, memory_store};

use crate::support::backends::on_both;
use crate::support::engine_test::{EngineTest, edit_of};
use crate::support::fake_provider::script::ResponseScript;

const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";

/// A memory in an answer, without owner and subject.
pub fn made(content: &str, sources: &[i64]) -> Value {
    json!({
        "kind": "event", "content": content, "importance": 0.5, "about": null, "owner": null,
        "replaces": null, "sources": sources,
    })
}

/// The answer of a model with these memories.
pub fn answer(memories: &[Value]) -> ResponseScript {
    ResponseScript::say(&json!({ "memories": memories }).to_string())
}

/// Returns the number of an existing memory in a request.
fn number_of(request: &Value, content: &str) -> Value {
    let text = request["messages"][1]["content"].as_str().expect("a text");
    let lines = text.lines().filter_map(|it| serde_json::from_str(it).ok());
    let mut memories = lines.filter(|it: &Value| it["content"] == content);
    memories.next().expect("the memory is in the request")["n"].clone()
}

impl EngineTest {
    /// Opens a conversation in which Eve has said the fact, and Ada has replied.
    pub async fn with_fact(&self) {
        self.user.post(FACT).await;
        self.settle().await;
    }

    async fn memory_rows(&self) -> Vec<memory::Model> {
        let rows = memory::select_for_space(self.space).order_by_asc(memory::Column::Id);
        rows.all(self.db.reader())
            .await
            .expect("the database answers")
    }

    /// Stores a memory and returns its id.
    async fn store_everyones_memory(
        &self,
        content: &str,
        origin: MemoryOrigin,
        is_pinned: bool,
    ) -> MemoryId {
        let memory = NewMemory {
            owner: None,
            about: None,
            source: None,
            kind: MemoryKind::Event,
            origin,
            content: content.to_owned(),
            importance: 0.5,
            is_pinned,
            created_by: None,
        };
        let stored = memory_store::insert_one(&self.db, self.space, memory, self.clock.now()).await;
        stored
            .expect("the database answers")
            .expect("a new memory")
            .id
    }

    /// Claims the task of the conversation.
    pub async fn claim_task(&self) -> memory_task::Model {
        self.clock.advance_ms(30_000);
        let services = self.learning_services();
        let (db, now, stale) = (self.db.reader(), self.clock.now(), services.stale());
        let due = task_queue::list_due(db, TaskQueue::Learning, now, &stale, [], 16)
            .await
            .unwrap();
        let claimed = services.claim(due[0].clone()).await.unwrap();
        claimed.expect("the task is due")
    }

    /// Learns from a claimed task; `meanwhile` happens between the request to the model and its
    /// answer.
    pub async fn learn_while(
        &self,
        script: ResponseScript,
        cancel: &CancellationToken,
        meanwhile: impl AsyncFnOnce(),
    ) -> Result<(), MemoryError> {
        let (services, task) = (self.learning_services(), self.claim_task().await);
        let n_before = self.upstream.n_requests();
        self.upstream.next(script);
        let gate = self.upstream.gate();
        let token = cancel.clone();
        let learning = tokio::spawn(async move { services.learn(task, &token).await });
        self.upstream.wait_for_requests(n_before + 1).await;
        meanwhile().await;
        gate.open();
        learning.await.expect("the task does not panic")
    }
}

on_both! {
    async fn a_model_makes_memories_with_owner_subject_and_sources(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        let mut first = made("Eve's dog is called Pixel.", &[1]);
        first["kind"] = json!("relation");
        (first["owner"], first["about"], first["importance"]) = (json!(" ADA "), json!("eve"), json!(7));
        let mut second = made("Eve spoke\nof a lighthouse.", &[]);
        second["owner"] = json!("Somebody else");
        app.upstream.next(answer(&[first, second]));

        assert_eq!(app.learn().await, 1);

        let rows = app.memory_rows().await;
        let contents: Vec<&str> = rows.iter().map(|it| it.content.as_str()).collect();
        assert_eq!(contents, ["Eve's dog is called Pixel.", "Eve spoke of a lighthouse."]);
        let ada = app.membership("Ada").await.id;
        assert_eq!((rows[0].space_membership_id, rows[0].about_membership_id), (Some(ada), Some(app.user.membership)));
        assert_eq!((rows[0].kind, rows[0].origin, rows[0].importance), (MemoryKind::Relation, MemoryOrigin::Extracted, 1.0));
        assert_eq!((rows[0].source_from_seq, rows[0].source_to_seq), (Some(1), Some(1)));
        // An unknown owner is everyone; without numbers, all messages of the request are sources.
        assert_eq!((rows[1].space_membership_id, rows[1].about_membership_id), (None, None));
        assert_eq!((rows[1].source_from_seq, rows[1].source_to_seq), (Some(1), Some(2)));
        let sources = memory_source::Entity::find().all(app.db.reader()).await.unwrap();
        let n_sources = |id| sources.iter().filter(|it| it.memory_id == id).count();
        assert_eq!((n_sources(rows[0].id), n_sources(rows[1].id)), (1, 2));
        app.close_without_events().await;
    }

    async fn a_newer_memory_replaces_an_older_one_unless_a_person_keeps_it(backend) {
        let app = EngineTest::builder(backend).open().await;
        let old = ["The dog is called Rex.", "The dog is called Max.", "The dog is called Bo.", "The dog is called Sam."];
        app.store_everyones_memory(old[0], MemoryOrigin::Extracted, false).await;
        app.store_everyones_memory(old[1], MemoryOrigin::Extracted, true).await;
        app.store_everyones_memory(old[2], MemoryOrigin::Person, false).await;
        let edited = app.store_everyones_memory("The dog is called Comet.", MemoryOrigin::Extracted, false).await;
        let eve = troupe::accounts::user::Entity::find().one(app.db.reader()).await.unwrap().unwrap().id;
        let edit = MemoryEdit { content: Some(old[3].to_owned()), ..MemoryEdit::default() };
        memory_store::update(&app.db, app.space, edited, edit, (eve, 1), app.clock.now()).await.unwrap();
        app.with_fact().await;
        app.upstream.answer_with(move |request| {
            let memories = old.iter().enumerate().map(|(n, content)| {
                let mut memory = made(&format!("The dog is called Pixel, says witness {n}."), &[1]);
                memory["replaces"] = number_of(request, content);
                memory
            });
            answer(&memories.collect::<Vec<_>>())
        });

        app.learn().await;

        let memories = app.memories().await;
        let kept: Vec<&str> = old.into_iter().filter(|it| memories.iter().any(|memory| memory == it)).collect();
        assert_eq!(kept, old[1..], "{memories:?}");
        assert_eq!(memories.len(), 7, "{memories:?}");
        app.close_without_events().await;
    }

    async fn a_memory_that_is_stated_again_replaces_nothing(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.store_everyones_memory("The dog is called Pixel.", MemoryOrigin::Extracted, false).await;
        app.with_fact().await;
        let mut same = made("the dog is called pixel.", &[1]);
        same["replaces"] = json!(1);
        app.upstream.next(answer(&[same]));

        app.learn().await;

        assert_eq!(app.memories().await, ["The dog is called Pixel."]);
        app.close_without_events().await;
    }

    async fn what_is_made_after_the_lease_was_lost_is_not_stored(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        let (late, cancel) = (answer(&[made("The dog is called Pixel.", &[1])]), CancellationToken::new());

        let ended = app.learn_while(late, &cancel, async || {
            app.facts().await.execute("UPDATE memory_tasks SET status = 'queued', lease = lease + 1").await;
        });

        ended.await.expect("a lost lease is no error");
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.upstream.next(answer(&[made("The dog is called Pixel.", &[1])]));
        assert_eq!(app.learn().await, 1);
        assert_eq!((app.memories().await.len(), app.learn().await), (1, 0));
        app.close_without_events().await;
    }

    async fn what_is_made_from_a_message_that_was_deleted_meanwhile_is_not_stored(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        let said = app.messages().await[0].id;
        let script = answer(&[made("Pixel is a dog.", &[1]), made("Both spoke.", &[1, 2]), made("Ada said hello.", &[2])]);

        let cancel = CancellationToken::new();
        let ended = app.learn_while(script, &cancel, async || {
            app.engine.set_visibility(app.scope(), said, Visibility::Hidden).await.unwrap();
        });

        ended.await.expect("the task ends");
        assert_eq!(app.memories().await, ["Ada said hello."]);
        app.close_without_events().await;
    }

    async fn a_canceled_task_stores_nothing_and_is_executed_again(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        let (script, cancel) = (answer(&[made("The dog is called Pixel.", &[1])]), CancellationToken::new());

        let ended = app.learn_while(script, &cancel, async || {
            cancel.cancel();
            app.upstream.wait_for_disconnect(app.upstream.n_requests() - 1).await;
        });

        assert!(matches!(ended.await, Err(MemoryError::Canceled)));
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.facts().await.execute("UPDATE memory_tasks SET heartbeat_at = 1").await;
        app.upstream.next(answer(&[made("The dog is called Pixel.", &[1])]));
        assert_eq!(app.learn().await, 1);
        assert_eq!(app.memories().await, ["The dog is called Pixel."]);
        app.close_without_events().await;
    }

    async fn a_memory_of_several_messages_is_made_again_without_a_deleted_one(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        app.upstream.next(answer(&[made("Eve and Ada spoke of Pixel.", &[1, 2])]));
        app.learn().await;
        let reply = app.messages().await[1].id;

        app.engine.set_visibility(app.scope(), reply, Visibility::Hidden).await.unwrap();
        assert_eq!(app.memories().await, Vec::<String>::new(), "a deleted message is remembered");
        app.upstream.next(answer(&[made("Eve spoke of Pixel.", &[1])]));
        assert_eq!(app.learn().await, 1);
        assert_eq!(app.memories().await, ["Eve spoke of Pixel."]);

        app.engine.set_visibility(app.scope(), reply, Visibility::Normal).await.unwrap();
        assert_eq!(app.memories().await, ["Eve and Ada spoke of Pixel.", "Eve spoke of Pixel."]);
        app.close_without_events().await;
    }

    async fn a_memory_of_several_messages_is_made_again_after_an_edit(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.with_fact().await;
        app.upstream.next(answer(&[made("Eve and Ada spoke of Pixel.", &[1, 2])]));
        app.learn().await;
        let reply = app.messages().await.pop().expect("a reply");

        app.engine.edit_message(app.scope(), edit_of(&reply, "Who is Comet?")).await.unwrap();
        assert_eq!(app.memories().await, Vec::<String>::new());
        let n_before = app.upstream.n_requests();
        app.upstream.next(answer(&[made("Eve spoke of Pixel, Ada of Comet.", &[1, 2])]));
        app.learn().await;

        let sent = app.upstream.body(n_before).to_string();
        assert!(sent.contains("Pixel") && sent.contains("Who is Comet?"), "{sent}");
        assert_eq!(app.memories().await, ["Eve spoke of Pixel, Ada of Comet."]);
        app.close_without_events().await;
    }
}
